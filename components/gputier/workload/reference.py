"""docs/workload.md, made from the schema so that it cannot fall behind it."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BeforeValidator
from pydantic.fields import FieldInfo

from gputier.workload import cron, model, software, yaml12
from gputier.workload.base import Spec
from gputier.workload.shapes import as_items

_HEAD = f"""
Workloads live in a stack's own config (`Pulumi.<stack>.yaml`, keys `gputier:workloads` and so on),
in a file of their own with the same keys without `gputier:`, or in Python:
`gputier.Workload(gpu={{"memory": "24GB"}})`. Anything a field does not say it takes is refused, all
mistakes of a file at once.

- **Argument.** A command's argument with a path separator, ending in `.yaml`, `.yml` or `.json`, or
  `-` (standard input) is a file; anything else is a stack. Without one, every stack is meant.
- **YAML** is read as Pulumi reads it: `true` and `false` are the only booleans; `on`, `yes` and
  `no` are text. JSON is YAML too. At most {yaml12.MAX_BYTES >> 20} MiB, {yaml12.MAX_NODES:,} values
  and {yaml12.MAX_DEPTH} levels; aliases and `<<` work.
- **Units** are written where a bare number would be a guess: `24GB`, `64GiB`, `10Gbps`, `500MB/s`,
  `7B`. A card's memory is the class it is sold in, so there GB and GiB mean the same.
- **Nothing** (`gpu:` with nothing behind it, or `null`) declares nothing.
- **One or several**: where a list is taken, one entry may stand alone.
- **Encrypted values** are refused below `gputier:` keys; other projects' keys are left alone. What
  ESC environments or `Pulumi.yaml` set for a stack is not read, and a warning says so;
  `pulumi config --json --open | gputier plan --config -` has all of it.

## Top-level keys

| key | takes | default | meaning |
|---|---|---|---|
| `workloads` | map from name to workload | needed | The workloads. A name is 1 to 40 lower-case \
letters, digits and dashes, begins with a letter and does not end in a dash: it becomes part of \
names in the cloud. |
| `environment` | a word such as dev, staging or prod | `prod` or `production` when the stack is \
called so, else `dev` | prod and production refuse what is only good for trying out. |
| `defaults` | [defaults](#defaults) | none | What each workload takes where it is silent itself. |
| `discounts` | list: [discount](#discount) | none | Reductions of the on-demand price. |
| `max_price_age_days` | days, 1 to 3,650 | none | Refuse to plan with prices older than this. |
"""

_SCHEDULE = f"""
Five fields: minute, hour, day of the month, month, weekday; numbers, names (`jan`, `mon`), lists,
ranges, steps and `*`; 0 and 7 are Sunday. As in cron(8), a day matches when either day field does,
unless one of them begins with `*`. A start may come at most {cron.MOST_STARTS_A_DAY} times a day
and never on the minute of its stop.

Hours a month are counted over a fixed calendar, 2025-01-01 to 2028-12-31 (48 months): machines run
from a start to the next stop, and with several entries whenever one of them says so. They are hours
that really pass: where the clocks change, a local time that is skipped counts at the moment of the
change, and one that comes twice counts the first time.
"""

SECTIONS: tuple[tuple[str, str, type[Spec]], ...] = (
    ("Workload", "", model.Workload),
    ("model", "model.", model.Model),
    ("model.architecture", "model.architecture.", model.Architecture),
    ("model.training", "model.training.", model.Training),
    ("model.image", "model.image.", model.Image),
    ("gpu", "gpu.", model.Gpu),
    ("cpu", "cpu.", model.Cpu),
    ("disk", "disk.", model.Disk),
    ("network", "network.", model.Network),
    ("capacity", "capacity.", model.CapacityChoice),
    ("scale", "scale.", model.Scale),
    ("schedule", "schedule[].", model.ScheduleEntry),
    ("budget", "budget.", model.Budget),
    ("software", "software.", software.Software),
    ("software.image", "software.image.", software.ImageChoice),
    ("software.container", "software.container.", software.Container),
    ("software.proxy", "software.proxy.", software.Proxy),
    ("software.mirrors", "software.mirrors.", software.Mirrors),
    ("validation", "validation.", software.Validation),
    ("identity", "identity.", model.Identity),
    ("defaults", "defaults.", model.Defaults),
    ("discount", "discounts[].", model.Discount),
)
_TITLES: dict[Any, str] = {kind: title for title, _, kind in SECTIONS}


def markdown() -> str:
    """The whole page."""
    return _HEAD + "".join("\n".join(_section(*section)) for section in SECTIONS)


def _section(title: str, prefix: str, kind: type[Spec]) -> Iterator[str]:
    yield f"\n## {title}\n"
    yield f"{(kind.__doc__ or '').strip().splitlines()[0]}\n"
    yield "| field | takes | default | meaning |"
    yield "|---|---|---|---|"
    for name, field in kind.model_fields.items():
        meaning, _, otherwise = (field.description or "").partition(" Default: ")
        default = otherwise.removesuffix(".") or _default(field)
        cells = (f"`{prefix}{name}`", _form(field.annotation, field.metadata), default, meaning)
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
    if kind.LATER:
        later = ", ".join(f"`{prefix}{name}`" for name in sorted(kind.LATER))
        yield f"\nNot read by this release, and so refused: {later}."
    yield _SCHEDULE if kind is model.ScheduleEntry else ""


def _form(annotation: Any, metadata: Sequence[Any] = ()) -> str:
    """What a field takes, in words: the docstrings of its checks."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _form(parts[0], (*parts[1:], *metadata))
    if origin in (Union, types.UnionType):
        some = [part for part in parts if part is not type(None)]
        return _form(some[0], metadata) if len(some) == 1 else _words(metadata)
    if title := _TITLES.get(annotation):
        return f"[{title}](#{title.replace('.', '')})"
    if origin is tuple:
        return f"list: {_form(parts[0])}"
    if origin is Mapping and parts[0] is str:  # the check of the whole says what is in it
        return _words(metadata)
    if origin is Mapping:
        return f"map from {_form(parts[0])} to {_form(parts[1])}"
    return _words(metadata)


def _words(metadata: Sequence[Any]) -> str:
    checks = [item for item in metadata if isinstance(item, BeforeValidator)]
    return next((doc for c in checks if (doc := getattr(c.func, "__doc__", None))), "")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "needed"
    value: Any = field.default
    if value is None or isinstance(value, Spec):
        return ""
    if (items := as_items(value)) is not None:
        return ", ".join(f"`{getattr(item, 'use', item)}`" for item in items)
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"
