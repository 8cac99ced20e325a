"""The fabric between machines: devices, drivers, and whether data really takes it.

Training over TCP because a plugin or a rule is missing works, slowly, and says nothing: that is
`fabric-in-use` here, and `tcp-fallback` once NCCL has run.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from gputier.node import klog, pci, thresholds
from gputier.node.engine import Check, Context
from gputier.node.expect import Expectation
from gputier.node.host import Done
from gputier.node.result import (
    CONFIG,
    INCONCLUSIVE,
    REPLACE,
    WARNING,
    Finding,
    healthy,
    inconclusive,
    unsupported,
    warning,
    worst,
)

CLASS = "/sys/class/infiniband"
# p5en enumerates its EFA devices late.
LATE_SECONDS, STEP_SECONDS = 15.0, 5.0
BOOT_SECONDS = 900.0
PLUGINS = (
    "/opt/amazon/ofi-nccl/lib",
    "/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu",
    "/opt/amazon/ofi-nccl/lib/aarch64-linux-gnu",
    "/opt/amazon/ofi-nccl/lib64",
    "/opt/aws-ofi-nccl/lib",
)
VERBS = ("roce", "infiniband", "erdma")
GOOGLE_NICS = ("gpudirect-tcpx", "gpudirect-tcpxo")


class Port(NamedTuple):
    """One RDMA device: link layer, state and rate as sysfs or ibstat print them."""

    name: str
    layer: str
    state: str
    gbps: float | None


def devices(ctx: Context) -> Finding:
    """As many fabric devices as the plan says, on the bus and with a driver."""
    kind, wanted = ctx.expect.fabric or "", ctx.expect.count("fabric.interfaces")
    expected = f"{wanted if wanted is not None else 'at least 1'} {kind} devices"
    need = 1 if wanted is None else wanted
    found, source = _count(ctx, kind)
    patience = LATE_SECONDS if _young(ctx) else 0.0
    until = ctx.host.monotonic() + min(patience, ctx.left())
    while found < need and ctx.host.monotonic() + STEP_SECONDS <= until:
        ctx.host.sleep(STEP_SECONDS)
        ctx.memory.pop("pci", None)
        ctx.memory.pop("fi_info", None)
        found, source = _count(ctx, kind)
    words = f"{found} devices ({source})"
    if found < need:
        return Finding(REPLACE, words, expected)
    driven = len(ports(ctx, kind)) if kind == "efa" else found
    modules = ctx.host.read("/proc/modules") or ""
    if kind == "efa" and modules and not re.search(r"^efa\s", modules, re.M) and not driven:
        remedy = "build the efa module for this kernel (aws-efa-installer)"
        return Finding(CONFIG, f"{words}, but module efa is not loaded", expected, remedy)
    return healthy(words, expected, short=f"{found} × {kind}")


def _young(ctx: Context) -> bool:
    """Whether the machine is still booting, so that devices may yet appear."""
    uptime = (ctx.host.read("/proc/uptime") or "0").split()
    return bool(uptime) and float(uptime[0]) < BOOT_SECONDS


def _count(ctx: Context, kind: str) -> tuple[int, str]:
    """How many devices, and who says so. The two mlx5 of p6 are not EFA: vendors are told apart."""
    if kind == "efa":
        on_bus = [d for d in pci.bus(ctx).devices if d.vendor == pci.AMAZON and "efa" in _id(d)]
        if on_bus:
            return len(on_bus), "PCI"
        if ports(ctx, kind):
            return len(ports(ctx, kind)), CLASS
        return len(domains(fi_info(ctx).out)), "fi_info"
    if kind in GOOGLE_NICS:
        nics = [d for d in pci.bus(ctx).devices if d.vendor == pci.GOOGLE and d.kind == "0200"]
        return len(nics), "PCI"
    return len(ports(ctx, kind)), f"{CLASS}, ibstat"


def _id(device: pci.Device) -> str:
    return device.device or device.line.lower()


def ports(ctx: Context, kind: str) -> list[Port]:
    """The RDMA devices that belong to a fabric of this kind."""
    found = [_port(ctx, name) for name in ctx.host.names(CLASS)]
    if not found:
        found = ibstat(ctx.run("ibstat", limit=10.0).out)
    if kind == "efa":
        return [port for port in found if port.layer.lower() not in ("infiniband", "ethernet")]
    layer = "infiniband" if kind == "infiniband" else "ethernet"
    # Azure's accelerated-networking device is an mlx5 too, and no part of the fabric.
    return [p for p in found if p.layer.lower() == layer and not p.name.startswith("mlx5_an")]


def _port(ctx: Context, name: str) -> Port:
    base = f"{CLASS}/{name}/ports/1"
    layer, state, rate = (
        (ctx.host.read(f"{base}/{file}") or "").strip() for file in ("link_layer", "state", "rate")
    )
    speed = re.match(r"(\d+(?:\.\d+)?) Gb/sec", rate)
    return Port(name, layer, state, float(speed[1]) if speed else None)


def ibstat(text: str) -> list[Port]:
    """The first port of each adapter that ibstat prints."""
    found: list[Port] = []
    for part in re.split(r"^CA '", text, flags=re.M)[1:]:
        name = part.split("'", 1)[0]
        values = dict(re.findall(r"^\s+(State|Rate|Link layer): (.+?)\s*$", part, re.M))
        rate = re.match(r"\d+(?:\.\d+)?", values.get("Rate", ""))
        found.append(
            Port(name, values.get("Link layer", ""), values.get("State", ""), _float(rate))
        )
    return found


def _float(found: re.Match[str] | None) -> float | None:
    return float(found[0]) if found else None


def fi_info(ctx: Context) -> Done:
    return ctx.once(
        "fi_info", lambda: ctx.run("fi_info", "-p", "efa", "-t", "FI_EP_RDM", limit=15.0)
    )


def domains(text: str) -> list[str]:
    """Distinct EFA devices: newer libfabric lists each under efa-direct and under efa."""
    found: set[str] = set()
    provider = ""
    for line in text.splitlines():
        key, _, value = line.strip().partition(":")
        if key == "provider":
            provider = value.strip()
        elif key == "domain" and provider.startswith("efa"):
            found.add(re.sub(r"-(?:rdm|dgrm)$", "", value.strip()))
    return sorted(found)


def in_use(ctx: Context) -> Finding:
    """The fabric can be used: libfabric sees it, or each port is active at its rate."""
    kind = ctx.expect.fabric or ""
    if kind == "efa":
        return _efa_in_use(ctx)
    if kind in GOOGLE_NICS:
        return _google_in_use(ctx)
    return _ports_active(ctx, kind)


def _efa_in_use(ctx: Context) -> Finding:
    wanted = ctx.expect.count("fabric.interfaces") or 1
    expected = f"fi_info -p efa lists {wanted} domains"
    done = fi_info(ctx)
    if done.state == "missing":
        return Finding(CONFIG, "fi_info is not installed: NCCL would fall back to TCP", expected)
    found = domains(done.out)
    if done.state == "timeout":
        return inconclusive(f"fi_info: {done.how}", expected)
    if len(found) < wanted:
        words = f"fi_info lists {len(found)} domains: {done.says()}: NCCL would fall back to TCP"
        return Finding(CONFIG, words, expected)
    if not any(
        name.startswith("libnccl-net") for place in PLUGINS for name in ctx.host.names(place)
    ):
        return warning(f"{len(found)} domains; no NCCL plugin for EFA in the image", expected)
    return healthy(f"{len(found)} domains, NCCL plugin there", expected, short="EFA usable")


def _google_in_use(ctx: Context) -> Finding:
    """TCPX and TCPXO need their plugin and their receive daemon's files."""
    places = ("/var/lib/tcpx/lib64", "/var/lib/tcpxo/lib64", "/usr/local/tcpx", "/usr/local/tcpxo")
    if any(ctx.host.names(place) for place in places):
        return healthy("NCCL plugin there", "NCCL plugin of the fabric")
    return warning("no NCCL plugin of the fabric on the machine; a container has to bring it")


def _ports_active(ctx: Context, kind: str) -> Finding:
    wanted = ctx.expect.number("fabric.gbps")
    expected = "each port active" + (f" at {wanted:.0f} Gbit/s" if wanted else "")
    findings: list[Finding] = []
    for port in ports(ctx, kind):
        words = f"{port.name}: {port.state or 'no state'}, {port.gbps or '?'} Gbit/s"
        slow = wanted and port.gbps is not None and port.gbps < wanted
        if not port.state:
            findings.append(inconclusive(words, expected))
        elif "active" not in port.state.lower() or slow:
            findings.append(Finding(REPLACE, words, expected))
        else:
            findings.append(healthy(words, expected, short=f"{kind} active"))
    return worst(findings) if findings else inconclusive("no RDMA port to be seen", expected)


def memlock(ctx: Context) -> Finding:
    """RDMA pins memory: the limit has to be lifted for the workload."""
    floor = thresholds.MEMLOCK_GIB
    expected = f"unlimited, or ≥ {floor.value:.0f} GiB"
    for name in ctx.host.names("/etc/security/limits.d"):
        text = ctx.host.read(f"/etc/security/limits.d/{name}") or ""
        if re.search(r"^\s*\*\s+(?:-|hard|soft)\s+memlock\s+(?:unlimited|-1)", text, re.M):
            return healthy(f"unlimited ({name})", expected)
    text = ctx.host.read("/proc/self/limits") or ""
    found = re.search(r"Max locked memory\s+(\S+)", text)
    if found is None:
        return warning("no limit to be seen", expected)
    if found[1] != "unlimited" and int(found[1]) < floor.value * 2**30:
        return Finding(CONFIG, f"Max locked memory {found[1]} bytes", expected, source=floor.source)
    return healthy(f"Max locked memory {found[1]}", expected)


def flaps(ctx: Context) -> Finding:
    """A port that comes and goes: a cable or a switch port."""
    limit = thresholds.LINK_FLAPS
    pattern = r"(?:mlx5|ib\d|rdmap|eth|ens|enp).*(?:lost carrier|link (?:is )?down)"
    log = klog.kernel(ctx).text
    if log is None:
        return inconclusive("no kernel log")
    lines = [line for line in log.splitlines() if re.search(pattern, line, re.IGNORECASE)]
    expected = f"at most {limit.value:.0f} since this boot"
    if len(lines) > limit.value:
        return Finding(REPLACE, f"{len(lines)} times: {lines[-1].strip()}", expected)
    return healthy(f"{len(lines)} times", expected)


def nic_speed(ctx: Context) -> Finding:
    """What the kernel tells of a port; virtual NICs (ENA, gVNIC) tell nothing."""
    wanted = ctx.expect.number("host.network_gbps") or 0
    speeds = {
        name: int(text)
        for name in ctx.host.names("/sys/class/net")
        for text in [(ctx.host.read(f"/sys/class/net/{name}/speed") or "").strip()]
        if text.isdigit() and int(text) > 0
    }
    if not speeds:
        return unsupported("the NICs tell no speed")
    total = sum(speeds.values()) / 1000
    words = ", ".join(f"{name} {speed / 1000:.0f}" for name, speed in speeds.items())
    if total < wanted:
        return warning(f"{words} Gbit/s", f"{wanted:.0f} Gbit/s")
    return healthy(f"{words} Gbit/s", f"{wanted:.0f} Gbit/s")


def _no_fabric(expect: Expectation) -> str | None:
    return None if expect.fabric else "the plan has no fabric"


def _no_nic(expect: Expectation) -> str | None:
    return None if expect.has("host.network_gbps") else "the plan names no network bandwidth"


def _no_verbs(expect: Expectation) -> str | None:
    return None if expect.fabric in VERBS else "the plan's fabric has no RDMA ports"


CHECKS = (
    Check("fabric-devices", "fabric devices", devices, "fabric",
          {REPLACE: "this host lost a fabric device: give the machine back",
           CONFIG: "build the fabric's module for this kernel in the image"},
          "the plan; github.com/awslabs/awsome-distributed-ai health checks, check 2",
          seconds=40.0, applies=_no_fabric),
    Check("fabric-in-use", "fabric usable", in_use, "fabric",
          {REPLACE: "a fabric port is down: give the machine back",
           CONFIG: "install libfabric with the efa provider; without it NCCL takes TCP silently",
           WARNING: "see that the container brings the NCCL plugin",
           INCONCLUSIVE: "see what the fabric's own tools say"},
          "github.com/ofiwg/libfabric/issues/12708; github.com/NVIDIA/nccl/issues/229",
          needs=("fabric-devices",), applies=_no_fabric),
    Check("memlock", "locked memory", memlock, "fabric",
          {CONFIG: "`gputier-node stage limits` lifts the limit",
           WARNING: "see that the workload's service lifts LimitMEMLOCK"},
          thresholds.MEMLOCK_GIB.source, applies=_no_fabric),
    Check("link-flaps", "link flaps", flaps, "fabric",
          {REPLACE: "a bad cable or port: give the machine back"},
          thresholds.LINK_FLAPS.source, applies=_no_verbs),
    Check("nic-speed", "NIC speed", nic_speed, "fabric",
          {WARNING: "measure against a second machine before trusting the network"},
          "the plan", applies=_no_nic, advisory=True),
)  # fmt: skip
