"""A machine for stage-0's fetcher: a folder as its disk, stand-ins as its cloud, a fast clock."""

from __future__ import annotations

import hashlib
import json
import sys
import time
import types
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.standins import autoscaling, compute, metadata, object_store
from tests.standins.server import StandIn
from tests.standins.signature import Credentials

from gputier.boot import bucket_name
from gputier.boot.stage0 import fetcher
from gputier.node.build import content

BUNDLE = content()
PINNED = hashlib.sha256(BUNDLE).hexdigest()
KEY = f"bundles/{PINNED}.pyz"
INSTANCE = "i-0123456789abcdef0"
BUCKETS = {
    "aws": bucket_name("gputier", "prod", "111122223333", "us-east-1"),
    "gcp": bucket_name("gputier", "prod", "stand-in-project", "us-central1"),
}
KINDS = {"aws": "lifecycle-hook", "gcp": "health-endpoint"}


class Clock:
    """`time` of the fetcher's module: what it sleeps passes at once."""

    def __init__(self) -> None:
        self.passed = 0.0
        self.ahead = 0.0
        self.slept: list[float] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def monotonic(self) -> float:
        return time.monotonic() + self.passed

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.passed += seconds

    def gmtime(self) -> Any:
        return time.gmtime(time.time() + self.ahead)


class Machine:
    """One machine of a group `tuner`, not yet booted. `boot` runs its fetcher."""

    def __init__(self, disk: Path, cloud: str = "aws", **settings: Any) -> None:
        self.disk, self.cloud, self.clock = disk, cloud, Clock()
        self.credentials = Credentials()
        given = [self.credentials]
        if cloud == "aws":
            self.metadata: metadata.Metadata = metadata.Aws(credentials=self.credentials)
            self.store: object_store.Store = object_store.S3(BUCKETS[cloud], credentials=given)
        else:
            self.metadata = metadata.Gcp()
            self.store = object_store.Gcs(BUCKETS[cloud])
        self.groups = autoscaling.Autoscaling(credentials=given)
        self.groups.launch(INSTANCE)
        self.compute = compute.Compute()
        self.store.objects[KEY] = BUNDLE
        gate = {"kind": KINDS[cloud], "mode": "enforce", "depth": "quick", "group": "tuner",
                "hook": "tuner-launch"}  # fmt: skip
        self.settings: dict[str, Any] = {
            "schema": "gputier/boot/1", "project": "gputier", "stack": "prod", "workload": "tuner",
            "cloud": cloud, "instance_type": "g6.xlarge", "gate": gate,
            "bundle": {"sha256": PINNED, "version": "0.1.0", "delivery": "object"},
            "limits": {"bundle": 300}, "breaker": {"after": 2, "window_seconds": 86400},
            **settings,
        }  # fmt: skip
        self.module = types.ModuleType("fetch")

    def services(self) -> dict[str, StandIn]:
        return {"metadata": self.metadata, "s3": self.store, "storage": self.store,
                "autoscaling": self.groups, "compute": self.compute}  # fmt: skip

    def boot(self) -> int:
        """Run the program that a machine of this cloud is given; its exit status."""
        etc = self.disk / "etc/gputier"
        etc.mkdir(parents=True, exist_ok=True)
        ends = {name: service.url for name, service in self.services().items()}
        (etc / "boot.json").write_text(json.dumps(self.settings), encoding="utf-8")
        (etc / "endpoints.json").write_text(json.dumps(ends), encoding="utf-8")
        module = types.ModuleType("fetch")
        program = compile(fetcher(self.cloud), "fetch.py", "exec")
        # As on the machine, the module has to be there under its name.
        with _known(module):
            exec(program, module.__dict__)  # noqa: S102 (our own program)
            module.__dict__["time"] = self.clock
            kind = module.__dict__["Aws" if self.cloud == "aws" else "Gcp"]
            return int(module.__dict__["main"](kind, f"{self.disk}/"))

    def read(self, path: str) -> Any:
        return json.loads((self.disk / path).read_text(encoding="utf-8"))

    @property
    def report(self) -> dict[str, Any]:
        return dict(self.read("var/lib/gputier/report.json"))

    @property
    def bundle(self) -> Path:
        return self.disk / f"var/lib/gputier/bundle/{PINNED}.pyz"

    def fetches(self) -> int:
        """How often the bundle itself was asked for."""
        return sum(PINNED in asked.path for asked in self.store.seen)


@contextmanager
def _known(module: types.ModuleType) -> Generator[None]:
    sys.modules[module.__name__] = module
    try:
        yield
    finally:
        del sys.modules[module.__name__]


@contextmanager
def running(machine: Machine) -> Generator[Machine]:
    """The machine's cloud, up."""
    services = set(machine.services().values())
    for service in services:
        service.start()
    try:
        yield machine
    finally:
        for service in services:
            service.stop()


def gate(machine: Machine, mode: str) -> None:
    machine.settings["gate"]["mode"] = mode


def spoil(machine: Machine) -> None:
    machine.store.objects[KEY] = BUNDLE + b"another"
