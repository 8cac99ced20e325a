"""One of every type of the stand-in, and what they rest on."""

from __future__ import annotations

import json

from tests.engine.gcp.sample import (
    ACCOUNT,
    BILLING,
    CHANNEL,
    IMAGE,
    MEMBER,
    PROJECT,
    REGION,
    SUBNET,
    TEMPLATE,
    ZONE,
    Sample,
)
from tests.engine.gcp.samples_compute import COMPUTE, IN_TEMPLATE
from tests.engine.wire import Props

DASHBOARD: Props = {"displayName": "GPUs", "gridLayout": {"columns": "2", "widgets": []}}
CONDITION: Props = {
    "displayName": "hot",
    "conditionThreshold": {
        "filter": 'metric.type="agent.googleapis.com/gpu/utilization"',
        "comparison": "COMPARISON_GT",
        "duration": "60s",
        "thresholdValue": 90,
        "aggregations": [{"alignmentPeriod": "60s", "perSeriesAligner": "ALIGN_MEAN"}],
    },
}
OTHERS = (
    Sample(
        "gcp:serviceaccount/account:Account",
        {"accountId": "node-2", "displayName": "A node"},
        {"displayName": "Another", "disabled": True},
        {"displayName": "Somebody"},
        "displayName",
    ),
    Sample(
        "gcp:projects/iAMCustomRole:IAMCustomRole",
        {"roleId": "gputier.node", "title": "A", "permissions": ["compute.instances.get"]},
        {"permissions": ["compute.instances.get", "compute.instances.list"]},
        {"title": "B"},
        "title",
    ),
    Sample(
        "gcp:projects/service:Service",
        {"service": "compute.googleapis.com", "disableOnDestroy": True},
    ),
    Sample(
        "gcp:projects/iAMMember:IAMMember",
        {"project": PROJECT, "role": "roles/logging.logWriter", "member": MEMBER},
    ),
    Sample(
        "gcp:storage/bucketIAMMember:BucketIAMMember",
        {
            "bucket": "base-bucket",
            "role": "roles/storage.objectViewer",
            "member": MEMBER,
            "condition": {"title": "below", "expression": "resource.name.startsWith('x')"},
        },
    ),
    Sample(
        "gcp:serviceaccount/iAMMember:IAMMember",
        {
            "serviceAccountId": f"projects/{PROJECT}/serviceAccounts/{ACCOUNT}",
            "role": "roles/iam.serviceAccountUser",
            "member": "user:ann@example.com",
        },
    ),
    Sample(
        "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember",
        {
            "cryptoKeyId": f"projects/{PROJECT}/locations/{REGION}/keyRings/r/cryptoKeys/k",
            "role": "roles/cloudkms.cryptoKeyEncrypterDecrypter",
            "member": MEMBER,
        },
    ),
    Sample(
        "gcp:storage/bucket:Bucket",
        {
            "name": "a-bucket",
            "location": "us-central1",
            "uniformBucketLevelAccess": True,
            "publicAccessPrevention": "enforced",
            "versioning": {"enabled": True},
            "labels": {"a": "b"},
            "lifecycleRules": [
                {
                    "action": {"type": "Delete"},
                    "condition": {"age": 30, "matchesPrefixes": ["reports/"], "withState": "LIVE"},
                }
            ],
            "softDeletePolicy": {"retentionDurationSeconds": 604800},
        },
        {"versioning": {"enabled": False}, "labels": {"a": "c"}},
        {"iamConfiguration": {"publicAccessPrevention": "inherited"}},
        "publicAccessPrevention",
    ),
    Sample(
        "gcp:storage/bucketObject:BucketObject",
        {"bucket": "base-bucket", "name": "bundles/b", "content": "one"},
        {"content": "two"},
        {"data": b"three"},
        "content",
    ),
    Sample(
        "gcp:logging/metric:Metric",
        {
            "name": "boots",
            "filter": "severity>=ERROR",
            "metricDescriptor": {"metricKind": "DELTA", "valueType": "INT64"},
        },
        {"filter": "severity>=WARNING"},
        {"filter": "severity>=DEBUG"},
        "filter",
    ),
    Sample(
        "gcp:monitoring/dashboard:Dashboard",
        {"dashboardJson": json.dumps(DASHBOARD)},
        {"dashboardJson": json.dumps({**DASHBOARD, "displayName": "More GPUs"})},
        {"displayName": "Mine"},
        "dashboardJson",
    ),
    Sample(
        "gcp:monitoring/alertPolicy:AlertPolicy",
        {
            "displayName": "hot",
            "combiner": "OR",
            "conditions": [CONDITION],
            "notificationChannels": [CHANNEL],
            "documentation": {"content": "look", "mimeType": "text/markdown"},
            "alertStrategy": {"autoClose": "1800s"},
            "userLabels": {"a": "b"},
            "severity": "CRITICAL",
        },
        {"enabled": False, "userLabels": {"a": "c"}},
        {"enabled": False},
        "enabled",
    ),
    Sample(
        "gcp:monitoring/notificationChannel:NotificationChannel",
        {
            "type": "webhook_basicauth",
            "displayName": "us",
            "labels": {"url": "https://example.com", "username": "u"},
            "sensitiveLabels": {"password": "p"},
        },
        {"displayName": "them"},
        {"labels": {"url": "https://example.org"}},
        "labels",
    ),
    Sample(
        "gcp:pubsub/topic:Topic",
        {"name": "t", "labels": {"a": "b"}, "messageRetentionDuration": "86400s"},
        {"labels": {"a": "c"}, "messageRetentionDuration": "600s"},
        {"messageRetentionDuration": "700s"},
        "messageRetentionDuration",
    ),
    Sample(
        "gcp:billing/budget:Budget",
        {
            "billingAccount": BILLING,
            "displayName": "all",
            "amount": {"specifiedAmount": {"currencyCode": "USD", "units": "100"}},
            "budgetFilter": {"projects": ["projects/123456789012"], "labels": {"a": "b"}},
            "thresholdRules": [{"thresholdPercent": 0.5}, {"thresholdPercent": 1.0}],
            "allUpdatesRule": {"pubsubTopic": f"projects/{PROJECT}/topics/base"},
        },
        {"displayName": "some"},
        {"amount": {"specifiedAmount": {"units": "900"}}},
        "amount",
    ),
    Sample(
        "gcp:cloudscheduler/job:Job",
        {
            "name": "j",
            "region": REGION,
            "schedule": "0 19 * * 1-5",
            "timeZone": "America/New_York",
            "httpTarget": {
                "uri": "https://compute.googleapis.com/compute/v1/x",
                "httpMethod": "POST",
                "oauthToken": {"serviceAccountEmail": ACCOUNT},
            },
        },
        {"schedule": "0 20 * * 1-5", "paused": True},
        {"schedule": "0 21 * * 1-5"},
        "schedule",
    ),
)
STOPPING = (
    Sample(
        "gcp:workflows/workflow:Workflow",
        {
            "name": "w",
            "region": REGION,
            "description": "stops",
            "serviceAccount": ACCOUNT,
            "sourceContents": '{"main": {"steps": []}}',
            "userEnvVars": {"NAME": "g"},
            "labels": {"a": "b"},
            "deletionProtection": False,
        },
        {"sourceContents": '{"main": {"params": [], "steps": []}}', "labels": {"a": "c"}},
        {"sourceContents": '{"main": {}}'},
        "sourceContents",
    ),
    Sample(
        "gcp:eventarc/trigger:Trigger",
        {
            "name": "t",
            "location": REGION,
            "matchingCriterias": [
                {"attribute": "type", "value": "google.cloud.pubsub.topic.v1.messagePublished"}
            ],
            "destination": {"workflow": f"projects/{PROJECT}/locations/{REGION}/workflows/base"},
            "transport": {"pubsub": {"topic": f"projects/{PROJECT}/topics/base"}},
            "serviceAccount": ACCOUNT,
            "labels": {"a": "b"},
        },
        {"labels": {"a": "c"}},
        {"serviceAccount": f"other@{PROJECT}.iam.gserviceaccount.com"},
        "serviceAccount",
    ),
    Sample(
        "gcp:pubsub/topicIAMMember:TopicIAMMember",
        {"topic": "base", "role": "roles/pubsub.publisher", "member": MEMBER},
    ),
    Sample(
        "gcp:compute/instanceIAMMember:InstanceIAMMember",
        {
            "instanceName": "alone",
            "zone": ZONE,
            "role": "roles/compute.instanceAdmin.v1",
            "member": MEMBER,
        },
    ),
)
SAMPLES = (*COMPUTE, *OTHERS, *STOPPING)
# What the samples rest on: in this order.
BASE: tuple[tuple[str, Props], ...] = (
    ("gcp:compute/network:Network", {"name": "base", "autoCreateSubnetworks": False}),
    (
        "gcp:compute/subnetwork:Subnetwork",
        {"name": "base", "network": "base", "region": REGION, "ipCidrRange": "10.0.0.0/24"},
    ),
    ("gcp:compute/router:Router", {"name": "base", "network": "base", "region": REGION}),
    ("gcp:serviceaccount/account:Account", {"accountId": "node-1"}),
    ("gcp:compute/disk:Disk", {"name": "base", "zone": ZONE, "size": 10}),
    ("gcp:compute/healthCheck:HealthCheck", {"name": "base", "tcpHealthCheck": {"port": 22}}),
    (
        "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate",
        {**IN_TEMPLATE, "name": "base", "region": REGION},
    ),
    (
        "gcp:compute/instanceGroupManager:InstanceGroupManager",
        {
            "name": "base",
            "baseInstanceName": "base",
            "zone": ZONE,
            "versions": [{"instanceTemplate": TEMPLATE}],
        },
    ),
    (
        "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager",
        {
            "name": "base",
            "baseInstanceName": "base",
            "region": REGION,
            "versions": [{"instanceTemplate": TEMPLATE}],
        },
    ),
    ("gcp:storage/bucket:Bucket", {"name": "base-bucket", "location": "US"}),
    ("gcp:pubsub/topic:Topic", {"name": "base"}),
    (
        "gcp:workflows/workflow:Workflow",
        {"name": "base", "region": REGION, "sourceContents": "{}", "serviceAccount": ACCOUNT},
    ),
    (
        "gcp:compute/instance:Instance",
        {
            "name": "alone",
            "zone": ZONE,
            "machineType": "e2-small",
            "bootDisk": {"initializeParams": {"image": IMAGE}},
            "networkInterfaces": [{"subnetwork": SUBNET}],
        },
    ),
)
