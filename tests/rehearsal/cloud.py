"""The cloud around a rehearsed machine: the stand-ins of its services in the machine's own network.

What the image of a rehearsal brings to find them is `/etc/gputier/endpoints.json`; the user data
stay what a real machine is given. Metadata is where it always is, at 169.254.169.254.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.rehearsal.network import METADATA, SERVICES, Network
from tests.rehearsal.plans import STACK, Given
from tests.standins import metadata
from tests.standins.autoscaling import Autoscaling
from tests.standins.compute import Compute
from tests.standins.object_store import S3, Gcs
from tests.standins.server import StandIn
from tests.standins.signature import Credentials

from gputier.boot import bucket_name

ACCOUNT, REGION = "111122223333", "us-east-1"
PROJECT, ZONE = "stand-in-project", "us-central1-a"
METADATA_PORT, STORE_PORT, GROUP_PORT = 80, 8001, 8002


@dataclass(slots=True)
class Verdict:
    """What the cloud was told of one machine. `gate` is empty while nothing was said."""

    outcome: str
    gate: str
    report: dict[str, Any]
    key: str


class Cloud:
    """One account with one workload. Machines come one after another, or in networks of their own
    around the same store and the same group."""

    def __init__(self, given: Given) -> None:
        self.given = given
        self.credentials = Credentials()
        gate = given.settings["gate"]
        if given.cloud == "aws":
            bucket = bucket_name(*STACK, ACCOUNT, REGION)
            self.store: S3 | Gcs = S3(bucket, ACCOUNT, REGION, [self.credentials])
            self.autoscaling = Autoscaling(
                gate.get("group", "none"), gate.get("hook", "none"), REGION, [self.credentials]
            )
            self.compute = None
        else:
            self.store = Gcs(bucket_name(*STACK, PROJECT, ZONE.rsplit("-", 1)[0]))
            self.compute = Compute(PROJECT)
            self.autoscaling = None
        self.services: list[StandIn] = []
        self.put_bundle(given.bundle)

    def put_bundle(self, data: bytes) -> None:
        sha = self.given.settings["bundle"]["sha256"]
        self.store.objects[f"bundles/{sha}.pyz"] = data

    def metadata(self, instance: str) -> metadata.Metadata:
        """The metadata service of a new machine, which waits for its group's word."""
        kind = self.given.settings["instance_type"]
        if self.given.cloud == "gcp":
            values = metadata.gcp_values(instance, PROJECT, ZONE)
            values["instance/id"] = str(4815162342108151623 + sum(instance.encode()))
            values["instance/machine-type"] = f"projects/1/machineTypes/{kind}"
            if self.compute:
                self.compute.machines.add(instance)
            return metadata.Gcp(values)
        grouped = self.given.settings["gate"]["kind"] == "lifecycle-hook"
        state = "InService" if grouped else None
        values = metadata.aws_values(instance, REGION, ACCOUNT, kind, state)
        found = metadata.Aws(values, self.credentials)
        if grouped and self.autoscaling:
            key = "meta-data/autoscaling/target-lifecycle-state"
            before = self.autoscaling.targets

            def told(who: str, target: str) -> None:
                before(who, target)
                if who == instance:
                    found.set(key, target)

            self.autoscaling.targets = told
            self.autoscaling.launch(instance)
        return found

    def serve(self, network: Network, own: metadata.Metadata, late: float = 0.0) -> None:
        """Answer in a machine's network. `late`: the metadata service comes up so much later."""

        def start() -> None:
            own.start(METADATA, METADATA_PORT, late)
            self.store.start(SERVICES, STORE_PORT)
            if self.autoscaling:
                self.autoscaling.start(SERVICES, GROUP_PORT)
            if self.compute:
                self.compute.start(SERVICES, GROUP_PORT)

        network.call(start)
        self.services += [own, self.store]
        self.services += [group for group in (self.autoscaling, self.compute) if group]

    def stop(self) -> None:
        for service in self.services:
            service.stop()
        self.services.clear()

    def endpoints(self) -> str:
        store, group = f"http://{SERVICES}:{STORE_PORT}", f"http://{SERVICES}:{GROUP_PORT}"
        if self.given.cloud == "aws":
            return json.dumps({"s3": store, "autoscaling": group})
        return json.dumps({"storage": store, "compute": group})

    # --- what it was told -----------------------------------------------------------------------

    def reports(self, instance: str) -> list[str]:
        """The keys of a machine's reports, oldest first."""
        who = self._id(instance)
        return self.store.keys(f"reports/{self.given.name}/{who}/")

    def verdict(self, instance: str) -> Verdict | None:
        """The last report of a machine and what its group was told; None before there is one."""
        keys = self.reports(instance)
        if not keys:
            return None
        report = self.store.json(keys[-1])
        return Verdict(str(report["outcome"]), self.told(instance), report, keys[-1])

    def told(self, instance: str) -> str:
        """CONTINUE or ABANDON; recreateInstances or deleteInstances; empty for nothing."""
        if self.autoscaling and instance in self.autoscaling.nodes:
            return " ".join(self.autoscaling.nodes[instance].results)
        if self.compute:
            return " ".join(verb for verb, name in self.compute.done if name == instance)
        return ""

    def _id(self, instance: str) -> str:
        if self.given.cloud == "gcp":
            return str(4815162342108151623 + sum(instance.encode()))
        return instance


Trouble = Callable[["Cloud", metadata.Metadata], None]
