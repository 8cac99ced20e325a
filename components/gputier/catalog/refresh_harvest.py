"""What a refresh gathers: rows per table, and what it left out and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from gputier.catalog.load import Catalog
from gputier.catalog.tables import KEYS

Cells = dict[str, str]


class Harvest:
    """Rows to write, by table and key, on top of `base`, the catalogue they are to win over."""

    def __init__(self, base: Catalog) -> None:
        self.base = base
        self.rows: dict[str, dict[tuple[str, ...], Cells]] = {}
        self.refused: list[str] = []  # rows that are wrong on their face
        self.unknown: list[str] = []  # GPUs that gpus.csv does not have
        self.ignored: Counter[str] = Counter()  # records that are none of our business, by reason
        self._base_rows: dict[str, dict[tuple[str, ...], Cells]] = {}

    def base_row(self, table: str, *key: str) -> Cells | None:
        """The row that `base` has for a key."""
        known = self._base_rows.get(table)
        if known is None:
            columns = KEYS[table]
            known = self._base_rows[table] = {
                tuple(row[column] for column in columns): dict(row)
                for row in self.base.facts(table)
            }
        return known.get(key)

    def add(self, table: str, cells: Mapping[str, object]) -> None:
        """One row; columns that are not given stay empty, which is unknown."""
        row = {column: _text(cells.get(column)) for column in self.base.columns(table)}
        self.rows.setdefault(table, {})[_key(table, row)] = row

    def added(self, table: str) -> Iterable[Cells]:
        return self.rows.get(table, {}).values()

    def drop(self, table: str, row: Cells) -> None:
        del self.rows[table][_key(table, row)]

    def knows(self, cloud: str, name: str) -> bool:
        """Whether a type is in the catalogue or in the rows gathered so far."""
        return (cloud, name) in self.base.types or (name,) in self.rows.get(cloud, {})

    def place(self, cloud: str, seen: dict[tuple[str, str], set[str]], scope: Scope) -> None:
        """Offerings rows from (region, type) → zones that a listing showed.

        A zone that the listing covered and in which the type was not seen is given up; one that
        it did not cover stays as it was. Only a listing of everything says that a type is in no
        zone of a region: then its one row has an empty zone, which the loader reads as that.
        """
        before: dict[tuple[str, str], dict[str, Cells]] = {}
        for row in self.base.facts("offerings"):
            if row["provider"] == cloud and row["zone"]:
                places = before.setdefault((row["region"], row["instance_type"]), {})
                places[row["zone"]] = dict(row)
        found = dict(seen)
        if scope.complete:
            regions = {region for region, _ in scope.zones}
            for region, name in before:
                if region in regions and scope.covers(name):
                    found.setdefault((region, name), set())
        for (region, name), zones in found.items():
            was = before.get((region, name), {})
            kept = {zone for zone in was if (region, zone) not in scope.zones} - zones
            for zone in kept:
                self.add("offerings", was[zone])
            for zone in zones or ({""} if not kept else set[str]()):
                row = {"provider": cloud, "region": region, "zone": zone, "instance_type": name}
                self.add("offerings", {**row, "source": scope.source, "as_of": scope.as_of})


class Scope:
    """What a listing covered: `zones` it showed anything in, and whether it showed everything.

    `covers` tells the types that such a listing can show at all.
    """

    def __init__(
        self, source: str, as_of: str, covers: Callable[[str], bool] = lambda _: True
    ) -> None:
        self.source = source
        self.as_of = as_of
        self.covers = covers
        self.zones: set[tuple[str, str]] = set()
        self.complete = False


def _key(table: str, row: Cells) -> tuple[str, ...]:
    # Offerings are replaced by type and region but there is one row per zone.
    columns = (*KEYS[table], "zone") if table == "offerings" else KEYS[table]
    return tuple(row[column] for column in columns)


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.10g}"
    return str(value)
