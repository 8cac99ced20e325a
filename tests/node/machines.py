"""Machines that never were: a seam to the host which answers as real ones of their kind do.

What tools print follows real output of driver branches 535 to 595 (field names and formats change
between them); addresses of what was followed are in `SHAPES`. Everything made here is therefore of
origin `synthesised`; recordings of other origin are files in `recordings/`.
"""

# ruff: noqa: E501 (what tools print has long lines)
from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gputier.node import cards, versions
from gputier.node.host import Done, Host

SHAPES = {
    "nvlink -s": "https://github.com/NVIDIA/k8s-test-infra/issues/371 (GB200), "
    "https://github.com/Azure/azhpc-diagnostics/issues/73 (V100, inactive links)",
    "topo -m": "https://github.com/NVIDIA/nccl/issues/1617, https://github.com/vllm-project/vllm/issues/16336",
    "slice": "https://github.com/awslabs/amazon-eks-ami/issues/2443 (gr6f: NVIDIA L4-12Q)",
    "-q": "https://github.com/ollama/ollama/issues/6364 (535.161.08)",
    "diag": "https://github.com/NVIDIA/DCGM dcgmi/Diag.cpp, issues 198 and 284",
}
AWS_DISK, EBS = "Amazon EC2 NVMe Instance Storage", "Amazon Elastic Block Store"
GCP_DISK, PD = "nvme_card", "nvme_card-pd"
AZURE_DISK, AZURE_OS = "Microsoft NVMe Direct Disk", "MSFT NVMe Accelerator v1.0"
DISKS = {"aws": (AWS_DISK, EBS), "gcp": (GCP_DISK, PD), "azure": (AZURE_DISK, AZURE_OS)}
VENDOR = {"aws": "Amazon EC2", "gcp": "Google", "azure": "Microsoft Corporation"}
BANNER_CUDA = {535: "12.2", 550: "12.4", 570: "12.8", 580: "13.0", 595: "13.2"}


@dataclass(frozen=True)
class Kind:
    """One kind of machine, as a plan would name it."""

    name: str
    cloud: str
    card: str
    shown: str
    count: int
    memory: int
    driver: str
    vcpus: int
    host_gib: int
    disks: int = 0
    disk_gib: float = 0.0
    fabric: str = "none"
    interfaces: int = 0
    gbps: int = 0
    width: int = 16
    switches: int = 0
    mig: tuple[str, int] | None = None
    torch: str = "2.8.0+cu126"
    arm: bool = False
    sliced: bool = False


KINDS = {
    kind.name: kind
    for kind in (
        Kind("g4dn.xlarge", "aws", "T4", "Tesla T4", 1, 15360, "535.183.01", 4, 16, 1, 116.4, width=8),
        Kind("p3.16xlarge", "aws", "V100-16GB", "Tesla V100-SXM2-16GB", 8, 16384, "570.172.08", 64, 488),
        Kind("g5.48xlarge", "aws", "A10G", "NVIDIA A10G", 8, 23028, "550.163.01", 192, 768, 2, 3539.0, width=8),
        Kind("g6.12xlarge", "aws", "L4", "NVIDIA L4", 4, 23034, "580.95.05", 48, 192, 4, 875.4, width=8),
        Kind("gr6f.4xlarge", "aws", "L4", "NVIDIA L4-12Q", 1, 12288, "570.172.08", 16, 128, 1, 419.1, sliced=True),
        Kind("g6e.12xlarge", "aws", "L40S", "NVIDIA L40S", 4, 46068, "595.58.03", 48, 384, 2, 1769.5, width=8),
        Kind("p4d.24xlarge", "aws", "A100-40GB", "NVIDIA A100-SXM4-40GB", 8, 40960, "535.183.01", 96, 1152, 8, 931.3, "efa", 4, 100, switches=6),
        Kind("a2-ultragpu-8g", "gcp", "A100-80GB", "NVIDIA A100-SXM4-80GB", 8, 81920, "550.163.01", 96, 1360, 8, 375.0),
        Kind("Standard_ND96asr_v4", "azure", "A100-40GB", "NVIDIA A100-SXM4-40GB", 8, 40960, "550.163.01", 96, 900, 8, 894.0, "infiniband", 8, 200, switches=6),
        Kind("a2-highgpu-1g", "gcp", "A100-40GB", "NVIDIA A100-SXM4-40GB", 1, 40960, "570.172.08", 12, 85, mig=("1g.5gb", 7)),
        Kind("p5.48xlarge", "aws", "H100-80GB", "NVIDIA H100 80GB HBM3", 8, 81559, "580.95.05", 192, 2048, 8, 3539.0, "efa", 32, 100, switches=4, torch="2.9.0+cu130"),
        Kind("a3-megagpu-8g", "gcp", "H100-80GB", "NVIDIA H100 80GB HBM3", 8, 81559, "550.163.01", 208, 1872, 16, 375.0, "gpudirect-tcpxo", 8, 200, switches=4),
        Kind("Standard_ND96isr_H100_v5", "azure", "H100-80GB", "NVIDIA H100 80GB HBM3", 8, 81559, "570.172.08", 96, 1900, 8, 3500.0, "infiniband", 8, 400, switches=4),
        Kind("p5en.48xlarge", "aws", "H200-141GB", "NVIDIA H200", 8, 143771, "580.95.05", 192, 2048, 8, 3539.0, "efa", 16, 200, switches=4),
        Kind("a3-ultragpu-8g", "gcp", "H200-141GB", "NVIDIA H200", 8, 143771, "570.172.08", 224, 2952, 32, 375.0, "roce", 8, 400, switches=4),
        Kind("p6-b200.48xlarge", "aws", "B200", "NVIDIA B200", 8, 183359, "580.95.05", 192, 2048, 8, 3539.0, "efa", 8, 400, torch="2.9.0+cu130"),
        Kind("g7e.2xlarge", "aws", "RTX-PRO-6000-SE", "NVIDIA RTX PRO 6000 Blackwell Server Edition", 1, 97887, "580.95.05", 8, 64, 1, 1769.5, torch="2.9.0+cu130"),
        Kind("a4x-highgpu-4g", "gcp", "GB200", "NVIDIA GB200", 4, 189471, "595.58.03", 140, 884, 4, 3000.0, "roce", 4, 400, torch="2.9.0+cu130", arm=True),
    )
}  # fmt: skip


@dataclass
class Gpu:
    """One GPU's state; `fields` overrides what nvidia-smi answers to a field of this name."""

    index: int
    address: str
    uuid: str
    on_bus: bool = True
    visible: bool = True
    dead: bool = False
    links_down: set[int] = field(default_factory=set[int])
    link_speed: float | None = None
    fields: dict[str, str] = field(default_factory=dict[str, str])
    details: dict[str, str] = field(default_factory=dict[str, str])
    cuda_error: str | None = None


class Machine(Host):
    """A healthy machine of a kind, until something on it is changed."""

    def __init__(self, kind: str | Kind) -> None:
        super().__init__("/", {})
        self.kind = KINDS[kind] if isinstance(kind, str) else kind
        card = cards.by_text(self.kind.card)
        assert card
        self.card = card
        self.driver = self.kind.driver
        self.module_version = self.kind.driver
        self.open_module = card.module == "open" or card.arch in ("Hopper", "Ada")
        self.gpus = [_gpu(i) for i in range(self.kind.count)]
        self.log = [
            "2026-11-30T10:00:01+0000 host kernel: Linux version 6.8.0-aws",
            "2026-11-30T10:00:07+0000 host kernel: nvidia: loading out-of-tree module taints kernel.",
        ]
        self.late: list[str] = []
        self.service = "active"
        self.manager: str | None = self.driver
        self.fabric_state = ("Completed", "Success")
        self.nics = self.kind.interfaces
        self.torch: dict[str, Any] = {}
        self.nvcc: str | None = ".".join(self._cuda().split("."))
        self.absent: set[str] = {"dmesg", "mpirun", "nerdctl", "podman", "docker"}
        self.overrides: list[tuple[tuple[str, ...], Done]] = []
        self.dcgm: Callable[[int], tuple[int, str]] = lambda _: (0, diag_json([], self.kind.count))
        self.speeds = {
            "h2d": 55.0,
            "d2d": 391.0,
            "all-reduce": 475.0,
            "fio": 6000.0,
            "efa": 92.0,
            "ib": 395.0,
        }
        self.network = "Using network " + {"efa": "Libfabric", "gpudirect-tcpxo": "FasTrak"}.get(
            self.kind.fabric, "IB"
        )
        self.files = _files(self)
        self.links = _links(self)
        self.written: dict[str, str] = {}
        self.clock = 0.0
        self.calls: list[tuple[str, ...]] = []
        _speeds(self)

    def _cuda(self) -> str:
        local = versions.parse(self.kind.torch)
        return versions.cuda_of_index(local.local if local else None) or "12.6"

    def expectation(self) -> dict[str, Any]:
        """What the plan says of this kind."""
        kind, gib = self.kind, round(self.kind.disks * self.kind.disk_gib, 1)
        found: dict[str, Any] = {
            "gpu": {
                "model": kind.card,
                "count": kind.count,
                "memory_mib": kind.memory,
                "pci_ids": [f"10de:{self.card.ids[0]}"],
            },
            "driver": {"min": kind.driver.split(".")[0]},
            "cuda": {"min": self._cuda().split(".")[0] + ".0"},
            "framework": {"name": "torch", "version": kind.torch, "cuda": self._cuda()},
            "host": {"vcpus": kind.vcpus, "memory_gib": kind.host_gib},
            "machine": {"cloud": kind.cloud, "instance_type": kind.name, "usd_per_hour": 55.04},
        }
        if not kind.sliced:
            found["pcie"] = {"generation": self.card.pcie[0], "width": kind.width}
        if self.nvlinks:
            found["gpu"]["nvlinks"] = self.nvlinks
        if kind.mig:
            found["gpu"]["mig"] = {"profile": kind.mig[0], "count": kind.mig[1]}
        if kind.fabric != "none":
            found["fabric"] = {
                "kind": kind.fabric,
                "interfaces": kind.interfaces,
                "gbps": kind.gbps,
            }
        if kind.disks:
            found["scratch"] = {"count": kind.disks, "gib": gib, "mount": "/scratch"}
        return found

    @property
    def nvlinks(self) -> int:
        return self.card.nvlinks if self.kind.count > 1 else 0

    @property
    def branch(self) -> int:
        return int(self.driver.split(".")[0])

    @property
    def seen(self) -> list[Gpu]:
        return [gpu for gpu in self.gpus if gpu.visible and gpu.on_bus]

    # --- the seam ---------------------------------------------------------------------------

    def which(self, command: str) -> str | None:
        return None if command in self.absent else command

    def run(
        self,
        argv: Sequence[str],
        limit: float,
        env: Mapping[str, str] | None = None,  # noqa: ARG002 (the seam's shape)
        during: Callable[[], None] | None = None,
    ) -> Done:
        key = tuple(argv)
        self.calls.append(key)
        if argv[0] in self.absent or (argv[0].startswith("/") and argv[0] not in self.files):
            return Done(key, None, "", "", 0.0, "missing")
        if during:
            during()
        for prefix, done in self.overrides:
            if begins(key, prefix):
                self.clock += min(limit, done.seconds)
                return done._replace(argv=key, seconds=min(limit, done.seconds))
        rc, out = self._answer(list(argv))
        self.clock += 0.1
        state = "missing" if rc == -127 else "exited"
        return Done(key, None if rc == -127 else rc, out, "", 0.1, state)

    def says(self, command: str, rc: int, out: str = "", err: str = "") -> None:
        """From now on commands that start like this end so."""
        self.overrides.insert(0, (tuple(command.split()), Done((), rc, out, err, 0.1, "exited")))

    def hangs(self, command: str) -> None:
        """From now on commands that start like this never end."""
        self.overrides.insert(0, (tuple(command.split()), Done((), None, "", "", 1e9, "timeout")))

    def read(self, path: str) -> str | None:
        return self.written.get(path, self.files.get(path))

    def names(self, path: str) -> tuple[str, ...]:
        base = path.rstrip("/") + "/"
        every = [*self.files, *self.links, *self.written]
        return tuple(sorted({p[len(base) :].split("/")[0] for p in every if p.startswith(base)}))

    def exists(self, path: str) -> bool:
        return path in self.files or path in self.written or bool(self.names(path))

    def link(self, path: str) -> str | None:
        return self.links.get(path)

    def write(self, path: str, text: str, mode: int = 0o644) -> None:  # noqa: ARG002 (the seam's shape)
        self.written[path] = text

    def remove(self, path: str) -> None:
        self.written.pop(path, None)
        self.files.pop(path, None)

    def now(self) -> float:
        return 1796040000.0 + self.clock

    def monotonic(self) -> float:
        return self.clock

    def sleep(self, seconds: float) -> None:
        self.clock += seconds

    # --- commands ---------------------------------------------------------------------------

    def _answer(self, argv: list[str]) -> tuple[int, str]:
        name, rest = argv[0].rsplit("/", 1)[-1], argv[1:]
        table: dict[str, Callable[[list[str]], tuple[int, str]]] = {
            "nvidia-smi": self._smi,
            "lspci": lambda _: (0, lspci(self)),
            "journalctl": self._journal,
            "systemctl": lambda _: (0 if self.service == "active" else 3, self.service + "\n"),
            "nv-fabricmanager": lambda _: (0, f"Fabric Manager version is : {self.manager}\n"),
            "fi_info": lambda _: (
                (0, fi_info(self.nics))
                if self.nics
                else (61, "fi_getinfo: -61 (No data available)\n")
            ),
            "dcgmi": lambda rest: self.dcgm(int(rest[rest.index("-r") + 1])),
            "nvcc": self._nvcc,
            "python3": lambda _: (0, self._torch()),
            "@self": lambda _: (0, self._kernel()),
            "nvbandwidth": self._nvbandwidth,
            "all_reduce_perf": lambda _: (0, all_reduce(self)),
            "fio": lambda _: (
                0,
                json.dumps({"jobs": [{"read": {"bw_bytes": self.speeds["fio"] * 1e6}}]}),
            ),
            "fi_pingpong": lambda _: (
                0,
                f"1m      10      =10     20m         0.00s  {self.speeds['efa'] * 125:.2f}      88.6       0.01\n",
            ),
            "ib_write_bw": lambda _: (
                0,
                f" 8388608    5000             {self.speeds['ib']:.2f}             {self.speeds['ib']:.2f}   0.005\n",
            ),
            "df": lambda _: (
                0,
                "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/nvme0n1p1 100000000 40000000 60000000 40% /\n",
            ),
            "ps": lambda _: (0, "Ss systemd\nS kworker/0:0\nR ps\n"),
            "timedatectl": lambda _: (0, "yes\n"),
            "docker": lambda _: (0, self._listing()),
            "mokutil": lambda _: (0, "SecureBoot disabled\n"),
            "modinfo": self._modinfo,
            "mpirun": lambda _: (0, all_reduce(self)),
        }
        if name not in table:
            return -127, ""
        return table[name](rest)

    def _journal(self, _: list[str]) -> tuple[int, str]:
        """The log grows: what is `late` is not there yet when it is read first."""
        text = "\n".join(self.log) + "\n"
        self.log += self.late
        return 0, text

    def _smi(self, rest: list[str]) -> tuple[int, str]:
        if rest[:1] == ["-L"]:
            return 0, self._listing()
        if rest[:1] == ["-q"]:
            return 0, details(self)
        if rest[:2] == ["nvlink", "-s"]:
            return self._nvlink()
        if rest[:2] == ["nvlink", "-e"]:
            return 0, nvlink_errors(self)
        if rest[:2] == ["topo", "-m"]:
            return 0, topology(self)
        if rest[:1] == ["-pm"]:
            for gpu in self.gpus:
                gpu.fields["persistence_mode"] = "Enabled"
            return 0, "Enabled persistence mode\nAll done.\n"
        if rest and rest[0].startswith("--query-"):
            what, names = rest[0][len("--query-") :].split("=")
            return query(self, what, names.split(","))
        cuda = BANNER_CUDA.get(self.branch, "13.3")
        return (
            0,
            f"| NVIDIA-SMI {self.driver}  Driver Version: {self.driver}  CUDA Version: {cuda}  |\n",
        )

    def _listing(self) -> str:
        rows: list[str] = []
        for gpu in self.seen:
            rows.append(f"GPU {gpu.index}: {self.kind.shown} (UUID: {gpu.uuid})")
            if self.kind.mig and gpu.fields.get("mig.mode.current", "Enabled") == "Enabled":
                profile, many = self.kind.mig
                rows += [
                    f"  MIG {profile}     Device  {n}: (UUID: MIG-{gpu.uuid[4:-2]}{n:02})"
                    for n in range(many)
                ]
        return "\n".join(rows) + "\n"

    def _nvlink(self) -> tuple[int, str]:
        if self.kind.mig:
            return 0, "NVML: Unable to retrieve NVLink information as the GPU is in MIG mode\n"
        rows: list[str] = []
        for gpu in self.seen:
            rows.append(f"GPU {gpu.index}: {self.kind.shown} (UUID: {gpu.uuid})")
            for n in range(self.card.nvlinks):
                speed = gpu.link_speed or self.card.link_gb_s
                rows.append(
                    f"\t Link {n}: " + ("<inactive>" if n in gpu.links_down else f"{speed} GB/s")
                )
        return 0, "\n".join(rows) + "\n"

    def _nvcc(self, _: list[str]) -> tuple[int, str]:
        if self.nvcc is None:
            return -127, ""
        return (
            0,
            f"nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release {self.nvcc}, V{self.nvcc}.85\n",
        )

    def _torch(self) -> str:
        gpus = self.seen[:1] if self.kind.mig else self.seen
        found: dict[str, Any] = {
            "version": self.kind.torch,
            "cuda": self._cuda(),
            "available": True,
            "count": len(gpus),
            "archs": ["sm_90"],
            "nccl": "(2, 27, 3)",
            "error": None,
            "devices": [
                {
                    "index": i,
                    "name": self.kind.shown,
                    "capability": [9, 0],
                    "compared": True,
                    "ok": gpu.cuda_error is None,
                    "error": gpu.cuda_error,
                }
                for i, gpu in enumerate(gpus)
            ],
        }
        return "warming up\ngputier-probe:" + json.dumps({**found, **self.torch}) + "\n"

    def _kernel(self) -> str:
        gpus = self.seen[:1] if self.kind.mig else self.seen
        return json.dumps(
            {
                "library": "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
                "error": None,
                "code": None,
                "devices": [
                    {
                        "index": i,
                        "name": self.kind.shown,
                        "ok": gpu.cuda_error is None,
                        "error": gpu.cuda_error,
                        "code": None,
                    }
                    for i, gpu in enumerate(gpus)
                ],
            }
        )

    def _nvbandwidth(self, rest: list[str]) -> tuple[int, str]:
        rows: list[str] = []
        for test in rest[1 : rest.index("-i")]:
            speed = self.speeds["d2d" if "device_to_device" in test else "h2d"]
            rows += [f"Running {test}.", f"memcpy CE {test} bandwidth (GB/s)"]
            rows.append(" " * 10 + "         ".join(str(gpu.index) for gpu in self.seen))
            rows.append(" 0     " + "     ".join(f"{speed:.2f}" for _ in self.seen))
            rows.append(f"SUM {test} {speed * len(self.seen):.2f}")
        return 0, "nvbandwidth Version: v0.8\n" + "\n".join(rows) + "\n"

    def _modinfo(self, rest: list[str]) -> tuple[int, str]:
        if "license" in rest:
            return 0, ("Dual MIT/GPL" if self.open_module else "NVIDIA") + "\n"
        return 0, self.module_version + "\n"

    def copy(self) -> Machine:
        return copy.deepcopy(self)


def begins(key: tuple[str, ...], prefix: tuple[str, ...]) -> bool:
    """Whether a command starts like this; the last word may be the start of a longer one."""
    *whole, last = prefix
    if len(key) < len(prefix) or list(key[: len(whole)]) != whole:
        return False
    return key[len(whole)].startswith(last)


def _gpu(index: int) -> Gpu:
    return Gpu(
        index,
        f"0000:{0x10 + index * 0xB:02x}:00.0",
        f"GPU-{index:08x}-1111-4222-8333-00000000000{index}",
    )


def _speeds(machine: Machine) -> None:
    """Healthy figures of the card: a little above what public tools ask."""
    if machine.card.arch in ("Ampere", "Volta"):
        machine.speeds.update({"h2d": 25.0, "d2d": 270.0, "all-reduce": 234.0})
    if machine.kind.gbps == 200:
        machine.speeds["ib"] = 196.0


def _files(machine: Machine) -> dict[str, str]:
    kind = machine.kind
    local, volume = DISKS[kind.cloud]
    flavour = (f"NVIDIA UNIX Open Kernel Module for x86_64  {machine.driver}  Release Build"
               if machine.open_module else f"NVIDIA UNIX x86_64 Kernel Module  {machine.driver}  Tue")  # fmt: skip
    found = {
        "/proc/driver/nvidia/version": f"NVRM version: {flavour}\nGCC version:  gcc 13\n",
        "/proc/modules": "nvidia_uvm 1 0 - Live 0x0\nnvidia 1 2 - Live 0x0\nefa 1 0 - Live 0x0\nib_uverbs 1 0 - Live 0x0\n",
        "/sys/devices/system/cpu/online": f"0-{kind.vcpus - 1}\n",
        "/proc/meminfo": f"MemTotal:       {int(kind.host_gib * 0.975 * 2**20)} kB\n",
        "/proc/sys/kernel/random/boot_id": "11111111-aaaa-4bbb-8ccc-000000000001\n",
        "/proc/sys/kernel/osrelease": "6.8.0-1021-aws\n",
        "/proc/sys/kernel/hostname": "ip-10-1-2-3\n",
        "/proc/self/limits": "Max locked memory         unlimited            unlimited            bytes\n",
        "/etc/os-release": 'PRETTY_NAME="Ubuntu 24.04.3 LTS"\n',
        "/sys/class/dmi/id/sys_vendor": VENDOR[kind.cloud] + "\n",
        "/var/lib/cloud/data/instance-id": "i-0123456789abcdef0\n",
        "/sys/block/nvme0n1/size": "209715200\n",
        "/sys/block/nvme0n1/device/model": volume + "\n",
    }
    mounts = ["20 1 259:1 / / rw - ext4 /dev/nvme0n1p1 rw", "21 20 0:5 / /run rw - tmpfs tmpfs rw"]
    for n in range(1, kind.disks + 1):
        found[f"/sys/block/nvme{n}n1/size"] = f"{int(kind.disk_gib * 2**30 / 512)}\n"
        found[f"/sys/block/nvme{n}n1/device/model"] = local + "\n"
        found[f"/sys/block/md127/slaves/nvme{n}n1/size"] = "x"
    if kind.disks:
        mounts.append("40 20 9:127 / /scratch rw - xfs /dev/md127 rw")
    found["/proc/self/mountinfo"] = "\n".join(mounts) + "\n"
    found.update(_fabric_files(kind))
    return found


def _fabric_files(kind: Kind) -> dict[str, str]:
    found: dict[str, str] = {}
    if kind.fabric == "efa":
        found["/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu/libnccl-net.so"] = ""
    if kind.fabric == "gpudirect-tcpxo":
        found["/var/lib/tcpxo/lib64/libnccl-net.so"] = ""
    for n in range(kind.interfaces):
        if kind.fabric in ("infiniband", "roce"):
            base = f"/sys/class/infiniband/mlx5_{'ib' if kind.cloud == 'azure' else ''}{n}/ports/1"
            found[f"{base}/link_layer"] = (
                "InfiniBand\n" if kind.fabric == "infiniband" else "Ethernet\n"
            )
            found[f"{base}/state"] = "4: ACTIVE\n"
            found[f"{base}/rate"] = f"{kind.gbps} Gb/sec (4X NDR)\n"
    if kind.cloud == "azure":
        base = "/sys/class/infiniband/mlx5_an0/ports/1"
        found.update(
            {
                f"{base}/link_layer": "Ethernet\n",
                f"{base}/state": "4: ACTIVE\n",
                f"{base}/rate": "100 Gb/sec\n",
            }
        )
    return found


def _links(machine: Machine) -> dict[str, str]:
    return {"/sys/dev/block/259:1": "../../devices/pci0/nvme/nvme0/nvme0n1/nvme0n1p1",
            "/sys/dev/block/9:127": "../../devices/virtual/block/md127"}  # fmt: skip


# --- what tools print ---------------------------------------------------------------------------


def lspci(machine: Machine) -> str:
    """`lspci -Dnnk`: GPUs, NVSwitches, NICs."""
    rows: list[str] = []
    for gpu in machine.gpus:
        if gpu.on_bus:
            rev = "ff" if gpu.dead else "a1"
            rows.append(
                f"{gpu.address} 3D controller [0302]: NVIDIA Corporation {machine.card.name} [10de:{machine.card.ids[0]}] (rev {rev})"
            )
            rows.append("\tKernel driver in use: nvidia")
    for n in range(machine.kind.switches):
        rows.append(f"0000:e{n}:00.0 Bridge [0680]: NVIDIA Corporation Device [10de:22a3] (rev a1)")
    for n in range(machine.nics):
        if machine.kind.fabric == "efa":
            rows.append(
                f"0000:{0x80 + n:02x}:1b.0 Ethernet controller [0200]: Amazon.com, Inc. Elastic Fabric Adapter (EFA) [1d0f:efa2]"
            )
        if machine.kind.fabric.startswith("gpudirect"):
            rows.append(
                f"0000:{0x80 + n:02x}:00.0 Ethernet controller [0200]: Google, Inc. Compute Engine Virtual Ethernet [gVNIC] [1ae0:0042]"
            )
    return "\n".join(rows) + "\n"


def fi_info(many: int) -> str:
    rows: list[str] = []
    for fabric in ("efa-direct", "efa"):
        for n in range(many):
            rows += [
                f"provider: {'efa'}",
                f"    fabric: {fabric}",
                f"    domain: rdmap{n}s0-rdm",
                "    version: 203.10",
                "    type: FI_EP_RDM",
            ]
    return "\n".join(rows) + "\n"


def all_reduce(machine: Machine) -> str:
    return (f"# nThread 1 nGpus {len(machine.seen)}\nhost:1:1 [0] NCCL INFO {machine.network}\n"
            f"  8589934592    2147483648     float     sum      -1    31234  275.01  {machine.speeds['all-reduce']}      0\n"
            f"# Out of bounds values : {int(machine.speeds.get('wrong', 0))} OK\n# Avg bus bandwidth    : {machine.speeds['all-reduce']}\n")  # fmt: skip


def topology(machine: Machine) -> str:
    names = [f"GPU{gpu.index}" for gpu in machine.seen]
    rows = ["\t" + "\t".join(names) + "\tCPU Affinity\tNUMA Affinity"]
    for gpu in machine.seen:
        path = gpu.fields.get("topo", f"NV{machine.card.nvlinks}")
        cells = [" X " if f"GPU{gpu.index}" == name else path for name in names]
        rows.append(f"GPU{gpu.index}\t" + "\t".join(cells) + "\t0-47\t0")
    return "\n".join(rows) + "\n\nLegend:\n  X    = Self\n"


def nvlink_errors(machine: Machine) -> str:
    rows: list[str] = []
    for gpu in machine.seen:
        rows.append(f"GPU {gpu.index}: {machine.kind.shown} (UUID: {gpu.uuid})")
        for n in range(machine.card.nvlinks):
            rows += [
                f"\t Link {n}: {kind} Errors: {gpu.fields.get(kind, '0')}"
                for kind in ("Replay", "Recovery", "CRC")
            ]
    return "\n".join(rows) + "\n"


def query(machine: Machine, what: str, names: list[str]) -> tuple[int, str]:
    """`--query-gpu` and `--query-remapped-rows`; a field that the branch lacks is refused."""
    for name in names:
        if value(machine, machine.gpus[0], name) is None:
            return 2, f'Field "{name}" is not a valid field to query.\n'
    rows = [", ".join(str(value(machine, gpu, name)) for name in names) for gpu in machine.seen]
    return 0, "\n".join(rows) + "\n"


def value(machine: Machine, gpu: Gpu, name: str) -> str | None:
    """One field of one GPU; None where this branch does not know the field."""
    if name in gpu.fields:
        return gpu.fields[name]
    kind, card = machine.kind, machine.card
    nothing = "[N/A]"
    hidden = kind.sliced
    ecc = nothing if hidden else "0"
    remap = nothing if kind.mig or hidden or not card.remap else "0"
    flag = nothing if remap == nothing else ("No" if machine.branch >= 550 else "0")
    retired = nothing if card.remap else "0"
    table = {
        "index": str(gpu.index), "uuid": gpu.uuid, "name": kind.shown,
        "pci.bus_id": "0000" + gpu.address.upper(), "memory.total": f"{kind.memory} MiB",
        "driver_version": machine.driver, "vbios_version": "96.00.74.00.1A",
        "persistence_mode": "Enabled",
        "mig.mode.current": ("Enabled" if kind.mig else "Disabled") if card.mig else nothing,
        "mig.mode.pending": ("Enabled" if kind.mig else "Disabled") if card.mig else nothing,
        "ecc.mode.current": nothing if hidden else "Enabled",
        "remapped_rows.uncorrectable": remap, "remapped_rows.pending": flag,
        "remapped_rows.failure": flag,
        "retired_pages.single_bit_ecc.count": retired, "retired_pages.double_bit.count": retired,
        "retired_pages.pending": nothing if card.remap else "No",
        "temperature.gpu": "34", "utilization.gpu": "0 %", "utilization.memory": "0 %",
        "power.draw": "70.12 W", "power.limit": "700.00 W", "clocks.sm": "1980 MHz",
        "memory.used": "1 MiB",
        "pcie.link.gen.current": nothing if hidden else "1",
        "pcie.link.gen.max": nothing if hidden else str(card.pcie[0]),
        "pcie.link.width.current": nothing if hidden else str(kind.width),
        "pcie.link.width.max": nothing if hidden else "16",
    }  # fmt: skip
    if name in table:
        return table[name]
    if name.startswith("ecc.errors."):
        return ecc
    reasons = "clocks_event_reasons" if machine.branch >= 550 else "clocks_throttle_reasons"
    if name == f"{reasons}.active":
        return "0x0000000000000001"
    if name == "gpu_recovery_action":
        return "None" if machine.branch >= 570 else None
    if name in ("fabric.state", "fabric.status"):
        state = dict(zip(("fabric.state", "fabric.status"), machine.fabric_state, strict=True))
        return state[name] if has_fabric(machine) else nothing
    return None


def has_fabric(machine: Machine) -> bool:
    return machine.card.capability >= 9 and machine.card.nvlinks > 0 and machine.kind.count > 1


def details(machine: Machine) -> str:
    """`nvidia-smi -q`, the sections that checks read; newer branches split SRAM errors in two."""
    rows = [
        "==============NVSMI LOG==============",
        "",
        f"Driver Version : {machine.driver}",
        f"Attached GPUs : {len(machine.seen)}",
    ]
    for gpu in machine.seen:
        tell = gpu.details
        rows += [
            f"GPU 0000{gpu.address.upper()}",
            f"    Product Name                          : {machine.kind.shown}",
        ]
        if machine.branch >= 570:
            rows.append(
                f"    GPU Recovery Action                   : {tell.get('recovery', 'None')}"
            )
        zero = "N/A" if machine.kind.sliced else "0"
        split = [" Parity", " SEC-DED"] if machine.branch >= 550 else [""]
        rows += [
            "    ECC Mode",
            f"        Current                           : {'N/A' if machine.kind.sliced else gpu.fields.get('ecc.mode.current', 'Enabled')}",
            "    ECC Errors",
        ]
        for when in ("Volatile", "Aggregate"):
            rows.append(f"        {when}")
            rows += [f"            SRAM Uncorrectable{part}         : {zero}" for part in split]
            rows += [
                f"            SRAM Correctable          : {zero}",
                f"            DRAM Uncorrectable                : {zero}",
            ]
            if when == "Aggregate" and machine.branch >= 550:
                rows.append(
                    f"            SRAM Threshold Exceeded       : {tell.get('threshold', 'N/A' if machine.kind.sliced else 'No')}"
                )
        if machine.branch >= 595:
            rows += [
                "        Channel Repair Pending            : No",
                f"        Unrepairable Memory               : {tell.get('unrepairable', 'No')}",
            ]
        rows += ["    Temperature", "        GPU Current Temp                  : 34 C"]
        if machine.branch >= 570 and machine.card.capability >= 9:
            rows += [
                f"        GPU T.Limit Temp                  : {tell.get('margin', '51 C')}",
                "        GPU Slowdown T.Limit Temp         : -2 C",
            ]
        else:
            rows.append("        GPU Slowdown Temp                 : 90 C")
        if has_fabric(machine):
            state, status = machine.fabric_state
            rows += [
                "    Fabric",
                f"        State                             : {state}",
                f"        Status                            : {status}",
            ]
        else:
            rows += [
                "    Fabric",
                "        State                             : N/A",
                "        Status                            : N/A",
            ]
    return "\n".join(rows) + "\n"


def diag_json(results: list[dict[str, Any]], gpus: int, old: bool = False) -> str:
    """`dcgmi diag -j` of DCGM 4, or of 3 with `old`; each result is one of the test `memory`."""
    fine = [{"entity_group": "GPU", "entity_id": i, "status": "Pass"} for i in range(gpus)]
    tests = [{"name": "Software" if not old else "Denylist", "results": fine}]
    if results:
        tests.append({"name": "memory", "results": results})
    root = "DCGM GPU Diagnostic" if old else "DCGM Diagnostic"
    return json.dumps(
        {root: {"test_categories": [{"category": "Hardware", "tests": tests}]}}, indent=2
    )
