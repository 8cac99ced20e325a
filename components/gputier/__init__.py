"""gputier: declare a GPU workload, get the cheapest machine that really fits it.

    import gputier
    plan = gputier.plan(gputier.Workload(tier="entry", purpose="inference",
                                         model={"name": "llama-3.1-8b"}))
    plan.chosen.verdict.machine.instance_type

Importing this loads no cloud SDK, and nothing else until it is used. `gputier.plan` is the package
of that name, which can also be called (docs/adr/0009).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gputier.api import plan as plan
    from gputier.errors import CannotPlace as CannotPlace
    from gputier.errors import GputierError as GputierError
    from gputier.errors import InvalidInput as InvalidInput
    from gputier.errors import Problem as Problem
    from gputier.errors import StaleLock as StaleLock
    from gputier.workload import Discount as Discount
    from gputier.workload import Workload as Workload

__version__ = "0.1.0"

_HOMES = {
    "CannotPlace": "gputier.errors",
    "Discount": "gputier.workload",
    "GputierError": "gputier.errors",
    "InvalidInput": "gputier.errors",
    "Problem": "gputier.errors",
    "StaleLock": "gputier.errors",
    "Workload": "gputier.workload",
}

__all__ = [
    "CannotPlace",
    "Discount",
    "GputierError",
    "InvalidInput",
    "Problem",
    "StaleLock",
    "Workload",
    "plan",
]


def __getattr__(name: str) -> Any:
    if name == "plan":
        return importlib.import_module("gputier.plan")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'gputier' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)
