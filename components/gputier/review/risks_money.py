"""Budgets and alarms that go, or are passed; a lock that says something else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gputier.lock import Lock
from gputier.review.preview import Hidden, State
from gputier.review.risk import WARNING, Finder, Risk, Rule, Scene, called, sentence
from gputier.review.risks_sizes import ASG, FLEETS
from gputier.review.values import fields, items, maps, number
from gputier.review.world import World, at

UNWATCHED = Rule("watch-removed", WARNING, "A budget or an alarm goes, and what it watched stays.")
OVER = Rule("budget-exceeded", WARNING, "What is planned costs more a month than a budget allows.")
LOCKED = Rule("lock-disagrees", WARNING, "The lock holds another machine than the preview deploys.")
RULES = (UNWATCHED, OVER, LOCKED)

_BUDGET, _GOOGLE = "aws:budgets/budget:Budget", "gcp:billing/budget:Budget"
_WATCHES = (
    _BUDGET,
    "aws:cloudwatch/metricAlarm:MetricAlarm",
    _GOOGLE,
    "gcp:monitoring/alertPolicy:AlertPolicy",
)
_TEMPLATE, _INSTANCE = "aws:ec2/launchTemplate:LaunchTemplate", "aws:ec2/instance:Instance"


def _unwatched(scene: Scene) -> Iterator[Risk]:
    for change in scene.changes("delete", _WATCHES):
        before = change.before
        if before is not None and not scene.goes(before.parent):
            yield UNWATCHED.at(change.urn, None, f"{sentence(called(before))} goes.")


def over_budget(after: World, costs: Mapping[str, float]) -> Iterator[Risk]:
    """Monthly budgets below what the preview costs: `costs` is USD a month by URN. One that is
    filtered by tags watches what has one of them; by anything else, nobody can tell here."""
    yield from _over_google(after, costs)
    for budget in after.of_type(_BUDGET):
        limit, tags = number(budget.get("limitAmount")), _watched(budget)
        if limit is None or tags is None or budget.get("timeUnit") != "MONTHLY":
            continue
        usd = sum(usd for urn, usd in costs.items() if not tags or tags & _tags(after.states[urn]))
        if usd > limit:
            text = (
                f"{sentence(called(budget))} allows ${limit:,.0f} a month, and what is planned"
                f" costs ${usd:,.0f}."
            )
            yield OVER.at(budget.urn, "limitAmount", text)


def _over_google(after: World, costs: Mapping[str, float]) -> Iterator[Risk]:
    """Google's budgets in USD a month: of a billing account, or of its projects."""
    usd = sum(usd for urn, usd in costs.items() if after.states[urn].type.startswith("gcp:"))
    for budget in after.of_type(_GOOGLE):
        amount, narrowed = budget.get("amount"), fields(budget.get("budgetFilter"))
        limit = number(at(amount, "specifiedAmount.units"))
        dollars = at(amount, "specifiedAmount.currencyCode") in (None, "USD")
        monthly = narrowed.get("calendarPeriod") in (None, "MONTH")
        whole = not set(narrowed) - {"projects", "calendarPeriod", "creditTypesTreatment"}
        if limit is not None and dollars and monthly and whole and usd > limit:
            text = (
                f"{sentence(called(budget))} allows ${limit:,.0f} a month, and what is planned"
                f" costs ${usd:,.0f}."
            )
            yield OVER.at(budget.urn, "amount.specifiedAmount.units", text)


def _watched(budget: State) -> set[str] | None:
    """The tags whose costs it counts, as `key$value`; none is everything, None is not known."""
    found: set[str] = set()
    filters = budget.get("costFilters")
    if isinstance(filters, Hidden):
        return None
    for one in maps(filters):
        values = items(one.get("values"))
        if one.get("name") != "TagKeyValue" or not all(isinstance(v, str) for v in values):
            return None
        found |= {str(value).removeprefix("user:") for value in values}
    return found


def _tags(state: State) -> set[str]:
    """`key$value` of a resource; a group has a list of them, a template has them for machines."""
    tags = state.get("tags")
    listed = [(one.get("key"), one.get("value")) for one in maps(tags) if isinstance(tags, list)]
    pairs = [*listed, *fields(tags).items()]
    return {f"{key}${value}" for key, value in pairs}


def lock_risks(lock: Lock, after: World, *, whole: bool = True) -> Iterator[Risk]:
    """Where the machines of a fleet of ours are not those of the lock. A preview that leaves out
    what does not change is not `whole`: a fleet that it does not have may well be there."""
    fleets = {one.name: one for one in after.of_type(*FLEETS)}
    for name, entry in lock.entries.items():
        fleet = fleets.get(name)
        if fleet is None:
            if fleets and whole:
                text = f"The lock holds `{name}`, and the preview has no such fleet."
                yield LOCKED.at(next(iter(fleets.values())).urn, None, text)
            continue
        for machine in _machines(after, fleet):
            type_ = machine.get("instanceType")
            held = entry.instance_type
            if isinstance(type_, str) and type_ != held:
                text = f"The lock holds {held} for `{name}`, and this deploys {type_}."
                yield LOCKED.at(machine.urn, "instanceType", text)
            yield from _other_image(machine, name, entry.image)
            most = number(machine.get("maxSize"))
            if most is not None and most < entry.machines:
                text = f"The lock holds {entry.machines} machines for `{name}`, of {most:g} here."
                yield LOCKED.at(machine.urn, "maxSize", text)
    for name, fleet in fleets.items():
        if name not in lock.entries:
            text = f"The preview has the fleet `{name}`, and the lock does not hold it."
            yield LOCKED.at(fleet.urn, None, text)


def _other_image(machine: State, name: str, held: str) -> Iterator[Risk]:
    """An image by its id that is not the lock's; one that is not pinned is nobody's word."""
    for path in ("imageId", "ami"):
        image = machine.get(path)
        if isinstance(image, str) and held.startswith("ami-") and image != held:
            text = f"The lock holds {held} for `{name}`, and this deploys {image}."
            yield LOCKED.at(machine.urn, path, text)


def _machines(world: World, fleet: State) -> Iterator[State]:
    for state in world.of_type(_TEMPLATE, _INSTANCE, ASG):
        urn = state.parent
        while urn is not None and urn != fleet.urn:
            found = world.states.get(urn)
            urn = found.parent if found else None
        if urn == fleet.urn:
            yield state


FINDERS: tuple[Finder, ...] = (_unwatched,)
