"""CSV files as tables: read once, hashed, and merged with a person's own overlay."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

from gputier.errors import InvalidInput, Problem, spelling_hint

DATA = Path(__file__).parent / "data"

# A row of an overlay replaces every packaged row that has the same values in these columns.
# For offerings the key is a type in a region, so that a zone which lost the type goes too.
KEYS: dict[str, tuple[str, ...]] = {
    "gpus": ("gpu_model",),
    "aws": ("instance_type",),
    "gcp": ("instance_type",),
    "azure": ("instance_type",),
    "alibaba": ("instance_type",),
    "tencent": ("instance_type",),
    "prices": ("provider", "region", "zone", "instance_type", "purchase"),
    "offerings": ("provider", "region", "instance_type"),
    "spot_advisor_aws": ("region", "instance_type"),
    "aws_ebs": ("instance_type",),
    "aws_interfaces": ("instance_type",),
    "aws_network": ("instance_type",),
    "aws_quotas": ("service_code", "quota_code", "name"),
    "gcp_disk_limits": ("machine_type", "vcpus_min", "disk_type"),
    "gcp_disk_types": ("disk_type",),
    "gcp_hosts": ("name",),
    "gcp_machines": ("machine_type",),
    "gcp_quotas": ("metric",),
    "gcp_zone_caps": ("instance_type", "zone"),
    "items": ("provider", "item", "region"),
    "wheels": ("framework", "version", "build", "cpu_arch"),
    "cuda_drivers": ("cuda_major",),
    "driver_branches": ("branch",),
    "gpu_drivers": ("gpu_model",),
    "images": ("cloud", "name"),
}

T = TypeVar("T")


class Table(NamedTuple):
    """One CSV file: `columns` maps a column's name to its place in each row."""

    file: str
    columns: dict[str, int]
    rows: list[list[str]]
    line: int = 2  # the first row's line in `file`


class Source(NamedTuple):
    """The packaged data, or that and an overlay: `tables[name]` is one table or two."""

    id: str
    tables: dict[str, tuple[Table, ...]]


def parse(file: str, text: str) -> Table:
    """A table from a CSV file's text. Raises InvalidInput for a row of the wrong length."""
    try:
        rows = list(csv.reader(text.splitlines(), strict=True))
    except csv.Error as problem:
        raise _bad(file, f"this is not a CSV file: {problem}") from None
    if not rows:
        raise _bad(file, "the file is empty; its first line names the columns")
    header = rows.pop(0)
    width = len(header)
    for number, row in enumerate(rows, 2):
        if len(row) != width:
            message = f"line {number} has {len(row)} cells, the first line names {width} columns"
            raise _bad(file, message)
    return Table(file, {name: place for place, name in enumerate(header)}, rows)


def read(overlay: Path | None) -> Source:
    """The packaged tables, with the overlay's winning by key. Raises InvalidInput."""
    digest = hashlib.sha256()
    tables: dict[str, tuple[Table, ...]] = {}
    for name in sorted(KEYS):
        tables[name] = (_file(DATA / f"{name}.csv", digest.update),)
    if overlay is not None:
        for path in _overlay_files(overlay):
            own = _file(path, digest.update)
            tables[path.stem] = _merge(path.stem, tables[path.stem][0], own)
    return Source(digest.hexdigest()[:16], tables)


def _file(path: Path, update: Callable[[bytes], None]) -> Table:
    try:
        content = path.read_bytes()
    except OSError as problem:
        raise _bad(str(path), f"cannot be read: {problem.strerror}") from None
    update(path.name.encode())
    update(content)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _bad(str(path), "is not UTF-8 text") from None
    return parse(str(path), text)


def _overlay_files(overlay: Path) -> list[Path]:
    if not overlay.is_dir():
        raise _bad(
            str(overlay),
            "there is no such catalogue directory",
            "make one with `gputier catalog refresh --from FILE… --out DIR`",
        )
    files = sorted(overlay.glob("*.csv"))
    unknown = [path for path in files if path.stem not in KEYS]
    if unknown:
        known = ", ".join(f"{name}.csv" for name in sorted(KEYS))
        raise _bad(str(unknown[0]), "is no file of a catalogue", f"the files are {known}")
    if not files:
        raise _bad(str(overlay), "holds no catalogue files", "remove the setting or refresh it")
    return files


def _merge(name: str, base: Table, own: Table) -> tuple[Table, ...]:
    own = _in_columns_of(base, own, KEYS[name])
    taken = set(keys(name, own))
    kept = [row for key, row in zip(keys(name, base), base.rows, strict=True) if key not in taken]
    return (base._replace(rows=kept), own)


def _in_columns_of(base: Table, own: Table, key: tuple[str, ...]) -> Table:
    missing = [column for column in key if column not in own.columns]
    if missing:
        raise _bad(own.file, f"has no column {', '.join(missing)}")
    unknown = [column for column in own.columns if column not in base.columns]
    if unknown:
        hint = spelling_hint(unknown[0], base.columns, otherwise="remove it")
        raise _bad(own.file, f"has a column `{unknown[0]}` that no catalogue has", hint)
    places = [own.columns.get(column) for column in base.columns]
    rows = [["" if place is None else row[place] for place in places] for row in own.rows]
    return Table(own.file, base.columns, rows)


def keys(name: str, table: Table) -> Iterator[tuple[str, ...]]:
    """Each row's key, in the rows' order."""
    places = [table.columns[column] for column in KEYS[name]]
    return (tuple(row[place] for place in places) for row in table.rows)


def records(tables: Iterable[Table], make: Callable[[Row], T]) -> Iterator[T]:
    """`make` over every row; a cell it cannot read becomes InvalidInput with file and line."""
    for table in tables:
        row = Row(table)
        for number, cells in enumerate(table.rows, table.line):
            row.cells = cells
            try:
                yield make(row)
            except ValueError as problem:
                raise _bad(table.file, f"line {number}: {problem}") from None


class Row:
    """A cursor over a table's rows; cells by column name. Empty is None, never 0 or False."""

    __slots__ = ("cells", "columns")

    def __init__(self, table: Table) -> None:
        self.columns = table.columns
        self.cells: list[str] = []

    def text(self, column: str) -> str:
        return self.cells[self.columns[column]]

    def maybe(self, column: str) -> str | None:
        return self.cells[self.columns[column]] or None

    def number(self, column: str) -> float | None:
        cell = self.cells[self.columns[column]]
        if not cell:
            return None
        try:
            return float(cell)
        except ValueError:
            raise ValueError(f"{column} is `{cell}`, which is no number") from None

    def required(self, column: str) -> float:
        value = self.number(column)
        if value is None:
            raise ValueError(f"{column} is empty and this column needs a number")
        return value

    def whole(self, column: str) -> int | None:
        cell = self.cells[self.columns[column]]
        if not cell:
            return None
        try:
            return int(cell)
        except ValueError:
            raise ValueError(f"{column} is `{cell}`, which is no whole number") from None

    def truth(self, column: str) -> bool | None:
        cell = self.cells[self.columns[column]]
        if not cell:
            return None
        if cell == "true":
            return True
        if cell == "false":
            return False
        raise ValueError(f"{column} is `{cell}`, not true, false or empty")


def _bad(file: str, message: str, hint: str = "") -> InvalidInput:
    return InvalidInput(Problem(file, message, hint))
