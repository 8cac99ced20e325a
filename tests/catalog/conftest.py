"""Fixtures of the catalogue's tests: the packaged catalogue, and overlays with broken rows."""

from __future__ import annotations

import csv
import gzip
import json
import os
from collections.abc import Callable, Mapping
from importlib import metadata
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from gputier.catalog import Catalog, load
from gputier.catalog.tables import DATA

Row = dict[str, str]
Overlay = Callable[..., Path]


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return load()


def read_rows(table: str) -> list[Row]:
    with (DATA / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="session")
def rows() -> Callable[[str], list[Row]]:
    """A packaged file's rows exactly as printed."""
    return read_rows


@pytest.fixture
def overlay(tmp_path: Path) -> Overlay:
    """Write an overlay file: packaged rows that match `where`, with `change` applied.

    `overlay("aws", {"instance_type": "g5.xlarge"}, vcpus="0")` is the broken row of a mutation.
    """
    place = tmp_path / "overlay"

    def write(table: str, where: Mapping[str, str] | None = None, **change: str) -> Path:
        found = [
            {**row, **change}
            for row in read_rows(table)
            if where is not None and all(row[key] == value for key, value in where.items())
        ]
        assert found or where is None, f"no row of {table} matches {where}"
        return write_rows(place, table, found or [change])

    return write


def write_rows(place: Path, table: str, found: list[Row]) -> Path:
    place.mkdir(exist_ok=True)
    with (place / f"{table}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(found[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)
    return place


Json = dict[str, Any]
Printed = Callable[[object], Path]


def _moto(name: str) -> Any:
    """A data file of the moto package, read as the file it is: importing moto takes seconds."""
    place = metadata.distribution("moto").locate_file(f"moto/ec2/resources/{name}.json.gz")
    with gzip.open(str(place)) as file:
        return json.load(file)


@pytest.fixture(scope="session")
def moto() -> Callable[[str], Any]:
    return _moto


@pytest.fixture(scope="session")
def described() -> Mapping[str, Json]:
    """Instance type → what DescribeInstanceTypes says of it (AWS, 2026-10-27)."""
    return _moto("instance_types")


@pytest.fixture
def printed(tmp_path: Path) -> Printed:
    """A file as a cloud's command prints it; text goes in as it is."""
    names = count(1)

    def write(value: object) -> Path:
        path = tmp_path / f"printed-{next(names)}.json"
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
        # The file's own date is the date of what it says.
        os.utime(path, (1_764_547_200, 1_764_547_200))  # 2025-12-01
        return path

    return write
