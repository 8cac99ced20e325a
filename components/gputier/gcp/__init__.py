"""Google Cloud: planned workloads as Pulumi components. All decisions are in the plan; this wires
them."""

from gputier.deploy import Deployed, Deployment
from gputier.gcp.budget import Budget
from gputier.gcp.fleet import Given, GpuFleet
from gputier.gcp.group import Group
from gputier.gcp.identity import Identity
from gputier.gcp.instance import Machine
from gputier.gcp.machine import Parts
from gputier.gcp.monitoring import Monitoring
from gputier.gcp.network import Doors, Existing, Interface, Network, Stand, firewall
from gputier.gcp.place import Place, place_of
from gputier.gcp.refused import problems_of
from gputier.gcp.scaling import Hours, Scaling
from gputier.gcp.stack import deploy, prepare
from gputier.gcp.storage import Storage
from gputier.gcp.store import Store

__all__ = [
    "Budget",
    "Deployed",
    "Deployment",
    "Doors",
    "Existing",
    "Given",
    "GpuFleet",
    "Group",
    "Hours",
    "Identity",
    "Interface",
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
    "firewall",
    "place_of",
    "prepare",
    "problems_of",
]
