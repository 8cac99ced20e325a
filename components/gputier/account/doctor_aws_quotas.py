"""AWS's quotas against what a stack takes at most."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from gputier.account import doctor_checks as checks
from gputier.account.answers import CannotAsk
from gputier.account.doctor import Finding, Question, bad, good, unknown
from gputier.account.doctor_aws import Aws
from gputier.account.doctor_targets import Target
from gputier.catalog import Catalog

_GONE = ("NoSuchResourceException",)
#: Requests that are still looked at (Service Quotas API, RequestStatus).
_OPEN = ("PENDING", "CASE_OPENED")
#: How machines are found that count against a quota: all its families begin so.
_PATTERNS = {"g": ("g*", "vt*"), "p": ("p*",)}
#: Regions of partitions whose consoles are elsewhere.
ELSEWHERE = ("cn-", "us-gov-")
CONSOLE = "https://{region}.console.aws.amazon.com/servicequotas/home/services/ec2/quotas/{code}"


class Quota(NamedTuple):
    """A quota on vCPU in use, as AWS names it. `usual` is what a new account has."""

    code: str
    name: str
    usual: float | None


class Need(NamedTuple):
    """What fleets take of a quota in a region at most. `quotas`: the first that is there counts.
    `held` of it is reserved, and counts already."""

    region: str
    spot: bool
    quotas: tuple[Quota, ...]
    letter: str
    vcpus: Mapping[str, int]
    held: int

    @property
    def total(self) -> int:
        return sum(self.vcpus.values())


def quotas_of(catalog: Catalog, family: str, *, spot: bool) -> tuple[Quota, ...]:
    """The quotas that machines of a family count against, the most exact first. AWS may have
    dropped those that are exact."""
    exact: list[Quota] = []
    whole: list[Quota] = []
    for row in catalog.facts("aws_quotas"):
        named = row["name"].endswith("Spot Instance Requests")
        running = row["name"].startswith("Running On-Demand")
        if row["unit"] != "vCPU" or not (named if spot else running):
            continue
        quota = Quota(row["quota_code"], row["name"], float(row["default"] or 0))
        if family in re.findall(r"[\w-]+", row["applies_to"]):
            exact.append(quota)
        elif re.match(rf"all\b.*\b{family[0].upper()}\b", row["applies_to"]):
            whole.append(quota)
    return (*exact, *whole)


def needs(aws: Aws, targets: Sequence[Target]) -> list[Need]:
    """What the stack takes of each quota. Machines of a capacity block count against none."""
    catalog = aws.subject.catalog
    found: dict[tuple[str, bool, tuple[Quota, ...]], tuple[str, dict[str, int], int]] = {}
    for t in targets:
        family, each = t.chosen.verdict.type.family, t.chosen.verdict.machine.vcpus or 0
        base = min(t.chosen.fleet.on_demand_base, t.most)
        split = {True: t.most - base, False: base} if t.market == "spot" else {False: t.most}
        for spot, machines in split.items():
            if t.market == "capacity_block" or not machines:
                continue
            key = (t.region, spot, quotas_of(catalog, family, spot=spot))
            letter, vcpus, held = found.setdefault(key, (family[0], {}, 0))
            vcpus[t.name] = vcpus.get(t.name, 0) + machines * each
            if t.market == "reservation":
                found[key] = (letter, vcpus, held + machines * each)
    return [
        Need(region, spot, quotas, letter, vcpus, held)
        for (region, spot, quotas), (letter, vcpus, held) in found.items()
    ]


def questions(aws: Aws, targets: Sequence[Target]) -> Iterator[Question]:
    """One for each quota, for all fleets that count against it."""
    for need in needs(aws, targets):
        names = tuple(need.vcpus)
        codes = " or ".join(quota.code for quota in need.quotas) or "no known quota"
        about = f"{codes} in {need.region}"
        yield Question(checks.QUOTA_AWS, names, about, partial(_quota, aws, need))


def _quota(aws: Aws, need: Need) -> Finding:
    if not need.quotas:
        return unknown(f"which quota counts {', '.join(need.vcpus)} is not known here")
    quota, value = _value(aws, need)
    label = f"{quota.code} {quota.name} in {need.region}"
    if value < need.total:
        usual = ", which is what a new account has" if value == 0 == quota.usual else ""
        asked_for = _asked_for(aws, need, quota)
        found = f"{need.total} vCPU needed of {value:g}{usual}: {label}{asked_for}"
        return bad(found, *_raise(aws, need, quota, need.total))
    try:
        used = _used(aws, need)
    except CannotAsk as error:
        found = f"{need.total} vCPU needed of {value:g}; what is in use: {error.message}: {label}"
        return unknown(found, error.fix)
    found = f"{need.total} vCPU needed of {value:g}, {used} in use by others: {label}"
    if used + need.total > value:
        return bad(found, *_raise(aws, need, quota, used + need.total))
    return good(found)


def _value(aws: Aws, need: Need) -> tuple[Quota, float]:
    """The quota that is there and its value: this account's, else what AWS gives everybody."""
    gone: CannotAsk | None = None
    for call in ("get_service_quota", "get_aws_default_service_quota"):
        for quota in need.quotas:
            asked = {"ServiceCode": "ec2", "QuotaCode": quota.code}
            try:
                found = aws.session.ask("service-quotas", call, need.region, **asked)
            except CannotAsk as error:
                if error.code not in _GONE:
                    raise
                gone = error
                continue
            return quota._replace(name=found["Quota"].get("QuotaName") or quota.name), float(
                found["Quota"]["Value"]
            )
    raise gone or CannotAsk("no quota answers")


def _asked_for(aws: Aws, need: Need, quota: Quota) -> str:
    """What was asked for and is not decided; nothing where that cannot be asked."""
    try:
        found = aws.session.every(
            "service-quotas",
            "list_requested_service_quota_change_history_by_quota",
            "RequestedQuotas",
            need.region,
            ServiceCode="ec2",
            QuotaCode=quota.code,
        )
    except CannotAsk:
        return ""
    values = [one["DesiredValue"] for one in found if one.get("Status") in _OPEN]
    return f"; {max(values):g} have been asked for" if values else ""


def _raise(aws: Aws, need: Need, quota: Quota, value: float) -> tuple[str, ...]:
    line = (
        "service-quotas request-service-quota-increase --service-code ec2"
        f" --quota-code {quota.code} --desired-value {value:g}"
    )
    command = aws.command(line, need.region)
    if need.region.startswith(ELSEWHERE):
        return (command,)
    return command, CONSOLE.format(region=need.region, code=quota.code)


def _used(aws: Aws, need: Need) -> int:
    """vCPU that count against the quota and are not this stack's."""
    machines = _machines(aws, need)
    used = sum(_vcpus(aws, one) for one in machines if not _ours(aws, one))
    if need.spot:
        return used
    # What is reserved counts, used or not; ours is a part of what is needed.
    idle = sum(
        int(one.get("AvailableInstanceCount", 0)) * _of_type(aws, str(one["InstanceType"]))
        for one in _reservations(aws, need.region)
        if str(one["InstanceType"])[0] == need.letter
        and one.get("ReservationType", "default") == "default"
    )
    return used + max(0, idle - need.held)


def _machines(aws: Aws, need: Need) -> list[dict[str, Any]]:
    filters = [
        {"Name": "instance-state-name", "Values": ["pending", "running"]},
        {"Name": "instance-type", "Values": list(_PATTERNS[need.letter])},
    ]

    def ask() -> list[dict[str, Any]]:
        found = aws.session.every(
            "ec2", "describe_instances", "Reservations", need.region, Filters=filters
        )
        return [machine for one in found for machine in one.get("Instances", ())]

    found = aws.once.get(("machines", need.region, need.letter), ask)
    wanted = "spot" if need.spot else None
    return [one for one in found if one.get("InstanceLifecycle") == wanted]


def _reservations(aws: Aws, region: str) -> list[dict[str, Any]]:
    filters = [{"Name": "state", "Values": ["active"]}]
    return aws.once.get(
        ("reservations", region),
        lambda: aws.session.every(
            "ec2", "describe_capacity_reservations", "CapacityReservations", region, Filters=filters
        ),
    )


def _ours(aws: Aws, machine: Mapping[str, Any]) -> bool:
    tags = {tag["Key"]: tag["Value"] for tag in machine.get("Tags", ())}
    own = (aws.subject.project, aws.subject.name)
    return (tags.get("gputier:project"), tags.get("gputier:stack")) == own


def _vcpus(aws: Aws, machine: Mapping[str, Any]) -> int:
    cpu: Mapping[str, int] = machine.get("CpuOptions", {})
    if "CoreCount" in cpu:
        return cpu["CoreCount"] * cpu.get("ThreadsPerCore", 1)
    return _of_type(aws, str(machine["InstanceType"]))


def _of_type(aws: Aws, name: str) -> int:
    """vCPU of a type, as the catalogue knows it."""
    row = aws.subject.catalog.types.get(("aws", name))
    if row is None or row.vcpus is None:
        raise CannotAsk(f"how many vCPU {name} has is not known here")
    return row.vcpus
