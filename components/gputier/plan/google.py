"""What Google is told of a machine and of its group, decided: cards, disks, purchase, updates."""

from __future__ import annotations

from typing import NamedTuple

from gputier.plan.fleet import FleetPlan
from gputier.plan.market import HELD
from gputier.plan.model import Chosen
from gputier.plan.verdict import Verdict

#: Ways of buying in Google's words (compute v1 discovery of 2026-11-06, Scheduling).
STANDARD, SPOT, BOUND = "STANDARD", "SPOT", "RESERVATION_BOUND"
PROVISIONING = {"spot": SPOT, "capacity_block": BOUND}
DELETE, STOP = "DELETE", "STOP"
#: How a group lies in its zones. ANY takes machines where they can be had and moves none; with an
#: autoscaler a group has to be even, and is kept so (docs.cloud.google.com/compute, regional
#: distribution shapes, 2025).
ANY, EVEN = "ANY", "EVEN"
RESERVATION_KEY = "compute.googleapis.com/reservation-name"


#: The purpose that wants them.
WORKSTATION = "vdi"
#: Families with cards that have a licence for workstations, and what such a card is called
#: (docs.cloud.google.com/compute/docs/gpus, 2026-04: accelerators of graphics workloads); of what
#: is attached to N1, T4, P4 and P100 have one.
WORKSTATIONS = {"g2": "nvidia-l4-vws", "g4": "nvidia-rtx-pro-6000-vws"}
ATTACHED_WORKSTATIONS = ("nvidia-tesla-t4", "nvidia-tesla-p4", "nvidia-tesla-p100")


class Card(NamedTuple):
    """A card to attach: its type and how many."""

    kind: str
    number: int


class GoogleMachine(NamedTuple):
    """`card` is what is attached, None where the type has its cards built in; `ssds` are local
    disks to ask for. Families that bring theirs have them unasked
    (docs.cloud.google.com/compute/docs/disks/add-local-ssd, read 2026-12).

    `provisioning` is how it is bought, `restarts` whether Google starts it again after a fault,
    `ends` what becomes of it when it is taken (None: it is not). `compact`: machines lie close
    together. `reservation` is the name of one, "" for any that is open, None for none."""

    card: Card | None
    ssds: int
    provisioning: str
    restarts: bool
    ends: str | None
    compact: bool
    reservation: str | None


class UpdatePlan(NamedTuple):
    """How a change reaches machines. `proactive`: by itself, else when one is made anew anyway.
    `surge` are machines beside those that count and `unavailable` those that may be missing, both
    none or at least the number of zones. `keeps_names`: a machine comes again under its name."""

    proactive: bool
    surge: int
    unavailable: int
    keeps_names: bool
    redistributes: bool
    shape: str


def google_machine(chosen: Chosen, *, workstation: bool = False) -> GoogleMachine:
    """What Google is told of a machine of this plan. `workstation`: its cards have the licence."""
    verdict, fleet = chosen.verdict, chosen.fleet
    group = fleet.shape == "group"
    held = fleet.market in HELD
    taken = (DELETE if group else STOP) if fleet.market in PROVISIONING else None
    return GoogleMachine(
        card=workstation_card(verdict) if workstation else _card(verdict),
        ssds=verdict.machine.ssd_count,
        provisioning=PROVISIONING.get(fleet.market, STANDARD),
        restarts=fleet.market != "spot",
        ends=taken,
        compact=fleet.placement == "cluster",
        reservation=(fleet.reservation_id or "") if held else None,
    )


def _card(verdict: Verdict) -> Card | None:
    row = verdict.type
    return Card(row.accelerator, row.attached_count) if row.accelerator else None


def workstation_card(verdict: Verdict) -> Card | None:
    """The cards with a licence for workstations, which are named even where they are built in; None
    for a machine that has none, or a part of one: how many are to be named then is not known."""
    row = verdict.type
    if row.accelerator in ATTACHED_WORKSTATIONS:
        return Card(f"{row.accelerator}-vws", row.attached_count)
    if row.fractional or row.family not in WORKSTATIONS:
        return None
    return Card(WORKSTATIONS[row.family], verdict.machine.gpus)


def update_of(fleet: FleetPlan, zones: int, *, moves: bool, stateful: bool) -> UpdatePlan:
    """How a group over so many zones is updated. `moves`: it has an autoscaler; `stateful`: its
    machines have disks that stay.

    A machine more than the group's size needs a card that may not be had, quota for it, and in a
    reservation or close to the others a place: so there is one only where the plan launches first
    and none of these is asked for."""
    refresh = fleet.refresh
    room = fleet.placement == "none" and fleet.market not in HELD and not stateful
    first = room and refresh is not None and refresh.max_healthy_percent is not None
    several = zones > 1
    even = moves and several
    return UpdatePlan(
        proactive=refresh is not None,
        surge=zones if first else 0,
        unavailable=0 if first else zones,
        keeps_names=not first,
        redistributes=even and not stateful,
        shape=EVEN if even else ANY,
    )
