"""Plan: from a declared workload to a priced, explained choice of machine.

from gputier.catalog import load
from gputier.plan import plan_declaration
from gputier.workload import read_file

stack = plan_declaration(read_file("workloads.yaml"), load())
stack.workloads[0].chosen
"""

import importlib
import sys
from types import ModuleType
from typing import Any

from gputier.plan.actions import Action
from gputier.plan.assemble import plan_declaration, plan_workload, unplaced_problems
from gputier.plan.boot import (
    BootPlan,
    ContainerPlan,
    DriverPlan,
    FrameworkPlan,
    GatePlan,
    ImagePlan,
    MirrorsPlan,
    ProxyPlan,
)
from gputier.plan.document import money, plan_document, sizing_document
from gputier.plan.explain import FloorCost
from gputier.plan.fleet import FleetPlan, RefreshPlan
from gputier.plan.identity import IdentityPlan, Statement
from gputier.plan.market import DEPLOYABLE
from gputier.plan.metrics import Metric
from gputier.plan.model import AROUND, Chosen, StackPlan, WorkloadPlan
from gputier.plan.monitoring import Alarm, MonitoringPlan, Widget
from gputier.plan.need import Need, need_of
from gputier.plan.network import NetworkPlan
from gputier.plan.reasons import Reason
from gputier.plan.rules import RULES, title
from gputier.plan.scaling import ScalingPlan, Tracking
from gputier.plan.storage import KeyPlan, StoragePlan, Volume
from gputier.plan.tiers import Floor, Tier, purposes, tiers
from gputier.plan.verdict import Verdict

__all__ = [
    "AROUND",
    "DEPLOYABLE",
    "RULES",
    "Action",
    "Alarm",
    "BootPlan",
    "Chosen",
    "ContainerPlan",
    "DriverPlan",
    "FleetPlan",
    "Floor",
    "FloorCost",
    "FrameworkPlan",
    "GatePlan",
    "IdentityPlan",
    "ImagePlan",
    "KeyPlan",
    "Metric",
    "MirrorsPlan",
    "MonitoringPlan",
    "Need",
    "NetworkPlan",
    "ProxyPlan",
    "Reason",
    "RefreshPlan",
    "ScalingPlan",
    "StackPlan",
    "Statement",
    "StoragePlan",
    "Tier",
    "Tracking",
    "Verdict",
    "Volume",
    "Widget",
    "WorkloadPlan",
    "money",
    "need_of",
    "plan_declaration",
    "plan_document",
    "plan_workload",
    "purposes",
    "sizing_document",
    "tiers",
    "title",
    "unplaced_problems",
]


class _CallablePackage(ModuleType):
    """`gputier.plan` is this package and, called, plans one workload (docs/adr/0009)."""

    def __call__(self, *args: Any, **kwargs: Any) -> WorkloadPlan:
        """See `gputier.api.plan`."""
        made: WorkloadPlan = importlib.import_module("gputier.api").plan(*args, **kwargs)
        return made


sys.modules[__name__].__class__ = _CallablePackage
