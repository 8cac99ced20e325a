"""The thorough tier: the image as a virtual machine, with its own kernel and NVMe disks.

KVM is used where a kernel really starts under it (an open /dev/kvm proves nothing), else QEMU's
software emulation: a boot takes half a minute then, so this tier is for what a container cannot
show.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.rehearsal.image import Image
from tests.rehearsal.layer import Layer
from tests.rehearsal.needs import PATH, alone, cache_folder, say
from tests.rehearsal.network import Network
from tests.rehearsal.qemu_model import patched

QEMU = "qemu-system-x86_64"
PROBE_SECONDS = 10.0
EVERY_SECONDS = 0.25
MEMORY_MIB = 1536
APPEND = (
    "console=ttyS0 panic=-1 mitigations=off nokaslr audit=0 selinux=0 apparmor=0 net.ifnames=0 "
    "no_timer_check loglevel=5 systemd.condition_needs_update=0 systemd.show_status=1"
)
#: On a busy machine an emulated kernel takes the cycle counter for slower than it is, and its clock
#: then runs several times too fast.
EMULATED = " tsc=unstable clocksource=hpet"
#: A kernel that says this is no machine to judge anything by.
BROKEN = ("Oops:", "Kernel panic", "BUG: unable to handle")
MAC = "52:54:00:12:34:56"
EC2_UUID = "ec2e1916-9099-7caf-fd21-012345abcdef"
SMBIOS = {
    "aws": (
        f"type=1,manufacturer=Amazon EC2,product={{type}},serial={EC2_UUID},uuid={EC2_UUID}",
        "type=0,vendor=Amazon EC2",
        "type=3,manufacturer=Amazon EC2,asset=Amazon EC2",
    ),
    "gcp": (
        "type=1,manufacturer=Google,product=Google Compute Engine,serial=GoogleCloud-0123",
        "type=0,vendor=Google",
    ),
}


@dataclass(frozen=True, slots=True)
class Disk:
    """A local NVMe disk; `content` is written to its start (somebody else's file system)."""

    serial: str
    gib: float
    content: Path | None = None


@dataclass(frozen=True, slots=True)
class Hardware:
    """What a virtual machine is given."""

    disks: tuple[Disk, ...] = ()
    model: str = "Amazon EC2 NVMe Instance Storage"
    cloud: str | None = None
    instance_type: str = "unknown"
    black_hole: bool = False
    clock: str | None = None
    cpus: int = 2


class VirtualMachine:
    """One rehearsed machine under QEMU. Its disks stay when it is started again."""

    tier = "vm"

    def __init__(
        self, image: Image, layer: Layer, network: Network, place: Path, hardware: Hardware
    ) -> None:
        self.place, self.network, self.hardware, self.image = place, network, hardware, image
        place.mkdir(parents=True)
        self._past = ""
        layer.disk(place / "layer.ext4")
        self._root()
        for number, disk in enumerate(hardware.disks):
            _blank(place / f"nvme{number}.raw", disk)
        self.accelerator = accelerator(image)
        self._program = patched(Path(shutil.which(QEMU, path=PATH) or QEMU), hardware.model)
        self._errors = (place / "qemu.log").open("ab")
        self.started = time.monotonic()
        self._process = network.call(self._start)

    # --- what a test asks -----------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def console(self) -> str:
        return self._past + self._printed()

    def _printed(self) -> str:
        try:
            return (self.place / "console.log").read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""

    def wait(self, ask: Callable[[], bool], limit: float) -> bool:
        """Whether `ask` came true within `limit` seconds, while the machine ran."""
        until = time.monotonic() + limit
        while time.monotonic() < until:
            if ask():
                return True
            broken = next((word for word in BROKEN if word in self.console()), None)
            assert not broken, f"the guest's kernel broke: {broken}\n{self.console()[-3000:]}"
            if not self.runs:
                return ask()
            time.sleep(EVERY_SECONDS)
        return False

    def start_again(self) -> None:
        """Switch it on again with the disks that it had; the console goes on behind the last."""
        assert not self.runs, "it is still on"
        self._past += self._printed()
        self.started = time.monotonic()
        self._process = self.network.call(self._start)

    def reset(self) -> None:
        """Pull the plug and put it in again, as a host does."""
        self.qmp("system_reset")

    def press_power(self) -> None:
        """Ask it to shut down, as a cloud does before it takes a machine away."""
        self.qmp("system_powerdown")

    def link(self, up: bool) -> None:
        self.qmp("set_link", name="n0", up=up)

    def qmp(self, command: str, **arguments: Any) -> Any:
        """One command to QEMU; its answer."""
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(30.0)
            line.connect(str(self.place / "qmp.sock"))
            with line.makefile("rw", encoding="utf-8") as talk:
                talk.readline()
                _ask(talk, {"execute": "qmp_capabilities"})
                return _ask(talk, {"execute": command, "arguments": arguments})

    def stop(self) -> None:
        if self.runs:
            self._process.kill()
        self._process.wait(10.0)
        self._errors.close()

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.place, ignore_errors=True)

    # --- how it is started ----------------------------------------------------------------------

    def _root(self) -> None:
        """A disk of its own over the image's, which nobody writes to."""
        command = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw"]
        command += ["-b", str(self.image.disk), str(self.place / "root.qcow2")]
        subprocess.run(command, env={"PATH": PATH}, check=True, capture_output=True)

    def _start(self) -> subprocess.Popen[bytes]:
        """Runs in the network's thread: what the guest reaches is that namespace, nothing else."""
        return subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", str(self._program), *self.arguments()],
            env={"PATH": PATH, "QEMU_MODULE_DIR": _modules()},
            stdin=subprocess.DEVNULL,
            stdout=self._errors,
            stderr=self._errors,
        )

    def arguments(self) -> list[str]:
        place, hardware = self.place, self.hardware
        found = [*_machine(self.accelerator), "-smp", str(hardware.cpus), "-m", str(MEMORY_MIB)]
        found += ["-kernel", str(self.image.kernel), "-initrd", str(self.image.initrd)]
        append = APPEND + (EMULATED if self.accelerator == "tcg" else "")
        found += ["-append", append, "-serial", f"file:{place / 'console.log'}"]
        found += ["-qmp", f"unix:{place / 'qmp.sock'},server,nowait", "-device", "virtio-rng-pci"]
        found += _virtio("root", place / "root.qcow2", "qcow2")
        found += _virtio("layer", place / "layer.ext4", "raw,readonly=on")
        restrict = ",restrict=on" if hardware.black_hole else ""
        found += ["-netdev", f"user,id=n0,ipv6=off{restrict}"]
        found += ["-device", f"virtio-net-pci,netdev=n0,mac={MAC},romfile="]
        if hardware.clock:
            found += ["-rtc", f"base={hardware.clock}"]
        for text in SMBIOS.get(hardware.cloud or "", ()):
            found += ["-smbios", text.format(type=hardware.instance_type)]
        for number, disk in enumerate(hardware.disks):
            file = place / f"nvme{number}.raw"
            drive = f"if=none,id=nvm{number},file={file},format=raw,cache=unsafe,discard=unmap"
            device = f"nvme,id=nvme{number},serial={disk.serial},drive=nvm{number}"
            found += ["-drive", drive, "-device", device]
        return found


def _machine(accelerator: str) -> list[str]:
    # A copied program finds neither its firmware nor its modules by itself.
    found = ["-L", "/usr/share/qemu", "-L", "/usr/share/seabios", "-M", "q35", "-nodefaults"]
    found += ["-no-user-config", "-display", "none"]
    if accelerator == "kvm":
        return [*found, "-accel", "kvm", "-cpu", "host,-arch-capabilities"]
    return [*found, "-accel", "tcg,thread=multi,tb-size=512", "-cpu", "Nehalem"]


def _virtio(name: str, file: Path, kind: str) -> list[str]:
    drive = f"if=none,id={name},file={file},format={kind},cache=unsafe"
    return ["-drive", drive, "-device", f"virtio-blk-pci,drive={name}"]


def _modules() -> str:
    return next((str(path) for path in Path("/usr/lib").glob("*-linux-gnu/qemu")), "")


def _blank(file: Path, disk: Disk) -> None:
    """A sparse file: a disk of terabytes takes what is written to it."""
    with file.open("wb") as raw:
        if disk.content:
            raw.write(disk.content.read_bytes())
        raw.truncate(int(disk.gib * 2**30) // 4096 * 4096)


def _ask(talk: Any, command: dict[str, Any]) -> Any:
    talk.write(json.dumps(command) + "\n")
    talk.flush()
    while True:
        answer = json.loads(talk.readline())
        if "error" in answer:
            raise RuntimeError(f"QEMU refused {command}: {answer['error']}")
        if "return" in answer:
            return answer["return"]


def accelerator(image: Image) -> str:
    """`kvm` where a stock kernel really starts under it, else `tcg`; the answer is kept."""
    device = Path("/dev/kvm")
    if not os.access(device, os.R_OK | os.W_OK):
        return "tcg"
    # Another boot of the host may be another host.
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    place = cache_folder()
    with alone(place, "accelerator"):
        kept = place / "accelerator"
        if kept.exists() and (known := kept.read_text(encoding="ascii").split())[:1] == [boot]:
            return known[1]
        found = "kvm" if _starts_under_kvm(image) else "tcg"
        kept.write_text(f"{boot} {found}\n", encoding="ascii")
    if found == "tcg":
        say("/dev/kvm is there, but no kernel starts under it: machines are emulated")
    return found


def _starts_under_kvm(image: Image) -> bool:
    command = [QEMU, *_machine("kvm"), "-m", "512", "-serial", "stdio", "-no-reboot"]
    command += ["-kernel", str(image.kernel)]
    command += ["-append", "earlyprintk=ttyS0 console=ttyS0 panic=-1"]
    process = subprocess.Popen(
        command,
        env={"PATH": PATH},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout
    os.set_blocking(process.stdout.fileno(), False)
    until, printed = time.monotonic() + PROBE_SECONDS, b""
    try:
        while time.monotonic() < until and process.poll() is None:
            printed += process.stdout.read() or b""
            if b"Linux version" in printed:
                return True
            time.sleep(0.1)
        return False
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
