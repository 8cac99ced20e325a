"""Rules of money and safety for GPU machines on AWS and Google Cloud, over anybody's program.

`RULES` is the pack: reading it is reading what is enforced. Nothing here imports gputier.
"""

from __future__ import annotations

from gputier_policies import boot, budget, cards, cost, environment, fleet, scaling, tags
from gputier_policies.rule import Rule

RULES: tuple[Rule, ...] = (
    boot.IMDSV2,
    *cost.RULES,
    *cards.RULES,
    *fleet.RULES,
    *scaling.RULES,
    *budget.RULES,
    *tags.RULES,
    *environment.RULES,
)

__all__ = ["RULES", "Rule"]
