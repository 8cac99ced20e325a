"""Machines that take work unproved: a gate that goes, or lets more through."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

from gputier.review.preview import Value
from gputier.review.risk import WARNING, Finder, Risk, Rule, Scene, called, sentence
from gputier.review.risks_sizes import ASG, AWS_INSTANCES, AWS_TEMPLATES, MIG
from gputier.review.values import number
from gputier.review.world import at

REMOVED = Rule("gate-removed", WARNING, "What holds a machine back until it is proved goes.")
WEAKENED = Rule("gate-weakened", WARNING, "A machine that says nothing, or too late, is let in.")
RULES = (REMOVED, WEAKENED)

_HOOK = "aws:autoscaling/lifecycleHook:LifecycleHook"
#: The settings are JSON within the script that a machine boots.
_GATE = re.compile(r'"gate":\{[^{}]*"mode":"([a-z]+)"')
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


def _reported_only(scene: Scene) -> Iterator[Risk]:
    """Machines of gputier whose user data no longer lets the gate keep them out."""
    for change, before, after in scene.edited((*AWS_TEMPLATES, *AWS_INSTANCES)):
        for name in ("userData", "userDataBase64"):
            was, is_ = _mode(before.inputs.get(name)), _mode(after.inputs.get(name))
            if was == "enforce" and is_ not in (None, "enforce"):
                text = f"{sentence(called(after))}: a machine that fails its checks is let in."
                yield WEAKENED.at(change.urn, name, f"{text} Its gate says `{is_}` now.")


def _mode(user_data: Value) -> str | None:
    """What gputier's settings say of the gate, where user data has them and is shown."""
    if not isinstance(user_data, str):
        return None
    try:
        text = base64.b64decode(user_data, validate=True).decode(errors="replace")
    except ValueError:  # no base64, or not ASCII
        text = user_data
    found = _GATE.search(text)
    return found[1] if found else None


FINDERS: tuple[Finder, ...] = (_removed, _weakened, _reported_only)
