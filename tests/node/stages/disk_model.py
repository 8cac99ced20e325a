"""A machine's disks: attached, formatted, put together, mounted, and gone with a stop."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tests.node.stages.state import Answer, State

from gputier.node import fstab

GIB = 2**30
AWS_DISK, EBS = "Amazon EC2 NVMe Instance Storage", "Amazon Elastic Block Store"
ZEROS = "\0" * 4096
COMMANDS = ("blkid", "dd", "mount", "mountpoint", "mkdir", "chmod", "udevadm", "mdadm", "mkfs.xfs",
            "mkfs.ext4", "xfs_info", "xfs_growfs", "dumpe2fs", "resize2fs")  # fmt: skip


@dataclass
class Device:
    """What is on a device: signature, and places that hold data, MiB."""

    size: int
    kind: str = ""
    label: str = ""
    uuid: str = ""
    table: str = ""
    filled: int = 0
    written: set[int] = field(default_factory=set[int])
    broken: bool = False


@dataclass
class Point:
    point: str
    source: str
    kind: str


class Disks(State):
    """A root volume of AWS; everything else is added."""

    def __init__(self, commands: tuple[str, ...] = ()) -> None:
        super().__init__((*COMMANDS, *commands))
        self.files["/etc/fstab"] = "LABEL=cloudimg-rootfs / ext4 discard 0 1\n"
        self.devices: dict[str, Device] = {}
        # What an array holds while nobody runs it.
        self.kept: dict[int, Device] = {}
        self.mounts: list[Point] = [Point("/", "/dev/nvme0n1p1", "ext4")]
        self.add("nvme0n1", EBS, 100)
        self.files["/sys/block/nvme0n1/nvme0n1p1/size"] = "1"

    def read(self, path: str) -> str | None:
        if path == "/proc/self/mountinfo":
            rows = enumerate(self.mounts)
            return "".join(
                f"{n + 20} 1 0:0 / {fstab.escaped(m.point)} rw - {m.kind} {m.source} rw\n"
                for n, m in rows
            )
        return super().read(path)

    def add(self, name: str, model: str, gib: float, serial: str = "") -> Device:
        """Attach a disk."""
        self.files[f"/sys/block/{name}/size"] = f"{int(gib * GIB / 512)}\n"
        self.files[f"/sys/block/{name}/device/model"] = model + "\n"
        if serial:
            self.files[f"/sys/block/{name}/device/serial"] = serial + "\n"
        self.devices[f"/dev/{name}"] = Device(int(gib * GIB))
        return self.devices[f"/dev/{name}"]

    def detach(self, name: str) -> None:
        self.devices.pop(f"/dev/{name}", None)
        for path in [path for path in self.files if path.startswith(f"/sys/block/{name}/")]:
            del self.files[path]

    def attach(self, count: int, model: str = AWS_DISK, gib: float = 900) -> None:
        """Attach that many disks, those of the instance store unless another model is named."""
        for n in range(1, count + 1):
            self.add(f"nvme{n}n1", model, gib)

    def reboot(self) -> None:
        """Mounts, arrays and /run are gone; udev assembles arrays again, fstab mounts."""
        self._unmount()
        for name in [n for n in self.devices if n.startswith("/dev/md")]:
            inside = self.devices.pop(name)
            for disk in self._slaves(name.rsplit("/", 1)[-1]):
                self.devices[f"/dev/{disk}"].filled = id(inside)
                self.kept[id(inside)] = inside
        self._no_arrays()
        members = [n for n, d in self.devices.items() if d.kind == "linux_raid_member"]
        if members:
            # Without mdadm.conf it comes back under this number
            # (github.com/aws/opsworks-cookbooks/issues/188).
            self._array("md127", [m.rsplit("/", 1)[-1] for m in members])
        for line in self.files["/etc/fstab"].splitlines():
            cells = line.split()
            if fstab.is_ours(cells):
                self._mount([fstab.unescaped(cells[1])])

    def stop_and_start(self) -> None:
        """Another host: local disks are blank, the root disk and volumes are as they were."""
        self._unmount()
        for name, device in list(self.devices.items()):
            model = self.files.get(f"/sys/block/{name.rsplit('/', 1)[-1]}/device/model", "")
            if name.startswith("/dev/md"):
                del self.devices[name]
            elif model.startswith(AWS_DISK):
                self.devices[name] = Device(device.size)
        self._no_arrays()
        self.reboot()

    def _unmount(self) -> None:
        self.mounts = self.mounts[:1]
        self.drop("/run/")
        self.drop("/dev/char/")

    def _no_arrays(self) -> None:
        self.drop("/sys/block/md")
        for path in [path for path in self.files if "/holders/" in path]:
            del self.files[path]

    def _blkid(self, rest: list[str]) -> Answer:
        device = self.devices.get(rest[-1])
        if device is None or device.broken or not (device.kind or device.table):
            return 2, "", ""
        cells = {"LABEL": device.label, "UUID": device.uuid, "TYPE": device.kind,
                 "PTTYPE": device.table}  # fmt: skip
        shown = "".join(f"{key}={value}\n" for key, value in cells.items() if value)
        return 0, f"DEVNAME={rest[-1]}\n{shown}", ""

    def _dd(self, rest: list[str]) -> Answer:
        options = dict(word.split("=", 1) for word in rest)
        device = self.devices.get(options["if"])
        if device is None:
            return 1, "", f"dd: failed to open '{options['if']}': No such file or directory"
        if device.broken:
            return 1, "", f"dd: error reading '{options['if']}': Input/output error"
        place = int(options.get("skip", "0"))
        return 0, "data" if place in device.written else ZEROS, ""

    def _mkfs(self, kind: str, rest: list[str], force: str) -> Answer:
        device = self.devices.get(rest[-1])
        if device is None:
            return 1, "", f"{rest[-1]}: No such file or directory"
        if (device.kind or device.table) and force not in rest:
            return 1, "", f"mkfs.{kind}: {rest[-1]} appears to contain an existing filesystem"
        options = " ".join(rest)
        found = re.search(r"(?:uuid=|-U )(\S+)", options)
        label = re.search(r"-L (\S+)", options)
        assert found
        assert label
        assert kind != "xfs" or len(label[1]) <= 12, "XFS takes no longer label"
        device.kind, device.label, device.uuid = kind, label[1], found[1]
        device.filled, device.table = device.size, ""
        return 0, "", ""

    def _mkfs_xfs(self, rest: list[str]) -> Answer:
        return self._mkfs("xfs", rest, "-f")

    def _mkfs_ext4(self, rest: list[str]) -> Answer:
        return self._mkfs("ext4", rest, "-F")

    def _mdadm(self, rest: list[str]) -> Answer:
        disks = [word.rsplit("/", 1)[-1] for word in rest if word.startswith("/dev/nvme")]
        if rest[0] == "--stop":
            self.devices.pop(rest[1], None)
            self._no_arrays()
            return 0, "", ""
        members = [self.devices[f"/dev/{disk}"] for disk in disks]
        if rest[0] == "--assemble":
            if not all(d.kind == "linux_raid_member" for d in members):
                return 1, "", "mdadm: no superblock"
            self._array("md127", disks)
            return 0, "", ""
        for device in members:
            device.kind, device.label, device.table = "linux_raid_member", "any:gputier", ""
            device.uuid, device.filled = "array", 0
        self._array("md127", disks)
        return 0, "", ""

    def _array(self, name: str, disks: list[str]) -> None:
        first = self.devices[f"/dev/{disks[0]}"]
        size = sum(self.devices[f"/dev/{disk}"].size for disk in disks)
        self.files[f"/sys/block/{name}/size"] = f"{size // 512}\n"
        for disk in disks:
            self.files[f"/sys/block/{name}/slaves/{disk}"] = ""
            self.files[f"/sys/block/{disk}/holders/{name}"] = ""
        self.devices[f"/dev/{name}"] = self.kept.get(first.filled, Device(size))

    def _slaves(self, name: str) -> tuple[str, ...]:
        return self.names(f"/sys/block/{name}/slaves")

    def _mount(self, rest: list[str]) -> Answer:
        if rest[0] == "--bind":
            source = next(m for m in self.mounts if m.point == rest[1])
            self.mounts.append(Point(rest[2], source.source, source.kind))
            return 0, "", ""
        for line in self.files["/etc/fstab"].splitlines():
            cells = line.split()
            if len(cells) > 2 and fstab.unescaped(cells[1]) == rest[0]:
                for name, device in self.devices.items():
                    if device.uuid and cells[0] == f"UUID={device.uuid}":
                        self.mounts.append(Point(rest[0], name, device.kind))
                        return 0, "", ""
                return 32, "", f"mount: {rest[0]}: can't find {cells[0]}."
        return 32, "", f"mount: {rest[0]}: can't find in /etc/fstab."

    def _mountpoint(self, rest: list[str]) -> Answer:
        return (0 if any(m.point == rest[-1] for m in self.mounts) else 32), "", ""

    def _at(self, point: str) -> Device:
        return self.devices[next(m.source for m in self.mounts if m.point == point)]

    def _xfs_info(self, rest: list[str]) -> Answer:
        blocks = self._at(rest[-1]).filled // 4096
        return 0, f"data     =                       bsize=4096   blocks={blocks}, imaxpct=5\n", ""

    def _dumpe2fs(self, rest: list[str]) -> Answer:
        blocks = self.devices[rest[-1]].filled // 4096
        return 0, f"Block count:              {blocks}\nBlock size:               4096\n", ""

    def _xfs_growfs(self, rest: list[str]) -> Answer:
        device = self._at(rest[-1])
        device.filled = device.size
        return 0, "", ""

    def _resize2fs(self, rest: list[str]) -> Answer:
        self.devices[rest[-1]].filled = self.devices[rest[-1]].size
        return 0, "", ""
