"""Machines that take work unproved: a gate that goes, or lets more through."""

from __future__ import annotations

from collections.abc import Iterator

from gputier.review.risk import WARNING, Finder, Risk, Rule, Scene, called, number, sentence
from gputier.review.risks_sizes import ASG, MIG
from gputier.review.world import at

REMOVED = Rule("gate-removed", WARNING, "What holds a machine back until it is proved goes.")
WEAKENED = Rule("gate-weakened", WARNING, "A machine that says nothing, or too late, is let in.")
RULES = (REMOVED, WEAKENED)

_HOOK = "aws:autoscaling/lifecycleHook:LifecycleHook"
_LAUNCHING = "autoscaling:EC2_INSTANCE_LAUNCHING"
_CHECKS = (
    "gcp:compute/healthCheck:HealthCheck",
    "gcp:compute/regionHealthCheck:RegionHealthCheck",
)


def _removed(scene: Scene) -> Iterator[Risk]:
    for change in scene.changes("delete", (_HOOK, *_CHECKS)):
        hook = change.before
        if hook is None or (hook.type == _HOOK and hook.get("lifecycleTransition") != _LAUNCHING):
            continue
        group = scene.before.follow(hook, "autoscalingGroupName", ASG)
        if scene.goes(group.urn if group else hook.parent):
            continue
        text = f"{sentence(called(hook))} goes: machines take work without being proved."
        yield REMOVED.at(change.urn, None, text)
    for change, before, after in scene.edited(MIG):
        was, is_ = before.inputs.get("autoHealingPolicies"), after.inputs.get("autoHealingPolicies")
        if was and not is_:
            text = f"{sentence(called(after))} heals no machine any more: a bad one stays."
            yield REMOVED.at(change.urn, "autoHealingPolicies", text)


def _weakened(scene: Scene) -> Iterator[Risk]:
    for change, before, after in scene.edited((_HOOK,)):
        if before.get("lifecycleTransition") != _LAUNCHING:
            continue
        if before.get("defaultResult") == "ABANDON" and after.get("defaultResult") == "CONTINUE":
            text = f"{sentence(called(after))} lets a machine in that never said it is good."
            yield WEAKENED.at(change.urn, "defaultResult", text)
        was, is_ = number(before.get("heartbeatTimeout")), number(after.get("heartbeatTimeout"))
        if was is not None and is_ is not None and is_ < was:
            text = (
                f"{sentence(called(after))} waits {is_:g} s and not {was:g}: a machine that needs"
                " longer is given up."
            )
            yield WEAKENED.at(change.urn, "heartbeatTimeout", text)
    path = "autoHealingPolicies.initialDelaySec"
    for change, before, after in scene.edited(MIG):
        was, is_ = number(at(before.inputs, path)), number(at(after.inputs, path))
        if was is not None and is_ is not None and is_ < was:
            text = (
                f"{sentence(called(after))} heals after {is_:g} s and not {was:g}: a machine that"
                " still prepares itself is made anew."
            )
            yield WEAKENED.at(change.urn, path, text)


FINDERS: tuple[Finder, ...] = (_removed, _weakened)
