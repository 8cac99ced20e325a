"""EBS: volumes by themselves and the disks of machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gputier.plan.storage import GP3_FREE_IOPS, GP3_FREE_MB_S
from gputier.review.bill import Bill
from gputier.review.cost import Cost, Pricer, Unpriced
from gputier.review.preview import State
from gputier.review.values import maps, number, text
from gputier.review.world import World

#: What EBS makes where nothing is said (botocore ec2 2016-11-15, CreateVolume: gp2).
DEFAULT_KIND = "gp2"
#: io2 bills IOPS in three steps (the catalogue's items have one price each).
IO2_STEPS = ((32_000, "io2-iops"), (64_000, "io2-iops-above-32000"))
IO2_LAST = "io2-iops-above-64000"


def disk(bill: Bill, name: str, given: Mapping[str, Any], times: float) -> None:
    """One volume, `times` over. `given` has size, type, IOPS and throughput under the names of a
    volume or of a block device."""
    gib = number(given.get("volumeSize", given.get("size")))
    if gib is None:
        bill.gaps.append(f"{name}: its size is not in the preview")
        return
    kind = text(given.get("volumeType", given.get("type"))) or DEFAULT_KIND
    iops, speed = number(given.get("iops")), number(given.get("throughput"))
    if kind == "gp3":
        bill.item(name, "gp3-storage", gib, "GiB", times)
        bill.item(f"{name} IOPS", "gp3-iops", (iops or 0) - GP3_FREE_IOPS, "IOPS", times)
        extra = (speed or 0) - GP3_FREE_MB_S
        bill.item(f"{name} throughput", "gp3-throughput", extra, "MB/s", times)
    elif kind == "io2":
        bill.item(name, "io2-storage", gib, "GiB", times)
        below = 0
        for limit, item in IO2_STEPS:
            bill.item(f"{name} IOPS", item, min(iops or 0, limit) - below, "IOPS", times)
            below = limit
        bill.item(f"{name} IOPS", IO2_LAST, (iops or 0) - below, "IOPS", times)
    else:
        bill.gaps.append(f"{name}: no price is known for {kind}")


def devices(bill: Bill, blocks: Iterable[Mapping[str, Any]], times: float) -> None:
    """The EBS disks of a template or an instance; instance store is part of the machine."""
    for block in blocks:
        if not block.get("virtualName"):
            for made in maps(block["ebs"]) if "ebs" in block else [block]:
                disk(bill, "disk", made, times)


def volume(world: World, state: State) -> Cost:
    region = world.region(state)
    if region is None:
        return Unpriced("nothing says which region it is in")
    bill = Bill(world, "aws", region)
    disk(bill, "storage", {n: state.get(n) for n in ("size", "type", "iops", "throughput")}, 1)
    return bill.cost()


def snapshot(_world: World, _state: State) -> Cost:
    return Unpriced("a snapshot is billed by the blocks that changed, which no preview knows")


PRICERS: Mapping[str, Pricer] = {
    "aws:ebs/volume:Volume": volume,
    "aws:ebs/snapshot:Snapshot": snapshot,
    "aws:ebs/snapshotCopy:SnapshotCopy": snapshot,
}
