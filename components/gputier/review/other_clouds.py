"""Azure, Alibaba Cloud and Tencent Cloud: machines by their type; disks have no price here."""

from __future__ import annotations

from collections.abc import Mapping

from gputier.review.bill import Bill
from gputier.review.cost import Cost, Pricer, Unpriced
from gputier.review.hours import Sizes
from gputier.review.pool import Counts, Kind, Mix, bill_machines, pool_cost
from gputier.review.preview import Hidden, State, Value
from gputier.review.values import number, text
from gputier.review.world import World, at, region_of_zone


def _told(state: State, *paths: str) -> Value:
    """The first of these that says something."""
    tops = {path.split(".")[0] for path in paths}
    have = {top: state.get(top) for top in tops}
    return next((found for path in paths if (found := at(have, path)) is not None), None)


def _place(world: World, cloud: str, state: State) -> str | None:
    """The region as the catalogue names it: Azure's `East US` is eastus."""
    if cloud == "azure":
        named = _told(state, "location") or world.region(state)
        return named.replace(" ", "").lower() if isinstance(named, str) and named else None
    zone = text(state.get("availabilityZone"))
    if zone is not None:  # Tencent writes ap-guangzhou-3, Alibaba cn-hangzhou-i or ap-southeast-1a
        return region_of_zone(zone)
    return world.region(state)


def _machines(cloud: str, *types: str, size: tuple[str, ...] = ()) -> Pricer:
    """A pricer of machines whose type is at one of these paths, and their number at `size`."""

    def price(world: World, state: State) -> Cost:
        type_, region = _told(state, *types), _place(world, cloud, state)
        if isinstance(type_, Hidden) or text(type_) is None:
            return Unpriced("its instance type is not in the preview")
        if region is None:
            return Unpriced(f"{type_}: nothing says which region it is in")
        count = number(_told(state, *size)) if size else 1.0
        if count is None:
            return Unpriced(f"{type_} in {region}: how many is not in the preview")
        spot = _spot(state)
        bill = Bill(world, cloud, region)
        bill.gaps.append("its disks have no known price")
        counts = Counts(Sizes(None, count, None), count)
        mix = Mix("on_demand", 0.0, 0.0) if spot else Mix()
        pool = bill_machines(bill, [Kind(type_)], mix, counts)
        if pool is None:
            return Unpriced(f"{'; '.join(bill.gaps[1:])} ({type_} in {region})")
        return pool_cost(bill, pool, lambda _bill, _times: None)

    return price


def _spot(state: State) -> bool:
    priority = text(_told(state, "priority", "virtualMachineProfile.priority")) or ""
    strategy = text(state.get("spotStrategy")) or "NoSpot"
    charge = text(state.get("instanceChargeType"))
    return priority in ("Spot", "Low") or strategy != "NoSpot" or charge == "SPOTPAID"


AZURE = "azure:compute/"
PRICERS: Mapping[str, Pricer] = {
    "azure-native:compute:VirtualMachine": _machines("azure", "hardwareProfile.vmSize"),
    "azure-native:compute:VirtualMachineScaleSet": _machines(
        "azure", "sku.name", size=("sku.capacity",)
    ),
    f"{AZURE}linuxVirtualMachine:LinuxVirtualMachine": _machines("azure", "size"),
    f"{AZURE}windowsVirtualMachine:WindowsVirtualMachine": _machines("azure", "size"),
    f"{AZURE}linuxVirtualMachineScaleSet:LinuxVirtualMachineScaleSet": _machines(
        "azure", "sku", size=("instances",)
    ),
    f"{AZURE}windowsVirtualMachineScaleSet:WindowsVirtualMachineScaleSet": _machines(
        "azure", "sku", size=("instances",)
    ),
    "alicloud:ecs/instance:Instance": _machines("alibaba", "instanceType"),
    "tencentcloud:Instance/instance:Instance": _machines("tencent", "instanceType"),
}
