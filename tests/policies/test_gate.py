"""In production a group of GPU machines has a gate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.policies import cases
from tests.policies.tables import Case, awaited, check, misspelt

from gputier_policies.gate import GATE
from gputier_policies.values import UNKNOWN, Resource

GROUP = "aws:autoscaling/group:Group"
HOOK = "aws:autoscaling/lifecycleHook:LifecycleHook"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
CONFIGURATION = "aws:ec2/launchConfiguration:LaunchConfiguration"
GCP_TEMPLATE = "gcp:compute/instanceTemplate:InstanceTemplate"
MANAGED = "gcp:compute/instanceGroupManager:InstanceGroupManager"
REGIONAL = "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager"

LAUNCHING = "autoscaling:EC2_INSTANCE_LAUNCHING"
LT = cases.resource(TEMPLATE, "lt", id="lt-1", instanceType="g6.xlarge")
GT = cases.resource(GCP_TEMPLATE, "gt", selfLink="gt-1", machineType="g2-standard-4")
HOOKED = {
    "launchTemplate": {"id": "lt-1"},
    "initialLifecycleHooks": [
        {"name": "prove", "lifecycleTransition": LAUNCHING, "defaultResult": "ABANDON"}
    ],
}
HEALED = {
    "versions": [{"instanceTemplate": "gt-1"}],
    "autoHealingPolicies": {"healthCheck": "check", "initialDelaySec": 900},
}
ON_HOOK = "initialLifecycleHooks[0]"
FROM = ("launchTemplate.id",)
VERSION = ("versions[0].instanceTemplate",)
POOL = cases.resource(GROUP, "pool", name="pool-1", launchTemplate={"id": "lt-1"})
LATER = cases.resource(HOOK, "hook", autoscalingGroupName="pool-1", lifecycleTransition=LAUNCHING)

GATED = [
    Case(GROUP, HOOKED, f"{ON_HOOK}.defaultResult", "CONTINUE",
         f"{ON_HOOK}.defaultResult is CONTINUE", (*FROM, f"{ON_HOOK}.lifecycleTransition"),
         others=(LT,)),
    Case(GROUP, HOOKED, f"{ON_HOOK}.lifecycleTransition", "autoscaling:EC2_INSTANCE_TERMINATING",
         "no hook holds a machine as it starts", FROM, others=(LT,)),
    *(
        case
        for t in (MANAGED, REGIONAL)
        for case in (
            Case(t, HEALED, "autoHealingPolicies", None, "names no health check", VERSION,
                 others=(GT,)),
            Case(t, HEALED, "autoHealingPolicies.healthCheck", None, "names no health check",
                 VERSION, others=(GT,)),
            Case(t, HEALED, "autoHealingPolicies.initialDelaySec", 0,
                 "autoHealingPolicies.initialDelaySec is 0", VERSION, others=(GT,)),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", GATED, ids=str)
def test_a_group_in_production_has_a_gate(case: Case) -> None:
    bad = case.subject(GATE, cases.changed(case.good, case.path, case.bad))
    for environment in ("dev", "staging"):
        assert cases.found(GATE, bad, environment=environment) == []
    assert cases.violations(GATE, bad, environment="prod")
    check(GATE, case)


def told(*resources: Resource) -> list[str]:
    return cases.violations(GATE, cases.stack(*resources))


def test_a_group_without_any_hook_has_none() -> None:
    (message,) = told(POOL, LT)
    assert 'initial_lifecycle_hooks=[{"lifecycle_transition": "autoscaling:EC2_INST' in message
    assert '"default_result": "ABANDON", …}]' in message


def test_a_hook_of_its_own_is_one_and_abandons_unless_it_says_otherwise() -> None:
    assert misspelt(HOOK, LATER.props) == []
    assert told(POOL, LT, LATER) == []
    assert (
        len(told(POOL, LT, replace(LATER, props={**LATER.props, "defaultResult": "CONTINUE"}))) == 1
    )
    assert (
        len(told(POOL, LT, replace(LATER, props={**LATER.props, "autoscalingGroupName": "b"}))) == 1
    )


def test_a_hook_is_found_before_its_group_has_a_name() -> None:
    group = cases.resource(GROUP, "pool", launchTemplate={"id": "lt-1"})
    hook = cases.resource(
        HOOK,
        "hook",
        sources={"autoscalingGroupName": (group,)},
        autoscalingGroupName=UNKNOWN,
        lifecycleTransition=LAUNCHING,
    )
    assert cases.found(GATE, cases.stack(group, hook, LT)) == []


@pytest.mark.parametrize("path", ["defaultResult", "lifecycleTransition"])
def test_a_hook_that_is_not_known_is_waited_for(path: str) -> None:
    waiting = replace(LATER, props={**LATER.props, path: UNKNOWN})
    stack = cases.stack(POOL, LT, awaited(waiting))
    assert cases.waits(GATE, stack) == [path]
    assert cases.violations(GATE, stack) == []


def template(**props: Any) -> Resource:
    return cases.resource(TEMPLATE, "lt", id="lt-1", **props)


def test_machines_without_a_gpu_and_machines_elsewhere_need_none() -> None:
    assert cases.found(GATE, cases.stack(POOL, template(instanceType="m7i.large"))) == []
    assert cases.found(GATE, cases.stack(POOL)) == []


def test_machines_that_are_not_known_are_waited_for() -> None:
    later = awaited(replace(POOL, props={"launchTemplate": {"id": UNKNOWN}}))
    assert cases.waits(GATE, cases.stack(later)) == ["launchTemplate.id"]
    unnamed = cases.stack(POOL, awaited(template(instanceType=UNKNOWN)))
    assert cases.violations(GATE, unnamed) == []
    assert cases.waits(GATE, unnamed) == ["instanceType"]


def test_groups_of_mixed_types_and_of_launch_configurations_are_groups() -> None:
    mixed = cases.resource(
        GROUP, "pool",
        mixedInstancesPolicy={"launchTemplate": {
            "launchTemplateSpecification": {"launchTemplateId": "lt-1"},
            "overrides": [{"instanceType": "m7i.large"}, {"instanceType": "g6.xlarge"}],
        }},
    )  # fmt: skip
    assert len(told(mixed, template())) == 1
    old = cases.resource(GROUP, "pool", launchConfiguration="lc-1")
    configuration = cases.resource(CONFIGURATION, "lc", name="lc-1", instanceType="p3.2xlarge")
    assert len(told(old, configuration)) == 1


def test_a_lone_machine_may_report() -> None:
    assert told(cases.resource("aws:ec2/instance:Instance", instanceType="g6.xlarge")) == []
    assert told(cases.resource("gcp:compute/instance:Instance", machineType="g2-standard-4")) == []


def test_machines_that_queue_are_not_healed() -> None:
    queued = replace(GT, props={**GT.props, "scheduling": {"provisioningModel": "FLEX_START"}})
    group = cases.resource(MANAGED, versions=[{"instanceTemplate": "gt-1"}])
    assert len(told(group, GT)) == 1
    assert told(group, queued) == []


def test_what_the_provider_fills_in_is_not_waited_for() -> None:
    hook = replace(LATER, props={**LATER.props, "defaultResult": UNKNOWN})
    assert cases.found(GATE, cases.stack(POOL, LT, hook)) == []


def test_a_health_check_that_has_no_id_yet_is_one() -> None:
    healed: dict[str, Any] = {
        "autoHealingPolicies": {"healthCheck": UNKNOWN, "initialDelaySec": 900}
    }
    group = cases.resource(MANAGED, versions=[{"instanceTemplate": "gt-1"}], **healed)
    assert cases.found(GATE, cases.stack(awaited(group), GT)) == []
