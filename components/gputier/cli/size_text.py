"""The size screen: the figure first, then a bar for each part, then which cards hold it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gputier.catalog import Gpu
from gputier.cli import plan_words as words
from gputier.cli.console import Paint
from gputier.cli.text import Column, bar, flow, labelled, plural, table
from gputier.sizing import Saving, Sizing, size

if TYPE_CHECKING:
    from gputier.cli.size_run import Sized

HANG = 14
WIDEST_BAR = 24
#: Cards that are too small: the nearest few say enough.
NEAREST = 4
#: Cards that fit: the smallest classes, which are the ones somebody would buy.
CLASSES = 3
CARD_BAR = 20
#: Compute capability of Volta: hints name no older card.
OLDEST = 7.0
#: Changes worth naming; the JSON has them all.
CHANGES = 4


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
    low, high = sizing.range_gib
    each = f"{sizing.per_gpu_gib:.1f} GiB per GPU"
    total = f"{sizing.total_gib:,.1f} GiB on {sizing.gpus} GPUs" if sizing.gpus > 1 else ""
    parts = (
        name,
        screen.paint.bold(each),
        total,
        words.model_words(model),
        f"peak expected {_between(low, high)}, " * (high > low) + f"confidence {sizing.confidence}",
    )
    return [
        *flow(parts, screen.width, 0),
        *_parts(sizing, screen),
        *labelled("  fits", _fitting(sized, screen.cards), screen.width, HANG),
        *labelled("  too small", _too_small(sized, screen.cards), screen.width, HANG),
        *_cards(sized, sizing, screen),
        *labelled("  saves", _saves(sized, screen.cards), screen.width, HANG),
        *labelled("  limit", [_limit(sizing, sized.need.kept_free)], screen.width, HANG),
        *labelled("  basis", [sizing.basis], screen.width, HANG),
        *labelled("  rule", _rule(sizing), screen.width, HANG),
        *_warnings((*sizing.warnings, *_links(sized, screen.cards)), screen.width),
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


def _between(low: float, high: float) -> str:
    """`18–24 GiB`, with a decimal where the whole numbers would say nothing."""
    digits = 0 if low >= 10 else 1
    return f"{low:.{digits}f}–{high:.{digits}f} GiB"


def _classes(sized: Sized, cards: Mapping[str, tuple[Gpu, float]]) -> dict[float, list[str]]:
    """The cards that hold it, by marketed memory, smallest first."""
    found: dict[float, list[str]] = {}
    for model, (gpu, _usable) in cards.items():
        if sized.fits[model]:
            found.setdefault(gpu.marketed_gb, []).append(model)
    return found


def _cards(sized: Sized, sizing: Sizing, screen: SizeScreen) -> list[str]:
    """How full the nearest cards get: the largest that is too small, then the smallest that fit."""
    current = {model: card for model, card in screen.cards.items() if _current(card[0])}
    small = [model for model in current if not sized.fits[model]][-1:]
    fit = [_newest(models, current) for models in list(_classes(sized, current).values())[:CLASSES]]
    rows: list[list[str]] = []
    for model in (*small, *fit):
        _gpu, usable = screen.cards[model]
        full = sizing.per_gpu_gib / (sizing.limit_fraction * usable)
        filled = min(CARD_BAR, round(CARD_BAR * full))
        room = _room(sized, model) if sized.fits[model] else "too small"
        rows.append(
            [
                model,
                screen.paint.cyan("▓" * filled + "░" * (CARD_BAR - filled)),
                f"{100 * full:,.0f} %",
                room,
            ]
        )
    return table(
        (Column(), Column(), Column(right=True), Column(wraps=True)), rows, screen.width, "  "
    )


def _current(gpu: Gpu) -> bool:
    """Whether somebody would still start something on it: a data-centre card since Volta."""
    return gpu.compute_capability >= OLDEST and not gpu.consumer


def _newest(models: Sequence[str], cards: Mapping[str, tuple[Gpu, float]]) -> str:
    """The card to name of a class: the newest architecture's, the first by name among equals."""
    return max(sorted(models), key=lambda m: cards[m][0].compute_capability)


#: What one of each field that may grow is called.
_THINGS = {"concurrent_sequences": "sequence", "batch_per_gpu": "sample"}


def _room(sized: Sized, model: str) -> str:
    """`up to 14 sequences of 8,192 tokens, or 1 of 131,072`."""
    declared = sized.need.workload.model
    pieces: list[str] = []
    for room in sized.room(model):
        if room.field in _THINGS:
            tokens = declared.context_tokens if declared else None
            packed = declared and declared.training and declared.training.mean_tokens
            each = f" of {'up to ' if packed else ''}{tokens:,} tokens" if tokens else ""
            pieces.append(f"{plural(room.most, _THINGS[room.field])}{each}")
        elif declared and room.most > (declared.context_tokens or 0):
            training = declared.training
            count = training.batch_per_gpu if training else declared.concurrent_sequences
            pieces.append(f"{count:,} of {room.most:,} tokens")
    return f"up to {', or '.join(pieces)}" if pieces else ""


def _saves(sized: Sized, cards: Mapping[str, tuple[Gpu, float]]) -> Iterator[str]:
    """What to change for less, with the smaller card or the fewer cards that it leads to."""
    current = {model: card for model, card in cards.items() if _current(card[0])}
    now = _smallest(current, [m for m in current if sized.fits[m]])
    for saving in sized.savings[:CHANGES]:
        text = f"{saving.change} saves {saving.saves_gib:.1f} GiB"
        enough = [m for m, (_gpu, usable) in current.items() if saving.sizing.fits(usable)]
        then = _smallest(current, enough)
        fewer = _fewer(sized, saving, current[now][1]) if now and sized.gpus > 1 else None
        if fewer:
            text += f": {fewer} × {now} instead of {sized.gpus}"
        elif then and (now is None or current[then][0].marketed_gb < current[now][0].marketed_gb):
            text += f": {then} is enough" + (f" instead of {now}" if now else "")
        yield text


def _smallest(cards: Mapping[str, tuple[Gpu, float]], models: Sequence[str]) -> str | None:
    """The card to name of the smallest class among some."""
    if not models:
        return None
    least = min(cards[model][0].marketed_gb for model in models)
    return _newest([m for m in models if cards[m][0].marketed_gb == least], cards)


def _fewer(sized: Sized, saving: Saving, usable: float) -> int | None:
    """The fewest GPUs, halving, on which the change fits the card that is enough now."""
    best, count = None, sized.gpus // 2
    while count >= 1:
        tried = size(saving.workload, gpus=count, kept_free=sized.need.kept_free)
        if tried is None or not tried.fits(usable):
            break
        best, count = count, count // 2
    return best


def _rule(sizing: Sizing) -> Iterator[str]:
    """What people reckon with, beside it."""
    rule = sizing.rule_of_thumb_gib
    if rule is not None:
        share = f" ÷ {sizing.gpus} GPUs" if sizing.gpus > 1 else ""
        yield (
            f"rule of thumb: {rule:.1f} GiB (parameters × 2 B × 1.5{share}), {1.3 * rule:.1f} with"
            " the usual 30 % on top"
        )


def _links(sized: Sized, cards: Mapping[str, tuple[Gpu, float]]) -> Iterator[str]:
    """Tensor parallelism without NVLink works, slowly: said of the cards that would be bought."""
    model = sized.need.workload.model
    if sized.gpus == 1 or model is None or (model.training and model.training.tensor_parallel == 1):
        return
    if model.pipeline_parallel >= sized.gpus:
        return
    near = [model for models in list(_classes(sized, cards).values())[:CLASSES] for model in models]
    without = [name for name in near if cards[name][0].nvlink_gb_s_per_gpu in (None, 0)]
    if without:
        yield (
            f"{', '.join(without)}: no NVLink, so that splitting layers over {sized.gpus} GPUs"
            " goes over PCIe; `gpu.nvlink: true` asks for it"
        )


def _fitting(sized: Sized, cards: Mapping[str, tuple[Gpu, float]]) -> Iterator[str]:
    """The cards that hold it, smallest class first, a class to a part."""
    by_class = _classes(sized, cards)
    if not by_class:
        yield "no card there is; more GPUs share the load (gpu.count), or a smaller precision"
    for gigabytes, models in list(by_class.items())[:CLASSES]:
        yield f"{gigabytes:g} GB: {', '.join(models)}"
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
