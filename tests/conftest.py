"""What every test may rely on: a quiet environment, hypothesis profiles, expected outputs on disk.

`golden` compares a whole file in tests/golden/, `generated` a marked part of a page; `make golden`
and `make docs` write them again, and the diff is the review.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.database import DirectoryBasedExampleDatabase

ROOT = Path(__file__).resolve().parents[1]
WRITERS = {"golden": "--update-golden", "generated": "--update-docs"}

# A slow machine is not a bug, so no deadline. In CI the examples are the same on every run: a
# failure there is the change's own. On a desk they vary, and failing ones are kept and retried.
settings.register_profile("ci", derandomize=True, deadline=None, database=None, print_blob=True)
settings.register_profile(
    "desk",
    deadline=None,
    database=DirectoryBasedExampleDatabase(ROOT / ".hypothesis" / "examples"),
)
settings.load_profile("ci" if os.environ.get("CI") else "desk")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden")
    parser.addoption("--update-docs", action="store_true", help="rewrite generated docs")
    parser.addoption(
        "--thorough", action="store_true", help="rehearse every virtual machine, not only one"
    )
    parser.addoption("--update-timeline", action="store_true", help="keep what rehearsals measure")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """When rewriting, run only the tests that write: the others have nothing to say then."""
    wanted = {name for name, option in WRITERS.items() if config.getoption(option)}
    if not wanted:
        return
    chosen = [item for item in items if wanted & set(getattr(item, "fixturenames", ()))]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen


@pytest.fixture(scope="session", autouse=True)
def quiet_environment() -> Iterator[None]:
    """Nothing of the caller's terminal or of an earlier run may change an output."""
    of_a_terminal = {"NO_COLOR", "FORCE_COLOR", "CLICOLOR", "COLUMNS", "LINES"}
    of_a_cloud = ("GPUTIER_", "PULUMI_", "AWS_", "GOOGLE_")
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name in of_a_terminal or name.startswith(of_a_cloud):
                patch.delenv(name)
        yield


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the checkout."""
    return ROOT


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden("plan/dev.txt", text)`: the text equals tests/golden/plan/dev.txt."""

    def check(name: str, text: str) -> None:
        path = ROOT / "tests" / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"no expected output yet: `make golden` writes {name}"
        assert text == path.read_text(encoding="utf-8"), (
            f"tests/golden/{name} differs; if the change is meant, `make golden` and read the diff"
        )

    return check


@pytest.fixture
def generated(request: pytest.FixtureRequest) -> Callable[[str, str, str], None]:
    """`generated("docs/x.md", "fields", text)`: the page holds the text between the markers
    `<!-- generated: fields -->` and `<!-- end: fields -->`."""

    def check(page: str, name: str, text: str) -> None:
        path = ROOT / page
        before = path.read_text(encoding="utf-8")
        part = re.compile(f"(<!-- generated: {name} -->\n).*?(<!-- end: {name} -->)", re.DOTALL)
        assert len(part.findall(before)) == 1, f"{page} needs the two markers of `{name}` once"
        wanted = text.rstrip("\n") + "\n"
        after = part.sub(lambda found: found[1] + wanted + found[2], before)
        if request.config.getoption("--update-docs"):
            path.write_text(after, encoding="utf-8")
            return
        assert before == after, f"{page} is out of date: `make docs` writes `{name}` again"

    return check
