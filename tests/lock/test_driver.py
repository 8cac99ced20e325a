"""The driver in the lock: where one is installed at boot, its exact version stays what it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gputier import lock
from gputier.boot import Bundle, Stack, render
from gputier.catalog import Catalog, load
from gputier.errors import StaleLock
from gputier.lock import Change, Lock
from gputier.lock.locked import locked_plan
from gputier.lock.text import read_lock, write_lock
from gputier.plan import plan_declaration
from gputier.workload import Declaration, read_text

TEXT = """
workloads:
  chat: {gpu: {models: [L4]}, clouds: [gcp]}
  ready: {gpu: {models: [L4]}, clouds: [aws]}
"""
BRANCHES = "branch,kind,cuda,newest,install,source,as_of,status\n"
IMAGES = "cloud,name,os,cpu_arch,driver,cuda,framework,machines,source,as_of,status\n"
READY = "projects/mine/global/images/family/l4-with-driver"


def declared() -> Declaration:
    return read_text(TEXT, "dev")


def locked(catalog: Catalog | None = None) -> Lock:
    return lock.make_lock(plan_declaration(declared(), catalog or load()), declared())


def newer(folder: Path) -> Catalog:
    """Another day's catalogue: branch 580 has another release."""
    row = "580,lts,13.0,580.999.01,580.999.01,NVIDIA,2027-02,sourced\n"
    (folder / "driver_branches.csv").write_text(BRANCHES + row)
    return load(folder)


def prepared(folder: Path) -> Catalog:
    """Another day's catalogue: an image has the driver of an L4 already."""
    row = f"gcp,{READY},ubuntu-24.04,x86_64,580,13.0,,g2,Google,2027-02,sourced\n"
    (folder / "images.csv").write_text(IMAGES + row)
    return load(folder)


def text(found: Lock, catalog: Catalog) -> str:
    plan = locked_plan(found, declared(), "chat", catalog)
    return render(plan, catalog, Stack("gputier", "dev"), Bundle("0" * 64, "0.1.0")).text


def test_only_a_driver_that_is_installed_is_in_the_lock(tmp_path: Path) -> None:
    found = locked()
    assert found.entries["chat"].driver == "580.159.04"
    assert found.entries["ready"].driver == ""
    path = tmp_path / "gputier.dev.lock"
    write_lock(path, found)
    assert path.read_text().count("  driver: ") == 1
    assert read_lock(path, "dev") == found


def test_a_newer_release_of_the_branch_changes_no_user_data_by_itself(tmp_path: Path) -> None:
    before, later = locked(), newer(tmp_path)
    after = lock.merged(before, locked(later))
    assert after == before
    assert text(after, later) == text(before, load())
    assert '"version":"580.159.04"' in text(after, later)


def test_an_upgrade_takes_it_and_says_so(tmp_path: Path) -> None:
    before, later = locked(), newer(tmp_path)
    after = lock.merged(before, locked(later), ["chat"])
    assert after.entries["chat"].driver == "580.999.01"
    assert '"version":"580.999.01"' in text(after, later)
    (change,) = lock.compare(before, after)
    assert lock.describe(change).endswith(", driver 580.999.01")


def test_an_image_that_has_the_driver_by_now_changes_nothing_by_itself(tmp_path: Path) -> None:
    before, later = locked(), prepared(tmp_path)
    assert locked(later).entries["chat"].driver == ""
    assert lock.merged(before, locked(later)) == before
    assert text(before, later) == text(before, load())
    found = locked_plan(before, declared(), "chat", later).chosen
    assert found is not None
    assert found.boot.image.family == before.entries["chat"].image
    assert (found.boot.image.driver, found.boot.image.cuda) == (None, None)


def test_nothing_is_installed_over_the_driver_of_a_locked_image(tmp_path: Path) -> None:
    """The other way round: what is chosen today has none, and the locked image is known to."""
    entries = {**locked().entries}
    entries["chat"] = replace(entries["chat"], image=READY, driver="")
    prepared(tmp_path)
    rows = (tmp_path / "images.csv").read_text().replace(",g2,", ",a2,")  # not for the L4 any more
    (tmp_path / "images.csv").write_text(rows)
    later = load(tmp_path)
    found = locked_plan(Lock("dev", entries), declared(), "chat", later).chosen
    assert found is not None
    assert (found.boot.driver.source, found.boot.driver.branch) == ("prebaked", "580")
    assert found.boot.driver.version is None


def test_a_lock_that_does_not_say_which_driver_is_stale_and_the_command_completes_it() -> None:
    whole = locked()
    entries = {n: replace(e, driver="") for n, e in whole.entries.items()}
    old = Lock("dev", entries)
    with pytest.raises(StaleLock, match="does not say which driver is installed") as caught:
        locked_plan(old, declared(), "chat", load())
    assert "gputier lock dev" in caught.value.problems[0].hint
    assert lock.merged(old, whole) == whole


def test_a_driver_that_an_image_brings_now_is_told() -> None:
    before = locked().entries["chat"]
    words = lock.describe(Change("chat", before, replace(before, driver="")))
    assert words.endswith(", driver of the image")
