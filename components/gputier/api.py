"""`gputier.plan(...)` for programs: one workload planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gputier.catalog import Catalog, load
from gputier.errors import CannotPlace, Problem
from gputier.plan.assemble import plan_workload
from gputier.plan.model import WorkloadPlan
from gputier.workload import Discount, Workload


def plan(
    workload: Workload,
    *,
    name: str = "workload",
    environment: str = "dev",
    discounts: Sequence[Discount | Mapping[str, object]] = (),
    catalog: Catalog | None = None,
) -> WorkloadPlan:
    """The plan of one workload, on the packaged catalogue or the one given.

    `name`, `environment` and `discounts` are what a file says around it; a discount may be a plain
    mapping, as in a file.

    Raises `InvalidInput` for mistakes that only the catalogue can tell, and `CannotPlace` when
    nothing fits, with the smallest relaxation.
    """
    granted = tuple(d if isinstance(d, Discount) else Discount.model_validate(d) for d in discounts)
    found = plan_workload(name, workload, catalog or load(), environment, granted)
    if found.chosen is None:
        ways = [
            f"{v.type.cloud}: " + "; ".join(r.relax for r in v.reasons) for v in found.relaxations
        ]
        message = f"no machine fits workload `{name}` (0 of {len(found.verdicts)})"
        raise CannotPlace(
            Problem(name, message, "smallest relaxation per cloud:\n" + "\n".join(ways))
        )
    return found
