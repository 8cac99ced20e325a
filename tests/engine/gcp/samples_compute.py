"""One of every type of Compute Engine that the stand-in knows."""

from __future__ import annotations

from tests.engine.gcp.sample import (
    ACCOUNT,
    CHECK,
    GROUP,
    IMAGE,
    PROJECT,
    REGION,
    REGION_GROUP,
    SUBNET,
    TEMPLATE,
    ZONE,
    Sample,
)
from tests.engine.wire import Props

MACHINE: Props = {
    "machineType": "g2-standard-4",
    "networkInterfaces": [{"subnetwork": SUBNET, "nicType": "GVNIC", "accessConfigs": [{}]}],
    "guestAccelerators": [{"type": "nvidia-l4", "count": 1}],
    "scheduling": {
        "onHostMaintenance": "TERMINATE",
        "provisioningModel": "SPOT",
        "preemptible": True,
        "automaticRestart": False,
        "instanceTerminationAction": "STOP",
        "maxRunDuration": {"seconds": 3600},
    },
    "metadata": {"enable-guest-attributes": "TRUE"},
    "metadataStartupScript": "#!/bin/sh",
    "serviceAccount": {"email": ACCOUNT, "scopes": ["cloud-platform"]},
    "shieldedInstanceConfig": {"enableSecureBoot": False, "enableVtpm": True},
    "reservationAffinity": {"type": "NO_RESERVATION"},
    "tags": ["gpu"],
    "labels": {"use": "test"},
    "advancedMachineFeatures": {"threadsPerCore": 1},
    "networkPerformanceConfig": {"totalEgressBandwidthTier": "TIER_1"},
}
INSTANCE: Props = {
    **MACHINE,
    "name": "box",
    "zone": ZONE,
    "allowStoppingForUpdate": True,
    "bootDisk": {
        "autoDelete": True,
        "initializeParams": {"image": IMAGE, "size": 50, "type": "pd-balanced"},
    },
    "scratchDisks": [{"interface": "NVME"}],
    "attachedDisks": [{"source": "base", "deviceName": "data"}],
}
IN_TEMPLATE: Props = {
    **MACHINE,
    "name": "t",
    "disks": [
        {
            "boot": True,
            "autoDelete": True,
            "sourceImage": IMAGE,
            "diskSizeGb": 50,
            "diskType": "pd-balanced",
            "guestOsFeatures": ["GVNIC"],
            "labels": {"a": "b"},
        },
        {"type": "SCRATCH", "diskType": "local-ssd", "diskSizeGb": 375, "interface": "NVME"},
    ],
}
UPDATE: Props = {
    "type": "PROACTIVE",
    "minimalAction": "REPLACE",
    "maxSurgeFixed": 0,
    "maxUnavailableFixed": 2,
    "replacementMethod": "RECREATE",
}
MANAGER: Props = {
    "name": "g",
    "baseInstanceName": "g",
    "versions": [{"instanceTemplate": TEMPLATE}],
    "targetSize": 2,
    "updatePolicy": UPDATE,
    "autoHealingPolicies": {"healthCheck": CHECK, "initialDelaySec": 900},
    "statefulDisks": [{"deviceName": "data", "deleteRule": "NEVER"}],
    "instanceLifecyclePolicy": {"defaultActionOnFailure": "REPAIR"},
    "allInstancesConfig": {"labels": {"a": "b"}, "metadata": {"c": "d"}},
    "namedPorts": [{"name": "http", "port": 80}],
}
SCALING: Props = {
    "minReplicas": 0,
    "maxReplicas": 4,
    "cooldownPeriod": 600,
    "metrics": [
        {
            "name": "agent.googleapis.com/gpu/utilization",
            "type": "GAUGE",
            "target": 60,
            "filter": 'metric.labels.gpu_number = "0"',
        }
    ],
    "scalingSchedules": [
        {
            "name": "day",
            "schedule": "0 7 * * 1-5",
            "durationSec": 3600,
            "minRequiredReplicas": 2,
            "timeZone": "Etc/UTC",
        }
    ],
    "scaleInControl": {"timeWindowSec": 600, "maxScaledInReplicas": {"fixed": 1}},
}
PROBE: Props = {"checkIntervalSec": 10, "timeoutSec": 5, "healthyThreshold": 1}
DISK: Props = {"name": "d", "size": 100, "type": "pd-ssd", "labels": {"a": "b"}}
KEPT: Props = {"name": "g-0", "preservedState": {"metadata": {"a": "b"}}}

RESERVED: Props = {
    "count": 1,
    "instanceProperties": {
        "machineType": "n1-standard-4",
        "guestAccelerators": [{"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 1}],
        "localSsds": [{"interface": "NVME", "diskSizeGb": 375}],
    },
}

COMPUTE = (
    Sample(
        "gcp:compute/network:Network",
        {
            "name": "n",
            "autoCreateSubnetworks": False,
            "routingMode": "REGIONAL",
            "mtu": 8896,
            "networkProfile": f"projects/{PROJECT}/global/networkProfiles/{ZONE}-vpc-roce",
        },
        {"mtu": 8244, "routingMode": "GLOBAL"},
        {"mtu": 1500},
        "mtu",
    ),
    Sample(
        "gcp:compute/subnetwork:Subnetwork",
        {
            "name": "s",
            "network": "base",
            "region": REGION,
            "ipCidrRange": "10.9.0.0/24",
            "privateIpGoogleAccess": True,
            "logConfig": {"aggregationInterval": "INTERVAL_5_SEC"},
        },
        {"ipCidrRange": "10.9.0.0/23", "privateIpGoogleAccess": False},
        {"privateIpGoogleAccess": False},
        "privateIpGoogleAccess",
    ),
    Sample(
        "gcp:compute/firewall:Firewall",
        {
            "name": "f",
            "network": f"projects/{PROJECT}/global/networks/base",
            "allows": [{"protocol": "tcp", "ports": ["22", "8080-8090"]}, {"protocol": "icmp"}],
            "sourceRanges": ["35.235.240.0/20"],
            "targetServiceAccounts": [ACCOUNT],
        },
        {"sourceRanges": ["10.0.0.0/8", "35.235.240.0/20"], "priority": 900},
        {"sourceRanges": ["0.0.0.0/0"]},
        "sourceRanges",
    ),
    Sample(
        "gcp:compute/router:Router",
        {"name": "r", "network": "base", "region": REGION, "description": "a"},
        {"description": "b"},
        {"description": "c"},
        "description",
    ),
    Sample(
        "gcp:compute/routerNat:RouterNat",
        {
            "name": "n",
            "router": "base",
            "region": REGION,
            "natIpAllocateOption": "AUTO_ONLY",
            "sourceSubnetworkIpRangesToNat": "LIST_OF_SUBNETWORKS",
            "subnetworks": [{"name": SUBNET, "sourceIpRangesToNats": ["ALL_IP_RANGES"]}],
            "logConfig": {"enable": True, "filter": "ERRORS_ONLY"},
        },
        {"minPortsPerVm": 128},
        {"natIpAllocateOption": "MANUAL_ONLY"},
        "natIpAllocateOption",
    ),
    Sample(
        "gcp:compute/address:Address",
        {"name": "a", "region": REGION, "labels": {"a": "b"}},
        {"labels": {"a": "c"}},
        {"labels": {"a": "d"}},
        "labels",
    ),
    Sample(
        "gcp:compute/disk:Disk",
        {**DISK, "zone": ZONE, "image": IMAGE},
        {"size": 200, "labels": {"a": "c"}},
        {"sizeGb": "400"},
        "size",
    ),
    Sample(
        "gcp:compute/regionDisk:RegionDisk",
        {**DISK, "region": REGION, "replicaZones": [ZONE, "us-central1-b"]},
        {"size": 300},
        {"sizeGb": "400"},
        "size",
    ),
    Sample(
        "gcp:compute/instance:Instance",
        INSTANCE,
        {
            "machineType": "g2-standard-8",
            "metadata": {"enable-guest-attributes": "FALSE"},
            "tags": ["gpu", "more"],
            "labels": {"use": "more"},
            "deletionProtection": False,
            "desiredStatus": "TERMINATED",
            "attachedDisks": [],
            "scheduling": {**MACHINE["scheduling"], "instanceTerminationAction": "DELETE"},
            "serviceAccount": {"email": ACCOUNT, "scopes": ["compute-ro"]},
            "shieldedInstanceConfig": {"enableSecureBoot": True},
        },
        {"machineType": f"projects/{PROJECT}/zones/{ZONE}/machineTypes/n1-standard-4"},
        "machineType",
    ),
    Sample("gcp:compute/instanceTemplate:InstanceTemplate", IN_TEMPLATE),
    Sample(
        "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate",
        {**IN_TEMPLATE, "region": REGION},
    ),
    Sample(
        "gcp:compute/instanceGroupManager:InstanceGroupManager",
        {**MANAGER, "zone": ZONE},
        {"targetSize": 3, "autoHealingPolicies": {"healthCheck": CHECK, "initialDelaySec": 1800}},
        {"targetSize": 5},
        "targetSize",
    ),
    Sample(
        "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager",
        {
            **MANAGER,
            "region": REGION,
            "distributionPolicyZones": [ZONE, "us-central1-b"],
            "distributionPolicyTargetShape": "ANY",
            "updatePolicy": {**UPDATE, "instanceRedistributionType": "NONE"},
        },
        {"targetSize": 0, "distributionPolicyTargetShape": "EVEN"},
        {"updatePolicy": {"type": "OPPORTUNISTIC"}},
        "updatePolicy",
    ),
    Sample(
        "gcp:compute/perInstanceConfig:PerInstanceConfig",
        {
            **KEPT,
            "zone": ZONE,
            "instanceGroupManager": "base",
            "removeInstanceOnDestroy": True,
        },
        {"preservedState": {"metadata": {"a": "c"}}},
        {"preservedState": {"metadata": {"a": "d"}}},
        "preservedState",
    ),
    Sample(
        "gcp:compute/regionPerInstanceConfig:RegionPerInstanceConfig",
        {
            **KEPT,
            "region": REGION,
            "regionInstanceGroupManager": "base",
            "removeInstanceOnDestroy": True,
        },
        {"preservedState": {"metadata": {"a": "c"}}},
        {"preservedState": {"metadata": {"a": "d"}}},
        "preservedState",
    ),
    Sample(
        "gcp:compute/autoscaler:Autoscaler",
        {"name": "a", "zone": ZONE, "target": GROUP, "autoscalingPolicy": SCALING},
        {"autoscalingPolicy": {**SCALING, "maxReplicas": 8}},
        {"autoscalingPolicy": {"maxNumReplicas": 2}},
        "autoscalingPolicy",
    ),
    Sample(
        "gcp:compute/regionAutoscaler:RegionAutoscaler",
        {"name": "a", "region": REGION, "target": REGION_GROUP, "autoscalingPolicy": SCALING},
        {"autoscalingPolicy": {**SCALING, "mode": "OFF"}},
        {"autoscalingPolicy": {"maxNumReplicas": 2}},
        "autoscalingPolicy",
    ),
    Sample(
        "gcp:compute/healthCheck:HealthCheck",
        {**PROBE, "name": "h", "httpHealthCheck": {"port": 8080, "requestPath": "/healthz"}},
        {"httpHealthCheck": {"port": 8081, "requestPath": "/healthz"}, "timeoutSec": 6},
        {"httpHealthCheck": {"port": 22}},
        "httpHealthCheck",
    ),
    Sample(
        "gcp:compute/regionHealthCheck:RegionHealthCheck",
        {**PROBE, "name": "h", "region": REGION, "tcpHealthCheck": {"port": 22}},
        {"tcpHealthCheck": {"port": 23}},
        {"checkIntervalSec": 30},
        "checkIntervalSec",
    ),
    Sample(
        "gcp:compute/resourcePolicy:ResourcePolicy",
        {
            "name": "p",
            "region": REGION,
            "description": "near",
            "groupPlacementPolicy": {"collocation": "COLLOCATED", "maxDistance": 2, "vmCount": 4},
        },
        {"description": "close"},
        {"description": "far"},
        "description",
    ),
    Sample(
        "gcp:compute/reservation:Reservation",
        {
            "name": "r",
            "zone": ZONE,
            "specificReservationRequired": True,
            "specificReservation": RESERVED,
        },
        {"specificReservation": {**RESERVED, "count": 2}},
        {"specificReservation": {"count": "3"}},
        "specificReservation",
    ),
    Sample(
        "gcp:compute/resizeRequest:ResizeRequest",
        {
            "name": "q",
            "zone": ZONE,
            "instanceGroupManager": "base",
            "resizeBy": 2,
            "requestedRunDuration": {"seconds": "7200"},
        },
    ),
)
