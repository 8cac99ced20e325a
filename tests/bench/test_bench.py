"""The benchmark runs and measures what it says; how fast things are is not tested."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROW = re.compile(
    r"^\| (?P<what>.+?) \| [<\d ]* \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| (?:ms|MB) \|$"
)


@pytest.fixture(scope="module")
def bench(root: Path) -> dict[str, Any]:
    return runpy.run_path(str(root / "tests" / "bench" / "__main__.py"), run_name="bench")


@pytest.mark.parametrize("words", ["catalogue load", "gpuhunt", "install size", "gputier review"])
def test_rows_carry_figures_in_order(root: Path, words: str) -> None:
    done = subprocess.run(
        [sys.executable, "tests/bench", "--runs", "2", "--only", words],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [ROW.match(line) for line in done.stdout.splitlines() if words in line]
    assert rows
    for row in rows:
        assert row, done.stdout
        low, middle, high = map(float, row.groups()[1:])
        assert 0 < low <= middle <= high


def test_the_peer_gets_every_priced_machine_it_can_hold(
    bench: dict[str, Any], tmp_path: Path
) -> None:
    count = bench["write_peer_catalog"](tmp_path)
    lines = sum(
        len((tmp_path / f"{cloud}.csv").read_text(encoding="utf-8").splitlines()) - 1
        for cloud in bench["PEER_CLOUDS"]
    )
    assert count == lines > 1000


def test_a_command_that_fails_is_not_timed(bench: dict[str, Any]) -> None:
    with pytest.raises(SystemExit, match=r"exited 3"):
        bench["process"](sys.executable, "-c", "raise SystemExit(3)")(1)


def test_a_package_weighs_what_it_and_its_requirements_weigh(bench: dict[str, Any]) -> None:
    assert bench["installed"]("gputier") > bench["installed"]("pydantic") + bench["ours"]()
