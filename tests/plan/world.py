"""What the planning tests share: rows, machines and plans on the packaged catalogue, and
`Doctored`, the same catalogue with some facts replaced, for what the real data does not show."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gputier import catalog as facts
from gputier.catalog import Catalog, Gpu, HostMachine, InstanceType, ItemPrice, Price, load
from gputier.plan import RULES, Floor, Reason, Verdict, WorkloadPlan, need_of, plan_workload
from gputier.plan.contract import Contract
from gputier.plan.machine import Machine
from gputier.plan.market import market_of
from gputier.plan.rank import ranked
from gputier.plan.reasons import Context
from gputier.plan.select import Ask, active_checks, select, verdict
from gputier.plan.tiers import FloorValue
from gputier.sizing import Sizing
from gputier.workload import CapacityChoice, Declaration, Discount, Software, Workload, read_text

DEPLOYED = ("aws", "gcp")
DATA = Path(facts.__file__).parent / "data" / "prices.csv"
Where = tuple[str, str]  # cloud and name of an instance type


def row(cloud: str, name: str) -> InstanceType:
    """A catalogue row; KeyError for one that is not there."""
    return load().types[cloud, name]


def gpu(model: str) -> Gpu:
    return load().gpus[model]


def host(name: str) -> HostMachine:
    return next(h for h in load().hosts() if h.name == name)


def machine(
    type_: InstanceType,
    *,
    nodes: int = 1,
    ssds: int = 0,
    on: str = "",
    sizing: Sizing | None = None,
    memory_floor_gib: float = 0.0,
) -> Machine:
    return Machine(type_, host(on) if on else None, ssds, nodes, sizing, memory_floor_gib)


def floor(rule: str, value: FloorValue, **more: Any) -> Floor:
    return Floor(rule, value, more.pop("origin", "workload"), more.pop("why", "a test"), **more)


def judged(
    floor_: Floor,
    machine_: Machine,
    card: Gpu | None = None,
    *,
    burst: bool = False,
) -> Reason | None:
    """What the rule of a floor says about a machine."""
    contract = None
    if floor_.rule == "software":  # its value is the framework that is declared
        contract = Contract(load(), Software(framework=str(floor_.value)))
    context = Context(burst, machine_.nodes > 1, contract)
    return RULES[floor_.rule].check(floor_, machine_, card or gpu(machine_.type.gpu_model), context)


def planned(
    workload: Workload | Mapping[str, Any],
    *,
    catalog: Catalog | None = None,
    environment: str = "dev",
    discounts: Sequence[Discount] = (),
) -> WorkloadPlan:
    """One workload planned, from a model or from its fields."""
    made = workload if isinstance(workload, Workload) else Workload(**workload)
    return plan_workload("job", made, catalog or load(), environment, tuple(discounts))


def best(plan: WorkloadPlan) -> Verdict:
    """The chosen verdict; fails with the smallest relaxation when nothing fits."""
    assert plan.chosen is not None, [(v.type.name, v.reasons) for v in plan.relaxations]
    return plan.chosen.verdict


def of(plan: WorkloadPlan, cloud: str, name: str) -> Verdict:
    """One row's verdict."""
    return next(v for v in plan.verdicts if (v.type.cloud, v.type.name) == (cloud, name))


def rules_of(verdict: Verdict) -> list[str]:
    return [reason.rule for reason in verdict.reasons]


def declared(workloads: Mapping[str, Any], name: str = "dev", **keys: Any) -> Declaration:
    """A declaration as a file `NAME.yaml` would make it; JSON is YAML too."""
    return read_text(json.dumps({"workloads": workloads, **keys}), f"{name}.yaml")


def ask_of(
    workload: Workload | Mapping[str, Any],
    *,
    catalog: Catalog | None = None,
    environment: str = "dev",
    discounts: Sequence[Discount] = (),
    max_price_age_days: int | None = None,
) -> Ask:
    """What selection is asked for the first way of buying, with a memory of its own."""
    made = workload if isinstance(workload, Workload) else Workload(**workload)
    known = catalog or load()
    need = need_of("job", made, environment)
    floors = dict(need.floors)
    for rule in {"gpu_model", "gpu_exclude"} & set(floors):
        models = tuple(m for name in floors[rule].names for m in known.match_gpus(name))
        floors[rule] = floors[rule]._replace(value=models)
    return Ask(
        known,
        replace(need, floors=floors),
        replace(market_of(known, made), memo={}),
        made.capacity[0],
        tuple(discounts),
        max_price_age_days,
    )


def chosen_without(fields: Workload | Mapping[str, Any], rule: str) -> Verdict:
    """What a whole new plan without one floor chooses, trying the ways of buying in order."""
    ask = ask_of(fields)
    found: list[Verdict] = []
    for choice in ask.need.workload.capacity:
        market = replace(ask.market, memo={})
        fresh = replace(ask, market=market, need=ask.need.without(rule), choice=choice)
        order = ranked(fresh.need, fresh.catalog, select(fresh))
        if order and order[0].confirmed and not order[0].plan_only:
            return order[0]
        found += order[:1]
    return found[0]


def judge(ask: Ask, type_: InstanceType) -> Verdict:
    """One row's verdict alone."""
    return verdict(ask, type_, active_checks(ask.need))


def held(instance_type: str, zone: str, count: int = 1, **more: Any) -> CapacityChoice:
    return CapacityChoice(
        use=more.pop("use", "reservation"),
        instance_type=instance_type,
        zone=zone,
        count=count,
        **more,
    )


def discount(percent: float, *families: str, cloud: str = "aws") -> Discount:
    return Discount.model_validate(
        {"cloud": cloud, "families": families, "percent": percent, "reason": f"{percent:g} off"}
    )


def in_file(cloud: str, region: str, name: str, purchase: str) -> float:
    """A price as the data file has it, read here by other code than the product's."""
    with DATA.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines)
        wanted = (cloud, region, name, purchase)
        found = [
            float(r["usd_per_hour"])
            for r in rows
            if (r["provider"], r["region"], r["instance_type"], r["purchase"]) == wanted
        ]
    assert len(found) == 1, f"{wanted} is in the file {len(found)} times"
    return found[0]


class Doctored(Catalog):
    """The packaged catalogue with replaced facts. `types` maps (cloud, name) to a changed row;
    `only` leaves no other rows; `prices` maps (cloud, name, purchase) to region → USD per hour or
    a whole price; `zones` maps (cloud, name) to region → zones; `items` (cloud, item) to a price
    for every region; `gpus` a model to a changed card. Everything not named stays as it is."""

    def __init__(
        self,
        *,
        types: Iterable[InstanceType] = (),
        only: Iterable[Where] | None = None,
        prices: Mapping[tuple[str, str, str], Mapping[str, float | Price]] | None = None,
        zones: Mapping[Where, Mapping[str, tuple[str, ...]]] | None = None,
        items: Mapping[Where, ItemPrice | None] | None = None,
        gpus: Mapping[str, Gpu] | None = None,
    ) -> None:
        base = load()
        self.__dict__.update(base.__dict__)
        changed = dict(base.types) | {(t.cloud, t.name): t for t in types}
        if only is not None:
            changed = {where: changed[where] for where in only}
        self.types = changed
        self.gpus = dict(base.gpus) | dict(gpus or {})
        self._new_prices = {
            key: {r: _price(key, r, p) for r, p in sorted(regions.items())}
            for key, regions in (prices or {}).items()
        }
        self._new_zones = dict(zones or {})
        self._new_items = dict(items or {})
        self._base = base

    def rows(self, clouds: Iterable[str]) -> tuple[InstanceType, ...]:
        wanted = set(clouds)
        return tuple(t for key, t in sorted(self.types.items()) if key[0] in wanted)

    def prices(self, cloud: str, name: str, purchase: str) -> Mapping[str, Price]:
        key = (cloud, name, purchase)
        return self._new_prices[key] if key in self._new_prices else self._base.prices(*key)

    def zones(self, cloud: str, name: str) -> Mapping[str, tuple[str, ...]]:
        key = (cloud, name)
        return self._new_zones[key] if key in self._new_zones else self._base.zones(*key)

    def item(self, cloud: str, item: str, region: str) -> ItemPrice | None:
        key = (cloud, item)
        return self._new_items[key] if key in self._new_items else self._base.item(*key, region)


def _price(key: tuple[str, str, str], region: str, given: float | Price) -> Price:
    if isinstance(given, Price):
        return given
    return Price(key[0], region, key[1], key[2], given, load().as_of, "a test", "")
