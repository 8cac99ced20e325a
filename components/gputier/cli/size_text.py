"""The size screen: the figure first, then a bar for each part, then which cards hold it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gputier.catalog import Gpu
from gputier.cli import plan_words as words
from gputier.cli.console import Paint
from gputier.cli.text import Column, bar, flow, labelled, table
from gputier.sizing import Sizing

if TYPE_CHECKING:
    from gputier.cli.size_run import Sized

HANG = 14
WIDEST_BAR = 24
#: Cards that are too small: the nearest few say enough.
NEAREST = 4
#: Cards that fit: the smallest classes, which are the ones somebody would buy.
CLASSES = 3


@dataclass(frozen=True, slots=True)
class SizeScreen:
    """How to lay out, and the GPU models with their usable GiB, by memory."""

    width: int
    paint: Paint
    cards: Mapping[str, tuple[Gpu, float]]


def size_screen(sized: Sized, screen: SizeScreen) -> list[str]:
    """One workload's size."""
    model = sized.need.workload.model
    name = screen.paint.bold(sized.name)
    sizing = sized.sizing
    if sizing is None or model is None:
        return flow([name, "nothing to size: no `model` is declared"], screen.width, 0)
    each = f"{sizing.per_gpu_gib:.1f} GiB per GPU"
    total = f"{sizing.total_gib:,.1f} GiB on {sizing.gpus} GPUs" if sizing.gpus > 1 else ""
    parts = (
        name,
        screen.paint.bold(each),
        total,
        words.model_words(model),
        f"confidence {sizing.confidence}",
    )
    return [
        *flow(parts, screen.width, 0),
        *_parts(sizing, screen),
        *labelled("  fits", _fitting(sized, screen.cards), screen.width, HANG),
        *labelled("  too small", _too_small(sized, screen.cards), screen.width, HANG),
        *labelled("  limit", [_limit(sizing, sized.need.kept_free)], screen.width, HANG),
        *labelled("  basis", [sizing.basis], screen.width, HANG),
        *_warnings(sizing.warnings, screen.width),
    ]


def _parts(sizing: Sizing, screen: SizeScreen) -> list[str]:
    largest = max(p.gib for p in sizing.parts)
    cells = min(WIDEST_BAR, max(8, screen.width // 5))
    rows = [
        [
            words.part_name(p.name),
            f"{p.gib:.1f}" if p.gib >= 0.05 else f"{p.gib:.2f}",
            screen.paint.cyan(bar(p.gib, largest, cells)),
            p.formula,
        ]
        for p in sizing.parts
    ]
    return table(
        (Column(), Column(right=True), Column(), Column(wraps=True)), rows, screen.width, "  "
    )


def _fitting(sized: Sized, cards: Mapping[str, tuple[Gpu, float]]) -> Iterator[str]:
    """The cards that hold it, smallest class first, a class to a part."""
    by_class: dict[float, list[str]] = {}
    for model, (gpu, _usable) in cards.items():
        if sized.fits[model]:
            by_class.setdefault(gpu.marketed_gb, []).append(model)
    if not by_class:
        yield "no card there is; more GPUs share the load (gpu.count), or a smaller precision"
    for size, models in list(by_class.items())[:CLASSES]:
        yield f"{size:g} GB: {', '.join(models)}"
    larger = sum(len(models) for models in list(by_class.values())[CLASSES:])
    if larger:
        yield f"and {larger} larger"


def _too_small(sized: Sized, cards: Mapping[str, tuple[Gpu, float]]) -> Iterator[str]:
    """The largest cards that do not, with what they could give."""
    small = [(gpu, usable) for model, (gpu, usable) in cards.items() if not sized.fits[model]]
    for gpu, usable in small[: -NEAREST - 1 : -1]:
        yield f"{gpu.model} ({usable:.1f} usable)"
    if len(small) > NEAREST:
        yield f"and {len(small) - NEAREST} smaller"


def _limit(sizing: Sizing, kept_free: float) -> str:
    share = f"at most {100 * sizing.limit_fraction:g} % of what a process can use of a card"
    return f"{share}; {100 * kept_free:g} % kept free is in the margin" if kept_free else share


def _warnings(warnings: Sequence[str], width: int) -> list[str]:
    lines: list[str] = []
    for n, warning in enumerate(warnings):
        lines += labelled("" if n else "  note", [warning], width, HANG)
    return lines
