"""A node among stand-ins: its host below a folder, its settings, and a clock that never waits."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.standins import metadata
from tests.standins.autoscaling import Autoscaling
from tests.standins.compute import Compute
from tests.standins.object_store import S3, Gcs
from tests.standins.server import StandIn
from tests.standins.signature import Credentials

from gputier.node import gates
from gputier.node import settings as boot
from gputier.node.bucket import bucket_name
from gputier.node.cloud.here import Here
from gputier.node.cloud.http import Web
from gputier.node.cloud.identity import FILE, Identity, ask
from gputier.node.cloud.metadata import Aws, Gcp
from gputier.node.host import Host

INSTANCE = "i-0123456789abcdef0"
ACCOUNT = "111122223333"
PROJECT = "stand-in-project"


class Quick(Host):
    """A host whose pauses cost nothing and count all the same."""

    def __init__(self, root: Path) -> None:
        super().__init__(str(root))
        self.skipped = 0.0
        self.ahead = 0.0
        self.pauses: list[float] = []
        self._lock = threading.Lock()

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self.pauses.append(seconds)
            self.skipped += seconds
        time.sleep(min(seconds, 0.002))

    def monotonic(self) -> float:
        return time.monotonic() + self.skipped

    def now(self) -> float:
        return time.time() + self.skipped + self.ahead


def settings(cloud: str, kind: str, mode: str = "enforce", **more: Any) -> boot.Settings:
    """The settings of a node of the fleet `tuner`."""
    found: dict[str, Any] = {
        "schema": boot.SCHEMA,
        "project": "main",
        "stack": "prod",
        "workload": "tuner",
        "cloud": cloud,
        "instance_type": "p5.48xlarge" if cloud == "aws" else "a3-highgpu-8g",
        "gate": {"kind": kind, "mode": mode, "group": "tuner", "hook": "tuner-launch"},
        "breaker": {"after": 2, "window_seconds": 3600},
        **more,
    }
    return boot.read(json.dumps(found))


def report(outcome: str, *checks: tuple[str, str], host: Any = None) -> dict[str, Any]:
    """A node's report: `checks` are names and stages of its causes."""
    rows = [
        {"name": name, "stage": stage, "outcome": outcome, "evidence": f"{name} at 12:00 is wrong"}
        for name, stage in checks
    ]
    return {
        "schema": "gputier/node/1",
        "outcome": outcome,
        "checks": rows,
        "causes": [name for name, _ in checks],
        "host": host or {"gpus": [], "placement": {}},
        "at": 1,
    }


HEALTHY = report("healthy")
CONFIG = report("config", ("driver-version", "driver"))
REPLACE = report("replace", ("gpu-count", "health"), host={"gpus": ["a1", "b2"], "placement": {}})
REBOOT = report("reboot", ("row-remap", "health"))
INCONCLUSIVE = report("inconclusive", ("driver", "driver"))


class World:
    """The services of one cloud and one node that uses them."""

    def __init__(self, root: Path, cloud: str, instance: str = INSTANCE) -> None:
        self.cloud = cloud
        self.host = Quick(root)
        self.keys = Credentials()
        region = "us-east-1" if cloud == "aws" else "us-central1"
        account = ACCOUNT if cloud == "aws" else PROJECT
        self.bucket = bucket_name("main", "prod", account, region)
        self.autoscaling = Autoscaling(credentials=[self.keys])
        self.compute = Compute()
        self.store: S3 | Gcs
        self.metadata: metadata.Aws | metadata.Gcp
        if cloud == "aws":
            self.metadata = metadata.Aws(metadata.aws_values(instance), self.keys)
            self.store = S3(self.bucket, credentials=[self.keys])
            self.autoscaling.targets = lambda _, target: self.metadata.set(STATE, target)
            self.autoscaling.launch(instance)
        else:
            self.metadata = metadata.Gcp()
            self.store = Gcs(self.bucket)

    @property
    def services(self) -> dict[str, StandIn]:
        name = "s3" if self.cloud == "aws" else "storage"
        return {"metadata": self.metadata, name: self.store, "autoscaling": self.autoscaling,
                "compute": self.compute}  # fmt: skip

    def write(self) -> None:
        """What an image and the fetcher bring."""
        urls = {name: service.url for name, service in self.services.items()}
        self.host.write("/etc/gputier/endpoints.json", json.dumps(urls))
        self.host.write("/proc/sys/kernel/random/boot_id", "boot-1\n")
        self.host.write("/etc/machine-id", "machine-1\n")
        self.host.write(FILE, self.identity().to_json())

    def identity(self) -> Identity:
        kind = Aws if self.cloud == "aws" else Gcp
        return ask(kind(Web(Quick(self.host.root)), self.metadata.url), self.bucket)

    def gate(self, kind: str, mode: str = "enforce", **more: Any) -> gates.Gate:
        return gates.of(settings(self.cloud, kind, mode, **more), self.identity(), self.host)

    def here(self) -> Here:
        kind = "lifecycle-hook" if self.cloud == "aws" else "health-endpoint"
        return Here(self.host, settings(self.cloud, kind), self.identity())

    def new_node(self, instance: str) -> None:
        """Another machine of the fleet in this one's place: a new disk, a new identity."""
        for path in (
            "/var/lib/gputier/joined.json",
            "/run/gputier/gate.json",
            "/run/gputier/ready",
        ):
            self.host.remove(path)
        self.host.write("/etc/machine-id", f"machine-of-{instance}\n")
        if self.cloud == "aws":
            for path, text in metadata.aws_values(instance).items():
                self.metadata.set(path, text)
            self.autoscaling.launch(instance)
        else:
            self.metadata.set("instance/id", instance)
            self.metadata.set("instance/name", f"tuner-{instance}")
            self.compute.machines.add(f"tuner-{instance}")


STATE = "meta-data/autoscaling/target-lifecycle-state"


@contextmanager
def world(root: Path, cloud: str) -> Generator[World]:
    """Everything started, and stopped again."""
    made = World(root, cloud)
    try:
        for service in made.services.values():
            service.start()
        made.write()
        yield made
    finally:
        for service in made.services.values():
            service.stop()
