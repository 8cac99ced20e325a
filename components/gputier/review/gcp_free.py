"""Google Cloud: what is not billed by itself."""

from __future__ import annotations

from collections.abc import Mapping

from gputier.review.cost import Cost, Elsewhere, Pricer
from gputier.review.preview import State
from gputier.review.world import World


def _free(_world: World, _state: State) -> Cost:
    return Elsewhere("free")


#: Google bills nothing for these by themselves (recalled, unverified).
FREE = (
    "billing/budget:Budget",
    "compute/firewall:Firewall",
    "compute/healthCheck:HealthCheck",
    "compute/instanceIAMMember:InstanceIAMMember",
    "compute/network:Network",
    "compute/projectMetadata:ProjectMetadata",
    "compute/regionHealthCheck:RegionHealthCheck",
    "compute/route:Route",
    "compute/router:Router",
    "compute/subnetwork:Subnetwork",
    "eventarc/trigger:Trigger",
    "projects/iAMBinding:IAMBinding",
    "projects/iAMCustomRole:IAMCustomRole",
    "projects/iAMMember:IAMMember",
    "projects/service:Service",
    "pubsub/topic:Topic",
    "pubsub/topicIAMMember:TopicIAMMember",
    "serviceaccount/account:Account",
    "serviceaccount/iAMBinding:IAMBinding",
    "serviceaccount/iAMMember:IAMMember",
    "storage/bucketIAMBinding:BucketIAMBinding",
    "storage/bucketIAMMember:BucketIAMMember",
    "workflows/workflow:Workflow",
)
PRICERS: Mapping[str, Pricer] = {f"gcp:{token}": _free for token in FREE}
