"""docs/tiers.md: what each tier becomes on each cloud, from the catalogue as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import get_args

from tests.plan.world import DEPLOYED, planned

from gputier import units
from gputier.plan import WorkloadPlan, tiers
from gputier.workload import model as schema

PURPOSES = get_args(schema.Purpose)
NAMES = {"aws": "AWS", "gcp": "Google Cloud"}


def becomes(plan: WorkloadPlan) -> str:
    """The machine and its price, or the floor that none meets."""
    chosen = plan.chosen
    if chosen is None:
        (nearest, *_) = plan.relaxations
        lacks = "; ".join(f"{one.needed} wanted, {one.has}" for one in nearest.reasons)
        return f"none: {lacks}"
    row = chosen.verdict.type
    cards = f"{row.gpu_count:g} × {row.gpu_model}"
    usd = chosen.usd_per_hour
    price = "no price known" if usd is None else units.usd_per_hour(usd)
    where = f"`{chosen.verdict.machine.instance_type}` in {chosen.verdict.region}"
    return f"{where}: {cards}, {price}"


def rows() -> Iterator[str]:
    yield "| tier | purpose | " + " | ".join(NAMES[cloud] for cloud in DEPLOYED) + " |"
    yield "|---|---|" + "---|" * len(DEPLOYED)
    for tier, purpose in product(tiers(), PURPOSES):
        asked = {"tier": tier, "purpose": purpose}
        cells = [becomes(planned({**asked, "clouds": [cloud]})) for cloud in DEPLOYED]
        yield f"| {tier} | {purpose} | {' | '.join(cells)} |"


def test_the_page_has_what_each_tier_becomes_on_each_cloud(
    generated: Callable[[str, str, str], None],
) -> None:
    generated("docs/tiers.md", "tiers", "\n".join(rows()) + "\n")
