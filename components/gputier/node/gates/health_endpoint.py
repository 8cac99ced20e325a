"""Google: autohealing asks /healthz, which `serve` answers from the gate's file.

Opening and shutting is the whole answer. There is no ABANDON: a node that is refused asks its group
to make it anew, at once, rather than be paid for until the health check's delay is over. Where it
may not (the permission is optional, docs/gates.md), the health check does it then.
"""

from __future__ import annotations

from gputier.node.cloud import Refused, Trouble
from gputier.node.cloud.compute import TOLD_FAMILIES
from gputier.node.cloud.here import Here
from gputier.node.cloud.identity import Identity
from gputier.node.gates.base import Base
from gputier.node.host import Host
from gputier.node.result import REPLACE
from gputier.node.settings import HEALTH_ENDPOINT, Settings

# The validation's check that this host was given back before (stages/validate.py).
KNOWN_BAD = "known-host"


class HealthEndpoint(Base):
    """The gate of a managed instance group."""

    kind = HEALTH_ENDPOINT

    def stop(self) -> None:
        cloud = self._in_group()
        autoscaler = cloud.compute.autoscaler(cloud.identity.group)
        if autoscaler:
            cloud.compute.switch_off(autoscaler)

    def give_up(self) -> None:
        cloud = self._in_group()
        who = cloud.identity
        if self._told(cloud):
            return
        try:
            cloud.compute.recreate(who.group, who.zone, who.name)
        except Refused as error:
            if not error.denied:
                raise
            self.notes.append(f"left to the health check: {error}")

    def go(self) -> None:
        cloud = self._in_group()
        cloud.compute.leave(cloud.identity.group, cloud.identity.zone, cloud.identity.name)

    def _told(self, cloud: Here) -> bool:
        """Whether Google was told of a host that came back bad, and takes it out itself.

        Made anew the machine might land on it again: recreating keeps name and zone. Of machines
        without a reservation Google does not want to hear it, nor of other families.
        """
        kind = self.settings.text("instance_type") or ""
        causes = [str(name) for name in self.report.get("causes") or ()]
        if self.report.get("outcome") != REPLACE or KNOWN_BAD not in causes:
            return False
        if not kind.startswith(TOLD_FAMILIES):
            return False
        try:
            cloud.compute.report_host(cloud.identity.zone, cloud.identity.name, ", ".join(causes))
        except Refused as error:
            self.notes.append(f"the host could not be reported: {error}")
            return False
        self.notes.append("Google was told that the host is bad, and moves the machine")
        return True

    def _in_group(self) -> Here:
        cloud = self.here()
        if not cloud.identity.group:
            raise Trouble("no group made this machine: nobody replaces it")
        return cloud


def make(settings: Settings, identity: Identity | None, host: Host) -> HealthEndpoint:
    return HealthEndpoint(settings, identity, host)
