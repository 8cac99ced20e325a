"""What sizing answers: GPU memory per GPU, part by part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

GIB = 2.0**30

RULE_OF_THUMB_BYTES = 3.0
"""2 bytes a parameter, and half of that again for everything else."""


def several(count: int, thing: str) -> str:
    """`1 sequence`, `4 sequences`."""
    return f"{count:,} {thing}" + ("" if count == 1 else "s")


def over(gpus: float) -> str:
    """What is added to a formula whose figure is divided among GPUs."""
    return f" ÷ {gpus:g} GPUs" if gpus > 1 else ""


def billions(count: float) -> str:
    """A parameter count in a formula, exact enough to check the arithmetic: `6.98B`, `83.7M`."""
    return f"{count / 1e9:,.2f}B" if count >= 1e9 else f"{count / 1e6:,.1f}M"


class Part(NamedTuple):
    """One piece of the memory a GPU holds: its name, GiB per GPU, and the arithmetic in words."""

    name: str
    gib: float
    formula: str


@dataclass(frozen=True, slots=True)
class Sizing:
    """How much memory each of `gpus` GPUs needs.

    `parts` are GiB per GPU and sum to `per_gpu_gib`, margin included; a part that is zero is left
    out. `limit_fraction` is the share of a card's usable memory that may be filled, `basis` says
    which input was used, `confidence` is measured, good, fair or weak. `spread` is the range of
    what nine of ten measured jobs of the kind used, as factors of `needed_gib`. `parameters` is
    the model's count where there is one, `precision` what its weights are taken to be stored in.
    """

    gpus: int
    parts: tuple[Part, ...]
    limit_fraction: float
    basis: str
    confidence: str
    warnings: tuple[str, ...] = ()
    spread: tuple[float, float] = (1.0, 1.0)
    parameters: float | None = None
    precision: str = ""

    @property
    def per_gpu_gib(self) -> float:
        """GiB per GPU, margin included."""
        return sum(part.gib for part in self.parts)

    @property
    def total_gib(self) -> float:
        """GiB over all GPUs, margin included."""
        return self.per_gpu_gib * self.gpus

    @property
    def needed_gib(self) -> float:
        """GiB per GPU that the job is expected to use: everything but the margin."""
        return sum(part.gib for part in self.parts if part.name != "margin")

    @property
    def range_gib(self) -> tuple[float, float]:
        """GiB per GPU between which the peak is expected to lie, without a margin."""
        low, high = self.spread
        return self.needed_gib * low, self.needed_gib * high

    @property
    def rule_of_thumb_gib(self) -> float | None:
        """Parameters (billions) × 2 GB × 1.5 ÷ GPUs, what people reckon with; None without a
        parameter count."""
        if self.parameters is None:
            return None
        return self.parameters * RULE_OF_THUMB_BYTES / self.gpus / GIB

    def fits(self, usable_gib: float) -> bool:
        """Whether a card of which a process can really allocate `usable_gib` is large enough."""
        return self.per_gpu_gib <= self.limit_fraction * usable_gib
