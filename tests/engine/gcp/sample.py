"""One of every type: inputs, a change of them in place, and what somebody may do by hand.

For the stand-in's tests of itself; an example is nothing that anybody should deploy.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.engine.wire import Props

PROJECT, REGION, ZONE = "acme", "us-central1", "us-central1-a"
SETTINGS: Props = {"project": PROJECT, "region": REGION, "zone": ZONE}
ACCOUNT = f"node-1@{PROJECT}.iam.gserviceaccount.com"
MEMBER = f"serviceAccount:{ACCOUNT}"
BILLING = "01ABCD-23EF45-678901"
SUBNET = f"projects/{PROJECT}/regions/{REGION}/subnetworks/base"
TEMPLATE = f"projects/{PROJECT}/regions/{REGION}/instanceTemplates/base"
IMAGE = "debian-cloud/debian-12"
GROUP = f"projects/{PROJECT}/zones/{ZONE}/instanceGroupManagers/base"
REGION_GROUP = f"projects/{PROJECT}/regions/{REGION}/instanceGroupManagers/base"
CHECK = f"projects/{PROJECT}/global/healthChecks/base"
CHANNEL = f"projects/{PROJECT}/notificationChannels/base"


@dataclass(frozen=True, slots=True)
class Sample:
    """`change` updates in place; `by_hand` is of Google's description, and `shows` as which input
    it is read back."""

    token: str
    inputs: Props
    change: Props = field(default_factory=dict[str, object])
    by_hand: Props = field(default_factory=dict[str, object])
    shows: str = ""

    @property
    def name(self) -> str:
        return self.token.rsplit(":", 1)[-1]
