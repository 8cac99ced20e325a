"""What a change risks: each rule with what sets it off, and its harmless neighbour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from gputier.lock import Lock, current_bundle
from gputier.lock.entries import Entry
from gputier.review.preview import UNKNOWN, Change, Preview, State
from gputier.review.read import read
from gputier.review.risk import NOTE, WARNING, Risk
from gputier.review.risks import RULES, risks
from gputier.review.risks_money import lock_risks, over_budget
from gputier.review.world import World
from tests.review.test_read import SAMPLES
from tests.review.worlds import catalog, known, state, urn, world

INSTANCE = "aws:ec2/instance:Instance"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
GROUP = "aws:autoscaling/group:Group"
HOOK = "aws:autoscaling/lifecycleHook:LifecycleHook"
VOLUME = "aws:ebs/volume:Volume"
BUCKET = "aws:s3/bucket:Bucket"
SG = "aws:ec2/securityGroup:SecurityGroup"
MIG = "gcp:compute/instanceGroupManager:InstanceGroupManager"
FIREWALL = "gcp:compute/firewall:Firewall"
NODES = "aws:eks/nodeGroup:NodeGroup"
FLEET = "gputier:aws:GpuFleet"


def change(op: str, type_: str, before: Any = None, after: Any = None, *forced: str) -> Change:
    """A step; a side is its inputs. What both sides have and differs is changed."""
    old = None if before is None else known(state(type_, **before), "id-1")
    new = None if after is None else state(type_, **after)
    was, is_ = dict(before or {}), dict(after or {})
    names = sorted({*was, *is_}) if was and is_ else []
    changed = {n: "update" for n in names if was.get(n) != is_.get(n)}
    return Change(urn(type_, "it"), type_, op, old, new, changed, forced)


def found(*changes: Change, **others: State) -> tuple[Risk, ...]:
    steps = {one.urn: one for one in changes}
    preview = Preview("shop", "dev", "digest", steps, {}, (), (), None, 0)
    sides = [
        {u: side for u, one in steps.items() if (side := getattr(one, name)) is not None}
        | {one.urn: one for one in others.values()}
        for name in ("before", "after")
    ]
    before, after = (World(side, {}, catalog()) for side in sides)
    return risks(preview, before, after)


def hook(**more: Any) -> Mapping[str, Any]:
    return {"lifecycleTransition": "autoscaling:EC2_INSTANCE_LAUNCHING", "defaultResult": "ABANDON",
            "heartbeatTimeout": 3600, **more}  # fmt: skip


def asg(**more: Any) -> Mapping[str, Any]:
    return {"minSize": 1, "maxSize": 4, "desiredCapacity": 3,
            "launchTemplate": {"id": "lt-1", "version": "1"}, **more}  # fmt: skip


NEW = {"launchTemplate": {"id": "lt-1", "version": "2"}}
SSH = {"protocol": "tcp", "fromPort": 22, "toPort": 22}
OPEN = {"ingress": [{**SSH, "cidrBlocks": ["0.0.0.0/0"]}]}
OURS = {"ingress": [{**SSH, "cidrBlocks": ["10.0.0.0/8"]}]}
REFRESH = {"instanceRefresh": {"strategy": "Rolling", "preferences": {"autoRollback": True}}}
SPOT = {"instanceMarketOptions": {"marketType": "spot"}}


def mixed(base: int, percent: int) -> Mapping[str, Any]:
    distribution = {"onDemandBaseCapacity": base, "onDemandPercentageAboveBaseCapacity": percent}
    return asg(mixedInstancesPolicy={"instancesDistribution": distribution})


Case = tuple[Change, str, str]
RISKY: dict[str, Case] = {
    "a machine by its type": (
        change("replace", INSTANCE, {"a": 1}, {"a": 2}, "a"),
        "machines-replaced",
        "The instance `it` is replaced because `a` changes",
    ),
    "a machine by user data alone": (
        change("replace", INSTANCE, {"userData": "a"}, {"userData": "b"}, "userData"),
        "replaced-by-user-data",
        "only because its user data changed",
    ),
    "a group": (
        change("replace", GROUP, asg(name="a"), asg(name="b"), "name"),
        "machines-replaced",
        "its 3 machines go, and new ones start",
    ),
    "a group that goes": (
        change("delete", GROUP, asg()), "machines-deleted", "deleted with its 3 machines",
    ),
    "a rolling update": (
        change("update", GROUP, asg(**REFRESH), asg(**REFRESH, **NEW)),
        "machines-rolled",
        "replaces its 3 machines, one at a time, because `launchTemplate` changes",
    ),
    "no rolling update": (
        change("update", GROUP, asg(), asg(**NEW)),
        "only-new-machines",
        "keep the old template until replaced",
    ),
    "a volume that goes": (
        change("delete", VOLUME, {"size": 9}), "data-deleted", "deleted with its data",
    ),
    "a volume that is replaced": (
        change("replace", VOLUME, {"zone": "a"}, {"zone": "b"}, "availabilityZone"),
        "data-deleted",
        "an empty one takes its place",
    ),
    "a bucket with what is in it": (
        change("delete", BUCKET, {"forceDestroy": True}), "data-deleted", "deleted with its data",
    ),
    "a volume that is not encrypted any more": (
        change("update", VOLUME, {"encrypted": True}, {"encrypted": False}),
        "encryption-lost",
        "not encrypted any more",
    ),
    "a template's disk": (
        change("update", TEMPLATE,
               {"blockDeviceMappings": [{"ebs": {"encrypted": "true"}}]},
               {"blockDeviceMappings": [{"ebs": {}}]}),
        "encryption-lost",
        "A disk of the template `it`",
    ),
    "a maximum below what runs": (
        change("update", GROUP, asg(), asg(maxSize=2, desiredCapacity=2)),
        "capacity-shrinks",
        "may have 2 machines, and 3 run: 1 machine must go",
    ),
    "a minimum above the maximum": (
        change("update", GROUP, asg(), asg(minSize=9)), "bounds-crossed", "a minimum of 9",
    ),
    "a zone less": (
        change("update", GROUP, asg(vpcZoneIdentifiers=["s-1", "s-2"]),
               asg(vpcZoneIdentifiers=["s-1"])),
        "zone-lost",
        "loses `s-2`",
    ),
    "from on demand to spot": (
        change("update", TEMPLATE, {"a": 1}, {"a": 1, **SPOT}),
        "on-demand-to-spot",
        "bought on spot now",
    ),
    "nodes from on demand to spot": (
        change("update", NODES, {"capacityType": "ON_DEMAND"}, {"capacityType": "SPOT"}),
        "on-demand-to-spot",
        "bought on spot now",
    ),
    "a mixed policy with spot": (
        change("update", GROUP, mixed(0, 100), mixed(0, 50)), "on-demand-to-spot", "on spot now",
    ),
    "a lower base": (
        change("update", GROUP, mixed(2, 0), mixed(1, 0)),
        "on-demand-base-lowered",
        "keeps 1 machine on demand, and not 2",
    ),
    "a hook that goes": (change("delete", HOOK, hook()), "gate-removed", "without being proved"),
    "a hook that lets in what is silent": (
        change("update", HOOK, hook(), hook(defaultResult="CONTINUE")),
        "gate-weakened",
        "never said it is good",
    ),
    "a hook that waits less": (
        change("update", HOOK, hook(), hook(heartbeatTimeout=600)), "gate-weakened", "waits 600 s",
    ),
    "healing that goes": (
        change("update", MIG, {"autoHealingPolicies": {"healthCheck": "h"}}, {"name": "x"}),
        "gate-removed",
        "a bad one stays",
    ),
    "an address for everybody": (
        change("update", TEMPLATE, {"networkInterfaces": [{"deviceIndex": 0}]},
               {"networkInterfaces": [{"associatePublicIpAddress": "true"}]}),
        "public-address",
        "gets a public address",
    ),
    "a subnet of public machines": (
        change("create", "aws:ec2/subnet:Subnet", None, {"mapPublicIpOnLaunch": True}),
        "public-address",
        "machines in it get a public address",
    ),
    "an address that is given to a machine": (
        change("create", "aws:ec2/eip:Eip", None, {"instance": UNKNOWN}),
        "public-address",
        "a machine gets a public address",
    ),
    "an open port": (change("update", SG, OURS, OPEN), "open-to-all", "internet in: tcp 22."),
    "an open port of a rule": (
        change("create", "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", None,
               {"ipProtocol": "-1", "cidrIpv6": "::/0"}),
        "open-to-all",
        "internet in: every port.",
    ),
    "an open firewall": (
        change("create", FIREWALL, None, {"sourceRanges": ["0.0.0.0/0"],
                                          "allows": [{"protocol": "tcp", "ports": ["22"]}]}),
        "open-to-all",
        "internet in: tcp 22.",
    ),
    "metadata without a token": (
        change("update", TEMPLATE, {"metadataOptions": {"httpTokens": "required"}},
               {"metadataOptions": {"httpTokens": "optional"}}),
        "metadata-without-token",
        "whoever asks without a token",
    ),
    "an image that moves": (
        change("create", TEMPLATE, None, {"imageId": "resolve:ssm:/aws/service/x"}),
        "moving-image",
        "takes the newest image",
    ),
    "another image": (
        change("update", TEMPLATE, {"imageId": "ami-1"}, {"imageId": "ami-2"}),
        "image-changed",
        "`ami-2` for `ami-1`",
    ),
    "the latest template": (
        change("create", GROUP, None, asg(launchTemplate={"id": "x", "version": "$Latest"})),
        "moving-template",
        "starts no instance refresh",
    ),
    "an alarm that goes": (
        change("delete", "aws:cloudwatch/metricAlarm:MetricAlarm", {"threshold": 85}),
        "watch-removed",
        "The alarm `it` goes.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("step", "rule", "words"), RISKY.values(), ids=RISKY)
def test_what_a_change_risks_is_said(step: Change, rule: str, words: str) -> None:
    told = found(step)
    assert rule in [risk.rule for risk in told]
    assert words in "\n".join(risk.text for risk in told if risk.rule == rule)
    assert all(risk.urn == step.urn for risk in told)


HARMLESS: dict[str, Change] = {
    "a new group": change("create", GROUP, None, asg()),
    "a group that is left": change("same", GROUP, asg(), asg()),
    "tags": change("update", GROUP, asg(), asg(tags=[{"key": "a"}])),
    "more machines": change("update", GROUP, asg(), asg(maxSize=9)),
    "a new image by its id": change("create", TEMPLATE, None, {"imageId": "ami-1"}),
    "an image not known yet": change("create", TEMPLATE, None, {"imageId": UNKNOWN}),
    "a gateway's address": change("create", "aws:ec2/eip:Eip", None, {"domain": "vpc"}),
    "a private port": change("create", SG, None, OURS),
    "a port that was open": change("update", SG, OPEN, {**OPEN, "tags": {"a": "b"}}),
    "the way out": change("create", "aws:ec2/securityGroupRule:SecurityGroupRule", None,
                          {"type": "egress", "protocol": "-1", "cidrBlocks": ["0.0.0.0/0"]}),
    "a firewall of the way out": change("create", FIREWALL, None, {
        "direction": "EGRESS", "sourceRanges": ["0.0.0.0/0"], "allows": [{"protocol": "all"}]}),
    "an encrypted volume": change("create", VOLUME, None, {"encrypted": True}),
    "a volume that grows": change("update", VOLUME, {"size": 1, "encrypted": True},
                                  {"size": 2, "encrypted": True}),
    "a hook that waits longer": change("update", HOOK, hook(), hook(heartbeatTimeout=7200)),
    "a hook for the way down": change(
        "delete", HOOK, hook(lifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING")),
    "zones that are not known": change("update", GROUP, asg(vpcZoneIdentifiers=["a", "b"]),
                                       asg(vpcZoneIdentifiers=UNKNOWN)),
    "another zone": change("update", GROUP, asg(vpcZoneIdentifiers=["a"]),
                           asg(vpcZoneIdentifiers=["b", "c"])),
    "from spot to on demand": change("update", TEMPLATE, {"a": 1, **SPOT}, {"a": 1}),
}  # fmt: skip


@pytest.mark.parametrize("step", HARMLESS.values(), ids=HARMLESS)
def test_what_harms_nobody_is_not_said(step: Change) -> None:
    assert found(step) == ()


def test_an_empty_group_warns_nobody() -> None:
    (told,) = found(change("delete", GROUP, asg(minSize=0, desiredCapacity=0)))
    assert (told.level, "no machine runs in it" in told.text) == (NOTE, True)


def test_a_fleet_that_goes_whole_is_one_warning_and_not_one_a_part() -> None:
    fleet = change("delete", FLEET, {"a": 1})
    inner = change("delete", GROUP, asg())
    inner = inner._replace(before=inner.state._replace(parent=fleet.urn), op="delete")
    of_hook = change("delete", HOOK, hook())
    of_hook = of_hook._replace(before=of_hook.state._replace(parent=inner.urn))
    told = found(fleet, inner, of_hook)
    assert [risk.rule for risk in told] == ["fleet-deleted"]
    assert "its 3 machines" in told[0].text


def test_warnings_come_first_and_the_order_is_always_the_same() -> None:
    steps = [change("update", GROUP, asg(), asg(maxSize=2, **NEW)), RISKY["an open port"][0]]
    told = found(*steps)
    assert told == found(*reversed(steps))
    levels = [risk.level for risk in told]
    assert levels == sorted(levels, key=lambda level: level != WARNING)


def test_every_rule_is_set_off_by_some_case() -> None:
    rules = {rule for _, rule, _ in RISKY.values()}
    apart = {"budget-exceeded", "lock-disagrees", "fleet-deleted", "machine-stopped",
             "protection-removed"}  # fmt: skip
    assert {rule.id for rule in RULES} - apart == rules


def test_protection_that_is_taken_away_is_a_note() -> None:
    step = change("update", INSTANCE, {"a": 1}, {"a": 1})
    assert step.before
    guarded = step._replace(before=step.before._replace(protect=True))
    (told,) = found(guarded)
    assert (told.rule, told.level) == ("protection-removed", NOTE)


def test_a_machine_that_is_stopped_for_its_type_is_said() -> None:
    (told,) = found(change("update", INSTANCE, {"instanceType": "a"}, {"instanceType": "b"}))
    assert (told.rule, told.property) == ("machine-stopped", "instanceType")


# --- money and the lock ---------------------------------------------------------------------------

BUDGET = "aws:budgets/budget:Budget"
OURS_ALONE = [{"name": "TagKeyValue", "values": ["user:gputier:fleet$chat"]}]


@pytest.mark.parametrize(
    ("budget", "usd"),
    [
        ({"limitAmount": "100", "timeUnit": "MONTHLY"}, "1,235"),
        ({"limitAmount": "5000", "timeUnit": "MONTHLY"}, None),
        ({"limitAmount": "100", "timeUnit": "ANNUALLY"}, None),
        ({"limitAmount": UNKNOWN, "timeUnit": "MONTHLY"}, None),
        ({"limitAmount": "100", "timeUnit": "MONTHLY", "costFilters": OURS_ALONE}, "1,000"),
        ({"limitAmount": "1100", "timeUnit": "MONTHLY", "costFilters": OURS_ALONE}, None),
        ({"limitAmount": "100", "timeUnit": "MONTHLY", "costFilters": UNKNOWN}, None),
        ({"limitAmount": "1", "timeUnit": "MONTHLY",
          "costFilters": [{"name": "Service", "values": ["x"]}]}, None),
    ],
)  # fmt: skip
def test_a_budget_is_held_against_what_it_watches(budget: dict[str, Any], usd: str | None) -> None:
    """A fleet's own budget counts what has its tag: a group has a list of tags, others a map."""
    asg = state(GROUP, "g", tags=[{"key": "gputier:fleet", "value": "chat"}])
    machine = state(INSTANCE, "i", tags={"gputier:fleet": "chat"})
    other = state(VOLUME, "v", tags={"gputier:fleet": "render"})
    costs = {asg.urn: 600.0, machine.urn: 400.0, other.urn: 234.6}
    told = list(over_budget(world(state(BUDGET, "b", **budget), asg, machine, other), costs))
    assert bool(told) is bool(usd)
    assert all(f"and what is planned costs ${usd}." in risk.text for risk in told)


@pytest.mark.parametrize(
    ("budget", "over"),
    [
        ({"amount": {"specifiedAmount": {"units": "100"}}}, True),
        ({"amount": {"specifiedAmount": {"units": "100", "currencyCode": "EUR"}}}, False),
        ({"amount": {"specifiedAmount": {"units": "500"}}}, False),
        ({"amount": {"lastPeriodAmount": True}}, False),
        ({"amount": {"specifiedAmount": {"units": "100"}},
          "budgetFilter": {"projects": ["p"]}}, True),
        ({"amount": {"specifiedAmount": {"units": "100"}},
          "budgetFilter": {"services": ["s"]}}, False),
        ({"amount": {"specifiedAmount": {"units": "100"}},
          "budgetFilter": {"calendarPeriod": "YEAR"}}, False),
    ],
)  # fmt: skip
def test_a_budget_of_google_counts_what_is_googles(budget: dict[str, Any], over: bool) -> None:
    machine, other = state("gcp:compute/instance:Instance", "i"), state(INSTANCE, "a")
    there = world(state("gcp:billing/budget:Budget", "b", **budget), machine, other)
    told = list(over_budget(there, {machine.urn: 300.0, other.urn: 900.0}))
    assert bool(told) is over


def test_an_image_and_a_count_that_are_not_the_locks_are_told() -> None:
    fleet = state(FLEET, "chat")
    template = state(TEMPLATE, "t", instanceType="g6.xlarge", imageId="ami-2")
    asg = state(GROUP, "g", maxSize=1)
    parts = [one._replace(parent=fleet.urn) for one in (template, asg)]
    lock = locked(chat="g6.xlarge")
    entry = replace(lock.entries["chat"], image="ami-1", machines=4)
    held = Lock("dev", {"chat": entry})
    told = [risk.text for risk in lock_risks(held, world(fleet, *parts))]
    assert told == [
        "The lock holds ami-1 for `chat`, and this deploys ami-2.",
        "The lock holds 4 machines for `chat`, of 1 here.",
    ]
    free = Lock("dev", {"chat": replace(entry, image="/aws/service/x", machines=1)})
    assert list(lock_risks(free, world(fleet, *parts))) == []


def locked(**types: str) -> Lock:
    bundle = current_bundle()
    entries = {
        name: Entry(
            digest="",
            cloud="aws",
            region="us-east-1",
            zones=(),
            instance_type=type_,
            catalog_type=type_,
            attached=None,
            attached_ssds=0,
            nodes=1,
            machines=1,
            capacity="on_demand",
            availability="confirmed",
            usd_per_hour=1.0,
            hours_per_month=730.0,
            price_basis="listed",
            price_as_of=None,
            catalog="",
            catalog_as_of="",
            bundle=bundle.sha256,
            bundle_version="",
            image="",
        )
        for name, type_ in types.items()
    }
    return Lock("dev", entries)


@pytest.mark.parametrize(
    ("lock", "words"),
    [
        (locked(chat="g6.xlarge"), None),
        (locked(chat="p5.48xlarge"), "holds p5.48xlarge for `chat`, and this deploys g6.xlarge"),
        (locked(chat="g6.xlarge", gone="g6.xlarge"), "holds `gone`, and the preview has no such"),
        (locked(), "has the fleet `chat`, and the lock does not hold it"),
    ],
)
def test_a_lock_that_says_something_else_is_told(lock: Lock, words: str | None) -> None:
    fleet = state(FLEET, "chat")
    part = state("gputier:aws:Group", "chat")._replace(parent=fleet.urn)
    machine = state(TEMPLATE, "chat-t", instanceType="g6.xlarge")._replace(parent=part.urn)
    told = [risk.text for risk in lock_risks(lock, world(fleet, part, machine))]
    assert ([words] if words else []) == [w for w in [words] if w and any(w in t for t in told)]
    assert bool(told) is bool(words)


# --- real previews --------------------------------------------------------------------------------


def of_sample(name: str) -> list[str]:
    preview = read((SAMPLES / f"{name}.json").read_bytes(), name)
    sides = [
        {u: side for u, c in preview.changes.items() if (side := getattr(c, at)) is not None}
        for at in ("before", "after")
    ]
    before, after = (World(side, {}, catalog()) for side in sides)
    return [risk.rule for risk in risks(preview, before, after)]


def test_a_preview_that_changes_nothing_risks_nothing() -> None:
    assert of_sample("noop") == []


def test_a_real_replacement_is_found() -> None:
    assert "moving-template" in of_sample("create")
