"""Whether a machine has to prove itself before a group counts it as one."""

from __future__ import annotations

from collections.abc import Iterator

from gputier_policies.fleets import Fleet, fleets
from gputier_policies.links import Links
from gputier_policies.machine import FLEX, GCP_GROUP, GCP_REGION_GROUP, GROUP
from gputier_policies.parts import Part, given, shown, whole
from gputier_policies.rule import Config, Finding, Findings, Rule, Undecided, Violation
from gputier_policies.values import UNKNOWN, Resource, Stack
from gputier_policies.words import ENVIRONMENT, is_production

HOOK = "aws:autoscaling/lifecycleHook:LifecycleHook"
_LAUNCHING = "autoscaling:EC2_INSTANCE_LAUNCHING"


def fleet_requires_gate(stack: Stack, config: Config) -> Findings:
    """A machine whose GPU does not work takes work and fails it, for as long as nobody asks it
    first. A lone machine has nobody to replace it, and may report."""
    if not is_production(config):
        return
    stack = given(stack)
    links = Links(stack)
    for fleet in fleets(stack, links):
        if fleet.gpu is False:
            continue
        findings = list(_judged(fleet, links))
        if fleet.gpu is UNKNOWN and any(isinstance(one, Violation) for one in findings):
            findings = list(_waits(fleet))
        yield from findings


def _waits(fleet: Fleet) -> Iterator[Finding]:
    """What says whether a fleet has a GPU; nothing where that is not in the program."""
    if fleet.waits:
        yield Undecided(fleet.waits, fleet.runner.urn)
    for machine in fleet.machines:
        if machine.gpu is UNKNOWN:
            yield Undecided(machine.path, fleet.source.urn)


def _judged(fleet: Fleet, links: Links) -> Iterator[Finding]:
    if fleet.runner.type == GROUP:
        yield from _hooked(fleet.runner, links)
        return
    # What waits in a queue is not healed: a repair would ask for a machine out of turn.
    queued = any(machine.capacity == FLEX for machine in fleet.machines)
    if fleet.runner.type in (GCP_GROUP, GCP_REGION_GROUP) and not queued:
        yield from _healed(fleet.runner)


def _hooked(group: Resource, links: Links) -> Iterator[Finding]:
    """A hook that holds each machine as it starts, and lets go of one that nobody vouches for: its
    default result is ABANDON unless it is said (Auto Scaling API 2011-01-01,
    LifecycleHookSpecification)."""
    hooks = whole(group).each("initialLifecycleHooks")
    hooks += map(whole, links.pointing_at(group, "autoscalingGroupName", HOOK))
    passing: list[str] = []
    waits: list[str] = []
    for hook in hooks:
        at, result = hook.at("lifecycleTransition"), hook.at("defaultResult")
        if not at.unknown and at.value != _LAUNCHING:
            continue
        if not at.unknown and result.value in (None, "ABANDON"):
            return
        if at.unknown or result.unknown:
            waits.append((at if at.unknown else result).path)
        else:
            passing.append(f"{result.path} is {shown(result.value)}")
    if waits:
        yield Undecided(waits[0], group.urn)
        return
    what = passing[0] if passing else "no hook holds a machine as it starts"
    yield Violation(
        f"{what}, so that one that does not work takes work; it must be let go unless it proves"
        ' itself: initial_lifecycle_hooks=[{"lifecycle_transition":'
        f' "{_LAUNCHING}", "default_result": "ABANDON", …}}], or'
        " `validation.gate: enforce` in a stack of ours",
        group.urn,
    )


def _healed(group: Resource) -> Iterator[Finding]:
    """A health check that a machine has to answer, with time for it to start."""
    box = Part("autoHealingPolicies", group.at("autoHealingPolicies"))
    if box.unknown:
        yield Undecided(box.path, group.urn)
        return
    for policy in box.each():
        check, delay = policy.at("healthCheck"), policy.at("initialDelaySec")
        if policy.unknown or check.unknown or check.value:
            if delay.value in (0, None):
                yield Violation(
                    f"{delay.path} is {shown(delay.value)}, so that a machine is replaced while it"
                    ' starts; give it the time that it takes: {"initial_delay_sec": 900}',
                    group.urn,
                )
            return
    yield Violation(
        "autoHealingPolicies names no health check, so that a machine that does not work stays and"
        ' takes work: auto_healing_policies={"health_check": check.id, "initial_delay_sec": 900}',
        group.urn,
    )


GATE = Rule(
    check_stack=fleet_requires_gate,
    description="In production a group of GPU machines lets none take work that has not proved"
    " itself: a launch hook that abandons on AWS, a health check that heals on Google Cloud.",
    remediation="Give the group a launch hook whose default result is ABANDON, or a health check;"
    " fleets of ours have it with `validation.gate: enforce`.",
    severity="high",
    url="https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks.html",
    settings={"environment": ENVIRONMENT},
)

RULES = (GATE,)
