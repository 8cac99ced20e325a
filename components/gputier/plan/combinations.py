"""What may be combined: placement, purchase, zones, types and fabric, as one table.

A row says for which situations it speaks and what follows: the situation is refused, changed with
a warning, kept with a warning, or plainly allowed. Rows are asked in order; what an earlier one
changed is what a later one sees. Nothing that no row names is in anybody's way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

REFUSED, CHANGED, WARNED, ALLOWED = "refused", "changed", "warned", "allowed"

ONE, SEVERAL = "one", "several"
CLUSTER, SPREAD, NONE = "cluster", "spread", "none"
YES, NO = "yes", "no"
LAUNCH_FIRST, TERMINATE_FIRST = "launch-first", "terminate-first"


class Situation(NamedTuple):
    """What is asked for. `zones`, `types` and `interfaces` are one or several; `order` is how a
    rolling change goes, `rebalance` whether a machine at risk is replaced before it is taken."""

    placement: str = NONE  # cluster, spread, none
    market: str = "on_demand"  # on_demand, spot, reservation, capacity_block, flex_start
    zones: str = SEVERAL
    types: str = ONE
    fabric: str = NO
    shape: str = "group"  # group, lone
    rollout: str = "new-machines"  # new-machines, rolling
    egress: str = "nat"  # nat, public, endpoints
    interfaces: str = ONE
    order: str = LAUNCH_FIRST
    rebalance: str = NO


class Row(NamedTuple):
    """A rule: `when` maps parts of a situation to the values it speaks for."""

    key: str
    when: Mapping[str, tuple[str, ...]]
    verdict: str
    why: str
    source: str
    change: tuple[str, str] | None = None
    field: str = ""  # what a refusal points at
    way_out: str = ""

    def applies(self, situation: Situation) -> bool:
        return all(getattr(situation, part) in values for part, values in self.when.items())


class Decision(NamedTuple):
    """What becomes of a situation, and the rows that made it so."""

    situation: Situation
    rows: tuple[Row, ...]

    @property
    def refusals(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.verdict == REFUSED)

    @property
    def warnings(self) -> tuple[Row, ...]:
        """What a person should know; that no machine is added early was nobody's wish."""
        told = (row for row in self.rows if row.verdict in (CHANGED, WARNED))
        return tuple(row for row in told if row.change != ("rebalance", NO))


_GROUPS = "EC2 user guide, placement groups and placement strategies, 2026-04"
_BLOCKS = "EC2 user guide, Capacity Blocks for ML, 2026"
_BLOCK_GROUPS = "EC2 Auto Scaling user guide, launch template for Capacity Blocks, 2026"
_IN_GROUP = "EC2 user guide, capacity reservations in cluster placement groups, 2026-04"
_EFA = "EC2 user guide, Elastic Fabric Adapter limitations, 2026"
_TEMPLATE = "EC2 Auto Scaling user guide, create a launch template, 2026"
_REFRESH = "autoscaling API 2011-01-01, RefreshPreferences"
_OURS = "our own rule"
_HELD = ("reservation", "capacity_block")

AWS: tuple[Row, ...] = (
    Row("flex-start", {"market": ("flex_start",)}, REFUSED,
        "flex-start is Google's; AWS does not sell it", "EC2 API 2016-11-15, MarketType",
        field="capacity", way_out="capacity_block, or `clouds: [gcp]`"),
    Row("held-types", {"market": _HELD, "types": (SEVERAL,)}, REFUSED,
        "a reservation or a capacity block holds one instance type", _BLOCKS,
        field="capacity.instance_type", way_out="one type, or another way of buying"),
    Row("fabric-types", {"fabric": (YES,), "types": (SEVERAL,)}, REFUSED,
        "machines joined by EFA must be of one type: P4d does not talk to others", _EFA,
        field="fabric", way_out="one type, or `fabric: none`"),
    Row("lone-placement", {"shape": ("lone",), "placement": (CLUSTER, SPREAD)}, CHANGED,
        "one machine by itself is placed with no other: no placement group is made", _OURS,
        change=("placement", NONE)),
    Row("lone-rolling", {"shape": ("lone",), "rollout": ("rolling",)}, REFUSED,
        "one machine by itself cannot be replaced in turns", _OURS,
        field="rollout", way_out="`rollout: new-machines`, or `scale` for a group"),
    Row("block-cluster", {"market": ("capacity_block",), "placement": (CLUSTER,)}, CHANGED,
        "capacity blocks are placed close together already, and take no placement group", _BLOCKS,
        change=("placement", NONE)),
    Row("block-spread", {"market": ("capacity_block",), "placement": (SPREAD,)}, REFUSED,
        "the machines of a capacity block lie close together and take no placement group", _BLOCKS,
        field="network.placement", way_out="`placement: none`, or another way of buying"),
    Row("held-zones", {"market": _HELD, "zones": (SEVERAL,)}, CHANGED,
        "a reservation or a capacity block lies in one zone, and the machines with it",
        _BLOCK_GROUPS, change=("zones", ONE)),
    Row("reservation-cluster", {"market": ("reservation",), "placement": (CLUSTER,)}, CHANGED,
        "a reservation lies where it was made, and cannot be moved into a placement group of ours:"
        " make it in a cluster placement group to have the machines close", _IN_GROUP,
        change=("placement", NONE)),
    Row("reservation-spread", {"market": ("reservation",), "placement": (SPREAD,)}, WARNED,
        "no reservation can be made in a spread group: one outside it may not suffice to fill it",
        _GROUPS),
    Row("cluster-zones", {"placement": (CLUSTER,), "zones": (SEVERAL,)}, CHANGED,
        "a cluster placement group lies in one zone", _GROUPS, change=("zones", ONE)),
    Row("fabric-zones", {"fabric": (YES,), "zones": (SEVERAL,)}, CHANGED,
        "EFA does not cross zones", _EFA, change=("zones", ONE)),
    Row("cluster-types", {"placement": (CLUSTER,), "types": (SEVERAL,)}, WARNED,
        "several types in one cluster placement group are less likely to be had", _GROUPS),
    Row("cluster-spot", {"placement": (CLUSTER,), "market": ("spot",)}, ALLOWED,
        "spot machines that terminate when they are taken may be close together", _GROUPS),
    Row("spread-fabric", {"placement": (SPREAD,), "fabric": (YES,)}, WARNED,
        "machines joined by EFA on racks apart: the way between them is longer", _OURS),
    Row("public-interfaces", {"egress": ("public",), "interfaces": (SEVERAL,)}, REFUSED,
        "a machine with several network interfaces gets no public address", _TEMPLATE,
        field="network.egress", way_out="`egress: nat`, or `fabric: none`"),
    Row("rebalance-together", {"rebalance": (YES,), "fabric": (YES,)}, CHANGED,
        "machines that work together have no use for one beside those that count", _OURS,
        change=("rebalance", NO)),
    Row("rebalance-cluster", {"rebalance": (YES,), "placement": (CLUSTER,)}, CHANGED,
        "a cluster placement group need not have room for one more", _OURS,
        change=("rebalance", NO)),
    Row("rolling-held", {"rollout": ("rolling",), "market": _HELD}, CHANGED,
        "what is reserved is taken: the old machine goes before the new one comes", _REFRESH,
        change=("order", TERMINATE_FIRST)),
    Row("rolling-cluster", {"rollout": ("rolling",), "placement": (CLUSTER,)}, CHANGED,
        "a cluster placement group need not have room for one more: the old machine goes first",
        _REFRESH, change=("order", TERMINATE_FIRST)),
)  # fmt: skip

#: Of the clouds whose own table is not written: what holds anywhere.
OTHERS: tuple[Row, ...] = (
    Row("lone-placement", {"shape": ("lone",), "placement": (CLUSTER, SPREAD)}, CHANGED,
        "one machine by itself is placed with no other", _OURS, change=("placement", NONE)),
    Row("lone-rolling", {"shape": ("lone",), "rollout": ("rolling",)}, REFUSED,
        "one machine by itself cannot be replaced in turns", _OURS,
        field="rollout", way_out="`rollout: new-machines`, or `scale` for a group"),
    Row("block-cluster", {"market": ("capacity_block",), "placement": (CLUSTER, SPREAD)}, CHANGED,
        "capacity blocks are placed close together already", _OURS, change=("placement", NONE)),
    Row("together-zones", {"placement": (CLUSTER,), "zones": (SEVERAL,)}, CHANGED,
        "machines that are close together lie in one zone", _OURS, change=("zones", ONE)),
    Row("fabric-zones", {"fabric": (YES,), "zones": (SEVERAL,)}, CHANGED,
        "a fabric does not cross zones", _OURS, change=("zones", ONE)),
)  # fmt: skip


def rows_of(cloud: str) -> tuple[Row, ...]:
    """The table of a cloud."""
    return AWS if cloud == "aws" else OTHERS


def decide(cloud: str, asked: Situation) -> Decision:
    """Every row that applies, in order, and what is left of the situation after its changes."""
    now, found = asked, list[Row]()
    for row in rows_of(cloud):
        if not row.applies(now):
            continue
        found.append(row)
        if row.change is not None:
            part, value = row.change
            now = now._replace(**{part: value})
    return Decision(now, tuple(found))
