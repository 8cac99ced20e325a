"""Google's quotas on GPUs against what a stack takes at most.

Older GPUs have a quota each, which a region lists with what is used. Newer ones share a metric that
is split by family, which only Service Usage tells, and without what is used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote

from gputier.account import doctor_checks as checks
from gputier.account.answers import BAD, CannotAsk
from gputier.account.doctor import Finding, Question, bad, good, unknown
from gputier.account.doctor_gcp import Gcp
from gputier.account.doctor_targets import Target
from gputier.account.session_gcp import PAGES
from gputier.catalog import Catalog, InstanceType

ALL = "GPUS_ALL_REGIONS"
FAMILY = "GPUS_PER_GPU_FAMILY"
#: The shared metric (docs.cloud.google.com, Cloud Quotas API guide, 2026).
FAMILY_METRIC = "compute.googleapis.com/gpus_per_gpu_family"
CONSOLE = "https://console.cloud.google.com/iam-admin/quotas?project={project}"
#: Ways of buying that count against the quotas on spot (DWS guide, 2025: flex-start does).
SPOT = ("spot", "flex_start")
_SPLIT = re.compile(rf"{FAMILY} \(gpu_family=(\w+)\)")


class Metric(NamedTuple):
    """A quota's name; `family` is the GPU's where a metric is split by it."""

    name: str
    family: str = ""

    @property
    def label(self) -> str:
        return f"{self.name} of {self.family}" if self.family else self.name

    @property
    def id(self) -> str:
        """How Cloud Quotas calls it."""
        ending = "" if self.name == ALL else "-region"
        return f"{self.name.replace('_', '-')}-per-project{ending}"


class Room(NamedTuple):
    """A quota's value and what is used of it, None where that is not told."""

    limit: float
    used: float | None


class Need(NamedTuple):
    """GPUs that fleets take of a quota in a region at most; `held` of them are reserved, and count
    already. `series` is what the machines' types begin with."""

    region: str
    metrics: tuple[Metric, ...]
    fallback: tuple[Metric, ...]
    gpus: Mapping[str, int]
    held: int
    series: str
    spot: bool

    @property
    def total(self) -> int:
        return sum(self.gpus.values())

    @property
    def new(self) -> int:
        return self.total - self.held


def metrics_of(catalog: Catalog, target: Target, *, spot: bool) -> tuple[Metric, ...]:
    """The quotas that may count a machine's GPUs. Which of them does, the region says."""
    type_ = target.chosen.verdict.type
    found: list[Metric] = []
    for row in catalog.facts("gcp_quotas"):
        consumed, split = row["consumed_by"], _SPLIT.fullmatch(row["metric"])
        wanted = "spot and flex-start" if spot else "on-demand"
        mine = consumed.startswith(wanted) and "vWS" not in consumed
        if not mine or not _counts(row["gpu_or_machine_family"], type_):
            continue
        found.append(Metric(FAMILY, split[1]) if split else Metric(row["metric"]))
    return tuple(found)


def _counts(families: str, row: InstanceType) -> bool:
    """Whether a row of the table is about a machine: `a2-highgpu/megagpu`, an accelerator's name,
    or several with commas."""
    plain = re.sub(r"\(.*?\)", "", families)
    for word in re.split(r", *", plain.strip()):
        first, *others = word.strip().split("/")
        series = first.partition("-")[0]
        for one in filter(None, (first, *(f"{series}-{other}" for other in others))):
            begins = re.match(rf"{re.escape(one)}(-|$)", row.name)
            if begins or one in (row.accelerator, row.family):
                return True
    return False


def needs(gcp: Gcp, targets: Sequence[Target]) -> list[Need]:
    """What the stack takes of each quota."""
    catalog = gcp.subject.catalog
    found: dict[tuple[str, tuple[Metric, ...]], Need] = {}
    for t in targets:
        if not t.most:
            continue
        spot = t.market in SPOT
        standard = metrics_of(catalog, t, spot=False)
        metrics = metrics_of(catalog, t, spot=True) if spot else standard
        series = "-".join(t.type.split("-")[:2])
        empty = Need(t.region, metrics, standard if spot else (), {}, 0, series, spot)
        need = found.get((t.region, metrics), empty)
        held = _gpus(t) if t.market in ("reservation", "capacity_block") else 0
        gpus = {**need.gpus, t.name: _gpus(t)}
        found[t.region, metrics] = need._replace(gpus=gpus, held=need.held + held)
    return list(found.values())


def _gpus(target: Target) -> int:
    """GPUs at the maximum; a slice counts as its share, rounded up."""
    return math.ceil(target.most * target.chosen.verdict.type.gpu_count)


def questions(gcp: Gcp, targets: Sequence[Target]) -> Iterator[Question]:
    """One for each quota of a region, and one for all GPUs of the project."""
    every = needs(gcp, targets)
    for need in every:
        names = " or ".join(metric.label for metric in need.metrics) or "no known quota"
        about = f"{names} in {need.region}"
        yield Question(checks.QUOTA_GCP, tuple(need.gpus), about, partial(_quota, gcp, need))
    names_ = tuple(name for need in every for name in need.gpus)
    if names_:
        new = sum(need.new for need in every)
        yield Question(checks.QUOTA_GCP, names_, ALL, partial(_all, gcp, new))


def _quota(gcp: Gcp, need: Need) -> Finding:
    metric, room = _room(gcp, need.region, need.metrics)
    if metric is None or room is None:
        names = ", ".join(one.label for one in need.metrics) or "the machine's GPUs"
        return unknown(f"no quota is told for {names} in {need.region}", _console(gcp))
    if room.used is None and need.new and room.limit >= need.total:
        room = room._replace(used=_used(gcp, need))
    found = _judged(gcp, metric, room, need)
    if found.state != BAD or not need.fallback or room.limit > 0:
        return found
    # Whether the quotas on demand stand in for a spot quota of 0 is not said of GPUs.
    other, standard = _room(gcp, need.region, need.fallback)
    if other and standard and standard.limit - (standard.used or 0) >= need.new:
        said = f"{found.found}; {other.label} has room, and may count instead"
        return unknown(said, *found.fixes)
    return found


def _room(gcp: Gcp, region: str, metrics: Sequence[Metric]) -> tuple[Metric | None, Room | None]:
    """The first quota that is told, and its room."""
    listed = _listed(gcp.region(region))
    for metric in metrics:
        if metric.name in listed and not metric.family:
            return metric, listed[metric.name]
    for metric in metrics:
        if metric.family:
            limit = _families(gcp).get((region, metric.family))
            if limit is not None:
                return metric, Room(limit, None)
    return None, None


def _listed(document: Mapping[str, Any]) -> dict[str, Room]:
    return {
        str(one["metric"]): Room(float(one["limit"]), float(one.get("usage", 0.0)))
        for one in document.get("quotas", ())
    }


def _families(gcp: Gcp) -> dict[tuple[str, str], float]:
    """(region, family of GPUs) → limit. -1 is no limit."""

    def ask() -> dict[tuple[str, str], float]:
        service = "projects/{project}/services/compute.googleapis.com"
        path = f"{service}/consumerQuotaMetrics/{quote(FAMILY_METRIC, safe='')}"
        found = gcp.session.get("quotas", path, view="FULL")
        limits: dict[tuple[str, str], float] = {}
        for limit in found.get("consumerQuotaLimits", ()):
            for bucket in limit.get("quotaBuckets", ()):
                of: Mapping[str, str] = bucket.get("dimensions", {})
                value = float(bucket.get("effectiveLimit", 0))
                key = (of.get("region", ""), of.get("gpu_family", ""))
                limits[key] = math.inf if value < 0 else value
        return limits

    return gcp.once.get("families", ask)


def _all(gcp: Gcp, new: int) -> Finding:
    document = gcp.session.get("compute", "projects/{project}")
    room = _listed(document).get(ALL)
    if room is None:
        return unknown(f"{ALL} is not told of {gcp.project}", _console(gcp))
    need = Need("", (Metric(ALL),), (), {"": new}, 0, "", spot=False)
    return _judged(gcp, Metric(ALL), room, need)


def _judged(gcp: Gcp, metric: Metric, room: Room, need: Need) -> Finding:
    where = f" in {need.region}" if need.region else " of the project"
    used = "" if room.used is None else f", {room.used:g} in use"
    reserved = f" ({need.held} of them reserved)" if need.held else ""
    usual = ", which is what a new project has" if room.limit == 0 else ""
    gpus = f"{need.total} GPU{'' if need.total == 1 else 's'}"
    found = f"{gpus} needed{reserved} of {room.limit:g}{usual}{used}: {metric.label}{where}"
    wanted = max(need.total, need.new + (room.used or 0))
    if room.limit < wanted:
        return bad(found, _raise(gcp, metric, wanted, need.region), _console(gcp))
    return good(found)


def _used(gcp: Gcp, need: Need) -> float:
    """GPUs of the machines that run, where a quota does not tell what is used of it."""
    used = 0.0
    for machine in _machines(gcp, need.series):
        here = str(machine.get("zone", "")).rsplit("/", 1)[-1].startswith(f"{need.region}-")
        spot = machine.get("scheduling", {}).get("provisioningModel") in ("SPOT", "FLEX_START")
        if here and spot == need.spot and machine.get("status") not in ("TERMINATED", "SUSPENDED"):
            used += _of_type(gcp, str(machine.get("machineType", "")).rsplit("/", 1)[-1])
    return used


def _machines(gcp: Gcp, series: str) -> list[Mapping[str, Any]]:
    def ask() -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []
        token = None
        for _ in range(PAGES):
            page = gcp.session.get(
                "compute",
                "projects/{project}/aggregated/instances",
                filter=f"machineType:{series}",
                pageToken=token,
            )
            for zone in page.get("items", {}).values():
                found += zone.get("instances", ())
            token = page.get("nextPageToken")
            if not token:
                break
        return found

    return gcp.once.get(("machines", series), ask)


def _of_type(gcp: Gcp, name: str) -> float:
    """GPUs of a type, as the catalogue knows it."""
    row = gcp.subject.catalog.types.get(("gcp", name))
    if row is None:
        raise CannotAsk(f"how many GPUs {name} has is not known here")
    return row.gpu_count


def _raise(gcp: Gcp, metric: Metric, value: float, region: str) -> str:
    dimensions = [f"region={region}"] if region else []
    if metric.family:
        dimensions.append(f"gpu_family={metric.family}")
    where = f" --dimensions={','.join(dimensions)}" if dimensions else ""
    return (
        "gcloud beta quotas preferences create --service=compute.googleapis.com"
        f" --project={gcp.project} --quota-id={metric.id} --preferred-value={value:g}{where}"
    )


def _console(gcp: Gcp) -> str:
    return CONSOLE.format(project=gcp.project)
