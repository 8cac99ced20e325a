"""The expectation: what the plan says this machine is. One JSON file, every key optional.

`docs/node.md` lists the keys for people who write one by hand; `FIELDS` below is that list.
"""

from __future__ import annotations

from collections.abc import Sequence

from gputier.node import fields
from gputier.node.fields import (
    COUNT,
    DEPTHS,
    FABRICS,
    FRAMEWORK,
    GATES,
    LIMITS,
    NUMBER,
    PATH,
    SECONDS,
    TEXT,
    TEXTS,
    VERSION,
    BadFields,
    Kind,
    Values,
    one_of,
)

__all__ = ["DEPTHS", "FIELDS", "BadExpectation", "Expectation", "read"]


class BadExpectation(BadFields):
    """The file cannot be used; `problems` says where and why, one line each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("expectation", problems)


# Path of the key → its kind and what it means: documentation, reader and test in one.
FIELDS: dict[str, tuple[Kind, str]] = {
    "gpu.model": (TEXT, "catalogue name (`H100-80GB`) or what nvidia-smi prints"),
    "gpu.count": (COUNT, "GPUs (devices, not fractions) in this machine"),
    "gpu.memory_mib": (
        NUMBER,
        "memory of one GPU as nvidia-smi shows it, MiB; without it, what the model shows",
    ),
    "gpu.pci_ids": (TEXTS, "PCI device ids that count as right: `10de:2330` or `2330`"),
    "gpu.nvlinks": (COUNT, "NVLinks per GPU that have to be up"),
    "gpu.mig.profile": (TEXT, "MIG profile of every instance: `1g.10gb`"),
    "gpu.mig.count": (COUNT, "MIG instances per GPU (above 7: of the whole machine)"),
    "driver.min": (VERSION, "oldest driver that will do; a branch such as `570` is enough"),
    "driver.max": (VERSION, "newest driver that will do; `580` takes all of branch 580"),
    "cuda.min": (VERSION, "oldest CUDA version that the driver must offer"),
    "framework.name": (FRAMEWORK, "the framework"),
    "framework.version": (VERSION, "its version; a local part (`2.9.0+cu128`) has to match too"),
    "framework.cuda": (VERSION, "CUDA version it is built for"),
    "framework.index": (TEXT, "wheel index it comes from; `…/cu128` names its CUDA"),
    "framework.python": (PATH, "the python that has it; else python3, else the image's"),
    "fabric.kind": (one_of(FABRICS), "how machines talk to each other"),
    "fabric.interfaces": (COUNT, "fabric devices in this machine"),
    "fabric.gbps": (NUMBER, "speed of one fabric interface, Gbit/s"),
    "fabric.peers": (TEXTS, "other machines of the fleet, for the pairwise burn-in"),
    "scratch.count": (COUNT, "local NVMe disks"),
    "scratch.gib": (NUMBER, "their size, all disks together, GiB"),
    "scratch.mount": (PATH, "where they are mounted"),
    "scratch.mb_s": (NUMBER, "sequential read speed to reach, MB/s, all disks together"),
    "pcie.generation": (COUNT, "PCIe generation of a GPU's link under load"),
    "pcie.width": (COUNT, "lanes of a GPU's link"),
    "host.vcpus": (COUNT, "vCPUs"),
    "host.memory_gib": (NUMBER, "host memory as it is sold, GiB"),
    "host.network_gbps": (NUMBER, "network bandwidth of the machine, Gbit/s"),
    "machine.cloud": (TEXT, "aws, gcp, azure, …"),
    "machine.instance_type": (TEXT, "for the report"),
    "machine.usd_per_hour": (NUMBER, "for the report's dollars"),
    "container.image": (TEXT, "an image on the machine in which nvidia-smi must run"),
    "gate": (one_of(GATES), "off, report, or enforce (the default)"),
    "depth": (one_of(DEPTHS), "quick (the default), standard or burn-in"),
    "limits.total_seconds": (SECONDS, "for all checks together"),
    "limits.checks": (LIMITS, "seconds for a check by its name"),
    "require": (TEXTS, "checks or tools that must run whatever the depth"),
}


class Expectation(Values):
    """What the plan says this machine is. Never changes."""

    def mig(self) -> bool:
        """Whether the GPUs are to be divided: a profile or a number of instances is named."""
        return self.has("gpu.mig.profile") or bool(self.count("gpu.mig.count"))

    def limits(self) -> dict[str, float]:
        return self.table("limits.checks")

    @property
    def gate(self) -> str:
        return self.text("gate") or "enforce"

    @property
    def depth(self) -> str:
        return self.text("depth") or "quick"

    @property
    def fabric(self) -> str | None:
        """The fabric's kind, None where the plan has none."""
        kind = self.text("fabric.kind")
        return None if kind in (None, "none") else kind


def read(text: str) -> Expectation:
    """The expectation in a JSON text. Raises BadExpectation with every problem."""
    try:
        values, warnings = fields.read("expectation", text, FIELDS)
    except BadFields as error:
        raise BadExpectation(error.problems) from None
    return Expectation(values, warnings)
