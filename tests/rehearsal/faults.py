"""What can be wrong with a rehearsed machine, by name: the same changes that the checks' own tests
make to a machine of theirs."""

from __future__ import annotations

from collections.abc import Callable

from tests.node.cases import cell, log, says, state
from tests.node.machines import Machine

OLD_BOOT = "-- Boot 0123456789abcdef0123456789abcdef --"
XID_79 = "NVRM: Xid (PCI:0000:10:00): 79, pid=0, GPU has fallen off the bus."
MISMATCH = (
    "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.105\n"
)


def old_xid(machine: Machine) -> None:
    """The kernel log of the boot before: an older journalctl prints it although asked not to."""
    line = f"2026-11-29T10:00:12+0000 host kernel: {XID_79}"
    machine.log = [line, OLD_BOOT, *machine.log]


def missing_gpu(machine: Machine) -> None:
    """The last GPU is not even on the bus: no driver is to blame."""
    machine.gpus[-1].on_bus = False


def half_memory(machine: Machine) -> None:
    machine.gpus[0].fields["memory.total"] = f"{machine.kind.memory // 2} MiB"


def mig_pending(machine: Machine) -> None:
    """MIG mode was switched on and waits for a reset."""
    for one in machine.gpus:
        one.fields.update({"mig.mode.current": "Disabled", "mig.mode.pending": "Enabled"})


def older_driver(machine: Machine) -> None:
    """The image brings a driver of a branch that the plan did not agree on."""
    old = "535.183.01"
    path = "/proc/driver/nvidia/version"
    machine.files[path] = machine.files[path].replace(machine.driver, old)
    machine.driver = machine.module_version = machine.manager = old


FAULTS: dict[str, Callable[[Machine], object]] = {
    "a GPU is missing": missing_gpu,
    "a GPU has half its memory": half_memory,
    "Xid 79 in the kernel log": log(XID_79),
    "Xid 79 in an earlier boot's log": old_xid,
    "row remapping failed": cell(0, "remapped_rows.failure", "Yes"),
    "driver and library differ": says("nvidia-smi", 18, MISMATCH),
    "driver of an older branch": older_driver,
    "Fabric Manager down": state(service="failed"),
    "MIG mode is pending": mig_pending,
    "uncorrectable memory errors": cell(0, "ecc.errors.uncorrected.volatile.sram", "3"),
}
