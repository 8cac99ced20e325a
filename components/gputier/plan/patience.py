"""How long a cloud waits for a machine's verdict, and whether its boot can be done by then.

`boot` makes the whole sum when it renders, from the limits that the node keeps; that is too late
for a plan, which may know neither. So the least that each part needs stands here as a table, and
tests/boot/test_patience.py holds it to that sum, plan by plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gputier.errors import Problem
from gputier.plan.boot import GROUP_GATES, INSTALL, BootPlan

#: Seconds that a cloud waits at most, by gate: Google's autohealer 3,600 s from the machine's
#: creation, of which its health check needs 60 (boot/deadlines.py). AWS's hook waits 25 hours and
#: more, and nobody waits for a lone machine.
WAITS = {GROUP_GATES["gcp"]: 3_540}
#: The least that each part may take where time is short: what stage limits can be cut to.
ALWAYS = {"power-on": 300, "bundle": 120, "packages": 178, "persistence": 45, "services": 30,
          "gate": 189, "metrics": 90}  # fmt: skip
INSTALLING, ASKING = 780, 78
PARTS = {"proxy": 15, "mirrors": 60, "fabric-manager": 120, "mig": 90, "limits": 30, "scratch": 90,
         "data": 150, "fabric": 210, "container-toolkit": 210, "packages-extra": 300,
         "framework": 450, "collectives": 15, "horovod": 600, "ssh-keys": 15}  # fmt: skip
#: A burn-in is done after a machine has joined: before it comes the standard validation.
VALIDATION = {"quick": 210, "standard": 1230, "burn-in": 1230}
#: A reboot, and each stage's look after it that all is there.
REBOOT, LOOK = 180, 5
#: Parts that are no stage, and so not looked at again.
NO_STAGES = ("power-on", "bundle")
#: G4 has settings of NCCL on machines with several GPUs (boot/nccl.py).
PAIRED_FAMILY = "g4"


class Machine(NamedTuple):
    """What of a machine, beside its boot, decides how long the boot takes."""

    family: str
    gpus: int
    mig: bool
    scratch: bool
    data: bool
    fabric: bool


def patience_problems(boot: BootPlan, machine: Machine) -> Iterator[Problem]:
    """A boot that takes longer than the cloud waits, however short every limit is made."""
    waits = WAITS.get(boot.gate.kind)
    parts = least_seconds(boot, machine)
    seconds = sum(parts.values())
    if waits is None or seconds <= waits:
        return
    longest = sorted(parts.items(), key=lambda part: -part[1])[:4]
    by = ", ".join(f"{name} {count:,}" for name, count in longest)
    yield Problem(
        "software",
        f"a boot takes {seconds:,} s at least, and Google's autohealing waits {waits:,}: {by}, …",
        "take an image that has driver and framework (`software.image`), a container, a lesser"
        " `validation.depth`, or `clouds: [aws]`",
    )


def least_seconds(boot: BootPlan, machine: Machine) -> dict[str, int]:
    """Seconds at least, by part, up to the verdict."""
    installs = boot.driver.source == INSTALL
    found = {**ALWAYS, "driver": INSTALLING if installs else ASKING}
    found |= {name: PARTS[name] for name in _asked(boot, machine)}
    if boot.gate.mode != "off":
        found["validate"] = VALIDATION[boot.gate.depth]
    stages = len(found) - len(NO_STAGES)
    # One for the preparation, one that the validation may ask for.
    reboots = 1 + (boot.gate.mode != "off")
    found["reboots"] = reboots * (REBOOT + LOOK * (stages + 1))
    return found


def _asked(boot: BootPlan, machine: Machine) -> Iterator[str]:
    horovod = boot.mpi == "horovod"
    paired = machine.family == PAIRED_FAMILY and machine.gpus > 1
    asked = {
        "proxy": boot.proxy, "mirrors": boot.mirrors, "mig": machine.mig, "data": machine.data,
        "scratch": machine.scratch, "fabric": machine.fabric, "limits": machine.fabric,
        "fabric-manager": boot.driver.fabric_manager, "container-toolkit": boot.container,
        "packages-extra": boot.packages, "framework": boot.framework, "horovod": horovod,
        "collectives": (machine.fabric or paired) and not horovod, "ssh-keys": boot.ssh_keys,
    }  # fmt: skip
    return (name for name, value in asked.items() if value)
