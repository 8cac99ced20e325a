"""How the machines of a workload are bought and run: capacity, scale, schedule, budget."""

from __future__ import annotations

import contextlib
import datetime
import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from gputier.workload import fields, known, schedule
from gputier.workload.base import Clash, Spec
from gputier.workload.complaints import complaint, listed, shown
from gputier.workload.foreign import other_accelerator
from gputier.workload.shapes import as_items

Use = Literal["on_demand", "spot", "reservation", "capacity_block", "flex_start"]
Metric = Literal["gpu_utilization"]
Action = Literal["none", "scale-to-zero"]

_USE_NAMES = {
    "ondemand": "on_demand", "preemptible": "spot", "reserved": "reservation",
    "odcr": "reservation", "block": "capacity_block", "dws": "flex_start", "cbml": "capacity_block",
}  # fmt: skip
_ACTION_NAMES = {"stop": "scale-to-zero", "zero": "scale-to-zero", "alert": "none"}
_FIXED = ("reservation", "capacity_block")
# The last group is what Go prints ("2026-11-01 11:30:00 +0000 UTC"): the engine takes an unquoted
# date for a time and hands it to a program in that form.
_DATE = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[Tt ](\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?\s?(Z|z|[+-]\d{2}:?\d{2})?(?: \S+)?)?"
)


def _moment(value: object) -> str:
    """a date or a time such as 2026-11-01T11:30:00Z, in UTC without an offset"""
    if isinstance(value, (datetime.date, datetime.datetime)):
        value = value.isoformat()
    if isinstance(value, str) and len(value) < 80 and (found := _DATE.fullmatch(value.strip())):
        year, month, day, hour, minute, second = (int(g or 0) for g in found.groups()[:6])
        offset = (found[7] or "Z").upper().replace("Z", "+0000").replace(":", "")
        shift = datetime.timedelta(hours=int(offset[1:3]), minutes=int(offset[3:]))
        with contextlib.suppress(ValueError, OverflowError):
            local = datetime.datetime(year, month, day, hour, minute, second)
            utc = local - shift if offset[0] == "+" else local + shift
            if 2000 <= utc.year < 2200:
                return utc.strftime("%Y-%m-%dT%H:%M:%SZ")
    raise complaint(
        f" must be a date or a time such as 2026-11-01 or 2026-11-01T11:30:00Z, not {shown(value)}"
    )


_is_type_name = fields.is_text(
    r"[A-Za-z0-9][A-Za-z0-9._\-]*", "an instance type such as p5.48xlarge", 80
)


def _instance_type(value: object) -> str:
    """an instance type such as p5.48xlarge"""
    if isinstance(value, str) and (what := other_accelerator(value)):
        raise complaint(
            f" is {shown(value)}, {what}: gputier is for NVIDIA GPUs",
            "see `gputier catalog` for the instance types there are",
        )
    return _is_type_name(value)


Moment = Annotated[str, BeforeValidator(_moment)]
Zone = Annotated[
    str,
    fields.text(r"[a-z0-9][a-z0-9\-]*", "a zone's name or id such as us-east-1a or use1-az4", 40),
]


class CapacityChoice(Spec):
    """One way to buy machines."""

    use: Annotated[Use, fields.choice(Use, _USE_NAMES)] = Field(
        description="How: on_demand, spot (cheap, may be taken away), reservation or capacity_block"
        " (already yours: the type, zone and count are fixed), flex_start (queued, runs for a"
        " limited time)."
    )
    id: (
        Annotated[str, fields.text(r"[A-Za-z0-9][A-Za-z0-9._:/\-]*", "a reservation's id or name")]
        | None
    ) = Field(default=None, description="Id or name of the reservation or capacity block.")
    instance_type: Annotated[str, BeforeValidator(_instance_type)] | None = Field(
        default=None,
        description="Only this instance type. Needed for reservation and capacity_block. Naming a"
        " type also admits one that is not offered to everybody.",
    )
    zone: Zone | None = Field(
        default=None,
        description="Only this zone, by name or id. Needed for reservation and capacity_block.",
    )
    count: Annotated[int, fields.whole(1, 1000)] | None = Field(
        default=None, description="Machines the reservation or block holds. Default: `nodes`."
    )
    start: Moment | None = Field(
        default=None,
        description="When the block or reservation begins, such as 2026-11-01T11:30:00Z.",
    )
    end: Moment | None = Field(default=None, description="When the block or reservation ends.")
    max_usd_per_hour: fields.UsdPerHour | None = Field(
        default=None, description="Ceiling per machine for this choice: `$2.50/h`."
    )
    on_demand_base: Annotated[int, fields.whole(0, 1000)] | None = Field(
        default=None, description="Machines that stay on demand under a spot fleet. Default: none."
    )

    def cross_checks(self) -> Iterator[Clash]:
        missing = [f"`{name}`" for name in ("instance_type", "zone") if getattr(self, name) is None]
        if self.use in _FIXED and missing:
            yield Clash(
                (),
                complaint(
                    f" is a {self.use}, which holds one instance type in one zone: it needs"
                    f" {listed(missing)}",
                    "such as"
                    f" {{use: {self.use}, instance_type: p5.48xlarge, zone: use1-az4, count: 4}}",
                ),
                ("use", "instance_type", "zone"),
            )
        if self.use not in _FIXED:
            for name in ("id", "count", "start", "end"):
                if getattr(self, name) is not None:
                    yield self._misplaced(name, "reservation and capacity_block")
        names = known.asked()
        unknown = names.instance_type(self.instance_type) if names and self.instance_type else None
        if unknown:
            yield Clash(("instance_type",), complaint(*unknown), ("instance_type",))
        if self.on_demand_base is not None and self.use != "spot":
            yield self._misplaced("on_demand_base", "spot")
        if self.start and self.end and self.start >= self.end:
            yield Clash(
                ("end",),
                complaint(f" ({self.end}) is not after `start` ({self.start})"),
                ("start", "end"),
            )

    def _misplaced(self, name: str, uses: str) -> Clash:
        return Clash(
            (name,),
            complaint(f" is for {uses}, and this is {self.use}", f"remove `{name}`", place="key"),
            ("use", name),
        )


def spelt_out(value: Any) -> Any:
    """`spot`, a map, or a list of either, as a list of maps."""
    items = as_items(value)
    each = (value,) if items is None else items
    return [{"use": item} if isinstance(item, str) else item for item in each]


def _each_once(choices: tuple[CapacityChoice, ...]) -> tuple[CapacityChoice, ...]:
    for place, one in enumerate(choices):
        if one in choices[:place]:
            raise complaint(
                f" lists the same `{one.use}` twice; the order is the order tried",
                "keep one of them",
            )
    return choices


Capacity = Annotated[
    tuple[CapacityChoice, ...],
    fields.several("way to buy", 10),
    BeforeValidator(spelt_out),
    AfterValidator(_each_once),
]


def _metric(value: object) -> str:
    """gpu_utilization"""
    if value == "gpu_utilization":
        return "gpu_utilization"
    raise complaint(
        f" must be gpu_utilization, not {shown(value)}: a fleet cannot be scaled by anything else"
        " yet"
    )


class Scale(Spec):
    """How many machines may run."""

    min: Annotated[int, fields.whole(0, 1000)] | None = Field(
        default=None,
        description="At least this many machines; 0 lets the fleet be empty. Default: `nodes`.",
    )
    max: Annotated[int, fields.whole(1, 1000)] | None = Field(
        default=None, description="At most this many machines. Default: as many as `min`."
    )
    metric: Annotated[Metric, BeforeValidator(_metric)] = Field(
        default="gpu_utilization",
        description="What the fleet grows and shrinks by: gpu_utilization.",
    )
    target: Annotated[int, fields.whole(1, 100, "a percentage")] = Field(
        default=70, description="Percentage of `metric` that the fleet is kept at."
    )

    def cross_checks(self) -> Iterator[Clash]:
        if self.min is not None and self.max is not None and self.min > self.max:
            yield Clash(
                ("min",),
                complaint(f" is {self.min}, more than `max`, which is {self.max}"),
                ("min", "max"),
            )
        for name in ("metric", "target"):
            if self.max is None and name in self.model_fields_set:
                yield Clash(
                    (name,),
                    complaint(
                        " has no effect without `scale.max`", "set `max`, or remove it", place="key"
                    ),
                    (name, "max"),
                )


class ScheduleEntry(Spec):
    """A recurring time in which the machines run."""

    start: Annotated[str, BeforeValidator(schedule.checked_cron)] = Field(
        description='When machines start, as five cron fields: `"0 20 * * mon-fri"` is 20:00 on'
        " weekdays."
    )
    stop: Annotated[str, BeforeValidator(schedule.checked_cron)] = Field(
        description="When they stop, written in the same way."
    )
    timezone: Annotated[str, BeforeValidator(schedule.checked_timezone)] = Field(
        default="UTC", description="IANA time zone of both, such as Europe/Berlin."
    )

    def cross_checks(self) -> Iterator[Clash]:
        if moment := schedule.same_minute(self.start, self.stop):
            yield Clash(
                ("stop",),
                complaint(
                    f" falls on the same minute as `start` ({moment:%A %H:%M}), so nobody can tell"
                    " whether machines should run",
                    "move one of them, or leave the schedule out for machines that always run",
                ),
                ("start", "stop"),
            )


def _alone_as_list(value: object) -> object:
    return (value,) if isinstance(value, int) and not isinstance(value, bool) else value


def _sorted(values: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(set(values)))


_MONITOR = r"create|arn:aws[a-z\-]*:ce::\d{12}:anomalymonitor/[A-Za-z0-9\-]+"


class Budget(Spec):
    """What a workload may cost in a month, and who hears of it."""

    usd_per_month: fields.UsdPerMonth = Field(description="The amount: `$500/month`, or 500.")
    alerts: Annotated[
        tuple[Annotated[int, fields.whole(1, 1000, "a percentage")], ...],
        fields.several("percentage", 10, least=0),
        BeforeValidator(_alone_as_list),
        AfterValidator(_sorted),
    ] = Field(
        default=(50, 80, 100), description="Percentages of the amount at which an alert goes out."
    )
    action: Annotated[Action, fields.choice(Action, _ACTION_NAMES)] = Field(
        default="none",
        description="What happens when more than the amount was spent: none (alerts only), or"
        " scale-to-zero, outside prod: no machine runs until somebody resumes the fleet.",
    )
    anomalies: (
        Annotated[str, fields.text(_MONITOR, "`create`, or the ARN of a cost anomaly monitor")]
        | None
    ) = Field(
        default=None,
        description="Who watches for unusual cost: `create` for a monitor of this workload's own,"
        " or the ARN of one that the account has. Default: nobody.",
    )
    billing_account: (
        Annotated[str, fields.text(r"[A-Za-z0-9][A-Za-z0-9\-]*", "a billing account's id")] | None
    ) = Field(default=None, description="Google Cloud billing account that the budget is set on.")
