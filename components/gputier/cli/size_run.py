"""What `gputier size` does."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gputier.catalog import Catalog, Gpu
from gputier.catalog.build import usable_gib
from gputier.cli import console
from gputier.cli.console import Paint
from gputier.cli.inputs import json_text, load_catalog
from gputier.cli.size_text import SizeScreen, size_screen
from gputier.errors import ExitCode, InvalidInput, Problem
from gputier.plan import Need, need_of, sizing_document
from gputier.plan.known import KnownModels
from gputier.sizing import Room, Saving, Sizing, savings
from gputier.sizing import room as sizing_room
from gputier.workload import Declaration, resolve
from gputier.workload.known import asking

SCHEMA = "gputier/size/1"


@dataclass(frozen=True)
class Sized:
    """A workload with its size; None when no model is declared. `fits` and `usable` (GiB that a
    process can use of a whole card) are per GPU model."""

    name: str
    need: Need
    gpus: int
    sizing: Sizing | None
    fits: Mapping[str, bool]
    usable: Mapping[str, float]
    savings: tuple[Saving, ...] = ()
    rooms: dict[float, tuple[Room, ...]] = field(
        default_factory=dict[float, tuple[Room, ...]], compare=False
    )

    def room(self, model: str) -> tuple[Room, ...]:
        """How much more a card that holds it holds; worked out when asked, once a memory size."""
        usable = self.usable[model]
        if usable not in self.rooms:
            workload, kept_free = self.need.workload, self.need.kept_free
            self.rooms[usable] = sizing_room(workload, self.gpus, kept_free, usable)
        return self.rooms[usable]


def run(target: str | None, as_json: bool, catalog_directory: str | None) -> int:
    """Size what was named and print it; the exit code."""
    catalog = load_catalog(catalog_directory)
    with asking(KnownModels()):
        declarations = resolve(target, Path.cwd())
    known = cards(catalog)
    sized = [sizes(declaration, known) for declaration in declarations]
    texts: list[str] = []
    for declaration, found in zip(declarations, sized, strict=True):
        if as_json:
            texts.append(json_text(document(declaration, found)))
        else:
            screen = SizeScreen(console.width(), Paint(sys.stdout), known)
            blocks = ["\n".join(size_screen(one, screen)) for one in found]
            texts.append("\n\n".join(blocks) + "\n")
    console.out(("" if as_json else "\n").join(texts))
    for declaration in declarations:
        for warning in declaration.warnings:
            console.note(warning)
    return ExitCode.OK


def cards(catalog: Catalog) -> Mapping[str, tuple[Gpu, float]]:
    """Each GPU model with what a process can use of a whole card, by memory and name."""
    models = sorted(catalog.gpus.values(), key=lambda gpu: (gpu.marketed_gb, gpu.model))
    return {gpu.model: (gpu, usable_gib(gpu, gpu.vram_gib, None)) for gpu in models}


def sizes(declaration: Declaration, known: Mapping[str, tuple[Gpu, float]]) -> tuple[Sized, ...]:
    """Every workload's size. Raises InvalidInput with all problems, at their places."""
    usable = {model: gib for model, (_gpu, gib) in known.items()}
    found: list[Sized] = []
    problems: list[Problem] = []
    for name, workload in declaration.workloads.items():
        gpus = (workload.gpu.count or 1) * (workload.nodes or 1)
        try:
            need = need_of(name, workload, declaration.environment)
            sizing = need.sizing(gpus)
        except InvalidInput as error:
            for p in error.problems:
                path = f"workloads.{name}.{p.path}" if p.path else f"workloads.{name}"
                position = p.position or declaration.positions.at(path)
                problems.append(replace(p, path=path, position=position))
            continue
        fits = {model: sizing.fits(gib) for model, gib in usable.items()} if sizing else {}
        saved = savings(workload, gpus, need.kept_free)
        found.append(Sized(name, need, gpus, sizing, fits, usable, saved))
    if problems:
        raise InvalidInput(problems)
    return tuple(found)


def document(declaration: Declaration, found: Sequence[Sized]) -> dict[str, object]:
    """Schema `gputier/size/1`."""
    return {
        "schema": SCHEMA,
        "name": declaration.name,
        "workloads": [_workload(one) for one in found],
    }


def _workload(one: Sized) -> dict[str, object]:
    if one.sizing is None:
        return {"name": one.name, "gpus": one.gpus, **_NOTHING}
    rule = one.sizing.rule_of_thumb_gib
    return {
        "name": one.name,
        **sizing_document(one.sizing),
        "fits": {model: one.fits[model] for model in sorted(one.fits)},
        "range_gib": [round(end, 6) for end in one.sizing.range_gib],
        "rule_of_thumb_gib": None if rule is None else round(rule, 6),
        "room": {
            model: {room.field: room.most for room in one.room(model)}
            for model in sorted(one.fits)
            if one.fits[model] and one.room(model)
        },
        "savings": [
            {
                "change": saving.change,
                "saves_gib": round(saving.saves_gib, 6),
                "per_gpu_gib": round(saving.sizing.per_gpu_gib, 6),
            }
            for saving in one.savings
        ],
    }


#: A workload without a model: there is nothing to size, which is not a size of 0.
_NOTHING: Mapping[str, object] = {
    "per_gpu_gib": None,
    "total_gib": None,
    "parts": {},
    "formulas": {},
    "limit_fraction": None,
    "basis": None,
    "confidence": None,
    "warnings": [],
    "fits": {},
    "range_gib": None,
    "rule_of_thumb_gib": None,
    "room": {},
    "savings": [],
}
