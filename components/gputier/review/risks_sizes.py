"""How many machines a resource decides on, and which resources are machines or keep data."""

from __future__ import annotations

from typing import Final, NamedTuple

from gputier.review.preview import State, Value
from gputier.review.values import items, number
from gputier.review.world import World, at

ASG: Final = "aws:autoscaling/group:Group"
EKS_NODES: Final = "aws:eks/nodeGroup:NodeGroup"
GKE_NODES: Final = "gcp:container/nodePool:NodePool"
MIG: Final = (
    "gcp:compute/instanceGroupManager:InstanceGroupManager",
    "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager",
)
GCP_SCALERS: Final = (
    "gcp:compute/autoscaler:Autoscaler",
    "gcp:compute/regionAutoscaler:RegionAutoscaler",
)
AWS_INSTANCES: Final = (
    "aws:ec2/instance:Instance",
    "aws:ec2/spotInstanceRequest:SpotInstanceRequest",
)
GCP_INSTANCES: Final = (
    "gcp:compute/instance:Instance",
    "gcp:compute/instanceFromTemplate:InstanceFromTemplate",
)
AWS_TEMPLATES: Final = (
    "aws:ec2/launchTemplate:LaunchTemplate",
    "aws:ec2/launchConfiguration:LaunchConfiguration",
)
GCP_TEMPLATES: Final = (
    "gcp:compute/instanceTemplate:InstanceTemplate",
    "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate",
)
INSTANCES: Final = (
    *AWS_INSTANCES,
    *GCP_INSTANCES,
    "azure-native:compute:VirtualMachine",
    "azure:compute/linuxVirtualMachine:LinuxVirtualMachine",
    "azure:compute/windowsVirtualMachine:WindowsVirtualMachine",
    "alicloud:ecs/instance:Instance",
    "tencentcloud:Instance/instance:Instance",
)
GROUPS: Final = (
    ASG,
    *MIG,
    EKS_NODES,
    GKE_NODES,
    "aws:ec2/fleet:Fleet",
    "aws:ec2/spotFleetRequest:SpotFleetRequest",
    "aws:batch/computeEnvironment:ComputeEnvironment",
    "azure-native:compute:VirtualMachineScaleSet",
    "azure:compute/linuxVirtualMachineScaleSet:LinuxVirtualMachineScaleSet",
    "alicloud:ess/scalingGroup:ScalingGroup",
)
CLUSTERS: Final = ("aws:eks/cluster:Cluster", "gcp:container/cluster:Cluster")
FLEETS: Final = ("gputier:aws:GpuFleet", "gputier:gcp:GpuFleet")
BUCKETS: Final = (
    "aws:s3/bucket:Bucket",
    "aws:s3/bucketV2:BucketV2",
    "gcp:storage/bucket:Bucket",
)
#: What keeps data that nothing else has.
STORES: Final = (
    *BUCKETS,
    "aws:ebs/volume:Volume",
    "aws:efs/fileSystem:FileSystem",
    "aws:fsx/lustreFileSystem:LustreFileSystem",
    "aws:fsx/ontapVolume:OntapVolume",
    "aws:fsx/openZfsFileSystem:OpenZfsFileSystem",
    "aws:fsx/windowsFileSystem:WindowsFileSystem",
    "aws:rds/instance:Instance",
    "aws:rds/cluster:Cluster",
    "aws:dynamodb/table:Table",
    "gcp:compute/disk:Disk",
    "gcp:compute/regionDisk:RegionDisk",
    "gcp:filestore/instance:Instance",
    "gcp:parallelstore/instance:Instance",
    "gcp:sql/databaseInstance:DatabaseInstance",
    "azure-native:compute:Disk",
)


class Sizes(NamedTuple):
    """How many machines: the bounds and the wish, None where nothing says, with their paths."""

    least: float | None
    most: float | None
    desired: float | None
    paths: tuple[str, str, str]


#: Where each kind of group has its minimum, its maximum and its wish.
_PATHS = {
    ASG: ("minSize", "maxSize", "desiredCapacity"),
    EKS_NODES: ("scalingConfig.minSize", "scalingConfig.maxSize", "scalingConfig.desiredSize"),
    GKE_NODES: ("autoscaling.minNodeCount", "autoscaling.maxNodeCount", "nodeCount"),
    "aws:batch/computeEnvironment:ComputeEnvironment": (
        "computeResources.minVcpus",
        "computeResources.maxVcpus",
        "computeResources.desiredVcpus",
    ),
    **dict.fromkeys(
        GCP_SCALERS,
        ("autoscalingPolicy.minReplicas", "autoscalingPolicy.maxReplicas", ""),
    ),
    **dict.fromkeys(MIG, ("", "", "targetSize")),
}
SIZED: Final = tuple(_PATHS)


def asked(state: State) -> Sizes:
    """What the program asks for."""
    paths = _PATHS[state.type]
    least, most, desired = (number(at(state.inputs, path)) if path else None for path in paths)
    return Sizes(least, most, desired, paths)


def has_now(state: State | None, world: World) -> float | None:
    """How many machines it runs, as the cloud said last; None when nothing says."""
    if state is None:
        return None
    if state.type in INSTANCES:
        return 1.0
    if state.type not in _PATHS or "Vcpus" in _PATHS[state.type][0]:
        return None
    least, _, desired = _PATHS[state.type]
    found = number(_cloud_first(state, desired)) if desired else None
    if found is None and least:
        found = number(_cloud_first(state, least))
    if found is None and state.type in MIG:
        found = _by_scaler(state, world)
    return found if state.type != GKE_NODES or found is None else found * _zones(state)


def _cloud_first(state: State, path: str) -> Value:
    known = at(state.outputs, path)
    return at(state.inputs, path) if known is None else known


def _by_scaler(group: State, world: World) -> float | None:
    scaler = next(world.pointing_at(group, "target", *GCP_SCALERS), None)
    return None if scaler is None else asked(scaler).least


def _zones(pool: State) -> int:
    """Sizes of a node pool are per zone."""
    return max(1, len(items(_cloud_first(pool, "nodeLocations"))))
