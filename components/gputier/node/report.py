"""The report: one JSON shape for all clouds, schema `gputier/node/1`.

The host's fingerprint (digests of GPU UUIDs, placement) is there to recognise the same bad host
when the provider hands it out again; UUIDs themselves are not in it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from gputier.node import WrongInput, __version__, boots, plain, smi
from gputier.node.checks import driver
from gputier.node.checks.thermal import FIGURES
from gputier.node.cloud import Trouble
from gputier.node.engine import STAGES, Context, Verdict
from gputier.node.host import Host
from gputier.node.result import HEALTHY, USABLE, Garbled

SCHEMA = "gputier/node/1"
FILE = "/var/lib/gputier/report.json"
DMI = "/sys/class/dmi/id"
VENDORS = {"Amazon EC2": "aws", "Google": "gcp", "Microsoft Corporation": "azure",
           "Alibaba Cloud": "alibaba", "Tencent Cloud": "tencent"}  # fmt: skip
INSTANCE_DATA = "/run/cloud-init/instance-data.json"
METADATA_SECONDS = 2.0
# What the metadata service tells of where a machine stands, by the name that it has here.
PLACES = {
    "aws": {
        "availability_zone_id": "meta-data/placement/availability-zone-id",
        "group_name": "meta-data/placement/group-name",
        "partition_number": "meta-data/placement/partition-number",
        "host_id": "meta-data/placement/host-id",
    },
    "gcp": {"physical_host": "instance/attributes/physical_host"},
}


class Money(NamedTuple):
    """Dollars per second of this machine, None when the plan names no price."""

    usd_per_second: float | None

    def of(self, seconds: float) -> float | None:
        return None if self.usd_per_second is None else round(self.usd_per_second * seconds, 4)


def build(ctx: Context, verdict: Verdict, depth: str) -> dict[str, Any]:
    """The report of a run, ready for json.dumps."""
    per_hour = ctx.expect.number("machine.usd_per_hour")
    money = Money(None if per_hour is None else per_hour / 3600)
    return {
        "schema": SCHEMA,
        "outcome": verdict.outcome,
        "checks": [
            {
                "name": r.name,
                "title": r.title,
                "outcome": r.outcome,
                "evidence": r.evidence,
                "expected": r.expected,
                "source": r.source,
                "remedy": r.remedy,
                "seconds": r.seconds,
                "stage": r.stage,
                "short": r.short,
                "because": list(r.because),
            }
            for r in verdict.results
        ],
        "causes": [r.name for r in verdict.causes] if verdict.outcome != HEALTHY else [],
        "remedy": remedy(verdict),
        "not_applicable": [{"name": n, "why": why} for n, why in verdict.not_applicable],
        "warnings": list(verdict.warnings),
        "depth": depth,
        "gate": ctx.expect.gate,
        "seconds": round(verdict.seconds, 3),
        "usd": money.of(verdict.seconds),
        "stages": _stages(verdict, money),
        "gpus": gpus(ctx),
        "machine": machine(ctx),
        "versions": _versions(ctx),
        "host": fingerprint(ctx),
        "at": int(ctx.host.now()),
    }


def remedy(verdict: Verdict) -> str:
    """What to do about the node: the remedies of its causes, each once."""
    if verdict.outcome == HEALTHY:
        return ""
    return "; ".join(_once(result.remedy for result in verdict.causes))


def _once(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(text for text in texts if text))


def _stages(verdict: Verdict, money: Money) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for stage in STAGES:
        seconds = sum(r.seconds for r in verdict.results if r.stage == stage)
        if any(r.stage == stage for r in verdict.results):
            found.append({"stage": stage, "seconds": round(seconds, 3), "usd": money.of(seconds)})
    return found


def gpus(ctx: Context) -> list[dict[str, Any]]:
    """Temperature, utilisation and memory of each GPU; empty where the driver did not answer."""
    if ctx.outcome("driver") not in USABLE:
        return []
    try:
        return [
            {
                "gpu": row["index"],
                "temperature_c": smi.number(row.get("temperature.gpu")),
                "utilisation_percent": smi.number(row.get("utilization.gpu")),
                "memory_used_mib": smi.number(row.get("memory.used")),
                "memory_total_mib": smi.number(row.get("memory.total")),
            }
            for row in smi.query(ctx, FIGURES)
        ]
    except Garbled:
        return []


def machine(ctx: Context) -> dict[str, Any]:
    """Who this is: from DMI and cloud-init's files, without asking any service."""
    host = ctx.host
    vendor = (host.read(f"{DMI}/sys_vendor") or "").strip()
    product = (host.read(f"{DMI}/product_name") or "").strip()
    cloud = ctx.expect.text("machine.cloud") or VENDORS.get(vendor)
    data = _instance_data(host)
    kind = ctx.expect.text("machine.instance_type")
    if kind is None and cloud == "aws":
        kind = product or None
    return {
        "cloud": cloud,
        "instance_type": kind,
        "instance_id": data.get("instance_id") or _text(host, "/var/lib/cloud/data/instance-id"),
        "region": data.get("region"),
        "zone": data.get("availability_zone"),
        "boot_id": boots.boot_id(host),
        "hostname": _text(host, "/proc/sys/kernel/hostname"),
    }


def _instance_data(host: Host) -> dict[str, Any]:
    try:
        data = plain.mapping(json.loads(host.read(INSTANCE_DATA) or "{}")) or {}
    except ValueError:
        return {}
    return plain.mapping(data.get("v1")) or {}


def _text(host: Host, path: str) -> str | None:
    return (host.read(path) or "").strip() or None


def _versions(ctx: Context) -> dict[str, Any]:
    return {
        "gputier-node": __version__,
        "driver": driver.version(ctx),
        "kernel": _text(ctx.host, "/proc/sys/kernel/osrelease"),
        "os": _os(ctx.host),
    }


def _os(host: Host) -> str | None:
    for line in (host.read("/etc/os-release") or "").splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip('"')
    return None


def fingerprint(ctx: Context) -> dict[str, Any]:
    """What the same physical host shows again: digests of its GPUs, and where it stands."""
    try:
        uuids = [gpu.uuid for gpu in smi.gpus(ctx)]
    except Garbled:
        uuids = []
    digests = [hashlib.sha256(uuid.encode()).hexdigest()[:16] for uuid in uuids]
    return {"gpus": sorted(digests), "placement": ctx.once("placement", lambda: _placement(ctx))}


def _placement(ctx: Context) -> dict[str, str]:
    vendor = (ctx.host.read(f"{DMI}/sys_vendor") or "").strip()
    cloud = VENDORS.get(vendor)
    if cloud == "azure":
        found = ctx.host.read("/var/lib/hyperv/.kvp_pool_3") or ""
        after = found.partition("PhysicalHostName")[2].strip("\0")
        return {"physical_host": after.split("\0", 1)[0]} if after else {}
    return _asked(ctx.host, cloud) if cloud in PLACES else {}


def _asked(host: Host, cloud: str) -> dict[str, str]:
    """What the metadata service tells at once."""
    from gputier.node.cloud import glance
    from gputier.node.cloud.http import Patience

    found: dict[str, str] = {}
    try:
        service = glance.of(host, cloud)
        if service is None:
            return found
        for name, path in PLACES[cloud].items():
            text = service.get(path, Patience(METADATA_SECONDS, each=METADATA_SECONDS))
            if text and len(text) < 256 and "<" not in text:
                found[name] = text
    except (Trouble, WrongInput):
        pass  # what was told before it is worth keeping
    return found


def save(host: Host, found: dict[str, Any]) -> str | None:
    """Write the report where `report` and `gate` find it; the trouble in words, None if none."""
    try:
        host.write(FILE, json.dumps(found, indent=2, sort_keys=True) + "\n")
    except OSError as error:
        return f"{FILE}: {error}"
    return None


def load(host: Host) -> dict[str, Any] | None:
    """The last report, None when there is none that can be read."""
    try:
        data = plain.mapping(json.loads(host.read(FILE) or ""))
    except ValueError:
        return None
    return data if data and data.get("schema") == SCHEMA else None
