"""The lock's file: byte-stable, atomic, merged by git, and never read when it is not whole."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lock.test_entries import entry

from gputier.errors import StaleLock
from gputier.lock import Entry, Lock, read_lock, render_lock, write_lock

WORDS = st.text(min_size=1, max_size=20).filter(lambda s: s.isprintable() and s == s.strip())
MONEY = st.none() | st.floats(0.0001, 1e5).map(lambda v: round(v, 6))
ENTRIES = st.builds(
    entry,
    digest=st.from_regex(r"[0-9a-f]{16}", fullmatch=True),
    region=WORDS,
    instance_type=WORDS,
    attached=st.none() | WORDS,
    attached_ssds=st.integers(0, 32),
    nodes=st.integers(1, 1000),
    machines=st.integers(1, 1000),
    usd_per_hour=MONEY,
    hours_per_month=st.floats(0, 744).map(lambda v: round(v, 2)),
    price_basis=WORDS,
    price_as_of=st.none() | st.sampled_from(["2026-08", "2023", "2026-08-26"]),
    zones=st.lists(st.from_regex(r"[a-z0-9-]{1,12}", fullmatch=True), max_size=4).map(tuple),
)
NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)
ONE = Lock("dev", {"chat": entry()})


@given(st.dictionaries(NAMES, ENTRIES, max_size=4))
def test_what_is_written_is_read_back(tmp_path_factory: Any, entries: dict[str, Entry]) -> None:
    path = tmp_path_factory.mktemp("lock") / "gputier.dev.lock"
    write_lock(path, Lock("dev", entries))
    read = read_lock(path, "dev")
    assert read is not None
    assert read.entries == entries


def test_the_text_is_that_of_the_golden_file(golden: Callable[[str, str], None]) -> None:
    both = {"chat": entry(), "box": entry(nodes=4, machines=4, usd_per_hour=None, zones=())}
    golden("lock/gputier.dev.lock", render_lock(Lock("dev", both)))


def test_the_order_of_the_workloads_changes_no_byte() -> None:
    a, b = entry(), entry(region="us-west-2")
    assert render_lock(Lock("dev", {"a": a, "b": b})) == render_lock(Lock("dev", {"b": b, "a": a}))


def test_there_may_be_no_lock_yet(tmp_path: Path) -> None:
    assert read_lock(tmp_path / "gputier.dev.lock", "dev") is None


def test_a_write_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "gputier.dev.lock"
    write_lock(path, ONE)
    before = path.read_text(encoding="utf-8")

    def crash(self: Path, target: Path) -> Path:
        raise OSError(f"no room for {self} as {target}")

    monkeypatch.setattr(Path, "replace", crash)
    with pytest.raises(OSError, match="no room"):
        write_lock(path, Lock("dev", {"chat": entry(region="us-west-2")}))
    assert path.read_text(encoding="utf-8") == before
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


BROKEN: dict[str, tuple[Callable[[str], str], str]] = {
    "a hand edit": (lambda t: t.replace("g6.2xlarge", "g6.4xlarge", 1), "edited by hand"),
    "an added line": (lambda t: t.replace("  nodes: 1", "  nodes: 1\n  note: mine"), "by hand"),
    "a conflict": (lambda t: t.replace("chat:", "<<<<<<< HEAD\nchat:"), "a merge conflict is left"),
    "half a file": (lambda t: t[: t.index("  catalog_as_of")], "edited by hand"),
    "no header": (lambda t: t.split("\n", 1)[1], "does not start with"),
    "another version": (lambda t: t.replace("lock 1 ", "lock 2 ", 1), "version 2"),
    "no field": (lambda t: t.replace("  nodes: 1", "  nodes"), "is not `field: value`"),
    "no name": (lambda t: t.replace("chat:", "Chat!"), "is not a workload's name"),
    "twice": (lambda t: t + "\n" + t.split("\n\n", 1)[1], "is not a workload's name"),
    "empty": (lambda _t: "", "does not start with"),
    "not text": (lambda _t: "\udcff", "cannot be read"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_file_that_is_not_as_it_was_written_is_refused_with_the_way_out(
    tmp_path: Path, how: str
) -> None:
    change, says = BROKEN[how]
    path = tmp_path / "gputier.dev.lock"
    path.write_bytes(change(render_lock(ONE)).encode("utf-8", "surrogateescape"))
    with pytest.raises(StaleLock) as refused:
        read_lock(path, "dev")
    (problem,) = refused.value.problems
    assert says in problem.message
    assert str(path) in problem.message
    assert "gputier lock dev" in problem.hint


def test_every_field_of_an_entry_is_under_the_seal(tmp_path: Path) -> None:
    path = tmp_path / "gputier.dev.lock"
    whole = {"attached": "1 × T4", "attached_ssds": 2, "driver": "580.95.05"}
    text = render_lock(Lock("dev", {"chat": entry(**whole)}))
    lines = [line for line in text.splitlines() if line.startswith("  ")]
    assert {line.split(":")[0].strip() for line in lines} == {
        *(f.name for f in fields(Entry)),
        "seal",
    }
    for line in lines:
        path.write_text(text.replace(line, line.replace(":", ": 1", 1), 1), encoding="utf-8")
        with pytest.raises(StaleLock):
            read_lock(path, "dev")


def test_branches_that_lock_different_workloads_merge_without_a_conflict(tmp_path: Path) -> None:
    base = {"a": entry(), "m": entry(), "z": entry()}
    texts = {
        "base": base,
        "ours": base | {"a": entry(region="us-west-2")},
        "theirs": base | {"z": entry(region="eu-west-1")},
    }
    for name, entries in texts.items():
        (tmp_path / name).write_text(render_lock(Lock("dev", entries)), encoding="utf-8")
    merged = subprocess.run(
        ["git", "merge-file", "-p", "ours", "base", "theirs"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    path = tmp_path / "gputier.dev.lock"
    path.write_text(merged, encoding="utf-8")
    read = read_lock(path, "dev")
    assert read is not None
    assert {n: e.region for n, e in read.entries.items()} == {
        "a": "us-west-2", "m": "us-east-1", "z": "eu-west-1",
    }  # fmt: skip
