"""Azure: the application health extension asks the node, and a scale set repairs what is Unhealthy.

Opening and shutting is the whole answer (`gputier.node.health.application`). A configuration fault
gives no valid answer, so that the machine is left alone: that is this cloud's loop breaker.
"""

from __future__ import annotations

from gputier.node.cloud.identity import Identity
from gputier.node.gates.base import Base
from gputier.node.host import Host
from gputier.node.settings import APPLICATION_HEALTH, Settings


class ApplicationHealth(Base):
    """The gate of a scale set."""

    kind = APPLICATION_HEALTH


def make(settings: Settings, identity: Identity | None, host: Host) -> ApplicationHealth:
    return ApplicationHealth(settings, identity, host)
