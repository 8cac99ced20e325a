"""Google Cloud: disks by themselves and those of machines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from gputier.review.bill import Bill, hidden
from gputier.review.cost import BILLED_BY_USE, Cost, Elsewhere, Pricer, Unpriced
from gputier.review.preview import State
from gputier.review.values import number, text
from gputier.review.world import World

#: One local SSD where nothing says its size (Compute Engine, local SSD disks).
LOCAL_SSD_GIB = 375.0
NO_REGION = Unpriced("nothing says which region it is in")
#: What is in the price of capacity, by kind: IOPS and MiB/s (the notes of the catalogue's items).
INCLUDED: Mapping[str, tuple[float, float]] = {"hyperdisk-balanced": (3000.0, 140.0)}
#: What a kind is billed for beside its capacity: the items that end in these words.
IOPS_BILLED = frozenset({"pd-extreme", "hyperdisk-balanced", "hyperdisk-extreme"})
SPEED_BILLED = frozenset({"hyperdisk-balanced", "hyperdisk-ml", "hyperdisk-throughput"})


class Disk(NamedTuple):
    """One disk: GiB, IOPS and MiB/s, None where nothing says."""

    kind: str
    gib: float | None
    iops: float | None
    speed: float | None
    regional: bool = False


def disk(bill: Bill, name: str, one: Disk, times: float) -> None:
    """A disk, `times` over."""
    if one.gib is None:
        bill.gaps.append(f"{name}: its size is not in the preview")
        return
    bill.item(name, f"{one.kind}-regional" if one.regional else one.kind, one.gib, "GiB", times)
    iops, speed = INCLUDED.get(one.kind, (0.0, 0.0))
    if one.kind in IOPS_BILLED:
        if one.iops is None and one.kind not in INCLUDED:
            bill.gaps.append(f"{name}: its IOPS, which are billed, are not in the preview")
        extra = (one.iops or 0.0) - iops
        bill.item(f"{name} IOPS", f"{one.kind}-iops", extra, "IOPS", times)
    if one.kind in SPEED_BILLED:
        extra = (one.speed or 0.0) - speed
        bill.item(f"{name} throughput", f"{one.kind}-throughput", extra, "MiB/s", times)


def made(given: Mapping[str, Any], size: str, kind: str) -> Disk:
    """A disk from properties whose size and kind go by these names. Compute Engine makes
    pd-standard where no kind is named."""
    named = (text(given.get(kind)) or "pd-standard").rsplit("/", 1)[-1]
    iops, speed = given.get("provisionedIops"), given.get("provisionedThroughput")
    return Disk(named, number(given.get(size)), number(iops), number(speed))


def volume(world: World, state: State) -> Cost:
    """A disk of a zone, or one that is kept in two zones."""
    region, why = world.region(state), hidden(state, "type", "size")
    if region is None:
        return NO_REGION
    if why:
        return Unpriced(why)
    names = ("size", "type", "provisionedIops", "provisionedThroughput")
    one = made({name: state.get(name) for name in names}, "size", "type")
    bill = Bill(world, "gcp", region)
    disk(bill, "storage", one._replace(regional="regionDisk" in state.type), 1.0)
    return bill.cost()


def _because(why: str) -> Pricer:
    return lambda _world, _state: Unpriced(why)


def _attachment(_world: World, _state: State) -> Cost:
    return Elsewhere("counted at the disk")


PRICERS: Mapping[str, Pricer] = {
    "gcp:compute/disk:Disk": volume,
    "gcp:compute/regionDisk:RegionDisk": volume,
    "gcp:compute/attachedDisk:AttachedDisk": _attachment,
    "gcp:compute/snapshot:Snapshot": _because(
        "a snapshot is billed by the blocks that changed, which no preview knows"
    ),
    "gcp:compute/image:Image": _because(f"{BILLED_BY_USE}: the bytes of the image"),
    "gcp:storage/bucket:Bucket": _because(f"{BILLED_BY_USE}: what lies in it, and requests"),
    "gcp:storage/bucketObject:BucketObject": _because(f"{BILLED_BY_USE}: its bytes"),
    "gcp:filestore/instance:Instance": _because("no price is known for Filestore"),
    "gcp:parallelstore/instance:Instance": _because("no price is known for Parallelstore"),
    "gcp:lustre/instance:Instance": _because("no price is known for Managed Lustre"),
}
