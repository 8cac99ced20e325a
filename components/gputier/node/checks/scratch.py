"""Local disks: how many, how large, mounted where the plan says, and as fast as they should be.

A mount that did not happen sends the data to the root disk without a word: `scratch-mount`.
"""

from __future__ import annotations

import json
from typing import Any

from gputier.node import disks, plain, thresholds
from gputier.node.checks.tool import missing
from gputier.node.engine import Check, Context
from gputier.node.expect import Expectation
from gputier.node.result import (
    CONFIG,
    INCONCLUSIVE,
    REPLACE,
    WARNING,
    Finding,
    Garbled,
    healthy,
    inconclusive,
)

FIO_SECONDS = 10
MEMORY_KINDS = ("tmpfs", "ramfs", "overlay", "rootfs")


def count(ctx: Context) -> Finding:
    """Disks by their model, and their size together."""
    found = disks.local(ctx)
    wanted, gib = ctx.expect.count("scratch.count"), ctx.expect.number("scratch.gib")
    expected = plain.joined(
        ", ",
        wanted is not None and f"{wanted} local disks",
        gib and f"{gib:.0f} GiB together",
    )
    size = sum(disk.gib for disk in found)
    words = f"{len(found)} local disks, {size:.0f} GiB: " + ", ".join(
        f"{disk.name} ({disk.model or 'no model'}, {disk.gib:.0f} GiB)" for disk in found
    )
    if not disks.all_disks(ctx) and not ctx.host.names("/sys/block"):
        return inconclusive("neither /sys/block nor lsblk shows a disk", expected)
    if wanted is not None and len(found) < wanted:
        return Finding(REPLACE, words, expected)
    if gib is not None and size < gib * (1 - thresholds.DISK_ROOM):
        return Finding(CONFIG, words, expected)
    return healthy(words, expected, short=f"{len(found)} NVMe")


def mount(ctx: Context) -> Finding:
    """The mount point is a mount, of local disks, and not the root disk by another name."""
    point = ctx.expect.text("scratch.mount") or ""
    expected = f"{point} on the local disks"
    found = disks.mounts(ctx.host)
    if not found:
        return inconclusive("neither /proc/self/mountinfo nor /proc/mounts can be read", expected)
    here, root = disks.at(found, point), disks.root_mount(found)
    if here is None:
        where = f" on {root.source}" if root else ""
        return Finding(
            CONFIG, f"{point} is not a mount: data would go to the root disk{where}", expected
        )
    words = f"{point}: {here.source} {here.kind}"
    if here.kind in MEMORY_KINDS:
        return Finding(CONFIG, f"{words} is memory or an overlay", expected)
    below = disks.members(ctx.host, here)
    if root and (here.source == root.source or below & disks.members(ctx.host, root)):
        return Finding(CONFIG, f"{words} is the root disk", expected)
    local = {disk.name for disk in disks.local(ctx)}
    known = {disk.name for disk in disks.all_disks(ctx)}
    strange = sorted((below & known) - local)
    if strange and ctx.expect.count("scratch.count") != 0:
        return Finding(CONFIG, f"{words} is on {', '.join(strange)}, a network volume", expected)
    wanted = ctx.expect.count("scratch.count")
    if wanted and below & local and len(below & local) < wanted:
        return Finding(CONFIG, f"{words} holds {len(below & local)} of {wanted} disks", expected)
    return healthy(words, expected, short=f"{point} mounted")


def speed(ctx: Context) -> Finding:
    """Sequential reads past the page cache, with fio."""
    floor = thresholds.floor(thresholds.DISK, "*")
    wanted = ctx.expect.number("scratch.mb_s") or (floor.value if floor else 0.0)
    point = ctx.expect.text("scratch.mount") or ""
    expected = f"≥ {wanted:.0f} MB/s sequential"
    done = ctx.run(
        "fio", "--name=gputier", f"--filename={point}/.gputier-fio", "--size=4G", "--rw=read",
        "--direct=1", "--bs=1M", "--ioengine=libaio", "--iodepth=32", f"--runtime={FIO_SECONDS}",
        "--time_based", "--unlink=1", "--output-format=json", limit=90.0,
    )  # fmt: skip
    if done.state == "missing":
        return missing(ctx, "scratch-speed", "fio", expected)
    if not done.ok:
        return inconclusive(f"fio: {done.how}: {done.says()}", expected)
    got = _read_speed(done.out)
    words = f"{got:.0f} MB/s"
    if got < wanted / 2:
        return Finding(REPLACE, words, expected)
    if got < wanted:
        return Finding(WARNING, words, expected)
    return healthy(words, expected, short=words)


def _read_speed(text: str) -> float:
    try:
        data: Any = json.loads(text[text.index("{") :])
        return float(data["jobs"][0]["read"]["bw_bytes"]) / 1e6
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise Garbled(f"fio printed: {text[:200]!r} ({error})") from None


def _no_disks(expect: Expectation) -> str | None:
    asked = expect.count("scratch.count") or expect.number("scratch.gib")
    return None if asked else "the plan has no local disks"


def _no_mount(expect: Expectation) -> str | None:
    return None if expect.has("scratch.mount") else "the plan mounts no scratch"


CHECKS = (
    Check("scratch-disks", "local disks", count, "disks",
          {REPLACE: "this host lost a disk: give the machine back",
           CONFIG: "the disks are smaller than planned: check the instance type",
           INCONCLUSIVE: "see what lsblk shows"},
          "the plan, by model string", applies=_no_disks),
    Check("scratch-mount", "scratch mount", mount, "disks",
          {CONFIG: "`gputier-node stage scratch` makes and mounts the array; see why it did not",
           INCONCLUSIVE: "see what is mounted"},
          "github.com/elastic/ansible-elastic-cloud-enterprise/issues/105 (data on the root disk)",
          applies=_no_mount),
    Check("scratch-speed", "scratch speed", speed, "load",
          {REPLACE: "a worn or shared disk: give the machine back",
           WARNING: "slower than planned; watch the input pipeline",
           CONFIG: "install fio in the image",
           INCONCLUSIVE: "see what fio says"},
          "the plan; else gputier's mid tier", seconds=120.0, needs=("scratch-mount",),
          depth="standard", applies=_no_mount, tools=("fio",)),
)  # fmt: skip
