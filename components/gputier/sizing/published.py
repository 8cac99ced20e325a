"""Speech, 3D, HPC, vision and rendering by look-up: data/other.csv, 125 published figures.

The figure is what its source says of the whole job on one GPU. A name may say only the workload
(`TRELLIS`), then the largest of its figures counts, or the setting too (`Hunyuan3D-2 shape only`).
"""

from __future__ import annotations

import csv
from functools import cache
from typing import NamedTuple

from gputier.sizing import names
from gputier.sizing.known import FAIR, GOOD
from gputier.sizing.records import Part, several
from gputier.sizing.simulations import Simulated
from gputier.sizing.table import DATA
from gputier.workload.ml import Model

_MARGINS = {"measured": 0.10, "stated": 0.25}

_MEASURED = ("measured", "peak", "takes", "allocated", "exact", "profile found")
"""How a measure begins that somebody took; the others are what a maker states."""

_KINDS = (" image to 3D", " text to speech", " training on COCO", " medical segmentation training",
          " training", " inference", " structure prediction", " transcription")  # fmt: skip
"""What a workload does, which a name may leave out."""

_LEFT_OUT = ("CPU offload", "unified memory")
"""Settings that put memory elsewhere: never the answer to a plain name."""


class Row(NamedTuple):
    """One published figure; GB as its source says."""

    category: str
    workload: str
    size: str
    precision: str
    setting: str
    gb: float
    measure: str
    gpu: str
    source: str
    verified: bool

    @property
    def measured(self) -> bool:
        """Whether somebody measured it, rather than stated what is enough."""
        return self.measure.startswith(_MEASURED)

    @property
    def name(self) -> str:
        """The workload without brackets and commas, which a name may not have."""
        return self.workload.split(" (", 1)[0].replace(",", "")

    @property
    def nvidia(self) -> bool:
        """Whether it is of a card that is sized for; four rows are of Radeon cards."""
        return not self.gpu.startswith("Radeon")

    @property
    def words(self) -> str:
        """The figure with everything that is known of it."""
        what = " · ".join(w for w in (self.size, self.precision, self.setting, self.gpu) if w)
        return (
            f"published {self.gb:g} GB ({self.measure}) for {self.workload}, {what}: {self.source}"
        )


class Rows(NamedTuple):
    """The figures, and which of them a name means."""

    rows: tuple[Row, ...]
    entries: tuple[tuple[int, ...], ...]
    spellings: tuple[tuple[str, ...], ...]
    by_name: names.NameIndex

    def find(self, name: str) -> tuple[Row, ...]:
        """The figures that a name may mean; () when none."""
        chosen = {n for entry in self.by_name.find(name) for n in self.entries[entry]}
        return tuple(self.rows[n] for n in sorted(chosen))


@cache
def load() -> Rows:
    """The figures, read once: 121 of 125 rows."""
    with (DATA / "other.csv").open(encoding="utf-8", newline="") as file:
        rows = tuple(row for row in map(_row, csv.DictReader(file)) if row.nvidia)
    entries: list[tuple[int, ...]] = []
    spellings: list[tuple[str, ...]] = []
    for workload in dict.fromkeys(row.workload for row in rows):
        entries.append(tuple(n for n, row in enumerate(rows) if row.workload == workload))
        spellings.append(_spellings(workload))
    for n, row in enumerate(rows):
        entries.append((n,))
        size = row.size.replace(",", "")
        parts = [f"{name} {size}" for name in _spellings(row.workload)]
        spellings.append((*parts, *(f"{name} {row.setting}" for name in parts if row.setting)))
    return Rows(rows, tuple(entries), tuple(spellings), names.NameIndex(spellings))


def _row(row: dict[str, str]) -> Row:
    return Row(
        row["category"],
        row["workload"],
        row["size"],
        row["precision"],
        row["setting"],
        float(row["memory_gb"]),
        row["measure"],
        row["gpu"],
        row["source"],
        row["verified"] == "yes",
    )


def _spellings(workload: str) -> tuple[str, ...]:
    """The workload, without what is in brackets, and without its toolbox's name."""
    short = workload.split(" (", 1)[0].replace(",", "")
    plain = short.removeprefix("nerfstudio ")
    kind = next((end for end in _KINDS if plain.endswith(end)), "")
    return tuple(dict.fromkeys((workload, short, plain, plain.removesuffix(kind))))


def all_names() -> list[str]:
    """Every workload that has a figure, as `model.name` may be written."""
    return list(dict.fromkeys(row.name for row in load().rows))


def look_up(model: Model, gpus: int) -> Simulated | None:
    """Memory per GPU of the job that `model.name` means; None when no figure is published."""
    found = load().find(model.name or "")
    usual = [row for row in found if not row.setting.startswith(_LEFT_OUT)] or list(found)
    if not usual:
        return None
    row = max(usual, key=lambda row: row.gb)
    copies = -(-(model.seats or 1) // gpus) if row.category == "vdi" else 1
    formula = row.words if copies == 1 else f"{several(copies, 'seat')} × {row.words}"
    others = sorted({other.gb for other in usual} - {row.gb})
    said = (
        (
            f"{several(len(others), 'other figure')} published, from {others[0]:g} GB: the largest"
            " counts",
        )
        if others
        else ()
    )
    return Simulated(
        (Part("activations", row.gb * copies, formula),),
        f"{row.workload}: a published figure; each GPU holds a whole job",
        GOOD if row.measured and row.verified and not others else FAIR,
        _MARGINS["measured" if row.measured else "stated"],
        said,
    )
