"""The gates: how a verdict becomes what the cloud does with the machine, behind one interface.

    gate = gates.of(settings, identity, host)
    gate.heartbeat()                  # while long stages run; never raises
    gate.settle(report)               # admit or refuse, by the mode and the outcome
    gate.admit(report), gate.refuse(report), gate.leave(report), gate.revoke(outcome, reasons)
    gate.tell(report)                 # a report alone

None of them raises for what a cloud does: `Settled` says what was done and what could not be.
`steps.py` is the table of what is done when; a gate only knows how.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from gputier.node.cloud.identity import Identity
from gputier.node.gates.settled import Settled
from gputier.node.host import Host
from gputier.node.settings import (
    APPLICATION_HEALTH,
    GATE_FILE,
    HEALTH_ENDPOINT,
    LIFECYCLE_HOOK,
    Settings,
)

# A gate is loaded when it is used: starting is most of what the node's verbs cost.
MODULES = {
    LIFECYCLE_HOOK: "lifecycle_hook",
    HEALTH_ENDPOINT: "health_endpoint",
    APPLICATION_HEALTH: "application_health",
    GATE_FILE: "file",
}


class Gate:
    """What every gate does. `Base` in base.py does it for all; this is what callers may rely on."""

    def heartbeat(self) -> str | None:
        """Say that this node is alive and not done; what was wrong, None when nothing was."""
        raise NotImplementedError

    def settle(self, report: Mapping[str, Any]) -> Settled:
        """Admit or refuse: in mode `enforce` only a healthy node comes in."""
        raise NotImplementedError

    def admit(self, report: Mapping[str, Any]) -> Settled:
        """Let it in: tell the cloud, then open."""
        raise NotImplementedError

    def refuse(self, report: Mapping[str, Any]) -> Settled:
        """Keep it out: the report first, then what the cloud does with it. In modes `report` and
        `off` nobody is kept out: the node is let in, and the verdict is told."""
        raise NotImplementedError

    def leave(self, report: Mapping[str, Any]) -> Settled:
        """The provider takes the machine (a notice came): nothing but the report is sent."""
        raise NotImplementedError

    def revoke(
        self, outcome: str, reasons: Sequence[str], report: Mapping[str, Any] | None = None
    ) -> Settled:
        """A node that had joined is broken: shut, and have it replaced. A report that shows it is
        uploaded before, and the host kept among the bad ones."""
        raise NotImplementedError

    def tell(self, report: Mapping[str, Any]) -> tuple[str, ...]:
        """Upload a report that changes nothing; what was in the way."""
        raise NotImplementedError

    def known_bad(self, fingerprint: Mapping[str, Any]) -> str | None:
        """Why this host was given back before, in words, None when it was not or is not known."""
        raise NotImplementedError


def of(settings: Settings, identity: Identity | None, host: Host) -> Gate:
    """The gate of this machine. Without an identity nothing can be told to a cloud, so every kind
    does what it can do here. Raises WrongInput for an endpoints file that cannot be used."""
    module = importlib.import_module(f"gputier.node.gates.{MODULES[settings.gate_kind]}")
    made: Gate = module.make(settings, identity, host)
    return made


__all__ = ["Gate", "Settled", "of"]
