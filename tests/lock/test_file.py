"""The lock's file when something goes wrong: a crash while writing, half a file, a merge."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.lock.test_entries import entry

from gputier.errors import ExitCode, StaleLock
from gputier.lock import Entry, Lock, read_lock, render_lock, write_lock

CHAT = entry()
RENDER = entry(
    cloud="gcp", instance_type="n1-standard-8", attached="2 × T4", attached_ssds=3, nodes=4,
    machines=4, capacity="spot", usd_per_hour=None, price_as_of=None,
)  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "gputier.dev.lock"


def stack_lock(**entries: Entry) -> Lock:
    return Lock("dev", entries)


# ---- writing -------------------------------------------------------------------------------


def test_a_crash_while_writing_leaves_the_old_file_and_no_rubbish(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lock(path, stack_lock(chat=CHAT))
    before = path.read_bytes()

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(KeyboardInterrupt):
        write_lock(path, stack_lock(chat=CHAT, render=RENDER))
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_the_new_text_is_whole_before_it_takes_the_files_place(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lock(path, stack_lock(chat=CHAT))
    seen: list[str] = []
    replaced = Path.replace

    def watched(self: Path, target: Path) -> Path:
        seen.append(self.read_text(encoding="utf-8"))
        assert self.parent == target.parent, "a rename across disks is no longer one step"
        return replaced(self, target)

    monkeypatch.setattr(Path, "replace", watched)
    lock = stack_lock(chat=CHAT, render=RENDER)
    write_lock(path, lock)
    assert seen == [render_lock(lock)]


def test_the_files_mode_is_kept_and_a_new_one_is_readable(path: Path) -> None:
    write_lock(path, stack_lock(chat=CHAT))
    assert path.stat().st_mode & 0o777 == 0o644
    path.chmod(0o600)
    write_lock(path, stack_lock(chat=CHAT))
    assert path.stat().st_mode & 0o777 == 0o600


# ---- reading what is not as it was written -------------------------------------------------


def broken(path: Path, text: str | bytes) -> str:
    """What is said about a file; it must name the file and the way out, and exit with 4."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(StaleLock) as refused:
        read_lock(path, "dev")
    (problem,) = refused.value.problems
    assert refused.value.exit_code == ExitCode.STALE_LOCK == 4
    assert str(path) in problem.message
    assert "gputier lock dev" in problem.hint
    return problem.message.removeprefix(str(path))


TEXT = render_lock(stack_lock(chat=CHAT, render=RENDER))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("g6.2xlarge", "g6.4xlarge"),
        ("nodes: 1\n", "nodes: 2\n"),
        ("chat:\n", "chit:\n"),
        ("  nodes: 1\n", "  nodes: 1\n  nodes: 1\n"),
        ("  nodes: 1\n", ""),
        ("  nodes: 1\n", "  nodes: 1\n  colour: blue\n"),
        ("  nodes: 1\n", "  nodes: 1\n# a remark\n"),
        ("  region: us-east-1\n", "  region: us-east-1 \n"),
    ],
)
def test_a_block_edited_by_hand_is_refused_with_its_line(old: str, new: str, path: Path) -> None:
    assert TEXT.count(old) >= 1
    said = broken(path, TEXT.replace(old, new, 1))
    assert said.split(": ")[0].strip(":").isdigit()


def test_a_hand_edit_names_the_workload(path: Path) -> None:
    said = broken(path, TEXT.replace("spot", "on_demand"))
    line = TEXT.split("\n").index("render:") + 1
    assert said == f":{line}: the block of `render` was edited by hand: its seal does not match"


def test_a_merge_conflict_names_its_line(path: Path) -> None:
    lines = TEXT.split("\n")
    at = lines.index("chat:") + 1
    conflict = [
        *lines[:at],
        "<<<<<<< HEAD",
        lines[at],
        "=======",
        lines[at],
        ">>>>>>> b",
        *lines[at:],
    ]
    assert broken(path, "\n".join(conflict)) == f":{at + 1}: a merge conflict is left in it"


@pytest.mark.parametrize("marker", ["<<<<<<< ours", "=======", ">>>>>>> theirs", "||||||| base"])
def test_each_mark_of_a_conflict_is_seen(marker: str, path: Path) -> None:
    assert "merge conflict" in broken(path, f"{TEXT}{marker}\n")


def test_half_a_file_is_never_read_as_if_it_were_whole(path: Path) -> None:
    """Cut anywhere, a file is refused or has lost whole blocks: no block is read in part."""
    refused = 0
    for end in range(len(TEXT)):
        path.write_text(TEXT[:end], encoding="utf-8")
        try:
            found = read_lock(path, "dev")
        except StaleLock:
            refused += 1
        else:
            assert found is not None
            assert found.entries.items() <= {"chat": CHAT, "render": RENDER}.items()
    assert refused > 0.8 * len(TEXT)


def test_a_folder_in_the_files_place_is_refused(path: Path) -> None:
    path.mkdir()
    with pytest.raises(StaleLock, match="cannot be read"):
        read_lock(path, "dev")


@pytest.mark.parametrize(
    "wrong", [{"nodes": "many"}, {"usd_per_hour": "cheap"}, {"hours_per_month": "few"}]
)
def test_a_sealed_block_with_a_value_of_another_kind_is_refused_too(
    wrong: dict[str, Any], path: Path
) -> None:
    text = render_lock(stack_lock(chat=replace(CHAT, **wrong)))
    assert "the block of `chat` is incomplete" in broken(path, text)


# ---- merging branches ----------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("git") is None, reason="merges with git's own merge")
def test_a_new_workload_on_each_branch_merges_where_they_stand_apart(tmp_path: Path) -> None:
    base = {"chat": CHAT, "render": RENDER}
    ours, theirs = {**base, "a-first": CHAT}, {**base, "tuner": CHAT}
    path = tmp_path / "merged"
    path.write_text(git_merge(tmp_path, base, ours, theirs), encoding="utf-8")
    assert read_lock(path, "dev") == Lock("dev", {**ours, **theirs})


@pytest.mark.skipif(shutil.which("git") is None, reason="merges with git's own merge")
def test_two_branches_that_lock_one_workload_conflict_and_that_is_told(tmp_path: Path) -> None:
    base = {"chat": CHAT}
    ours, theirs = ({"chat": replace(CHAT, nodes=n)} for n in (2, 3))
    text = git_merge(tmp_path, base, ours, theirs, conflicts=True)
    assert "merge conflict" in broken(tmp_path / "merged", text)


def git_merge(
    folder: Path,
    base: Mapping[str, Entry],
    ours: Mapping[str, Entry],
    theirs: Mapping[str, Entry],
    *,
    conflicts: bool = False,
) -> str:
    files: list[str] = []
    for name, found in (("ours", ours), ("base", base), ("theirs", theirs)):
        (folder / name).write_text(render_lock(Lock("dev", found)), encoding="utf-8")
        files.append(str(folder / name))
    done = subprocess.run(
        ["git", "merge-file", "-p", *files], capture_output=True, text=True, check=False
    )
    assert (done.returncode != 0) == conflicts, done.stdout
    return done.stdout
