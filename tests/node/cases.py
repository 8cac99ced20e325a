"""For every check: machines on which it must speak up, and what the node comes out as.

A case changes one thing on a healthy machine. `node` is the node's outcome; None where the check
alone is meant (a warning leaves the node healthy).
"""

# ruff: noqa: E501 (one case, one line)
from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.node.machines import Machine, all_reduce, diag_json, fi_info

from gputier.node.host import Done

Change = Callable[[Machine], object]


@dataclass(frozen=True)
class Case:
    """`change` on a machine of `kind` makes `check` come out as `outcome`, the node as `node`."""

    check: str
    words: str
    kind: str
    change: Change
    outcome: str
    node: str
    depth: str = "quick"
    evidence: str = ""
    expect: dict[str, Any] = field(default_factory=dict[str, Any])


def log(line: str) -> Change:
    return lambda m: m.log.append(f"2026-11-30T10:00:12+0000 host kernel: {line}")


def both(*changes: Change) -> Change:
    def change(machine: Machine) -> None:
        for one in changes:
            one(machine)

    return change


def gpu(index: int, **fields: Any) -> Change:
    def change(machine: Machine) -> None:
        for name, value in fields.items():
            setattr(machine.gpus[index], name, value)

    return change


def cell(index: int, name: str, value: str) -> Change:
    return lambda m: m.gpus[index].fields.update({name: value})


def detail(index: int, name: str, value: str) -> Change:
    return lambda m: m.gpus[index].details.update({name: value})


def file(path: str, text: str | None) -> Change:
    def change(machine: Machine) -> None:
        machine.files.pop(path, None)
        if text is not None:
            machine.files[path] = text

    return change


def state(**values: Any) -> Change:
    def change(machine: Machine) -> None:
        for name, value in values.items():
            assert hasattr(machine, name), name
            setattr(machine, name, value)

    return change


def says(command: str, rc: int, out: str = "", err: str = "") -> Change:
    return lambda m: m.says(command, rc, out, err)


def hangs(command: str) -> Change:
    return lambda m: m.hangs(command)


def without(*tools: str) -> Change:
    return lambda m: m.absent.update(tools)


def speed(name: str, value: float) -> Change:
    return lambda m: m.speeds.update({name: value})


def torch(**values: Any) -> Change:
    return lambda m: m.torch.update(values)


def no_module(machine: Machine) -> None:
    """The module is not there: nothing of it in /proc, nvidia-smi ends with 9."""
    machine.files.pop("/proc/driver/nvidia/version")
    machine.files["/proc/modules"] = "ext4 1 1 - Live 0x0\n"
    machine.says("lspci", 0, lspci_of(machine, ""))
    machine.says("modinfo", 1, "", "modinfo: ERROR: Module nvidia not found.")
    machine.says(
        "nvidia-smi",
        9,
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
    )


def lspci_of(machine: Machine, driver: str) -> str:
    rows: list[str] = []
    for one in machine.gpus:
        rows.append(
            f"{one.address} 3D controller [0302]: NVIDIA Corporation Device [10de:{machine.card.ids[0]}] (rev a1)"
        )
        rows += [f"\tKernel driver in use: {driver}"] if driver else []
    return "\n".join(rows) + "\n"


def nouveau(machine: Machine) -> None:
    no_module(machine)
    machine.files["/proc/modules"] = "nouveau 1 1 - Live 0x0\n"
    machine.says("lspci", 0, lspci_of(machine, "nouveau"))


def secure_boot(machine: Machine) -> None:
    no_module(machine)
    log("Loading of module with unavailable key is rejected")(machine)
    log("modprobe: ERROR: could not insert 'nvidia': Key was rejected by service")(machine)


def secure_boot_by_state(machine: Machine) -> None:
    no_module(machine)
    machine.says("mokutil --sb-state", 0, "SecureBoot enabled\n")


def blind(machine: Machine) -> None:
    """The driver is loaded and sees nothing."""
    machine.says("nvidia-smi", 6, "No devices were found\n")


def flavour(text: str) -> Change:
    def change(machine: Machine) -> None:
        machine.files["/proc/driver/nvidia/version"] = f"NVRM version: {text}\n"
        blind(machine)

    return change


def driver(version: str) -> Change:
    """Another driver, whole: module, library, fabric manager."""

    def change(machine: Machine) -> None:
        machine.driver = machine.module_version = machine.manager = version
        path = "/proc/driver/nvidia/version"
        words = (
            "NVIDIA UNIX Open Kernel Module for x86_64"
            if machine.open_module
            else "NVIDIA UNIX x86_64 Kernel Module"
        )
        machine.files[path] = f"NVRM version: {words}  {version}  Release\n"

    return change


def lost(index: int) -> Change:
    return both(
        gpu(index, visible=False),
        log(
            "NVRM: Xid (PCI:0000:b9:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
        ),
    )


def dcgm(results: list[dict[str, Any]], rc: int = 226, old: bool = False) -> Change:
    def change(machine: Machine) -> None:
        machine.dcgm = lambda _: (
            rc,
            "Warning: CUDA_VISIBLE_DEVICES is set\n" + diag_json(results, 3, old),
        )

    return change


def dcgm_rc(rc: int, text: str = "") -> Change:
    def change(machine: Machine) -> None:
        machine.dcgm = lambda _: (rc, text)

    return change


def failed(error: int, severity: int | None, status: str = "Fail") -> list[dict[str, Any]]:
    """DCGM 4's form: GPU 0 passes, GPU 3 does not."""
    warning = {"warning": "Something is wrong", "error_id": error, "error_category": 10}
    if severity is not None:
        warning["error_severity"] = severity
    return [{"entity_group": "GPU", "entity_id": 0, "status": "Pass"},
            {"entity_group": "GPU", "entity_id": 3, "status": status, "warnings": [warning]}]  # fmt: skip


def memory_test(figure: str) -> Change:
    def change(machine: Machine) -> None:
        data = json.loads(diag_json([], machine.kind.count))
        tests = data["DCGM Diagnostic"]["test_categories"][0]["tests"]
        tests.append(
            {
                "name": "memory_bandwidth",
                "results": [
                    {"entity_id": 0, "status": "Pass", "info": [f"GPU 0 reached {figure}"]}
                ],
            }
        )
        machine.dcgm = lambda _: (0, json.dumps(data))

    return change


def unmounted(machine: Machine) -> None:
    path = "/proc/self/mountinfo"
    machine.files[path] = "".join(
        line + "\n" for line in machine.files[path].splitlines() if "/scratch" not in line
    )


def mounted(line: str) -> Change:
    return both(
        unmounted,
        lambda m: m.files.update(
            {"/proc/self/mountinfo": m.files["/proc/self/mountinfo"] + line + "\n"}
        ),
    )


def drop_disk(machine: Machine) -> None:
    last = machine.kind.disks
    for path in [path for path in machine.files if f"/nvme{last}n1/" in path]:
        del machine.files[path]


def shrink_disks(machine: Machine) -> None:
    for n in range(1, machine.kind.disks + 1):
        machine.files[f"/sys/block/nvme{n}n1/size"] = "262144\n"


def peers(answers: dict[str, float | None]) -> Change:
    """Which peer reaches how many GB/s; None: the run fails."""

    def change(machine: Machine) -> None:
        machine.absent.discard("mpirun")
        for peer, value in answers.items():
            gpus = machine.kind.count
            prefix = (
                "mpirun",
                "--allow-run-as-root",
                "-np",
                str(2 * gpus),
                "-H",
                f"localhost:{gpus},{peer}:{gpus}",
            )
            twin = machine.copy()
            twin.speeds["all-reduce"] = value or 0.0
            done = Done(
                (),
                0 if value else 1,
                all_reduce(twin) if value else "",
                "NCCL WARN unhandled system error",
                1.0,
                "exited",
            )
            machine.overrides.insert(0, (prefix, done))

    return change


XID_LINE = "NVRM: Xid (PCI:0000:1b:00): {}, pid=1, name=python3, words"
PEERS = {"kind": "gpudirect-tcpxo", "interfaces": 8, "gbps": 200, "peers": ["b", "c", "d"]}
H100, B200, A100, T4, V100, L4 = (
    "p5.48xlarge",
    "p6-b200.48xlarge",
    "p4d.24xlarge",
    "g4dn.xlarge",
    "p3.16xlarge",
    "g6.12xlarge",
)
IB, ROCE, MIG, SLICE, TCPXO = (
    "Standard_ND96isr_H100_v5",
    "a3-ultragpu-8g",
    "a2-highgpu-1g",
    "gr6f.4xlarge",
    "a3-megagpu-8g",
)
REPLACE, REBOOT, CONFIG, INCONCLUSIVE, HEALTHY, WARNING = (
    "replace",
    "reboot",
    "config",
    "inconclusive",
    "healthy",
    "warning",
)

CASES = (
    Case("xid", "a fatal Xid", H100, log(XID_LINE.format(79)), REPLACE, REPLACE, evidence="Xid 79"),
    Case("xid", "a firmware that hangs", H100, log(XID_LINE.format(119)), REBOOT, REBOOT),
    Case("xid", "a log nobody may read", H100, both(says("journalctl", 1, "", "No journal files were opened due to insufficient permissions."), without("dmesg")), INCONCLUSIVE, INCONCLUSIVE),
    Case("xid", "an empty log", H100, says("journalctl", 0, "-- No entries --\n"), WARNING, HEALTHY),
    Case("sxid", "a log nobody may read", H100, both(says("journalctl", 1, "", "insufficient permissions"), without("dmesg")), INCONCLUSIVE, INCONCLUSIVE),
    Case("sxid", "a fatal switch error", H100, log("nvidia-nvswitch3: SXid (PCI:0000:c3:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"), REPLACE, REPLACE),
    Case("sxid", "a switch error that is not fatal", H100, log("nvidia-nvswitch3: SXid (PCI:0000:c3:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error"), WARNING, HEALTHY),
    Case("xid-after", "an Xid that the checks brought to light", H100, lambda m: m.late.append("kernel: " + XID_LINE.format(79)), REPLACE, REPLACE),
    Case("pci", "a GPU missing on the bus", H100, gpu(7, on_bus=False), REPLACE, REPLACE, evidence="7 GPUs on the PCI bus"),
    Case("pci", "a GPU that answers ff", H100, gpu(7, dead=True), REPLACE, REPLACE, evidence="rev ff"),
    Case("pci", "a bus that cannot be seen", H100, without("lspci"), INCONCLUSIVE, INCONCLUSIVE),
    Case("pci", "more GPUs than planned", H100, state(), CONFIG, CONFIG, expect={"gpu": {"count": 4}}),
    Case("kernel-module", "no module", H100, no_module, CONFIG, CONFIG),
    Case("kernel-module", "nouveau", H100, nouveau, CONFIG, CONFIG, evidence="nouveau"),
    Case("kernel-module", "Secure Boot, by the log", H100, secure_boot, CONFIG, CONFIG, evidence="Secure Boot"),
    Case("kernel-module", "Secure Boot, by its state", H100, secure_boot_by_state, CONFIG, CONFIG, evidence="SecureBoot enabled"),
    Case("kernel-module", "the open module on Volta, by the log", V100, both(blind, log("NVRM: The NVIDIA GPU 0000:00:1e.0 is not supported by open nvidia.ko because it does not include the required GPU System Processor (GSP).")), CONFIG, CONFIG),
    Case("module-flavour", "the proprietary module on Blackwell", B200, flavour("NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue"), CONFIG, CONFIG),
    Case("module-flavour", "the open module on Volta", V100, flavour("NVIDIA UNIX Open Kernel Module for x86_64  570.172.08  Release Build"), CONFIG, CONFIG),
    Case("driver-branch", "a branch that forgot the card", V100, both(driver("595.58.03"), blind), CONFIG, CONFIG, evidence="no longer knows"),
    Case("driver-branch", "a branch too old for the card", B200, both(driver("550.163.01"), blind), CONFIG, CONFIG, evidence="too old"),
    Case("driver", "a GPU off the bus, by status", H100, says("nvidia-smi", 15, "Unable to determine\n"), REPLACE, REPLACE),
    Case("driver", "a GPU off the bus, by words", H100, says("nvidia-smi -L", 255, "Unable to determine the device handle for GPU 0000:B9:00.0: Unknown Error\n"), REPLACE, REPLACE),
    Case("driver", "a corrupt infoROM", H100, says("nvidia-smi -L", 14, ""), REPLACE, REPLACE),
    Case("driver", "no devices", H100, blind, REPLACE, REPLACE),
    Case("driver", "module and library differ", H100, says("nvidia-smi", 18, "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.105\n"), REBOOT, REBOOT),
    Case("driver", "nvidia-smi never answers", H100, hangs("nvidia-smi"), REBOOT, REBOOT),
    Case("driver", "nvidia-smi is not there", H100, without("nvidia-smi"), CONFIG, CONFIG),
    Case("driver", "an unknown status", H100, says("nvidia-smi", 77, "NVIDIA-SMI has failed in an unknown way\n"), REBOOT, REBOOT, evidence="unknown status 77"),
    Case("driver", "no permission", H100, says("nvidia-smi", 4, "Insufficient Permissions\n"), INCONCLUSIVE, INCONCLUSIVE),
    Case("driver", "another language", H100, says("nvidia-smi -L", 0, "Grafikkarte 0: NVIDIA H100\n"), INCONCLUSIVE, INCONCLUSIVE, evidence="Grafikkarte"),
    Case("driver-match", "a half-done upgrade", H100, file("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release\n"), REBOOT, REBOOT),
    Case("driver-version", "older than planned", H100, driver("570.172.08"), CONFIG, CONFIG),
    Case("driver-version", "newer than planned", H100, state(), CONFIG, CONFIG, expect={"driver": {"max": "575"}}),
    Case("cuda-version", "less CUDA than planned", H100, driver("570.172.08"), CONFIG, CONFIG, expect={"driver": {}}),
    Case("gpu-count", "a lost GPU", H100, lost(7), REPLACE, REPLACE, evidence="7 of 8 visible"),
    Case("gpu-count", "more than planned", H100, state(), CONFIG, CONFIG, expect={"gpu": {"count": 4}}),
    Case("gpu-count", "a garbled list", H100, says("nvidia-smi -L", 0, "GPU 0: NVIDIA"), INCONCLUSIVE, INCONCLUSIVE),
    Case("gpu-model", "another card", A100, state(), CONFIG, CONFIG, expect={"gpu": {"model": "A100-80GB", "count": 8}}),
    Case("gpu-model", "another device id", H100, state(), CONFIG, CONFIG, expect={"gpu": {"model": "H100-80GB", "pci_ids": ["10de:2335"]}}),
    Case("gpu-memory", "memory gone", H100, cell(2, "memory.total", "71000 MiB"), REPLACE, REPLACE, evidence="GPU 2"),
    Case("gpu-memory", "more than planned", H100, state(), CONFIG, CONFIG, expect={"gpu": {"memory_mib": 40960}}),
    Case("gpu-memory", "an answer to another question", H100, says("nvidia-smi --query-gpu=index,uuid", 0, "0, NVIDIA H100 80GB HBM3, 81559 MiB, 550.90.07\n"), INCONCLUSIVE, INCONCLUSIVE, evidence="answered 5 fields with"),
    Case("gpu-memory", "a figure that is none", H100, cell(0, "memory.total", "achtzig"), INCONCLUSIVE, INCONCLUSIVE, evidence="achtzig"),
    Case("vbios", "two of them", H100, cell(3, "vbios_version", "96.00.99.00.02"), WARNING, HEALTHY),
    Case("persistence", "cannot be switched on", H100, both(cell(0, "persistence_mode", "Disabled"), says("nvidia-smi -pm 1", 4, "no permission")), WARNING, HEALTHY),
    Case("mig", "left on", H100, cell(0, "mig.mode.current", "Enabled"), REBOOT, REBOOT),
    Case("mig", "on where it is not planned", H100, both(cell(0, "mig.mode.current", "Enabled"), cell(0, "mig.mode.pending", "Enabled")), CONFIG, CONFIG),
    Case("mig", "a layout that was not made", MIG, says("nvidia-smi -L", 0, "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-00000000-1111-4222-8333-000000000000)\n"), CONFIG, CONFIG),
    Case("mig", "waiting for a reset", MIG, cell(0, "mig.mode.current", "Disabled"), REBOOT, REBOOT, evidence="pending"),
    Case("recovery-action", "the driver asks for a reset", H100, both(cell(1, "gpu_recovery_action", "Reset"), detail(1, "recovery", "Reset")), REBOOT, REBOOT),
    Case("recovery-action", "a word nobody knows", H100, cell(1, "gpu_recovery_action", "Exorcise"), INCONCLUSIVE, INCONCLUSIVE),
    Case("recovery-action", "draining", H100, cell(1, "gpu_recovery_action", "Drain P2P"), WARNING, HEALTHY),
    Case("ecc", "uncorrected SRAM", H100, cell(1, "ecc.errors.uncorrected.volatile.sram", "1"), REPLACE, REPLACE),
    Case("ecc", "uncorrected DRAM", H100, cell(1, "ecc.errors.uncorrected.volatile.dram", "2"), REBOOT, REBOOT),
    Case("ecc", "only the sum is shown", T4, cell(0, "ecc.errors.uncorrected.volatile.total", "2"), REBOOT, REBOOT),
    Case("ecc", "the SRAM threshold", H100, detail(5, "threshold", "Yes"), REPLACE, REPLACE, evidence="GPU 5"),
    Case("ecc", "memory beyond repair", "g6e.12xlarge", detail(1, "unrepairable", "Yes"), REPLACE, REPLACE),
    Case("ecc", "switched off on HBM", H100, cell(0, "ecc.mode.current", "Disabled"), CONFIG, CONFIG),
    Case("ecc", "switched off on GDDR", L4, cell(0, "ecc.mode.current", "Disabled"), WARNING, HEALTHY),
    Case("ecc", "many corrected", H100, cell(0, "ecc.errors.corrected.volatile.sram", "10001"), WARNING, HEALTHY),
    Case("ecc", "a counter in words", H100, cell(0, "ecc.errors.uncorrected.volatile.sram", "null Fehler"), INCONCLUSIVE, INCONCLUSIVE),
    Case("row-remap", "pending", H100, cell(2, "remapped_rows.pending", "Yes"), REBOOT, REBOOT),
    Case("row-remap", "pending, as branch 535 says it", A100, cell(2, "remapped_rows.pending", "1"), REBOOT, REBOOT),
    Case("row-remap", "failed", H100, cell(2, "remapped_rows.failure", "Yes"), REPLACE, REPLACE),
    Case("row-remap", "too many", H100, cell(2, "remapped_rows.uncorrectable", "513"), REPLACE, REPLACE),
    Case("row-remap", "garbled", H100, cell(2, "remapped_rows.pending", "Vielleicht"), INCONCLUSIVE, INCONCLUSIVE),
    Case("retired-pages", "pending", T4, cell(0, "retired_pages.pending", "Yes"), REBOOT, REBOOT),
    Case("retired-pages", "sixty", V100, both(cell(0, "retired_pages.single_bit_ecc.count", "40"), cell(0, "retired_pages.double_bit.count", "20")), REPLACE, REPLACE),
    Case("retired-pages", "unreadable", T4, says("nvidia-smi --query-gpu=index,retired_pages", 1, "kaputt"), INCONCLUSIVE, INCONCLUSIVE),
    Case("pcie", "half the lanes", H100, cell(4, "pcie.link.width.current", "8"), REBOOT, REBOOT, evidence="GPU 4"),
    Case("pcie", "a slot of Gen3", H100, cell(4, "pcie.link.gen.max", "3"), REBOOT, REBOOT),
    Case("pcie", "garbled", H100, cell(4, "pcie.link.width.current", "breit"), INCONCLUSIVE, INCONCLUSIVE),
    Case("throttle", "power brake", H100, cell(0, "clocks_event_reasons.active", "0x0000000000000088"), REPLACE, REPLACE, evidence="HW power brake"),
    Case("throttle", "power brake, as branch 535 calls the field", A100, cell(0, "clocks_throttle_reasons.active", "0x0000000000000080"), REPLACE, REPLACE),
    Case("throttle", "warm", H100, cell(0, "clocks_event_reasons.active", "0x0000000000000020"), WARNING, HEALTHY),
    Case("throttle", "no mask", H100, cell(0, "clocks_event_reasons.active", "ja"), INCONCLUSIVE, INCONCLUSIVE),
    Case("temperature", "hot at idle", T4, cell(0, "temperature.gpu", "95"), REBOOT, REBOOT),
    Case("temperature", "no margin left at idle", H100, detail(0, "margin", "-1 C"), REBOOT, REBOOT),
    Case("temperature", "hot under load", T4, both(cell(0, "temperature.gpu", "95"), cell(0, "utilization.gpu", "99 %"), cell(0, "pcie.link.gen.current", "3")), WARNING, HEALTHY),
    Case("temperature", "garbled", T4, cell(0, "temperature.gpu", "heiß"), INCONCLUSIVE, INCONCLUSIVE),
    Case("fabric-manager", "service failed", A100, state(service="failed"), REBOOT, REBOOT),
    Case("fabric-manager", "fabric never completes", B200, state(fabric_state=("In Progress", "N/A")), REBOOT, REBOOT),
    Case("fabric-manager", "another version", H100, state(manager="575.57.08"), CONFIG, CONFIG),
    Case("fabric-manager", "nobody tells", A100, without("systemctl"), INCONCLUSIVE, INCONCLUSIVE),
    Case("nvlink", "links down", H100, gpu(3, links_down={2, 9}), REBOOT, REBOOT, evidence="GPU 3: 16 of 18"),
    Case("nvlink", "a link at half rate", H100, gpu(3, link_speed=13.281), REBOOT, REBOOT),
    Case("nvlink", "nothing printed", H100, says("nvidia-smi nvlink -s", 0, ""), INCONCLUSIVE, INCONCLUSIVE),
    Case("nvlink-errors", "recoveries", H100, cell(0, "Recovery", "3"), WARNING, HEALTHY),
    Case("topology", "a pair without NVLink", B200, cell(2, "topo", "NODE"), REBOOT, REBOOT, "standard"),
    Case("topology", "no matrix", B200, says("nvidia-smi topo -m", 0, "nichts"), INCONCLUSIVE, INCONCLUSIVE, "standard"),
    Case("fabric-devices", "an EFA missing", H100, state(nics=31), REPLACE, REPLACE),
    Case("fabric-devices", "a gVNIC missing", TCPXO, state(nics=7), REPLACE, REPLACE),
    Case("fabric-devices", "the EFA module missing", H100, file("/proc/modules", "nvidia 1 2 - Live 0x0\n"), CONFIG, CONFIG),
    Case("fabric-in-use", "no EFA provider", H100, says("fi_info", 61, "fi_getinfo: -61 (No data available)\n"), CONFIG, CONFIG, evidence="TCP"),
    Case("fabric-in-use", "a device that libfabric does not see", H100, says("fi_info", 0, fi_info(31)), CONFIG, CONFIG, evidence="31 domains"),
    Case("fabric-in-use", "no libfabric", H100, without("fi_info"), CONFIG, CONFIG),
    Case("fabric-in-use", "no NCCL plugin", H100, file("/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu/libnccl-net.so", None), WARNING, HEALTHY),
    Case("fabric-in-use", "a port down", IB, file("/sys/class/infiniband/mlx5_ib3/ports/1/state", "1: DOWN\n"), REPLACE, REPLACE, evidence="mlx5_ib3"),
    Case("fabric-in-use", "a port at half rate", ROCE, file("/sys/class/infiniband/mlx5_3/ports/1/rate", "200 Gb/sec (4X HDR)\n"), REPLACE, REPLACE),
    Case("fabric-in-use", "fi_info hangs", H100, hangs("fi_info"), INCONCLUSIVE, INCONCLUSIVE),
    Case("memlock", "a small limit", H100, file("/proc/self/limits", "Max locked memory         67108864            67108864            bytes\n"), CONFIG, CONFIG),
    Case("memlock", "unknown", H100, file("/proc/self/limits", None), WARNING, HEALTHY),
    Case("link-flaps", "a loose cable", IB, lambda m: m.log.extend(f"kernel: mlx5_core 0101:00:00.{n} ib0: Link down" for n in range(6)), REPLACE, REPLACE),
    Case("nic-speed", "too slow", H100, file("/sys/class/net/ens5/speed", "10000\n"), WARNING, HEALTHY, expect={"host": {"network_gbps": 100}}),
    Case("scratch-disks", "a disk missing", H100, drop_disk, REPLACE, REPLACE),
    Case("scratch-disks", "a disk missing beside a network volume of a like name", "a2-ultragpu-8g", drop_disk, REPLACE, REPLACE, evidence="7 local disks"),
    Case("scratch-disks", "small disks", H100, shrink_disks, CONFIG, CONFIG),
    Case("scratch-disks", "no disk to be seen", T4, lambda m: [m.files.pop(p) for p in list(m.files) if p.startswith("/sys/block")], INCONCLUSIVE, INCONCLUSIVE),
    Case("scratch-mount", "not mounted", H100, unmounted, CONFIG, CONFIG, evidence="root disk"),
    Case("scratch-mount", "memory", H100, mounted("41 20 0:9 / /scratch rw - tmpfs tmpfs rw"), CONFIG, CONFIG),
    Case("scratch-mount", "the root disk by another name", H100, mounted("41 20 259:1 /data /scratch rw - ext4 /dev/nvme0n1p1 rw"), CONFIG, CONFIG),
    Case("scratch-mount", "mounts that cannot be read", H100, file("/proc/self/mountinfo", None), INCONCLUSIVE, INCONCLUSIVE),
    Case("scratch-speed", "worn", H100, speed("fio", 200), REPLACE, REPLACE, "standard"),
    Case("scratch-speed", "slow", H100, speed("fio", 400), WARNING, HEALTHY, "standard"),
    Case("scratch-speed", "fio required and missing", H100, without("fio"), CONFIG, CONFIG, "standard", expect={"require": ["fio"]}),
    Case("scratch-speed", "no JSON", H100, says("fio", 0, "fio: bad option"), INCONCLUSIVE, INCONCLUSIVE, "standard"),
    Case("vcpus", "too few", H100, file("/sys/devices/system/cpu/online", "0-95\n"), CONFIG, CONFIG),
    Case("vcpus", "unknown", H100, file("/sys/devices/system/cpu/online", None), INCONCLUSIVE, INCONCLUSIVE),
    Case("host-memory", "half of it", H100, file("/proc/meminfo", "MemTotal:       1073741824 kB\n"), CONFIG, CONFIG),
    Case("host-memory", "unknown", H100, file("/proc/meminfo", None), INCONCLUSIVE, INCONCLUSIVE),
    Case("clock-sync", "free running", H100, says("timedatectl", 0, "no\n"), WARNING, HEALTHY),
    Case("disk-space", "full", H100, says("df", 0, "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/root 100000 99000 1000 99% /\n"), WARNING, HEALTHY),
    Case("stuck-processes", "state D", H100, says("ps", 0, "Ds nvidia-smi\nS bash\n"), WARNING, HEALTHY),
    Case("dcgm-1", "an isolating error on the second GPU", H100, dcgm(failed(80, 6)), REPLACE, REPLACE),
    Case("dcgm-1", "a reset", H100, dcgm(failed(85, 6)), REBOOT, REBOOT),
    Case("dcgm-1", "configuration", H100, dcgm(failed(55, 5)), CONFIG, CONFIG),
    Case("dcgm-1", "worth watching", H100, dcgm(failed(5, 1)), WARNING, HEALTHY),
    Case("dcgm-1", "another run", H100, dcgm_rc(217, "busy"), INCONCLUSIVE, INCONCLUSIVE),
    Case("dcgm-1", "required and missing", H100, without("dcgmi"), CONFIG, CONFIG, expect={"require": ["dcgm"]}),
    Case("dcgm-2", "a memory test without memory", H100, dcgm(failed(56, 4, "Pass"), 0), INCONCLUSIVE, INCONCLUSIVE, "standard"),
    Case("dcgm-2", "faulty memory", H100, dcgm(failed(52, 2), 205), REPLACE, REPLACE, "standard"),
    Case("dcgm-3", "weak", H100, dcgm(failed(63, 4)), REBOOT, REBOOT, "burn-in"),
    Case("memory-bandwidth", "slow HBM", H100, memory_test("1800.0 GB/s"), REPLACE, REPLACE, "burn-in"),
    Case("nvcc", "another major version", H100, state(nvcc="12.4"), CONFIG, CONFIG),
    Case("nvcc", "missing", H100, without("nvcc"), CONFIG, CONFIG),
    Case("nvcc", "garbled", H100, says("nvcc", 0, "nichts"), INCONCLUSIVE, INCONCLUSIVE),
    Case("nvcc", "missing where only a floor is named", H100, without("nvcc"), WARNING, HEALTHY, expect={"framework": {}}),
    Case("framework", "silently on the CPU", H100, torch(available=False, devices=[]), CONFIG, CONFIG, evidence="CPU"),
    Case("framework", "a CPU build", H100, torch(version="2.9.0+cpu", cuda=None, available=False), CONFIG, CONFIG),
    Case("framework", "another build", H100, torch(version="2.9.0+cu126", cuda="12.6"), CONFIG, CONFIG),
    Case("framework", "fewer GPUs", H100, torch(count=7), CONFIG, CONFIG),
    Case("framework", "not installed", H100, says("python3", 0, 'gputier-probe:{"import_error": "ModuleNotFoundError: No module named \'torch\'"}\n'), CONFIG, CONFIG),
    Case("framework", "error 802", H100, torch(available=False, error="RuntimeError: Error 802: system not yet initialized"), REBOOT, REBOOT),
    Case("framework", "never ends", H100, hangs("python3"), INCONCLUSIVE, INCONCLUSIVE),
    Case("cuda-kernel", "a GPU that cannot", H100, gpu(6, cuda_error="CUDA error: unspecified launch failure"), REBOOT, REBOOT, evidence="GPU 6"),
    Case("cuda-kernel", "a GPU that calculates wrongly", H100, gpu(6, cuda_error="wrong result: the product of ones"), REPLACE, REPLACE),
    Case("cuda-kernel", "a wheel without the architecture", B200, gpu(0, cuda_error="CUDA error: no kernel image is available for execution on the device"), CONFIG, CONFIG),
    Case("cuda-kernel", "without a framework", L4, says("@self kernel", 0, json.dumps({"library": None, "error": "libcuda.so.1: cannot open shared object file: No such file or directory", "code": None, "devices": []})), CONFIG, CONFIG, expect={"framework": {}}),
    Case("cuda-kernel", "fewer GPUs than the driver shows", L4, says("@self kernel", 0, json.dumps({"library": "x", "error": None, "code": None, "devices": [{"index": i, "ok": True, "error": None} for i in range(3)]})), REBOOT, REBOOT, evidence="3 of 4", expect={"framework": {}}),
    Case("cuda-kernel", "no answer of its process", L4, says("@self kernel", -11, ""), INCONCLUSIVE, INCONCLUSIVE, expect={"framework": {}}),
    Case("container", "no GPU inside", H100, both(lambda m: m.absent.discard("docker"), says("docker", 125, "", "could not select device driver with capabilities: [[gpu]]")), CONFIG, CONFIG, expect={"container": {"image": "cuda"}}),
    Case("container", "no engine", H100, state(), CONFIG, CONFIG, expect={"container": {"image": "cuda"}}),
    Case("container", "the engine hangs", H100, both(lambda m: m.absent.discard("docker"), hangs("docker")), INCONCLUSIVE, INCONCLUSIVE, expect={"container": {"image": "cuda"}}),
    Case("host-bandwidth", "slow PCIe", H100, speed("h2d", 30), REPLACE, REPLACE, "standard"),
    Case("host-bandwidth", "Gen3 under load", H100, cell(0, "utilization.gpu", "40 %"), REBOOT, REBOOT, "standard"),
    Case("host-bandwidth", "no table", H100, says("nvbandwidth", 0, "usage"), INCONCLUSIVE, INCONCLUSIVE, "standard"),
    Case("peer-bandwidth", "slow NVLink", H100, speed("d2d", 200), REPLACE, REPLACE, "standard"),
    Case("peer-bandwidth", "required and missing", H100, without("nvbandwidth"), CONFIG, CONFIG, "standard", expect={"require": ["nvbandwidth"]}),
    Case("all-reduce", "slow", H100, speed("all-reduce", 370), REBOOT, REBOOT, "standard"),
    Case("all-reduce", "wrong values", H100, speed("wrong", 3), REPLACE, REPLACE, "standard"),
    Case("peer-bandwidth", "dies", H100, says("nvbandwidth -t device_to_device", 1, "CUDA_ERROR"), INCONCLUSIVE, INCONCLUSIVE, "standard"),
    Case("host-bandwidth", "required and missing", H100, without("nvbandwidth"), CONFIG, CONFIG, "standard", expect={"require": ["nvbandwidth"]}),
    Case("all-reduce", "required and missing", H100, without("all_reduce_perf"), CONFIG, CONFIG, "standard", expect={"require": ["nccl-tests"]}),
    Case("all-reduce", "dies", H100, says("all_reduce_perf", 1, "NCCL WARN Cuda failure"), INCONCLUSIVE, INCONCLUSIVE, "standard"),
    Case("tcp-fallback", "sockets instead of EFA", H100, state(network="Using network Socket"), CONFIG, CONFIG, "standard", evidence="Socket"),
    Case("tcp-fallback", "no word of a network", H100, state(network="nothing"), INCONCLUSIVE, INCONCLUSIVE, "standard"),
    Case("efa-loopback", "refused", "p6-b200.48xlarge", says("fi_pingpong", 1, "unable to insert remote address"), CONFIG, CONFIG, "standard"),
    Case("efa-loopback", "slow", "p6-b200.48xlarge", speed("efa", 5), REPLACE, REPLACE, "standard"),
    Case("rdma-loopback", "slow", IB, speed("ib", 300), REPLACE, REPLACE, "standard"),
    Case("rdma-loopback", "dies", IB, says("ib_write_bw", 1, "Couldn't create QP"), INCONCLUSIVE, INCONCLUSIVE, "standard"),
    Case("rdma-loopback", "required and missing", IB, without("ib_write_bw"), CONFIG, CONFIG, "standard", expect={"require": ["ib_write_bw"]}),
    Case("all-reduce-pairs", "one peer, and it fails", TCPXO, peers({"b": 100.0}), INCONCLUSIVE, INCONCLUSIVE, "burn-in", expect={"fabric": {**PEERS, "peers": ["b"]}}),
    Case("all-reduce-pairs", "required and missing", TCPXO, without("mpirun"), CONFIG, CONFIG, "burn-in", expect={"fabric": PEERS, "require": ["mpirun"]}),
    Case("all-reduce-pairs", "this node is the bad one", TCPXO, peers({"b": 100.0, "c": None, "d": 180.0}), REPLACE, REPLACE, "burn-in", expect={"fabric": PEERS}),
    Case("all-reduce-pairs", "the other one is", TCPXO, peers({"b": 100.0, "c": 180.0, "d": 180.0}), WARNING, HEALTHY, "burn-in", expect={"fabric": PEERS}),
)  # fmt: skip
