"""AWS: planned workloads as Pulumi components. All decisions are in the plan; this wires them.

import gputier
from gputier.aws import GpuFleet

plan = gputier.plan(gputier.Workload(clouds=["aws"], tier="entry"), name="chat")
fleet = GpuFleet("chat", plan)
pulumi.export("connect", fleet.connect)
"""

from gputier.aws.budget import Budget
from gputier.aws.fleet import Given, GpuFleet
from gputier.aws.group import Group
from gputier.aws.identity import Identity
from gputier.aws.instance import Machine
from gputier.aws.machine import Parts
from gputier.aws.monitoring import Alerts, Monitoring
from gputier.aws.network import Existing, Network, Stand, security_group
from gputier.aws.place import Place, place_of
from gputier.aws.refused import problems_of
from gputier.aws.scaling import Hours, Scaling
from gputier.aws.stack import deploy, prepare
from gputier.aws.storage import Storage
from gputier.aws.store import Store
from gputier.deploy import Deployed, Deployment

__all__ = [
    "Alerts",
    "Budget",
    "Deployed",
    "Deployment",
    "Existing",
    "Given",
    "GpuFleet",
    "Group",
    "Hours",
    "Identity",
    "Machine",
    "Monitoring",
    "Network",
    "Parts",
    "Place",
    "Scaling",
    "Stand",
    "Storage",
    "Store",
    "deploy",
    "place_of",
    "prepare",
    "problems_of",
    "security_group",
]
