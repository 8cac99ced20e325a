"""The real command: where it is kept, and what is said where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.engine import pulumi_cli


def build(cache: Path, path: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if k not in ("CI", "XDG_CACHE_HOME")}
    return subprocess.run(
        [sys.executable, "-m", "tests.engine.pulumi_cli"],
        cwd=Path(__file__).resolve().parents[2],
        env={**clean, "PATH": path, "XDG_CACHE_HOME": str(cache), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def go(folder: Path, script: str) -> str:
    """A `go` that does this, as the only command on PATH."""
    file = folder / "go"
    file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    file.chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def test_without_go_the_reason_is_printed_and_only_ci_fails(tmp_path: Path) -> None:
    done = build(tmp_path, "/nowhere")
    assert done.returncode == 0
    assert done.stderr == (
        f"no engine tests: pulumi {pulumi_cli.version()} is built with Go, which is not on PATH: "
        "install Go, then `make pulumi` builds it\n"
    )
    assert build(tmp_path, "/nowhere", CI="true").returncode == 1


def test_it_is_built_once(tmp_path: Path) -> None:
    # The last argument but one is where the command goes; it says what it was asked.
    script = """for out; do [ "$before" = -o ] && break; before=$out; done
mkdir -p "${out%/*}"; echo "$@" > "$out\""""
    path = go(tmp_path, script)
    first = build(tmp_path / "cache", path)
    assert first.returncode == 0, first.stderr
    assert first.stderr == f"building pulumi {pulumi_cli.version()}, once (minutes)\n"
    kept = Path(first.stdout.split()[0])
    assert kept.name == "pulumi"
    assert pulumi_cli.COMMAND in kept.read_text(encoding="utf-8")
    (tmp_path / "go").unlink()
    second = build(tmp_path / "cache", "/nowhere", CI="true")
    assert (second.returncode, second.stderr) == (0, "")
    assert Path(second.stdout.split()[0]) == kept


def test_a_build_that_fails_says_so_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = go(tmp_path, "echo no such module >&2; exit 1")
    done = build(tmp_path / "cache", path)
    assert "no such module" in done.stderr
    assert list((tmp_path / "cache/gputier/engine").glob("*/pulumi")) == []
    assert list((tmp_path / "cache/gputier/engine").glob("building-*")) == []


def test_another_way_of_building_is_another_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    before = pulumi_cli.cached()
    assert before.is_relative_to(tmp_path / "gputier" / "engine")
    other = replace(pulumi_cli.PULUMI, tags="other")
    assert other.cached() != before
    with pytest.raises(pulumi_cli.NoPulumi, match="`make pulumi` builds it"):
        other.find()
