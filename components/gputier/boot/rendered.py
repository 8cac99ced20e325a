"""From a plan to exactly what a machine is given, with its size and its deadline, or a refusal."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gputier.boot import deadlines, stage0
from gputier.boot.deadlines import Deadline
from gputier.boot.expectation import expectation
from gputier.boot.settings import Bundle, Stack, settings
from gputier.catalog import Catalog
from gputier.errors import InvalidInput, Problem
from gputier.node import settings as node
from gputier.plan import WorkloadPlan


class Rendered(NamedTuple):
    """What a machine is given. `text` is the user data; `expectation` and `settings` are two files
    in it; `parts` its bytes by part, which sum to `size`; `sha256` is of the text."""

    text: str
    expectation: str
    settings: str
    parts: Mapping[str, int]
    size: int
    limit: int
    sha256: str
    deadline: Deadline


def render(
    plan: WorkloadPlan,
    catalog: Catalog,
    stack: Stack,
    bundle: Bundle,
    inline: bytes | None = None,
) -> Rendered:
    """The user data of one workload's machines: the same bytes for the same plan and lock.

    `inline` is the pinned bundle itself, to be carried in the user data. Raises `InvalidInput` when
    the user data is larger than the cloud takes, when the cloud would not wait for the last stage,
    and for a bundle that is not the pinned one; `ValueError` when nothing was chosen. The plan
    refuses the first two itself.
    """
    if plan.chosen is None:
        raise ValueError(f"no machine was chosen for {plan.name}")
    cloud = plan.chosen.verdict.type.cloud
    expected = expectation(plan, catalog, priced=False)
    written = settings(plan, stack, bundle, inline is not None)
    found = deadlines.deadline(_read(plan.name, stage0.lines(written)))
    written = _with_deadline(written, found)
    made = stage0.script(cloud, expected, written, inline)
    size, limit = len(made.text.encode()), stage0.LIMITS[cloud]
    problems = [
        *_wrong_bundle(plan.name, bundle, inline),
        *_too_large(plan.name, cloud, made.parts, size),
        *_too_long(plan.name, found),
    ]
    if problems:
        raise InvalidInput(problems)
    return Rendered(
        made.text,
        stage0.lines(expected),
        stage0.lines(written),
        made.parts,
        size,
        limit,
        hashlib.sha256(made.text.encode()).hexdigest(),
        found,
    )


def _read(name: str, text: str) -> node.Settings:
    """The settings as the bundle will read them: what it would refuse is refused here."""
    try:
        return node.read(text)
    except node.BadSettings as error:
        # The plan leaves nothing out and makes nothing up: this is a mistake of ours.
        where, words = f"workloads.{name}", "no machine could read its settings"
        problems = [Problem(where, f"{words}: {one}", "report it") for one in error.problems]
        raise InvalidInput(problems) from None


def _with_deadline(written: Mapping[str, object], found: Deadline) -> dict[str, object]:
    """The settings with what the arithmetic decided."""
    gate, limits = written["gate"], written["limits"]
    if not isinstance(gate, dict) or not isinstance(limits, dict):
        raise TypeError("gate and limits are sections")
    return {
        **written,
        "gate": {**gate, "deadline_seconds": found.deadline_seconds},
        "limits": {**limits, **found.cut},
    }


def _wrong_bundle(name: str, bundle: Bundle, inline: bytes | None) -> Iterator[Problem]:
    if inline is None or hashlib.sha256(inline).hexdigest() == bundle.sha256:
        return
    yield Problem(
        f"workloads.{name}",
        "the bundle of this gputier is not the one that the lock pins, so it cannot be carried"
        " inline",
        f"install gputier {bundle.version}, or choose anew with `gputier lock --upgrade {name}`",
    )


def _too_large(name: str, cloud: str, parts: Mapping[str, int], size: int) -> Iterator[Problem]:
    limit = stage0.LIMITS[cloud]
    if size <= limit:
        return
    by = ", ".join(f"{part} {count:,}" for part, count in sorted(parts.items(), key=_largest))
    hint = (
        "leave the bundle to the bucket: render without --inline"
        if "bundle" in parts
        else "put scripts into a container image or a machine image, or into the stack's bucket"
        " and fetch them in `software.run`"
    )
    yield Problem(
        f"workloads.{name}.software",
        f"user data of {size:,} bytes, and {limit:,} is the most for {cloud}: {by}",
        hint,
    )


def _largest(part: tuple[str, int]) -> int:
    return -part[1]


def _too_long(name: str, found: Deadline) -> Iterator[Problem]:
    if found.fits:
        return
    yield Problem(
        f"workloads.{name}",
        f"the stages of the boot may take {found.total_seconds:,} s, and {found.allowed_by}\n"
        + "\n".join(deadlines.table(found)),
        "take an image that has driver and framework (`software.image`), a container, or a lesser"
        " `validation.depth`",
    )
