"""The plan as JSON: schema `gputier/plan/1` (docs/json.md), stable, sorted where order says
nothing, byte-identical for identical input. Money is USD rounded to six places, `null` is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gputier.plan import document_parts as parts
from gputier.plan import rank, rules
from gputier.plan.explain import FloorCost, Leaning, OtherWay
from gputier.plan.model import Chosen, StackPlan, WorkloadPlan
from gputier.plan.need import Need
from gputier.plan.price import UNKNOWN_BASIS
from gputier.plan.reasons import Reason
from gputier.plan.verdict import Verdict
from gputier.sizing import Sizing

SCHEMA = "gputier/plan/1"

Json = Mapping[str, object]


def plan_document(plan: StackPlan) -> Json:
    """The whole plan as plain values, ready for `json.dumps`."""
    return {
        "schema": SCHEMA,
        "name": plan.name,
        "environment": plan.environment,
        "catalog": {"id": plan.catalog_id, "as_of": plan.catalog_as_of},
        "usd_per_month": money(plan.usd_per_month),
        "warnings": list(plan.warnings),
        "workloads": [_workload(w) for w in plan.workloads],
    }


def money(value: float | None) -> float | None:
    """USD rounded so that float noise never shows in a diff."""
    return None if value is None else round(value, 6)


def _workload(w: WorkloadPlan) -> Json:
    return {
        "name": w.name,
        "purpose": w.need.purpose or None,
        "tier": w.need.workload.tier,
        "prefer": w.need.workload.prefer,
        "bound_by": rank.bound_by(w.need),
        "need": _need(w),
        "chosen": _chosen(w.chosen) if w.chosen else None,
        "alternatives": [_offer(v) for v in w.order[1:]],
        "rejected": [
            {
                "cloud": v.type.cloud,
                "instance_type": v.type.name,
                "region": v.region or None,
                "usd_per_hour": money(v.total),
                "reasons": [_reason(r) for r in v.reasons],
            }
            for v in sorted(w.rejected, key=lambda v: (v.type.cloud, v.type.name))
        ],
        "counts": {
            "considered": len(w.verdicts),
            "accepted": len(w.order),
            "rejected": len(w.rejected),
        },
        "floor_costs": [_floor_cost(c) for c in w.floor_costs],
        "leanings": [_leaning(x) for x in w.leanings],
        "nearest_misses": [_miss(v) for v in w.misses],
        "relaxations": [_miss(v) for v in w.relaxations],
        "cheaper_unconfirmed": _offer(w.cheaper_unconfirmed) if w.cheaper_unconfirmed else None,
        "cheaper_if": _other_way(w.other_way) if w.other_way else None,
        "rests_on_borrowed_price": w.rests_on_borrowed_price,
        "capacity": w.choice.model_dump(mode="json"),
        "skipped_capacities": list(w.skipped),
    }


def _need(w: WorkloadPlan) -> Json:
    need = w.need
    sizing = w.chosen.sizing if w.chosen else _plain_sizing(need)
    return {
        "floors": [
            {
                "rule": f.rule,
                "value": list(f.value) if isinstance(f.value, tuple) else f.value,
                "per": f.per or None,
                "at_least": f.at_least,
                "at_most": f.at_most,
                "with_several_nodes_only": f.when_nodes,
                "origin": f.origin,
                "why": f.why,
                "requirement": f.requirement or None,
            }
            for _rule, f in sorted(need.floors.items())
        ],
        "overrides": [
            {
                "rule": o.rule,
                "origin": o.origin,
                "was": list(o.was) if isinstance(o.was, tuple) else o.was,
                "now": list(o.now) if isinstance(o.now, tuple) else o.now,
            }
            for o in need.overrides
        ],
        "kept_free": need.kept_free,
        "size": sizing_document(sizing) if sizing else None,
    }


def _plain_sizing(need: Need) -> Sizing | None:
    w = need.workload
    count = w.gpu.count or 1
    return need.sizing(count * (w.nodes or 1))


def sizing_document(sizing: Sizing) -> dict[str, object]:
    """A size on a number of GPUs: GiB per GPU, part by part, with the formulas."""
    return {
        "gpus": sizing.gpus,
        "per_gpu_gib": round(sizing.per_gpu_gib, 6),
        "total_gib": round(sizing.total_gib, 6),
        "parts": {p.name: round(p.gib, 6) for p in sizing.parts},
        "formulas": {p.name: p.formula for p in sizing.parts},
        "limit_fraction": sizing.limit_fraction,
        "basis": sizing.basis,
        "confidence": sizing.confidence,
        "warnings": list(sizing.warnings),
    }


def _offer(v: Verdict) -> dict[str, object]:
    m, cost = v.machine, v.cost
    attached = None
    if m.host is not None:
        attached = {
            "model": v.type.gpu_model,
            "count": v.type.attached_count,
            "accelerator": v.type.accelerator,
        }
    return {
        "cloud": v.type.cloud,
        "catalog_type": v.type.name,
        "region": v.region,
        "zones": list(v.zones),
        "instance_type": m.instance_type,
        "attached": attached,
        "attached_ssds": m.ssd_count,
        "nodes": m.nodes,
        "gpu_model": v.type.gpu_model,
        "gpus_per_node": m.gpus,
        "gpu_count": v.type.gpu_count,
        "gpu_memory_gib": v.type.gpu_memory_gib,
        "gpu_usable_gib": round(v.type.usable_gib, 6),
        "vcpus": m.vcpus,
        "memory_gib": m.memory_gib,
        "local_nvme_gib": m.scratch_gib,
        "network_gbps": m.network_sustained_gbps,
        "interconnect": v.type.interconnect,
        "capacity": v.use,
        "availability": v.availability,
        "plan_only": v.plan_only,
        "lifecycle": v.type.lifecycle,
        "machines": v.machines,
        "usd_per_hour": money(v.total),
        "usd_per_hour_before_discounts": money(cost.listed_total) if cost else None,
        "price_basis": cost.basis if cost else UNKNOWN_BASIS,
        "price_as_of": cost.as_of if cost else None,
    }


def _chosen(c: Chosen) -> Json:
    document = _offer(c.verdict)
    document["zones"] = list(c.zones)
    document |= {
        "usd_per_month": money(c.usd_per_month),
        "hours_per_month": round(c.scaling.hours_per_month, 6),
        "hours_basis": c.scaling.hours_basis,
        "usd_per_month_of_one": money(c.usd_per_month_of_one),
        "usd_per_month_at_max": money(c.usd_per_month_at_max),
        "schedule_saves_usd_per_month": money(c.scaling.saved_usd_per_month),
        "around_usd_per_month": {k: money(v) for k, v in c.around_usd_per_month.items()},
        "around_borrowed": c.around_borrowed,
        "commitments": [
            {
                "term": x.term,
                "usd_per_hour": money(x.usd_per_hour),
                "break_even_hours_per_month": money(x.break_even_hours),
                "price_as_of": x.as_of,
            }
            for x in c.commitments
        ],
        "scaling": parts.scaling_document(c.scaling),
        "storage": parts.storage_document(c.storage),
        "network": parts.network_document(c.network),
        "monitoring": parts.monitoring_document(c.monitoring),
        "fleet": parts.fleet_document(c.fleet),
        "identity": parts.identity_document(c.identity),
        "budget": _budget(c),
        "boot": parts.boot_document(c.boot),
        "notes": list(c.notes),
    }
    return document


def _budget(c: Chosen) -> Json | None:
    if c.budget is None:
        return None
    return {
        "usd_per_month": c.budget.usd_per_month,
        "alerts_usd": list(c.budget.alerts_usd),
        "action": c.budget.action,
        "billing_account": c.budget.billing_account,
        "used": None if c.budget.used is None else round(c.budget.used, 6),
        "used_at_least": round(c.budget.used_at_least, 6),
        "exceeded": c.budget.exceeded,
        "anomalies": c.budget.anomalies,
    }


def _reason(r: Reason) -> Json:
    return {
        "rule": r.rule,
        "title": rules.title(r.rule),
        "needed": r.needed,
        "has": r.has,
        "relax": r.relax,
    }


def _miss(v: Verdict) -> Json:
    return {**_offer(v), "reasons": [_reason(r) for r in v.reasons]}


def _floor_cost(c: FloorCost) -> Json:
    return {
        "rule": c.rule,
        "title": rules.title(c.rule),
        "origin": c.origin,
        "usd_per_hour": money(c.usd_per_hour),
        "usd_per_month": money(c.usd_per_month),
        "instead": {
            "cloud": c.instead.type.cloud,
            "instance_type": c.instead.type.name,
            "capacity": c.instead.use,
        },
    }


def _leaning(x: Leaning) -> Json:
    instead: Sequence[Verdict] = [x.instead] if x.instead else []
    return {
        "rule": x.rule,
        "origin": x.origin,
        "why": x.why,
        "met": x.met,
        "cheapest_that_meets_it": [_offer(v) for v in instead],
    }


def _other_way(x: OtherWay) -> Json:
    return {
        "capacity": x.use,
        "region": x.region,
        "usd_per_hour": money(x.usd_per_hour),
        "saving_percent": round(x.saving_percent, 6),
        "price_basis": x.basis,
        "price_as_of": x.as_of,
    }
