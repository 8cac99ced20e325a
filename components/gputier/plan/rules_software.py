"""The rule about software: what is declared must run on the machine's card."""

from __future__ import annotations

from gputier.catalog import Gpu
from gputier.plan.machine import Machine
from gputier.plan.reasons import Context, Reason
from gputier.plan.tiers import Floor


def software(_f: Floor, m: Machine, _g: Gpu, c: Context) -> Reason | None:
    """Asks the version contract, which knows what is declared."""
    return c.contract.refusal(m.type) if c.contract else None
