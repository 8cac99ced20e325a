"""A GPU machine that is not there: what its tools answer and what its files hold.

The same `Machine` that the checks' own tests judge, made here of the expectation that was rendered,
so that any plan can be rehearsed. On the rehearsing side `lay` puts it into a layer; on the
rehearsed machine `guest/answer.py` asks it in the place of nvidia-smi and the others.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.node.machines import KINDS, Kind, Machine
from tests.rehearsal.faults import FAULTS

from gputier.node import cards

PLACE = "/etc/rehearsal"
CURRENT = Path("/run/rehearsal")
CHANGES = Path("/var/lib/rehearsal/changes")
#: Tools that no plain distribution has. A container's kernel log is that of the machine it runs
#: on, so there the log is answered too; a virtual machine has a kernel of its own.
TOOLS = ("nvidia-smi", "lspci", "nvcc", "mokutil", "modinfo", "nv-fabricmanager", "fi_info")
KERNEL_LOG = ("journalctl", "dmesg")
FRAMEWORK = "/opt/pytorch/bin/python3"


@dataclass(frozen=True, slots=True)
class Pretence:
    """A kind of machine, and its faults by boot; the last boot's stand for all that follow.

    `host` tells it from others of its kind: no two hosts have the same GPUs.
    """

    kind: Kind
    boots: tuple[tuple[str, ...], ...] = ((),)
    host: int = 0

    @classmethod
    def of_this_machine(cls) -> Pretence:
        """On the rehearsed machine: as it is in this boot."""
        found = json.loads(Path(PLACE, "machine.json").read_text(encoding="utf-8"))
        now = int(CURRENT.resolve().name)
        boots = tuple(tuple(names) for names in found["boots"])
        mig = found["kind"].pop("mig")
        kind = Kind(**found["kind"], mig=tuple(mig) if mig else None)
        return cls(kind, (boots[now - 1],), found["host"])

    def machine(self, boot: int = 1) -> Machine:
        machine = Machine(self.kind)
        for gpu in machine.gpus:
            gpu.uuid = f"{gpu.uuid[:-12]}{self.host:04x}{gpu.uuid[-8:]}"
        for name in self.boots[min(boot, len(self.boots)) - 1]:
            FAULTS[name](machine)
        return machine

    def text(self) -> str:
        kind = dataclasses.asdict(self.kind)
        found = {"kind": kind, "boots": self.boots, "host": self.host}
        return json.dumps(found, indent=1) + "\n"

    # --- on the rehearsed machine ---------------------------------------------------------------

    def answers(self, name: str, rest: Sequence[str]) -> bool:
        """Whether a question is about the GPU machine; all others go to the real tool."""
        if name == "journalctl":
            return "-k" in rest or "--dmesg" in rest
        if name == "modinfo":
            return any(part.startswith("nvidia") for part in rest)
        return name != "python3" or any("gputier-probe:" in part for part in rest)

    def answer(self, name: str, rest: Sequence[str]) -> tuple[int, str]:
        machine = self.machine()
        machine.absent.discard("dmesg")
        if name == "dmesg":
            return 0, "\n".join(machine.log) + "\n"
        done = machine.run([name, *rest], 60.0)
        if done.state != "exited" or done.rc is None:
            return 127, f"{name}: not on this machine\n"
        return done.rc, done.text


def kind_of(
    expect: Mapping[str, Any], driver: str, switches: int = 0, torch: str | None = None
) -> Kind:
    """The machine that an expectation describes, with a driver that fits it."""
    gpu, host, machine = expect["gpu"], expect.get("host", {}), expect.get("machine", {})
    card = cards.by_text(gpu["model"])
    assert card, f"the table of cards does not know {gpu['model']}"
    scratch, fabric = expect.get("scratch", {}), expect.get("fabric", {})
    many = int(scratch.get("count", 0))
    mig = gpu.get("mig")
    base = Kind(
        name=machine.get("instance_type", "unknown"),
        cloud=machine.get("cloud", "aws"),
        card=gpu["model"],
        shown=_shown(gpu["model"]),
        count=int(gpu["count"]),
        memory=int(gpu.get("memory_mib") or card.memory_mib[0]),
        driver=driver,
        vcpus=int(host.get("vcpus", 8)),
        host_gib=int(host.get("memory_gib", 64)),
        disks=many,
        disk_gib=scratch.get("gib", 0) / many if many else 0.0,
        fabric=fabric.get("kind", "none"),
        interfaces=int(fabric.get("interfaces", 0)),
        gbps=int(fabric.get("gbps", 100)),
        switches=switches,
        mig=(mig["profile"], int(mig.get("count", 1))) if mig else None,
    )
    return dataclasses.replace(base, torch=torch) if torch else base


def _shown(model: str) -> str:
    """How nvidia-smi names a card of the catalogue, from the kinds that are known."""
    for kind in KINDS.values():
        if kind.card == model and not kind.sliced:
            return kind.shown
    return f"NVIDIA {model}"
