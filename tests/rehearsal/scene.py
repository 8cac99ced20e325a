"""A rehearsal: a cloud, a machine in it, given exactly its user data, and what comes of it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from tests.rehearsal.cloud import Cloud, Trouble, Verdict
from tests.rehearsal.container import Container
from tests.rehearsal.fake_image import gpu_image
from tests.rehearsal.image import Image
from tests.rehearsal.layer import Layer
from tests.rehearsal.network import Network
from tests.rehearsal.plans import Given, given
from tests.rehearsal.pretence import Pretence
from tests.rehearsal.vm import Disk, Hardware, VirtualMachine
from tests.standins.metadata import Metadata

SEED = "/var/lib/cloud/seed/nocloud"
#: What Google's guest agent does at every boot, in the place of it: no plain distribution has it.
STARTUP = "instance/attributes/startup-script"
GUEST_AGENT = f"""[Unit]
Description=Stand-in for the startup scripts of Google's guest agent
Wants=network-online.target
After=network-online.target
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'curl -fsS --retry 30 --retry-connrefused --retry-delay 1 \
  -H "Metadata-Flavor: Google" http://169.254.169.254/computeMetadata/v1/{STARTUP} \
  -o /run/startup-script && exec /bin/bash /run/startup-script'
[Install]
WantedBy=multi-user.target
"""
M = TypeVar("M", Container, VirtualMachine)
STAGE = re.compile(
    r"gputier-node: stage (?P<name>[\w-]+): (?P<outcome>\w+), (?P<seconds>[\d.]+) of "
    r"(?P<limit>[\d.]+) s: (?P<evidence>.*)"
)
BUNDLE = re.compile(r"gputier: bundle there after ([\d.]+) s")


@dataclass(frozen=True, slots=True)
class Stage:
    """A line of the boot's own account on the console."""

    name: str
    outcome: str
    seconds: float
    limit: float
    evidence: str


@dataclass(slots=True)
class Part:
    """What one machine is: faults by boot, trouble in its cloud, what its image brings besides.

    `by`: how it is given its user data: nocloud (a seed in the image), ec2 or startup-script (by
    the metadata service; the latter runs it again at every boot).
    """

    plan: str = "group"
    boots: tuple[tuple[str, ...], ...] = ((),)
    trouble: Trouble | None = None
    image: Callable[[Layer], None] | None = None
    instance: str = "i-0000000000000001"
    host: int = 0
    late: float = 0.0
    bundle_seconds: int = 600
    by: str = "nocloud"


class Scene(Generic[M]):
    """A running rehearsal."""

    def __init__(self, cloud: Cloud, part: Part, machine: M, own: Metadata) -> None:
        self.cloud, self.part, self.machine, self.own = cloud, part, machine, own

    def verdict(self) -> Verdict | None:
        return self.cloud.verdict(self.part.instance)

    def ends(self, outcome: str, gate: str, limit: float) -> Verdict:
        """Wait for this verdict; fails with the machine's console when it is another or late."""

        def there() -> bool:
            found = self.verdict()
            return found is not None and (found.outcome, found.gate) == (outcome, gate)

        started = time.monotonic()
        ok = self.machine.wait(there, limit)
        found = self.verdict()
        said = f"{found.outcome}, gate told {found.gate!r}" if found else "no report"
        waited = time.monotonic() - started
        assert ok, (
            f"wanted {outcome}, gate told {gate!r} within {limit:.0f} s; after {waited:.0f} s: "
            f"{said}\n{self.account()}"
        )
        assert found
        return found

    def account(self) -> str:
        """What there is to see when a rehearsal did not end as it should."""
        lines = self.machine.console().splitlines()
        own = [line for line in lines if "gputier" in line]
        return "\n".join([*lines[-25:], "--- our own lines:", *own[-40:]])

    def stages(self) -> list[Stage]:
        """The account of all boots so far, from the console."""
        return [
            Stage(m["name"], m["outcome"], float(m["seconds"]), float(m["limit"]), m["evidence"])
            for m in STAGE.finditer(plain(self.machine.console()))
        ]

    def bundle_seconds(self) -> list[float]:
        return [float(text) for text in BUNDLE.findall(plain(self.machine.console()))]


def hardware_of(told: Given, **changes: Any) -> Hardware:
    """A virtual machine with the disks that this machine type has."""
    kind = told.kind
    disks = tuple(Disk(f"AWS{number:017X}", kind.disk_gib) for number in range(kind.disks))
    usual: dict[str, Any] = {"disks": disks, "instance_type": kind.name}
    return Hardware(**{**usual, **changes})


def plain(text: str) -> str:
    """A console without carriage returns and colours."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "")


def layer_of(part: Part, cloud: Cloud, container: bool) -> Layer:
    """The image of a rehearsal: a GPU machine, the way to the stand-ins, the user data."""
    told: Given = cloud.given
    layer = gpu_image(Pretence(told.kind, part.boots, part.host), container)
    layer.put("/etc/gputier/endpoints.json", cloud.endpoints() + "\n")
    if part.by == "nocloud":
        layer.put(f"{SEED}/user-data", told.rendered.text)
        layer.put(f"{SEED}/meta-data", f"instance-id: {part.instance}\n")
    if part.by == "startup-script":
        layer.put("/etc/systemd/system/google-startup-scripts.service", GUEST_AGENT)
        layer.enable("google-startup-scripts.service")
        layer.put(f"{SEED}/user-data", "#cloud-config\n{}\n")
        layer.put(f"{SEED}/meta-data", f"instance-id: {part.instance}\n")
    if part.image:
        part.image(layer)
    return layer


@contextmanager
def in_container(
    image: Image, place: Path, part: Part, cloud: Cloud | None = None
) -> Generator[Scene[Container]]:
    """Start a container and its cloud; both are gone behind it, whatever happened."""
    with _around(part, cloud) as (where, own, network):
        layer = layer_of(part, where, container=True)
        machine = Container(image, layer, network, place / part.instance)
        try:
            yield Scene(where, part, machine, own)
        finally:
            machine.remove()


@contextmanager
def in_vm(
    image: Image, place: Path, part: Part, hardware: Hardware, cloud: Cloud | None = None
) -> Generator[Scene[VirtualMachine]]:
    """The same with a virtual machine."""
    with _around(part, cloud) as (where, own, network):
        layer = layer_of(part, where, container=False)
        machine = VirtualMachine(image, layer, network, place / part.instance, hardware)
        try:
            yield Scene(where, part, machine, own)
        finally:
            machine.remove()


@contextmanager
def _around(part: Part, cloud: Cloud | None) -> Generator[tuple[Cloud, Metadata, Network]]:
    """A network with the stand-ins in it."""
    where = cloud or Cloud(given(part.plan, part.bundle_seconds))
    network = Network()
    try:
        own = where.metadata(part.instance)
        if part.by == "ec2":
            own.set("user-data", where.given.rendered.text)
        if part.by == "startup-script":
            own.set(STARTUP, where.given.rendered.text)
        if part.trouble:
            part.trouble(where, own)
        where.serve(network, own, part.late)
        try:
            yield where, own, network
        finally:
            where.stop()
    finally:
        network.close()
