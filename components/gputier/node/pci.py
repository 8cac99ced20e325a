"""The PCI bus, which does not need the NVIDIA driver to be seen.

lspci in whatever form it prints (with or without domain, names, numbers), or sysfs where there is
no lspci. Only classes 0302 and 0300 are GPUs: `lspci -d 10de:` lists NVSwitches and audio too.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from gputier.node.engine import Context
from gputier.node.host import Done, Host

NVIDIA, AMAZON, GOOGLE, MELLANOX = "10de", "1d0f", "1ae0", "15b3"
GPU_CLASSES = ("0302", "0300")
SWITCH_CLASS = "0680"
# Names that lspci prints instead of numbers, lower case.
CLASS_NAMES = {
    "3d controller": "0302",
    "vga compatible controller": "0300",
    "bridge": "0680",
    "non-volatile memory controller": "0108",
    "ethernet controller": "0200",
    "infiniband controller": "0207",
    "network controller": "0280",
    "audio device": "0403",
}
VENDOR_NAMES = {"nvidia": NVIDIA, "amazon": AMAZON, "google": GOOGLE, "mellanox": MELLANOX}
# The richest form first; old or cut-down versions of lspci answer only a plainer one.
FORMS = (("-Dnnk",), ("-nn",), ("-n",), ("-n", "-d", f"{NVIDIA}:"))
_ADDRESS = r"((?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])"
_NUMERIC = re.compile(
    rf"^{_ADDRESS} (?:Class )?\"?([0-9a-f]{{4}})\"?:? \"?([0-9a-f]{{4}}):([0-9a-f]{{4}})"
)
_NAMED = re.compile(rf"^{_ADDRESS} \"?([^:\[\"]+?)\"?(?: \[([0-9a-f]{{4}})\])?: (.*)$")
_IDS = re.compile(r"\[([0-9a-f]{4}):([0-9a-f]{4})\](?!.*\[[0-9a-f]{4}:[0-9a-f]{4}\])")


class Device(NamedTuple):
    """One PCI function. `dead`: the bus answers ff for it. `driver`: which kernel driver has it."""

    address: str
    kind: str
    vendor: str
    device: str
    line: str
    driver: str = ""
    dead: bool = False

    @property
    def is_gpu(self) -> bool:
        return self.vendor == NVIDIA and self.kind in GPU_CLASSES

    @property
    def is_switch(self) -> bool:
        return self.vendor == NVIDIA and self.kind == SWITCH_CLASS


class Bus(NamedTuple):
    """What was found, by which means; `problem` where nothing could be read."""

    devices: tuple[Device, ...]
    source: str
    problem: str = ""

    @property
    def gpus(self) -> tuple[Device, ...]:
        return tuple(device for device in self.devices if device.is_gpu)


def bus(ctx: Context) -> Bus:
    """The PCI bus, read once."""
    return ctx.once("pci", lambda: _bus(ctx))


def _bus(ctx: Context) -> Bus:
    done = Done(("lspci",), None, "", "", 0.0, "missing")
    devices: tuple[Device, ...] = ()
    for arguments in FORMS:
        done = ctx.run("lspci", *arguments, limit=10.0)
        devices = parse(done.out) if done.ok else ()
        if any(device.is_gpu for device in devices):
            return Bus(devices, "lspci")
        if done.state != "exited":  # missing or hanging: another form would be as well
            break
    listed = sysfs(ctx.host)
    if listed:
        return Bus(listed, "/sys/bus/pci/devices")
    if done.ok and (devices or not done.out.strip()):
        return Bus(devices, "lspci")
    return Bus((), "", f"lspci: {done.says()}; /sys/bus/pci/devices is empty")


def parse(text: str) -> tuple[Device, ...]:
    """lspci's devices, in any of the forms -n, -nn, -nnk, -D or none of them."""
    found: list[Device] = []
    for line in text.splitlines():
        device = _device(line)
        if device:
            found.append(device)
            continue
        driver = re.match(r"^\s+Kernel driver in use: (\S+)", line)
        if driver and found:
            found[-1] = found[-1]._replace(driver=driver[1])
    return tuple(found)


def _device(line: str) -> Device | None:
    dead = "(rev ff)" in line or "!!! Unknown header type 7f" in line
    numeric = _NUMERIC.match(line)
    if numeric:
        address, kind, vendor, device = numeric.groups()
        return Device(full(address), kind, vendor, device, line.strip(), dead=dead)
    named = _NAMED.match(line)
    if not named:
        return None
    address, words, number, rest = named.groups()
    ids = _IDS.search(rest)
    kind = number or CLASS_NAMES.get(words.strip().lower(), "")
    vendor = next(
        (code for name, code in VENDOR_NAMES.items() if rest.lower().startswith(name)), ""
    )
    if ids:
        return Device(full(address), kind, ids[1], ids[2], line.strip(), dead=dead)
    return Device(full(address), kind, vendor, "", line.strip(), dead=dead)


def full(address: str) -> str:
    """`3b:00.0`, `0000:3b:00.0` and `00000000:3B:00.0` are one address: 0000:3b:00.0."""
    parts = address.lower().split(":")
    domain = parts[0][-4:] if len(parts) == 3 else "0000"
    return ":".join((domain, *parts[-2:]))


def sysfs(host: Host) -> tuple[Device, ...]:
    """The devices of /sys/bus/pci/devices; empty when there is no such folder."""
    found: list[Device] = []
    for address in host.names("/sys/bus/pci/devices"):
        base = f"/sys/bus/pci/devices/{address}"
        kind, vendor, device = (
            (host.read(f"{base}/{name}") or "").strip()[2:].lower()
            for name in ("class", "vendor", "device")
        )
        driver = (host.link(f"{base}/driver") or "").rsplit("/", 1)[-1]
        line = f"{address} class {kind[:4]} {vendor}:{device}"
        found.append(Device(full(address), kind[:4], vendor, device, line, driver))
    return tuple(found)
