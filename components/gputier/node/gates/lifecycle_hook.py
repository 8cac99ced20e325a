"""AWS: the launch hook holds the node in Pending:Wait until it says CONTINUE or ABANDON.

The hook's default result is ABANDON, so a node that says nothing never comes in. What the node is
on its way to (`target-lifecycle-state`) decides what an answer means: a warm pool has the hook too.
https://docs.aws.amazon.com/autoscaling/ec2/userguide/retrieving-target-lifecycle-state-through-imds.html
"""

from __future__ import annotations

from gputier.node.cloud import Trouble
from gputier.node.cloud.autoscaling import ABANDON, CONTINUE, Group, NotWaiting
from gputier.node.cloud.here import Here
from gputier.node.cloud.identity import Identity
from gputier.node.gates.base import Base
from gputier.node.host import Host
from gputier.node.interruption import KEPT_ASIDE, STATE
from gputier.node.settings import LIFECYCLE_HOOK, Settings

TERMINATED, WARMED = "Terminated", "Warmed:"
# Where Auto Scaling does not hold the instance any more: then nobody waits for an answer.
ASIDE = ("Detached", "Standby")
# The item may come a little after the instance does.
LATE_TRIES, LATE_SECONDS = 5, 2.0


class LifecycleHook(Base):
    """The gate of an Auto Scaling group."""

    kind = LIFECYCLE_HOOK

    def heartbeat(self) -> str | None:
        try:
            cloud = self.here()
            cloud.autoscaling.heartbeat(self._group(cloud))
        except NotWaiting:
            # A reboot of a node that is in service, or a hook that has answered itself.
            return "the launch hook does not wait for this node"
        except Trouble as error:
            return str(error)
        return None

    def enter(self) -> None:
        cloud = self.here()
        state = self.state()
        if state is None or state in ASIDE:
            self.notes.append(f"no group waits for this node ({state or 'not in a group'})")
            return
        if state.endswith(TERMINATED):
            raise Trouble("the group is terminating this node: the hook may have run out of time")
        # In a warm pool the node is kept aside; it is judged again when it comes out.
        self.entered = not state.startswith(WARMED)
        if not self.entered:
            self.notes.append(f"{KEPT_ASIDE} ({state})")
        self._complete(cloud, CONTINUE)

    def _complete(self, cloud: Here, result: str) -> None:
        try:
            cloud.autoscaling.complete(self._group(cloud), result)
        except NotWaiting:
            # Answered before, here or by an operator, or this node has been in service since an
            # earlier boot: right when it is where it wants to be.
            state = self.state()
            if result == CONTINUE and state not in (None, TERMINATED):
                self.notes.append("the launch hook did not wait any more: the node is in already")
                return
            raise

    def stop(self) -> None:
        cloud = self.here()
        cloud.autoscaling.suspend_launches(self._group(cloud).name)

    def give_up(self) -> None:
        cloud = self.here()
        try:
            cloud.autoscaling.complete(self._group(cloud), ABANDON)
        except NotWaiting:
            state = self.state()
            if state == TERMINATED:
                self.notes.append("the group is terminating this node already")
                return
            if state is None or state in ASIDE:
                self.notes.append(f"no group replaces this node ({state or 'not in a group'})")
                return
            cloud.autoscaling.unhealthy(cloud.identity.instance_id)

    def state(self) -> str | None:
        """What the node is on its way to, None outside a group. Raises Trouble."""
        cloud = self.here()
        for turn in range(LATE_TRIES):
            if turn:
                self.host.sleep(LATE_SECONDS)
            found = cloud.aws.get(STATE)
            if found:
                return found
        return None

    def _group(self, cloud: Here) -> Group:
        name, hook = self.settings.text("gate.group"), self.settings.text("gate.hook")
        return Group(name or "", hook or "", cloud.identity.instance_id)


def make(settings: Settings, identity: Identity | None, host: Host) -> LifecycleHook:
    return LifecycleHook(settings, identity, host)
