"""Rules of money and safety for GPU machines on AWS and Google Cloud, over anybody's program.

`RULES` is the pack: reading it is reading what is enforced. Nothing here imports gputier.
"""

from __future__ import annotations

from gputier_policies import (
    boot,
    budget,
    cards,
    cost,
    environment,
    fabric,
    fleet,
    gate,
    identity,
    ingress,
    network,
    placement,
    scaling,
    secrets,
    storage,
    store,
    tags,
)
from gputier_policies.rule import Rule

RULES: tuple[Rule, ...] = (
    *cost.RULES,
    *cards.RULES,
    *fleet.RULES,
    *scaling.RULES,
    *budget.RULES,
    *tags.RULES,
    *environment.RULES,
    *boot.RULES,
    *storage.RULES,
    *network.RULES,
    *ingress.RULES,
    *fabric.RULES,
    *identity.RULES,
    *secrets.RULES,
    *store.RULES,
    *gate.RULES,
    *placement.RULES,
)

__all__ = ["RULES", "Rule"]
