"""Google Cloud: planned workloads as Pulumi components. All decisions are in the plan; this wires
them. Not whole yet: the program refuses to deploy to Google until it is."""

from gputier.gcp.identity import Identity
from gputier.gcp.network import Doors, Existing, Interface, Network, Stand, firewall
from gputier.gcp.place import Place, place_of
from gputier.gcp.store import Store

__all__ = [
    "Doors",
    "Existing",
    "Identity",
    "Interface",
    "Network",
    "Place",
    "Stand",
    "Store",
    "firewall",
    "place_of",
]
