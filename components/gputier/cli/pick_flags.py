"""Every field of a workload as a flag, read off the schema: a new field is a flag by itself."""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args, get_origin

import click

from gputier.errors import Problem
from gputier.workload import CapacityChoice, ScheduleEntry, Workload
from gputier.workload.base import Spec

#: Fields whose flag is not simply their path. The rest of a path's first words falls away where
#: what is left says enough: `model.training.optimizer` is `--optimizer`.
_NAMES = {
    "model.name": "--model",
    "model.config": "--model-config",
    "model.training.method": "--training",
    "model.training.state": "--training-state",
    "model.image.resolution": "--image-resolution",
    "model.image.frames": "--image-frames",
    "model.image.batch": "--image-batch",
    "gpu.models": "--gpu",
    "gpu.exclude": "--exclude-gpu",
    "gpu.compute_capability": "--compute-capability",
    "gpu.nvlink": "--nvlink",
    "gpu.fractional": "--fractional",
    "gpu.graphics": "--graphics",
    "gpu.video_encode": "--video-encode",
    "gpu.video_decode": "--video-decode",
    "gpu.vgpu": "--vgpu",
    "gpu.mig": "--mig",
    "clouds": "--cloud",
    "regions": "--region",
    "zones": "--zone",
    "schedule": "--schedule",
    "capacity": "--capacity",
    "budget.usd_per_month": "--budget",
    "budget.alerts": "--budget-alert",
    "budget.billing_account": "--billing-account",
}
_DROPPED = ("model.training.", "model.architecture.", "model.")
#: Capacity in more words than a name: these describe the one `--capacity` that is given.
_CAPACITY = {
    "id": "--capacity-id",
    "instance_type": "--instance-type",
    "zone": "--capacity-zone",
    "count": "--capacity-count",
    "start": "--capacity-start",
    "end": "--capacity-end",
    "max_usd_per_hour": "--capacity-max-usd-per-hour",
    "on_demand_base": "--on-demand-base",
}
#: Fields that may be a yes or something more exact: the value may be left out.
_YES_OR_MORE = frozenset({"gpu.nvlink", "gpu.mig"})


@dataclass(frozen=True, slots=True)
class Flag:
    """A field's flag. `several` takes it more than once, `yes_no` has no value."""

    path: str
    name: str
    help: str
    words: tuple[str, ...] = ()
    several: bool = False
    yes_no: bool = False

    @property
    def parameter(self) -> str:
        """The name click hands the value over by."""
        return self.name.removeprefix("--").replace("-", "_")

    def option(self) -> click.Option:
        """The flag as click knows it. Values stay text: the schema reads and judges them."""
        if self.path == "schedule":
            return click.Option(
                [self.name, self.parameter],
                nargs=3,
                multiple=True,
                metavar="START STOP TIMEZONE",
                help=f'{self.help} Five cron fields each: "0 20 * * mon-fri".',
            )
        if self.yes_no:
            both = f"{self.name}/--no-{self.name.removeprefix('--')}"
            return click.Option([both, self.parameter], default=None, help=self.help)
        loose = self.path in _YES_OR_MORE
        return click.Option(
            [self.name, self.parameter],
            multiple=self.several,
            default=() if self.several else None,
            is_flag=False,
            flag_value="true" if loose else None,
            metavar=self._metavar(),
            help=f"{self.help} May be repeated." if self.several else self.help,
        )

    def _metavar(self) -> str:
        if self.path == "regions":
            return "CLOUD:REGION"
        if self.words:
            return "|".join(self.words)
        return "VALUE" if self.path not in _YES_OR_MORE else "[VALUE]"


def flags() -> tuple[Flag, ...]:
    """Every flag, in the schema's order."""
    found: list[Flag] = []
    for path, annotation, text in _leaves(Workload, ""):
        found.append(_flag(path, annotation, text))
        if path == "capacity":
            found += _capacity_flags()
    return tuple(found)


def _capacity_flags() -> Iterator[Flag]:
    for path, annotation, text in _leaves(CapacityChoice, ""):
        if path in _CAPACITY:
            yield replace(
                _flag(path, annotation, text), path=f"capacity.{path}", name=_CAPACITY[path]
            )


def _flag(path: str, annotation: object, text: str) -> Flag:
    kinds = set(_atoms(annotation))
    words = tuple(word for kind in kinds for word in _literals(kind))
    several = any(get_origin(kind) is tuple for kind in kinds) or path == "regions"
    yes_no = bool in kinds and not kinds & {str, float}
    if path == "capacity":
        words = tuple(get_args(CapacityChoice.model_fields["use"].annotation))
    return Flag(path, _name(path), _help(text), words, several, yes_no)


def _name(path: str) -> str:
    known = _NAMES.get(path)
    if known:
        return known
    for prefix in _DROPPED:
        if path.startswith(prefix):
            path = path.removeprefix(prefix)
            break
    return "--" + path.replace(".", "-").replace("_", "-")


def _help(text: str) -> str:
    """A description in the schema, without the marks of a page."""
    return text.replace("`", "").replace("\n", " ")


def _leaves(spec: type[Spec], prefix: str) -> Iterator[tuple[str, object, str]]:
    for name, field in spec.model_fields.items():
        path = f"{prefix}{name}"
        inner = [a for a in _atoms(field.annotation) if isinstance(a, type) and issubclass(a, Spec)]
        if inner and inner[0] not in (CapacityChoice, ScheduleEntry):
            yield from _leaves(inner[0], f"{path}.")
        else:
            yield path, field.annotation, field.description or ""


def _atoms(annotation: object) -> Iterator[object]:
    """The kinds an annotation may be, without Optional and Annotated around them."""
    origin = get_origin(annotation)
    if origin is typing.Annotated:
        yield from _atoms(get_args(annotation)[0])
    elif origin is tuple:
        yield annotation
        yield from _atoms(get_args(annotation)[0])
    elif origin is not None and origin is not Literal:
        for inner in get_args(annotation):
            yield from _atoms(inner)
    else:
        yield annotation


def _literals(kind: object) -> tuple[str, ...]:
    return tuple(map(str, get_args(kind))) if get_origin(kind) is Literal else ()


def workload_of(values: Mapping[str, Any], known: Sequence[Flag]) -> dict[str, Any]:
    """The declaration that the flags mean, as plain values. Silence stays silence."""
    data: dict[str, Any] = {}
    details: dict[str, Any] = {}
    for flag in known:
        value = values.get(flag.parameter)
        if value is None or value == ():
            continue
        if flag.path.startswith("capacity."):
            details[flag.path.removeprefix("capacity.")] = value
        elif flag.path == "regions":
            data["regions"] = _regions(value)
        elif flag.path == "schedule":
            data["schedule"] = [dict(zip(_SCHEDULE, one, strict=True)) for one in value]
        else:
            _put(data, flag.path, list(value) if flag.several else _plain(flag, value))
    if details:
        uses = data.get("capacity", ["on_demand"])
        data["capacity"] = [{"use": uses[0], **details}, *uses[1:]]
    return data


_SCHEDULE = ("start", "stop", "timezone")


def _plain(flag: Flag, value: Any) -> Any:
    # A square image's side is a number in a file, and a flag's value is always text.
    if flag.path == "model.image.resolution" and value.isdigit():
        return int(value)
    return value


def _regions(written: Sequence[str]) -> dict[str, list[str]]:
    """`aws:us-east-1` by cloud; one without a cloud is left for the caller to refuse."""
    found: dict[str, list[str]] = {}
    for one in written:
        cloud, _, region = one.partition(":")
        found.setdefault(cloud, []).append(region)
    return found


def _put(data: dict[str, Any], path: str, value: object) -> None:
    *above, last = path.split(".")
    for word in above:
        data = data.setdefault(word, {})
    data[last] = value


_FIELD = r"`([a-z_.\[\]0-9]+)`"
#: Parts of a workload that no single flag stands for.
_GROUPS = frozenset({"model", "model.architecture", "model.training", "model.image", "gpu", "cpu",
                     "disk", "network", "scale", "budget"})  # fmt: skip
_RESERVED = (
    "such as --capacity reservation --instance-type p5.48xlarge --capacity-zone use1-az4"
    " --capacity-count 4"
)


def in_flags(problem: Problem, known: Sequence[Flag]) -> Problem:
    """The same problem, naming flags where it named fields."""
    by_path = {flag.path: flag.name for flag in known}
    path = re.sub(r"\[\d+\]", "", problem.path)

    def said(match: re.Match[str]) -> str:
        word = re.sub(r"\[\d+\]", "", match[1])
        above = path.rpartition(".")[0]
        places = (word, f"{path}.{word}", f"{above}.{word}", f"{path.partition('.')[0]}.{word}")
        group = f"the {word.rpartition('.')[2]}" if word in _GROUPS else match[0]
        return next((f"`{by_path[p]}`" for p in places if p in by_path), group)

    message = re.sub(_FIELD, said, problem.message)
    hint = re.sub(_FIELD, said, problem.hint)
    if "{use:" in hint:
        hint = _RESERVED
    flag = _nearest(path, by_path)
    # The flag leads when the message does not name it itself.
    return Problem("" if not flag or flag in message else flag, message, hint)


def _nearest(path: str, by_path: Mapping[str, str]) -> str:
    """The flag of a path or of what is above it; `regions.aws` is the regions'."""
    while path:
        if path in by_path:
            return by_path[path]
        path = path.rpartition(".")[0]
    return ""
