"""The files beside the data: licences, sources, and nothing in them that is not for the reader."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gputier.catalog import CLOUDS, Catalog
from gputier.catalog.tables import DATA, KEYS

Rows = Callable[[str], list[dict[str, str]]]

# Tables whose `source` is a tag that SOURCES.md explains; the others name it in words.
TAGGED = (*CLOUDS, "prices", "offerings", "spot_advisor_aws", "gpus", "aws_network")
TAG = re.compile(r"[A-Za-z][\w.-]*[\w]")


def test_every_source_tag_is_explained(rows: Rows) -> None:
    explained = (DATA / "SOURCES.md").read_text("utf-8")
    for table in TAGGED:
        for row in rows(table):
            for part in re.split(r"[;+]", row["source"]):
                tag = TAG.match(part)
                assert tag, (table, row["source"])
                assert tag[0] in explained, (table, tag[0])


def test_the_row_counts_that_the_sources_page_states_are_true(rows: Rows) -> None:
    page = (DATA / "SOURCES.md").read_text("utf-8")
    table = page.split("## Files")[1].split("## Licences")[0]
    stated: dict[str, int] = {}
    for line in table.splitlines():
        names = re.findall(r"(\w+)\.csv", line)
        if names:
            counts = [int(count) for count in line.split("|")[2].split(",")]
            stated |= dict(zip(names, counts, strict=True))
    assert stated == {name: len(rows(name)) for name in KEYS}


def test_the_alibaba_file_ships_under_its_own_licence_with_attribution() -> None:
    text = (DATA / "LICENSE-alibaba.txt").read_text("utf-8")
    for needed in (
        "Copyright (c) Spare Cores",
        "Creative Commons Attribution-ShareAlike 4.0 International (CC BY-SA 4.0)",
        "https://creativecommons.org/licenses/by-sa/4.0/",
        "Changes that were made",
        "sc-data-dumps",
    ):
        assert needed in text
    assert "CC BY-SA 4.0" in (DATA / "SOURCES.md").read_text("utf-8")


def test_every_row_of_the_alibaba_file_names_the_licensed_source_and_no_other_file_rests_on_it(
    rows: Rows,
) -> None:
    assert {row["source"] for row in rows("alibaba")} == {"sc-dumps"}
    others = [
        row["instance_type"]
        for table in set(TAGGED) - {"alibaba"}
        for row in rows(table)
        if "sc-dumps" in row["source"]
    ]
    assert sorted(others) == ["a3-edgegpu-8g-nolssd", "a3-ultragpu-8g-nolssd"]


def test_prices_in_yuan_are_converted_at_the_stated_rate(rows: Rows) -> None:
    yuan = [row for row in rows("prices") if row["currency"] == "CNY"]
    assert len(yuan) == 790
    for row in yuan:
        expected = float(row["native_per_hour"]) / 7.30
        assert float(row["usd_per_hour"]) == pytest.approx(expected, rel=1e-3, abs=1e-4)
        assert "7.30 per USD" in row["note"]
    assert {row["currency"] for row in rows("prices")} == {"USD", "CNY"}


def test_every_fact_table_keeps_its_sources_and_what_is_unverified(
    rows: Rows, catalog: Catalog
) -> None:
    for table in KEYS:
        assert all("source" in row for row in rows(table)), table
    assert any(row["unverified_fields"] for row in catalog.facts("gcp_machines"))
    assert any(row["confidence"] == "unverified" for row in catalog.facts("items"))
    assert {row["status"] for row in catalog.facts("items")} == {"sourced", "unverified"}
    assert any("unverified" in row["confidence"] for row in catalog.facts("aws_network"))


def test_the_csv_files_are_plain_and_written_one_way() -> None:
    for path in DATA.glob("*.csv"):
        content = path.read_bytes()
        assert b"\r" not in content, path.name
        assert content.endswith(b"\n"), path.name
        assert not content.startswith(b"\xef\xbb\xbf"), path.name
        with path.open(encoding="utf-8", newline="") as file:
            widths = {len(row) for row in csv.reader(file)}
        assert len(widths) == 1, path.name


def test_the_page_about_the_catalogue_names_each_trap_and_file_that_it_speaks_of(
    root: Path,
) -> None:
    page = (root / "docs" / "catalog.md").read_text("utf-8")
    traps = re.findall(r"def (test_trap_\d\d)", (root / "tests/catalog/test_traps.py").read_text())
    assert len(traps) == len(re.findall(r"^\d+\. ", page, re.MULTILINE)) == 13
    for target in re.findall(r"\]\((\.\./[^)]+)\)", page):
        assert (root / "docs" / target).exists(), target
