"""docs/requirements.md answers for every numbered statement, and what it names exists."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from gputier.workload import Workload

STATEMENTS = range(1, 55)
COLUMNS = ("no.", "statement", "where it lives", "what shows it", "status")
LATER = (
    "sizing in depth",
    "node validator",
    "boot and gates",
    "review",
    "guardrails",
    "GCP deployment",
)
WAITS = re.compile(rf"waits: ({'|'.join(LATER)})(, ({'|'.join(LATER)}))*")
STATUS = re.compile(rf"done|(in part; )?{WAITS.pattern}")
CODE = re.compile(r"`([^`]+)`")
FIELDS = re.compile(r"\bfields? ((?:`[^`]+`(?:, )?)+)")
PLACE = re.compile(r"[\w./-]+\.(?:py|toml|csv|md|yml)|Makefile|Pulumi\.yaml")


def field_names(part: object, prefix: str = "") -> Iterator[str]:
    """Every field below a model, or below what an annotation wraps, as `gpu.count`."""
    if isinstance(part, type) and issubclass(part, BaseModel):
        for name, info in part.model_fields.items():
            yield f"{prefix}{name}"
            yield from field_names(info.annotation, f"{prefix}{name}.")
    else:
        for inner in get_args(part):
            yield from field_names(inner, prefix)


FIELD_NAMES = frozenset(field_names(Workload))


@dataclass(frozen=True, slots=True)
class Row:
    number: int
    statement: str
    where: str
    shown: str
    status: str

    @property
    def stands(self) -> bool:
        """Whether something of it exists today."""
        return not self.status.startswith("waits: ")


def rows(page: str) -> list[Row]:
    """The table's rows, as (number, statement, where, shown, status)."""
    found: list[Row] = []
    for line in page.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) > 1 and cells[0].isdigit():
            assert len(cells) == len(COLUMNS), f"row {cells[0]} has {len(cells)} cells"
            number, statement, where, shown, status = cells
            found.append(Row(int(number), statement, where, shown, status))
    return found


def problems(page: str, root: Path) -> Iterator[str]:
    """What is wrong with the table, a line each; nothing when it is complete and true."""
    table = rows(page)
    numbers = [row.number for row in table]
    if numbers != list(STATEMENTS):
        yield f"the numbers are {numbers}, not 1 to {STATEMENTS[-1]} once each and in order"
    for row in table:
        yield from (f"{row.number}: {why}" for why in _of_row(row, root))


def _of_row(row: Row, root: Path) -> Iterator[str]:
    if not row.statement or not row.where:
        yield "says neither what nor where"
    if not STATUS.fullmatch(row.status):
        yield f"status `{row.status}` is none of the words"
    if row.stands:
        yield from _missing_places(row, root)
        yield from _missing_proofs(row, root)


def _missing_places(row: Row, root: Path) -> Iterator[str]:
    for name in CODE.findall(row.where):
        inside = root / "components" / "gputier" / name
        if PLACE.fullmatch(name) and not (root / name).exists() and not inside.exists():
            yield f"`{name}` does not exist"
    for listed in FIELDS.findall(row.where):
        for name in CODE.findall(listed):
            if name not in FIELD_NAMES:
                yield f"`{name}` is no field of a workload"


def _missing_proofs(row: Row, root: Path) -> Iterator[str]:
    proofs = [name for name in CODE.findall(row.shown) if name.startswith(("tests/", "docs/"))]
    if not proofs:
        yield "stands, and names no test or page that shows it"
    for proof in proofs:
        file, _, test = proof.partition("::")
        if not (root / file).is_file():
            yield f"`{file}` does not exist"
        elif file.startswith("tests/") and test not in _tests(root / file):
            yield f"`{file}` has no test `{test}`"


def _tests(file: Path) -> set[str]:
    """Tests of a file as pytest names them: `test_x` or `TestY::test_x`."""
    found: set[str] = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {
                f"{node.name}::{inner.name}"
                for inner in node.body
                if isinstance(inner, ast.FunctionDef) and inner.name.startswith("test_")
            }
    return found


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "requirements.md").read_text(encoding="utf-8")


def test_every_statement_has_a_row_that_holds(page: str, root: Path) -> None:
    assert list(problems(page, root)) == []


def test_the_floors_of_the_tiers_are_in_their_statements_rows(page: str, root: Path) -> None:
    """tiers.toml names the statement behind each floor; that row must name tiers.toml."""
    text = (root / "components/gputier/tiers.toml").read_text(encoding="utf-8")
    tomllib.loads(text)
    named = {int(number) for number in re.findall(r'requirement = "(\d+)"', text)}
    assert named, "tiers.toml names no statement"
    telling = {row.number for row in rows(page) if "`tiers.toml`" in row.where}
    assert named <= telling, f"rows {sorted(named - telling)} do not name tiers.toml"


GOOD = "| {n} | said | `plan/need.py` | `tests/test_x.py::test_x` | done |"


def table_of(**changed: str) -> str:
    lines = {f"n{n}": GOOD.format(n=n) for n in STATEMENTS} | changed
    return "\n".join(line for line in lines.values() if line)


@pytest.fixture
def small_root(tmp_path: Path) -> Path:
    (tmp_path / "components/gputier/plan").mkdir(parents=True)
    (tmp_path / "components/gputier/plan/need.py").touch()
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_x.py").write_text("def test_x(): ...\nclass TestY:\n def test_z(): ...")
    return tmp_path


BREACHES = {
    "a row is missing": ("", "the numbers are"),
    "a number twice": (GOOD.format(n=1) + "\n" + GOOD.format(n=1), "the numbers are"),
    "a file that is not there": (
        "| 2 | said | `plan/gone.py` | `tests/test_x.py::test_x` | done |",
        "2: `plan/gone.py` does not exist",
    ),
    "a test that is not there": (
        "| 2 | said | `plan/need.py` | `tests/test_x.py::test_gone` | done |",
        "2: `tests/test_x.py` has no test `test_gone`",
    ),
    "a test file that is not there": (
        "| 2 | said | `plan/need.py` | `tests/gone.py::test_x` | done |",
        "2: `tests/gone.py` does not exist",
    ),
    "a field that is not there": (
        "| 2 | said | fields `gpu.count`, `gpu.size` | `tests/test_x.py::test_x` | done |",
        "2: `gpu.size` is no field of a workload",
    ),
    "done without proof": (
        "| 2 | said | `plan/need.py` | – | done |",
        "2: stands, and names no test or page that shows it",
    ),
    "partly there without proof": (
        "| 2 | said | `plan/need.py` | – | in part; waits: node validator |",
        "2: stands, and names no test or page that shows it",
    ),
    "waits for nothing known": (
        "| 2 | said | `plan/need.py` | – | waits: a miracle |",
        "2: status `waits: a miracle` is none of the words",
    ),
    "says nothing": ("| 2 |  | `plan/need.py` | `tests/test_x.py::test_x` | done |", "2: says"),
}


@pytest.mark.parametrize(("line", "message"), BREACHES.values(), ids=BREACHES.keys())
def test_a_row_that_does_not_hold_is_found(small_root: Path, line: str, message: str) -> None:
    found = list(problems(table_of(n2=line), small_root))
    assert [text for text in found if text.startswith(message)]


@pytest.mark.parametrize(
    "line",
    [
        GOOD.format(n=2),
        "| 2 | said | `plan/later.py` | – | waits: node validator, boot and gates |",
        "| 2 | said | field `gpu.count` | `tests/test_x.py::TestY::test_z` | done |",
        "| 2 | a \\| b | x | `tests/test_x.py::test_x` | in part; waits: review |",
    ],
)
def test_a_row_that_holds_is_left_alone(small_root: Path, line: str) -> None:
    assert list(problems(table_of(n2=line), small_root)) == []
