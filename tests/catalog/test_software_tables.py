"""The tables of software, cell by cell: what is read, what is refused, what serves what."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gputier.catalog import Capability, Catalog, load, parse_version
from gputier.errors import InvalidInput

Overlay = Callable[..., Path]


@pytest.mark.parametrize(
    ("built_for", "card", "serves"),
    [
        ("8.0", 8.0, True),
        ("8.0", 8.6, True),  # the same major version, a newer card
        ("8.6", 8.0, False),
        ("8.6", 8.9, True),
        ("9.0", 10.0, False),  # another major version
        ("10.0", 10.3, True),
        ("10.0", 12.0, False),
        ("9.0+PTX", 12.0, True),  # compiled when it runs
        ("9.0+PTX", 8.9, False),
        ("7.0", 7.5, True),
    ],
)
def test_code_runs_on_newer_cards_of_its_major_version(
    built_for: str, card: float, serves: bool
) -> None:
    number, _, ptx = built_for.partition("+")
    major, minor = parse_version(number)
    assert Capability(major, minor, bool(ptx)).serves(card) is serves
    assert str(Capability(major, minor, bool(ptx))) == built_for


def test_a_row_speaks_of_its_version_and_of_every_patch_of_it(catalog: Catalog) -> None:
    row = next(w for w in catalog.software.wheels if w.version == "2.9")
    assert row.is_of("2.9")
    assert row.is_of("2.9.1")
    assert not row.is_of("2.90")
    assert not row.is_of("2")


@pytest.mark.parametrize("text", ["", "v580", "580.", "latest", "12.x"])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no version"):
        parse_version(text)


TORCH = {"framework": "pytorch", "version": "2.12", "build": "cu130", "cpu_arch": "x86_64"}
BROKEN: list[tuple[str, dict[str, str], dict[str, str], str]] = [
    ("wheels", TORCH, {"cuda": "thirteen"}, "cuda is `thirteen`, which is no version"),
    ("wheels", TORCH, {"architectures": "sm_90"}, "no compute capability"),
    ("wheels", TORCH, {"status": "sure"}, "not one of sourced, unverified"),
    ("wheels", TORCH, {"default": "yes"}, "default is `yes`"),
    ("gpu_drivers", {"gpu_model": "L4"}, {"module": "closed"}, "module is `closed`"),
    ("driver_branches", {"branch": "580"}, {"kind": "old"}, "kind is `old`"),
    ("driver_branches", {"branch": "580"}, {"newest": "580.x"}, "newest is `580.x`"),
    ("driver_branches", {"branch": "580"}, {"install": "580.x"}, "install is `580.x`"),
    ("cuda_drivers", {"cuda_major": "13"}, {"driver_min": ""}, "driver_min is ``"),
    ("images", {"cloud": "gcp"}, {"cpu_arch": "sparc"}, "cpu_arch is `sparc`"),
]


@pytest.mark.parametrize(("table", "where", "change", "says"), BROKEN)
def test_a_cell_that_cannot_be_read_is_refused_with_its_line(
    overlay: Overlay, table: str, where: dict[str, str], change: dict[str, str], says: str
) -> None:
    catalog = load(overlay(table, where, **change))
    with pytest.raises(InvalidInput, match="line 2") as caught:
        _ = catalog.software
    assert says in str(caught.value)


def test_every_row_says_where_it_is_from_when_and_whether_that_is_a_source(
    catalog: Catalog,
) -> None:
    facts = catalog.software
    for rows in (facts.wheels, facts.branches, facts.images, facts.cards.values()):
        for row in rows:
            assert row.source
            assert row.as_of[:4] == "2026"
            assert ("recalled" in row.source) <= (row.status == "unverified"), row


def test_they_are_read_once_and_cannot_be_changed(catalog: Catalog) -> None:
    assert catalog.software is catalog.software
    with pytest.raises(TypeError):
        catalog.software.cards["x"] = catalog.software.cards["L4"]  # type: ignore[index]


def test_what_is_known_of_torch_is_as_its_own_matrix_says(catalog: Catalog) -> None:
    """RELEASE.md of pytorch/pytorch for 2.12, and what its wheel on PyPI requires."""
    rows = {
        w.build: w
        for w in catalog.software.wheels
        if (w.framework, w.version, w.cpu_arch) == ("pytorch", "2.12", "x86_64")
    }
    assert set(rows) == {"cu126", "cu130", "cu132"}
    assert [b for b, w in rows.items() if w.default] == ["cu130"]
    assert rows["cu126"].serves(7.0)
    assert not rows["cu130"].serves(7.0)
    assert not rows["cu126"].serves(10.0)
    assert rows["cu130"].serves(10.0)
    assert rows["cu130"].serves(12.0)
