"""The command line on a small catalogue that never changes, in a project of its own.

tests/cli/catalog holds twenty machines with real prices of a day; what is priced, sold or missing
there is chosen so that every kind of line shows somewhere. Tests of the packaged data run on the
packaged data instead.
"""

from __future__ import annotations

import csv
import datetime
import sys
from pathlib import Path

import pytest
from tests.cli.world import DEV, PROD, SMALL, Ran, Run, small_tables

from gputier.catalog import Catalog, tables
from gputier.cli import inputs
from gputier.cli.__main__ import main

TODAY = datetime.date(2026, 9, 1)


@pytest.fixture(scope="session")
def small_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small catalogue as files, for overlays to be laid over."""
    folder = tmp_path_factory.mktemp("catalog")
    for name, table in small_tables().items():
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([list(table.columns), *table.rows])
    return folder


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, small_data: Path) -> Catalog:
    """The command line reads the small catalogue, and the clock stands still."""
    monkeypatch.setattr(tables, "DATA", small_data)
    # The module, which the package's function of the same name hides.
    monkeypatch.setattr(sys.modules["gputier.catalog.load"], "_packaged", [SMALL])
    monkeypatch.setattr(inputs, "today", lambda: TODAY)
    return SMALL


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("plan", "dev", columns=80)` in this process."""

    def call(*arguments: str, columns: int = 120) -> Ran:
        monkeypatch.setenv("COLUMNS", str(columns))
        capsys.readouterr()
        code = main(arguments)
        captured = capsys.readouterr()
        return Ran(int(code), str(captured.out), str(captured.err))

    return call


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Pulumi project with the stacks prod and dev; the current folder."""
    (tmp_path / "Pulumi.yaml").write_text(
        "name: demo\nruntime: python\nstackConfigDir: stacks\n", encoding="utf-8"
    )
    (tmp_path / "stacks").mkdir()
    for name, text in (("prod", PROD), ("dev", DEV)):
        (tmp_path / "stacks" / f"Pulumi.{name}.yaml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path
