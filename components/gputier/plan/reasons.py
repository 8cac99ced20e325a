"""Reasons and what the rules that give them share.

What is not in the catalogue never meets a floor: the reason then says "not in the catalogue", so
that nobody pays for a machine whose fit could not be shown (docs/adr/0008).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import floor as whole
from math import log2
from typing import NamedTuple, Protocol

from gputier.catalog import Gpu, InstanceType
from gputier.catalog.disks import Most
from gputier.plan.machine import Machine
from gputier.plan.tiers import Floor

UNKNOWN = "not in the catalogue"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a machine is rejected: the rule, what it needed, what it has, what to relax.

    `gap` says how far off it is, to tell a small relaxation from a large one: doublings between a
    needed and a present figure, 1 (as if it were half) for what is no figure, and `PURPOSE` for
    what the purpose is about.
    """

    rule: str
    needed: str
    has: str
    relax: str
    gap: float = field(default=1.0, compare=False)


class Judge(Protocol):
    """Knows which machines the declared software runs on; the version contract is one."""

    def refusal(self, row: InstanceType) -> Reason | None:
        """Why it does not run on this type."""
        ...


class Context(NamedTuple):
    """What rules may look at besides the machine: whether burst bandwidth counts, whether the
    workload takes several machines, what its software asks for, and what a volume of the declared
    size gives on this machine (Google; None: not known)."""

    burst: bool
    several_nodes: bool
    contract: Judge | None = None
    volume: Most | None = None


Check = Callable[[Floor, Machine, Gpu, Context], Reason | None]


def bound(floor: Floor, machine: Machine) -> float:
    """The floor's figure for this machine: scaled by `per`, then bounded."""
    value = floor.number
    if floor.per == "needed":
        value *= machine.needed_gib
    elif floor.per == "gpu":
        value *= machine.gpus
    elif floor.per == "installed":
        value *= machine.installed_gib
    if floor.at_least is not None:
        value = max(value, floor.at_least)
    if floor.at_most is not None:
        value = min(value, floor.at_most)
    return value


def at_least(
    rule: str, wanted: float, has: float | None, show: Callable[[float], str], relax: str
) -> Reason | None:
    # The tolerance absorbs float noise in sums, not differences anybody would notice.
    if has is not None and has >= wanted * (1 - 1e-9):
        return None
    shown = UNKNOWN if has is None else show(has)
    return Reason(rule, f"≥ {show(wanted)}", shown, relax, doublings(has, wanted))


#: The gap of a floor that makes the purpose what it is: relaxing it is the last thing to suggest.
PURPOSE = 4.0


#: Doublings that stand for "has none" and "nobody knows": further than any figure.
FAR = 20.0


def doublings(has: float | None, wanted: float) -> float:
    """How many times `has` would have to double to be `wanted`."""
    return FAR if not has else min(FAR, abs(log2(wanted / has)))


def way_out(field: str, has: float | None, unit: str = "") -> str:
    """A value to paste that this machine meets: rounded down. The field alone when it has
    nothing that could be asked for."""
    if not has:
        return field
    value = str(whole(has)) if has >= 100 else f"{whole(has * 10 + 1e-6) / 10:g}"
    return f"{field}: {value}{unit}"
