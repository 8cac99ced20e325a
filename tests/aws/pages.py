"""What docs/aws.md shows of a deployment, read from what the programs register and plans say."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from tests.aws import world

from gputier.aws.identity import policy_text
from gputier.plan import Chosen, plan_declaration
from gputier.plan import combinations as matrix
from gputier.plan.identity import IdentityPlan
from gputier.plan.metrics import AGENT, Metric
from gputier.plan.monitoring import Alarm, MonitoringPlan
from gputier.testing import Record, Run
from gputier.workload import read_file

EFA: Mapping[str, Any] = {
    "tier": "high-end",
    "purpose": "training",
    "nodes": 4,
    "gpu": {"models": ["A100-80GB"], "count": 8},
}
#: A column of the tables: what it is called, the stack and the workload.
FLEETS = (
    ("entry, a service by day", "dev", "chat"),
    ("mid, spot at night", "staging", "tuner"),
    ("mid, scaled", "staging", "images"),
    ("high-end, four by EFA", "prod", "foundation"),
    ("a lone machine", "prod", "desktops"),
)
NETWORKS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "nat": ("dev", {}),
    "nat in prod": ("prod", {"software": {"image": world.AMI}}),
    "public": ("dev", {"network": {"egress": "public"}}),
    "endpoints": ("dev", {"network": {"egress": "endpoints"}}),
    "adopted": ("dev", {"network": {"vpc": "vpc-0123456789abcdef0"}}),
}
GROUP: Mapping[str, Any] = {"purpose": "inference", "gpu": {"models": ["L4"]}}
LONE: Mapping[str, Any] = {"purpose": "development", "gpu": {"models": ["L4"]}}
NIGHTLY: Mapping[str, Any] = {
    **LONE,
    "schedule": [{"start": "0 20 * * *", "stop": "0 6 * * *", "timezone": "UTC"}],
}
STOPS: Mapping[str, Any] = {"usd_per_month": 500, "action": "scale-to-zero"}
MONITOR = "arn:aws:ce::123456789012:anomalymonitor/1ab2c3d4"
OVER_BUDGET: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "`action`, a group": (GROUP, STOPS),
    "`action`, a lone machine": (LONE, STOPS),
    "`action`, one with a schedule": (NIGHTLY, STOPS),
    "`anomalies: create`": (GROUP, {"anomalies": "create"}),
    "`anomalies`, adopted": (GROUP, {"anomalies": MONITOR}),
}
Table = Iterator[str]


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """Lines of a Markdown table."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in row)} |"


@cache
def chosen(stack: str, workload: str) -> Chosen:
    """The choice for a workload of an example stack."""
    declaration = read_file(world.STACKS / f"Pulumi.{stack}.yaml")
    plans = plan_declaration(declaration, world.catalog()).workloads
    (found,) = [plan.chosen for plan in plans if plan.name == workload]
    assert found
    return found


def kind(record: Record) -> str:
    """`ec2.Vpc` of `aws:ec2/vpc:Vpc`."""
    _, module, name = record.type.split(":")
    return f"{module.split('/')[0]}.{name}"


def beneath(run: Run, label: str) -> Iterator[Record]:
    """Everything under a component, the components too."""
    for record in run.records:
        if record.parent == label:
            yield record
            yield from beneath(run, record.label)


def made(run: Run, label: str) -> list[Record]:
    """What AWS is asked to make under a component."""
    return [record for record in beneath(run, label) if not record.component]


def fleets() -> Table:
    """What each fleet is made of, by type."""
    counted = [
        Counter(kind(r) for r in made(world.example(stack), f"GpuFleet {workload}"))
        for _, stack, workload in FLEETS
    ]
    yield from _counts("for the fleet", [title for title, *_ in FLEETS], counted)


def shared() -> Table:
    """What the fleets of a region and stack share, by its way out; the store is always the same."""
    runs = [world.alone(environment=e, **fields) for e, fields in NETWORKS.values()]
    counted = [Counter(kind(r) for r in made(run, "Network us-east-1")) for run in runs[:4]]
    counted.append(Counter(kind(r) for r in _network(runs[4])))
    stores = [Counter(kind(r) for r in made(run, "Store us-east-1")) for run in runs]
    both = [net + store for net, store in zip(counted, stores, strict=True)]
    yield from _counts("for the region", list(NETWORKS), both)


def _network(run: Run) -> list[Record]:
    (component,) = run.of_type("Network")
    return [r for r in made(run, component.label) if not r.options.import_id]


def _counts(first: str, titles: Sequence[str], counted: Sequence[Counter[str]]) -> Table:
    kinds = sorted({name for counts in counted for name in counts})
    rows = [[f"`{name}`", *(str(c[name] or "") for c in counted)] for name in kinds]
    rows.append(["**resources**", *(f"**{sum(c.values())}**" for c in counted)])
    yield from table([first, *titles], rows)


def diagram(stack: str, workload: str) -> Table:
    """A fleet as a mermaid chart: its components, and what has to be there before what."""
    run, fleet = world.example(stack), f"GpuFleet {workload}"
    tops = [r for r in run.records if r.component and r.type.endswith((":Network", ":Store"))]
    parts = [*tops, *(r for r in run.records if r.component and r.parent == fleet)]
    owned = {p.label: made(run, p.label) for p in parts}
    owned[fleet] = [r for r in run.records if r.parent == fleet and not r.component]
    owner = {r.label: label for label, found in owned.items() for r in found}
    edges: set[tuple[str, str]] = set()
    for label, found in owned.items():
        needed = {owner[d] for r in found for d in r.options.depends_on if d in owner}
        edges |= {(before, label) for before in needed - {label}}
    yield from ("```mermaid", "flowchart LR")
    for label, found in sorted(owned.items()):
        if found:
            yield f'  {_node(label)}["{_title(label)}<br/>{_listed(found)}"]'
    for before, after in sorted(_reduced(edges)):
        yield f"  {_node(before)} --> {_node(after)}"
    yield "```"


def _reduced(edges: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Without the edges that follow from others: the order is the same and can be seen."""
    after: dict[str, set[str]] = {}
    for one, two in edges:
        after.setdefault(one, set()).add(two)

    def reach(start: str) -> set[str]:
        found: set[str] = set()
        todo = list(after.get(start, ()))
        while todo:
            one = todo.pop()
            if one not in found:
                found.add(one)
                todo += after.get(one, ())
        return found

    return {(a, b) for a, b in edges if not any(b in reach(c) for c in after[a] - {b})}


def _node(label: str) -> str:
    return label.replace(" ", "_").replace("-", "_")


def _title(label: str) -> str:
    return f"<b>{'Security group' if label.startswith('GpuFleet') else label.split()[0]}</b>"


def _listed(found: Iterable[Record]) -> str:
    counts = Counter(r.type.rsplit(":", 1)[-1] for r in found)
    return " · ".join(name if n == 1 else f"{name} × {n}" for name, n in sorted(counts.items()))


def combined() -> Table:
    """The matrix, a line for each row."""
    rows = [
        (f"`{r.key}`", _when(r), r.verdict, _follows(r), r.source) for r in matrix.AWS
    ]  # fmt: skip
    yield from table(("row", "when", "verdict", "what follows", "source"), rows)


def _when(row: matrix.Row) -> str:
    return ", ".join(f"{part} {' or '.join(values)}" for part, values in row.when.items())


def _follows(row: matrix.Row) -> str:
    if row.change:
        part, value = row.change
        return f"{row.why}; {part} becomes {value}"
    return f"{row.why}; instead: {row.way_out}" if row.way_out else row.why


def rights(identity: IdentityPlan) -> Table:
    """The statements of a role, each with its reason."""
    rows = [
        (
            f"`{s.sid}`",
            "<br/>".join(f"`{a}`" for a in s.actions),
            "<br/>".join(f"`{r}`" for r in s.resources),
            "<br/>".join(f"`{key}` = `{value}`" for _, key, value in s.conditions) or "–",
            s.why,
        )
        for s in identity.statements
    ]
    yield from table(("statement", "actions", "resources", "only when", "why"), rows)


def policy(identity: IdentityPlan) -> Table:
    """The policy in full, placeholders as they are."""
    words = ("partition", "region", "account", "bucket", "group")
    text = policy_text(identity.statements, {word: "{" + word + "}" for word in words})
    yield from _json(text)


def over_budget() -> Table:
    """What `budget.action` and `budget.anomalies` add to a fleet, by type."""
    added: list[Counter[str]] = []
    for base, budget in OVER_BUDGET.values():
        plain = world.alone(**base, budget={"usd_per_month": 500})
        more = world.alone(**base, budget={"usd_per_month": 500, **budget})
        added.append(_all(more) - _all(plain))
    yield from _counts("added", list(OVER_BUDGET), added)


def _all(run: Run) -> Counter[str]:
    return Counter(kind(r) for r in run.records if not r.component)


def other_policies() -> Table:
    """Every other policy that is made: who may take a role, read a bucket, use a key, publish."""
    lone, key = world.example("prod"), world.alone(disk={"kms_key": "create"})
    (group, stopped) = (world.alone(**base, budget=STOPS) for base in (GROUP, NIGHTLY))
    shown = (
        ("the machines' role may be taken by", lone, "Role desktops-role", "assumeRolePolicy"),
        ("the role that keeps a lone machine's hours", lone, "RolePolicy desktops-hours", "policy"),
        ("and by whom it may be taken", lone, "Role desktops-hours", "assumeRolePolicy"),
        ("the store", lone, "BucketPolicy us-east-1-tls", "policy"),
        ("the topic of alarms", lone, "TopicPolicy desktops-alerts", "policy"),
        ("a key that is made (`disk.kms_key: create`), of a group", key, "Key job-key", "policy"),
        ("the function that stops a group over its budget", group, "RolePolicy job-stop", "policy"),
        ("and by whom its role may be taken", group, "Role job-stop", "assumeRolePolicy"),
        ("the topic that it is called by", group, "TopicPolicy job-stop", "policy"),
        ("the same for a lone machine", stopped, "RolePolicy job-stop", "policy"),
        ("what it attaches to the schedule's role", stopped, "Policy job-halt", "policy"),
    )
    for title, run, label, field in shown:
        yield from ("", f"*{title[0].upper()}{title[1:]}* (`{label}`):", "")
        yield from _json(run.find(label).inputs[field])


def _json(text: str) -> Table:
    yield from ("```json", json.dumps(json.loads(text), indent=2), "```")


def alarms(plan: MonitoringPlan) -> Table:
    """Alarms: what is read, from where, and when it goes off."""
    rows = [
        (
            f"`{a.key}`",
            a.title,
            "<br/>".join(_metric(m) for m in a.metrics),
            _goes_off(a),
            "<br/>".join(dict.fromkeys(_publisher(m) for m in a.metrics)),
            a.why,
        )
        for a in plan.alarms
    ]
    yield from table(("alarm", "says", "reads", "goes off", "published by", "why"), rows)


def _metric(metric: Metric) -> str:
    where = ", ".join(f"{name}={value}" for name, value in metric.dimensions)
    return f"`{metric.key}`: `{metric.namespace}` `{metric.name}` {metric.statistic} by {where}"


def _goes_off(alarm: Alarm) -> str:
    sign = {"GreaterThanThreshold": ">", "LessThanThreshold": "<"}[alarm.comparison]
    what = alarm.expression or alarm.metrics[0].key
    minutes = alarm.periods * alarm.period_seconds // 60
    return f"`{what}` {sign} {alarm.threshold:g} for {minutes} min"


def _publisher(metric: Metric) -> str:
    if metric.namespace == AGENT:
        return "the machines' CloudWatch agent, each minute"
    return "Auto Scaling itself, each minute (`enabledMetrics`)"


def widgets(plan: MonitoringPlan) -> Table:
    """Panels of the dashboard."""
    rows = [
        (w.title, w.unit or "–", f"`{w.search or w.expression or _names(w.metrics)}`")
        for w in plan.widgets
    ]
    yield from table(("panel", "unit", "what it shows"), rows)


def _names(metrics: Iterable[Metric]) -> str:
    return ", ".join(m.name for m in metrics)


def money() -> Table:
    """What stands around the machines of each example, USD a month."""
    parts = list(chosen("dev", "chat").around_usd_per_month)
    rows = [
        [title, _usd(c.usd_per_month), *(_usd(c.around_usd_per_month[p]) for p in parts)]
        for title, c in ((title, chosen(stack, name)) for title, stack, name in FLEETS)
    ]
    yield from table(["fleet", "machines", *parts], rows)


def _usd(value: float | None) -> str:
    return "unknown" if value is None else f"${value:,.2f}" if value else "–"


def left_alone() -> Table:
    """What a deployment leaves as it finds it (`ignoreChanges`)."""
    found: dict[tuple[str, str], list[str]] = {}
    for title, stack, workload in FLEETS:
        for record in made(world.example(stack), f"GpuFleet {workload}"):
            if record.options.ignore_changes:
                fields = ", ".join(f"`{f}`" for f in record.options.ignore_changes)
                found.setdefault((f"`{kind(record)}`", fields), []).append(title)
    rows = [(k, f, "; ".join(t)) for (k, f), t in sorted(found.items())]
    yield from table(("resource", "left as it is found", "in"), rows)


def kept() -> Table:
    """What stays when a stack is destroyed (`retainOnDelete`), by what becomes of reports."""
    rows: list[tuple[str, str]] = []
    for what in ("keep", "remove"):
        run = world.alone(identity={"reports": what})
        stays = Counter(kind(r) for r in run.records if r.options.retain_on_delete)
        rows.append((f"`reports: {what}`", ", ".join(f"`{k}`" for k in sorted(stays))))
    yield from table(("identity", "stays"), rows)
