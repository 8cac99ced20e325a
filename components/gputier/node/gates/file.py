"""A lone machine: nobody replaces it. The gate's file, the ready file and the exit status tell."""

from __future__ import annotations

from gputier.node.cloud.identity import Identity
from gputier.node.gates.base import Base
from gputier.node.host import Host
from gputier.node.settings import GATE_FILE, Settings


class File(Base):
    """The gate of a machine of no group."""

    kind = GATE_FILE


def make(settings: Settings, identity: Identity | None, host: Host) -> File:
    return File(settings, identity, host)
