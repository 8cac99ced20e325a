"""The node's own Auto Scaling group: finish the launch, keep it waiting, stop it, give up a node.

Each is allowed on the group and not on the process or the instance: IAM has no condition key for
either (docs/gates.md says what that means).
"""

from __future__ import annotations

import urllib.parse
from typing import NamedTuple

from gputier.node.cloud import Refused
from gputier.node.cloud.aws import Send, Signed, refused
from gputier.node.cloud.http import Answer, Patience

VERSION = "2011-01-01"
CONTINUE, ABANDON = "CONTINUE", "ABANDON"
# github.com/PrairieLearn/PrairieLearn/issues/15586: one lost completion and the node hangs until
# the hook's timeout. The verdict is worth waiting for.
SURE = Patience(150.0)
# Stopping the fleet comes before the node's own end, and must not keep it from that.
STOP = Patience(60.0)
QUICK = Patience(15.0, each=5.0)
FORM = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
NOT_WAITING = "No active Lifecycle Action found"


class Group(NamedTuple):
    name: str
    hook: str
    instance: str


class Autoscaling:
    """Signed queries. `NotWaiting` where the hook is not, or no longer, waiting for this node."""

    def __init__(self, signed: Signed, base: str) -> None:
        self.signed = signed
        self.base = base

    def complete(self, group: Group, result: str) -> None:
        """Finish the launch. An answer that got lost was acted on: then the hook waits no more."""
        answer = self._call(
            "CompleteLifecycleAction",
            {
                "AutoScalingGroupName": group.name,
                "LifecycleHookName": group.hook,
                "InstanceId": group.instance,
                "LifecycleActionResult": result,
            },
            SURE,
        )
        try:
            _good("CompleteLifecycleAction", answer)
        except NotWaiting:
            if not answer.unsure:
                raise

    def heartbeat(self, group: Group) -> None:
        """Restart the hook's timeout."""
        found = {
            "AutoScalingGroupName": group.name,
            "LifecycleHookName": group.hook,
            "InstanceId": group.instance,
        }
        answer = self._call("RecordLifecycleActionHeartbeat", found, QUICK)
        _good("RecordLifecycleActionHeartbeat", answer)

    def suspend_launches(self, group: str) -> None:
        """Launch nothing more. Asking twice is asking once."""
        found = {"AutoScalingGroupName": group, "ScalingProcesses.member.1": "Launch"}
        _good("SuspendProcesses", self._call("SuspendProcesses", found, STOP))

    def unhealthy(self, instance: str) -> None:
        """Have a node in service replaced, grace period or not."""
        found = {
            "InstanceId": instance,
            "HealthStatus": "Unhealthy",
            "ShouldRespectGracePeriod": "false",
        }
        _good("SetInstanceHealth", self._call("SetInstanceHealth", found, SURE))

    def _call(self, action: str, found: dict[str, str], patience: Patience) -> Answer:
        body = urllib.parse.urlencode({"Action": action, "Version": VERSION, **found})
        return self.signed.send(Send("POST", f"{self.base}/", FORM, body.encode()), patience)


class NotWaiting(Refused):
    """The hook does not wait for this instance."""


def _good(action: str, answer: Answer) -> None:
    if answer.ok:
        return
    found = refused(action, answer)
    if answer.status == 400 and NOT_WAITING in found.message:
        raise NotWaiting(action, answer.status, found.code, found.message)
    raise found
