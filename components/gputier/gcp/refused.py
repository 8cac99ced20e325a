"""What Google cannot be given, said before anything is made: every reason of every fleet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from gputier.deploy import bundle_problems
from gputier.errors import Problem
from gputier.lock import Bundle
from gputier.plan import Chosen, WorkloadPlan
from gputier.plan.budget import BudgetPlan
from gputier.plan.google import WORKSTATION, workstation_card
from gputier.plan.identity_gcp import role_problems
from gputier.plan.labels import label_problems
from gputier.plan.scaling_gcp import hours_problems
from gputier.workload.declare import PRODUCTION

#: A billing account's id (cloudbilling v1 discovery, BillingAccount.name).
BILLING = re.compile(r"[0-9A-F]{6}-[0-9A-F]{6}-[0-9A-F]{6}")


def problems_of(plan: WorkloadPlan, bundle: Bundle) -> Iterator[Problem]:
    """Why this plan and the bundle that its lock pins cannot be deployed to Google by us."""
    at, chosen = f"workloads.{plan.name}", plan.chosen
    if chosen is None or chosen.verdict.type.cloud != "gcp":
        cloud = "no cloud" if chosen is None else chosen.verdict.type.cloud
        yield Problem(at, f"`{plan.name}` is planned on {cloud}, not on gcp", "`clouds: [gcp]`")
        return
    yield from label_problems(chosen.fleet.tags, at)
    yield from role_problems(chosen.identity.role, at)
    yield from _image(plan, chosen, at)
    yield from _bought(chosen, at)
    yield from _rest(plan, chosen, at)
    yield from bundle_problems(plan.name, bundle)


def _image(plan: WorkloadPlan, chosen: Chosen, at: str) -> Iterator[Problem]:
    image, name = chosen.boot.image, chosen.verdict.machine.instance_type
    way = "name one: `software.image: projects/…/global/images/NAME`"
    if image.id is None and image.family is None:
        yield Problem(f"{at}.software.image", f"no image is known for {name}", way)
    elif not image.pinned and plan.need.environment in PRODUCTION:
        message = f"{image.family} names another image with each release, and this is"
        hint = f"`gputier lock STACK --images` pins today's, or {way}"
        yield Problem(f"{at}.software.image", f"{message} {plan.need.environment}", hint)


def _bought(chosen: Chosen, at: str) -> Iterator[Problem]:
    """Ways of buying that nothing here asks for yet."""
    fleet = chosen.fleet
    if fleet.market == "flex_start":
        message = "flex-start is asked for by a resize request, which is not built yet"
        yield Problem(f"{at}.capacity", message, "spot, on_demand or a reservation")
    if fleet.market == "capacity_block" and fleet.reservation_id is None:
        message = "what is bought by the calendar is a reservation, and none is named"
        yield Problem(f"{at}.capacity.id", message, "`id: NAME`, as the reservation is called")
    if fleet.starts or fleet.ends:
        message = "a group on gcp is not started or stopped at one moment yet"
        yield Problem(f"{at}.capacity.start", message, "deploy it when what is reserved begins")
    if fleet.on_demand_base:
        message = "a group on gcp buys all its machines one way"
        yield Problem(f"{at}.capacity.on_demand_base", message, "0, or a fleet of its own for them")


def _rest(plan: WorkloadPlan, chosen: Chosen, at: str) -> Iterator[Problem]:
    storage, fleet, name = chosen.storage, chosen.fleet, chosen.verdict.machine.instance_type
    if fleet.placement == "spread":
        message = "machines are not spread over racks on gcp yet"
        yield Problem(f"{at}.network.placement", message, "none, or cluster")
    if name.startswith("a4x"):
        message = f"{name} wants a domain of its own, and networks that are not built yet"
        yield Problem(at, message, "another machine, or `clouds: [aws]`")
    if storage.key and storage.key.create:
        message = "a key ring of gcp can never be deleted, so none is made"
        yield Problem(f"{at}.disk.kms_key", message, "the name of a key that is there")
    if plan.need.purpose == WORKSTATION:
        yield from _workstation(chosen, at)
    lone, grows = fleet.shape == "lone", chosen.scaling.max > chosen.scaling.min
    for problem in hours_problems(chosen.scaling.schedule, lone=lone, bounded=grows):
        yield replace(problem, path=f"{at}.{problem.path}")
    if chosen.budget:
        yield from _budget(chosen.budget, at)
    data = storage.data
    if fleet.shape == "group" and data and data.stays and (grows or chosen.scaling.schedule):
        message = "a group whose disks stay has no autoscaler on gcp"
        yield Problem(f"{at}.disk.persist", message, "false, or machines of a fixed number")


def _workstation(chosen: Chosen, at: str) -> Iterator[Problem]:
    """A card with a licence is worth its price to a driver that asks for it, and no image of the
    catalogue has that driver."""
    if workstation_card(chosen.verdict) is None:
        name = chosen.verdict.machine.instance_type
        message = f"{name} has no card with a licence for workstations on gcp"
        yield Problem(f"{at}.purpose", message, "`gpu.models: [L4]`, or `clouds: [aws]`")
    elif chosen.boot.image.source != "declared":
        message = "a workstation's licence is paid for, and the image that is chosen has a driver"
        way = (
            "your own with NVIDIA's RTX virtual workstation driver: `software.image: {id, driver}`"
        )
        yield Problem(f"{at}.software.image", f"{message} that does not use it", way)


def _budget(budget: BudgetPlan, at: str) -> Iterator[Problem]:
    field, way = f"{at}.budget.billing_account", "its id, such as 012345-6789AB-CDEF01"
    if budget.billing_account is None:
        yield Problem(field, "a budget on gcp is of a billing account, and none is named", way)
    elif not BILLING.fullmatch(budget.billing_account):
        yield Problem(field, f"`{budget.billing_account}` is no billing account of gcp", way)
