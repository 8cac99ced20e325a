"""What else a size tells: how much more a card holds, and what would need less."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from gputier.sizing.core import size
from gputier.sizing.formats import of
from gputier.sizing.known import resolve
from gputier.sizing.records import Sizing
from gputier.workload.ml import Model
from gputier.workload.model import Workload

WORTH_GIB = 0.1
"""A change that saves less is not worth the words."""

_MOST = 1_000_000
"""Fields end here (workload.ml)."""


class Room(NamedTuple):
    """The most of one thing that a card still holds, everything else as declared. `field` is
    concurrent_sequences, context_tokens or batch_per_gpu; 0 when not even one fits."""

    field: str
    most: int


class Saving(NamedTuple):
    """A change of the declaration, what it saves on each GPU, and the size with it."""

    change: str
    saves_gib: float
    sizing: Sizing
    workload: Workload


def changed(workload: Workload, **fields: Any) -> Workload:
    """The workload with fields of its model set."""
    assert workload.model
    return workload.model_copy(update={"model": workload.model.model_copy(update=fields)})


def trained(workload: Workload, **fields: Any) -> Workload:
    """The workload with fields of its model's training set."""
    model = workload.model
    assert model
    assert model.training
    return changed(workload, training=model.training.model_copy(update=fields))


def room(workload: Workload, gpus: int, kept_free: float, usable_gib: float) -> tuple[Room, ...]:
    """How many sequences (served) or samples (trained) and how many tokens of each still fit.

    () for what has neither: an image model, a simulation, a measurement, virtual desktops.
    """
    model = workload.model
    if model is None or not _grows(model):
        return ()

    def fits(tried: Workload) -> bool:
        found = size(tried, gpus=gpus, kept_free=kept_free)
        return found is not None and found.fits(usable_gib)

    if model.training is not None:
        ways: Mapping[str, Callable[[int], Workload]] = {
            "batch_per_gpu": lambda n: trained(workload, batch_per_gpu=n),
            "context_tokens": lambda n: changed(workload, context_tokens=n),
        }
    else:
        ways = {
            "concurrent_sequences": lambda n: changed(workload, concurrent_sequences=n),
            "context_tokens": lambda n: changed(workload, context_tokens=n),
        }
    return tuple(
        Room(field, _largest(lambda n, way=way: fits(way(n)), _bound(model, field)))
        for field, way in ways.items()
    )


def _grows(model: Model) -> bool:
    """Whether it is a model that holds tokens."""
    sized = (model.measured_gib, model.cells, model.qubits, model.atoms, model.scene)
    if any(value is not None for value in sized):
        return False
    if not (model.name or model.config or model.weights_index or model.parameters):
        return model.architecture is not None
    known = resolve(model)
    return known is not None and not known.shape.encoder


def _bound(model: Model, field: str) -> int:
    known = resolve(model) if field == "context_tokens" else None
    most = known.shape.max_context if known else None
    return min(most or _MOST, _MOST)


def _largest(fits: Callable[[int], bool], most: int) -> int:
    """The largest n up to `most` that fits, 0 when none; more never fits where less does not."""
    if not fits(1):
        return 0
    low, high = 1, 2
    while high <= most and fits(high):
        low, high = high, high * 2
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def savings(workload: Workload, gpus: int, kept_free: float) -> tuple[Saving, ...]:
    """Changes that need less on each GPU, the largest saving first."""
    now = size(workload, gpus=gpus, kept_free=kept_free)
    if now is None or workload.model is None or workload.model.measured_gib is not None:
        return ()
    found: list[Saving] = []
    for change, tried in _changes(workload, workload.model, gpus):
        then = size(tried, gpus=gpus, kept_free=kept_free)
        assert then
        saves = now.per_gpu_gib - then.per_gpu_gib
        if saves >= WORTH_GIB:
            found.append(Saving(change, saves, then, tried))
    return tuple(sorted(found, key=lambda s: -s.saves_gib))


def _changes(workload: Workload, model: Model, gpus: int) -> Iterator[tuple[str, Workload]]:
    """What may be changed without another model, as (the declaration of it, the workload)."""
    if model.image is not None and model.image.offload == "none":
        image = model.image.model_copy(update={"offload": "model"})
        yield "image.offload: model", changed(workload, image=image)
    if not _grows(model):
        return
    if model.training is not None:
        yield from _recipes(workload, model, gpus)
        return
    known = resolve(model)
    layout = of(known.precision) if known else None
    if layout and layout.bits >= 16:
        yield "precision: fp8", changed(workload, precision="fp8")
    if layout and layout.bits >= 8:
        yield "precision: int4-awq", changed(workload, precision="int4-awq")
    if model.kv_precision in (None, "fp16"):
        yield "kv_precision: fp8", changed(workload, kv_precision="fp8")


def _recipes(workload: Workload, model: Model, gpus: int) -> Iterator[tuple[str, Workload]]:
    training = model.training
    assert training
    if not training.fused_loss:
        yield "fused_loss: true", trained(workload, fused_loss=True)
    if training.gradient_checkpointing != "full":
        change = "gradient_checkpointing: full"
        yield change, trained(workload, gradient_checkpointing="full")
    if training.method == "lora":
        yield "method: qlora", trained(workload, method="qlora")
    if training.method == "full" and not training.optimizer.endswith("8bit"):
        yield "optimizer: adamw-8bit", trained(workload, optimizer="adamw-8bit")
    if gpus > 1 and training.sharding != "zero-3":
        yield "sharding: zero-3", trained(workload, sharding="zero-3")
    if training.batch_per_gpu > 1:
        yield "batch_per_gpu: 1", trained(workload, batch_per_gpu=1)
