"""Image and video models: a look-up of published figures, because no formula in parameters alone
is usable (83 % error, docs/sizing.md).

The figure is the nearest one at or above the requested width × height × frames × batch in the same
precision; where several were published for no more than that, the largest counts, so that more
pixels never need less. Beyond the largest, and for a model or precision without figures, it is an
estimate: the components' bytes and activations in proportion to the pixels. Such an answer says so
and keeps a wider margin. Pipelines are not split: each GPU holds a whole copy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from gputier.sizing import figures as published
from gputier.sizing import names
from gputier.sizing.figures import SIXTEEN_BIT, Figure, Figures, Pipeline
from gputier.sizing.formats import of
from gputier.sizing.known import FAIR, GOOD, WEAK
from gputier.sizing.recipes import STATES, adapter_recipe, recipe
from gputier.sizing.records import GIB, Part, billions
from gputier.sizing.simulations import Simulated
from gputier.workload.ml import Model
from gputier.workload.training import Training

CONTEXT_GIB = 1.0
"""Published peaks are the framework's own counters: the CUDA context and workspaces come on top."""

FIGURE_MARGIN, ESTIMATE_MARGIN = 0.10, 0.25

TRAINING_ACTIVATIONS = {"none": 4.0, "selective": 2.0, "full": 1.0}
"""Activations of a training step against one denoising step. HunyuanDiT's own table: LoRA at
1024 × 1024 needs 24 GB without and 11 GB with checkpointing, of which 6.6 are weights, against 11
for inference."""

ADAPTER_SHARE = 0.02
"""Adapter parameters of a LoRA on the denoiser; rank 16–64 gives 0.5 to 3 %."""


class _Asked(NamedTuple):
    """What is to be made: pixels over all frames and the batch, in which class of precision, and
    what of the pipeline lies on the GPU."""

    pipeline: Pipeline
    pixels: float
    form: str
    precision: str
    words: str
    offload: str = "none"
    encoders: bool = True


class _Found(NamedTuple):
    """Activations for what was asked, how they were come by, and whether they were published."""

    activations_gib: float
    words: str
    exact: bool
    warning: str = ""


def all_names() -> list[str]:
    """Every name and alias of an image or video model."""
    return [name for row in published.load().names for name in row]


def look_up(model: Model) -> Simulated | None:
    """Memory of one copy of the pipeline that `model.name` means; None when it is no such."""
    name = names.understood(model.name or "")
    table = published.load()
    pipeline = table.find(model.name or "") or table.find(name.text)
    if pipeline is None:
        return None
    asked = _asked(model, pipeline, model.precision or name.precision or "bf16")
    if model.training:
        return _training(asked, model.training, table)
    found = _serving(asked, table)
    weights, words = _resident(asked)
    if asked.offload != "none":
        found = _offloaded(asked, table, found, weights)
    parts = [Part("weights", weights, words)] if weights else []
    parts.append(Part("activations", found.activations_gib, found.words))
    return _looked(asked, parts, found)


SEQUENTIAL_SHARE = 0.1
"""Of the largest component, what sequential offload keeps on the GPU: a block and the one that is
being fetched. Denoisers have 19 (FLUX's double blocks) to 60 (HunyuanVideo) of about equal size, so
this is the upper end."""


def _resident(asked: _Asked) -> tuple[float, str]:
    """(GiB of weights that lie on the GPU at once, the arithmetic)."""
    pipeline, form = asked.pipeline, asked.form
    if not asked.encoders:
        pipeline = pipeline._replace(text_encoders=0.0)
    if asked.offload == "none":
        return _weights_gib(pipeline, form), _weights_words(pipeline, form)
    each = _COMPONENT_BYTES[form]
    sizes = {
        "denoiser": pipeline.denoiser * each,
        "text encoders": pipeline.text_encoders * each,
        "VAE": pipeline.vae * max(2.0, each),
    }
    largest = max(sizes, key=lambda name: sizes[name])
    size, words = sizes[largest] / GIB, f"{sizes[largest] / 1e9:.2f} GB of {largest}, the largest"
    if asked.offload == "model":
        return size, f"{words} component: one is on the GPU at a time"
    return size * SEQUENTIAL_SHARE, f"{SEQUENTIAL_SHARE:g} of {words} component: a block at a time"


def _offloaded(asked: _Asked, table: Figures, whole: _Found, weights: float) -> _Found:
    """A published figure with that offload where there is one, else the activations of a run
    without beside the weights that stay."""
    same = [f for f in table.of(asked.pipeline) if f.waits == asked.offload]
    same = [f for f in same if f.form == asked.form and f.pixels >= asked.pixels]
    if not same:
        said = (
            f"no figure with `offload: {asked.offload}` is published for {asked.pipeline.name} at"
        )
        said += f" {asked.words}: the activations are those of a run without"
        return _Found(whole.activations_gib, whole.words, False, said)
    reached = min(f.pixels for f in same)
    figure = max((f for f in same if f.pixels == reached), key=lambda f: f.gb)
    words = f"{_quoted(figure)}, less the weights"
    return _Found(max(0.0, figure.gb - weights), words, True, _rough(asked, reached))


def _asked(model: Model, pipeline: Pipeline, precision: str) -> _Asked:
    """The request, with the pipeline's own resolution and frames where none are declared."""
    image = model.image
    said = image.model_fields_set if image else frozenset[str]()
    resolution = image.resolution if image and "resolution" in said else pipeline.resolution
    frames = image.frames if image and "frames" in said else pipeline.frames
    batch = image.batch if image else 1
    words = f"{resolution}" + (f" × {frames} frames" if frames > 1 else "")
    words += f" × {batch}" if batch > 1 else ""
    form = published.form_of(precision)
    offload = image.offload if image else "none"
    encoders = image is None or image.text_encoders == "resident"
    words += "" if offload == "none" else f", {offload} offload"
    words += "" if encoders else ", prompts encoded elsewhere"
    total = published.pixels(resolution) * frames * batch
    return _Asked(pipeline, total, form, precision, words, offload, encoders)


_COMPONENT_BYTES = {
    "fp32": 4.0,
    SIXTEEN_BIT: 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "4-bit": of("nf4").bytes,
}


def _weights_gib(pipeline: Pipeline, form: str) -> float:
    """Denoiser and text encoders at the precision; a VAE is never quantised."""
    each = _COMPONENT_BYTES[form]
    quantised = pipeline.denoiser + pipeline.text_encoders
    return (quantised * each + pipeline.vae * max(2.0, each)) / GIB


def _weights_words(pipeline: Pipeline, form: str) -> str:
    each = _COMPONENT_BYTES[form]
    quantised = f"{billions(pipeline.denoiser)} denoiser + {billions(pipeline.text_encoders)}"
    vae = f"{billions(pipeline.vae)} VAE × {max(2.0, each):g} B"
    return f"({quantised} text encoders) × {each:g} B + {vae}"


def _serving(asked: _Asked, table: Figures) -> _Found:
    own = [figure for figure in table.of(asked.pipeline) if figure.serves]
    same = [figure for figure in own if figure.form == asked.form]
    if same:
        return _nearest(asked, same, asked.form)
    if own:
        form = SIXTEEN_BIT if any(f.form == SIXTEEN_BIT for f in own) else own[0].form
        found = _nearest(asked, [f for f in own if f.form == form], form)
        warning = f"no figure is published for {asked.pipeline.name} at {asked.precision}: the"
        warning += f" activations are those at {form}, an estimate"
        return _Found(found.activations_gib, found.words, False, warning)
    return _borrowed(asked, table)


def _nearest(asked: _Asked, same: Sequence[Figure], form: str) -> _Found:
    """Activations from the nearest figure at or above, or in proportion beyond the largest."""
    weights = _weights_gib(asked.pipeline, form)
    reached = min((f.pixels for f in same if f.pixels >= asked.pixels), default=None)
    within = [f for f in same if reached is None or f.pixels <= reached]
    figure = max(within, key=lambda f: (f.gb, f.pixels))
    activations = max(0.0, figure.gb - weights)
    words = f"{_quoted(figure)}, less the weights"
    if reached is not None:
        return _Found(activations, words, True, _rough(asked, reached))
    largest = max(same, key=lambda f: f.pixels)
    ratio = asked.pixels / largest.pixels
    warning = (
        f"{asked.words} is beyond the largest published figure ({_size(largest)}): the activations"
    )
    return _Found(
        activations * ratio,
        f"({words}) × {ratio:.3g} for the pixels",
        False,
        f"{warning} are {ratio:.3g} times its own, an estimate",
    )


def _rough(asked: _Asked, reached: float) -> str:
    if reached <= asked.pixels * 1.5:
        return ""
    return (
        f"the nearest published figure is for {reached / asked.pixels:.3g} times the pixels of"
        f" {asked.words}: the real need is lower"
    )


def _borrowed(asked: _Asked, table: Figures) -> _Found:
    """Activations of the nearest other pipeline of the kind, in proportion to the pixels.

    A model of which nothing but training runs are published takes the largest of them.
    """
    if not asked.pipeline.denoiser:
        own = table.of(asked.pipeline)
        runs = [figure for figure in own if figure.trains] or own
        figure = max(runs, key=lambda f: f.gb)
        warning = f"only training runs are published for {asked.pipeline.name}: one stands in"
        return _Found(figure.gb, _quoted(figure), False, warning)
    lenders = [
        (_distance(asked.pipeline, pipeline), -activations / figure.pixels, figure)
        for pipeline in table.pipelines
        if pipeline.kind == asked.pipeline.kind and pipeline.denoiser
        for figure in table.of(pipeline)
        if figure.serves and figure.form == SIXTEEN_BIT
        if (activations := figure.gb - _weights_gib(pipeline, SIXTEEN_BIT)) > 0
    ]
    _, per_pixel, figure = min(lenders, key=lambda lender: lender[:2])
    return _Found(
        -per_pixel * asked.pixels,
        f"{asked.words} at the activations per pixel of {_quoted(figure)}",
        False,
        f"no figure is published for {asked.pipeline.name}: its activations are estimated from"
        f" {figure.model}, the nearest {asked.pipeline.kind} model",
    )


def _distance(asked: Pipeline, other: Pipeline) -> tuple[bool, float]:
    """The same maker's first (they share blocks and VAE), then the nearest denoiser by size."""
    by_another = asked.name.split("/")[0] != other.name.split("/")[0]
    return by_another, abs(math.log(other.denoiser / max(asked.denoiser, 1.0)))


def _quoted(figure: Figure) -> str:
    where = f" on {figure.gpu}" if figure.gpu else ""
    return (
        f"published {figure.gb:g} GB {figure.measure}{where} for {figure.model} {figure.task}"
        f" {_size(figure)} {figure.precision} ({figure.source})"
    )


def _size(figure: Figure) -> str:
    frames = f" × {figure.frames} frames" if figure.frames > 1 else ""
    return f"{figure.resolution}{frames} × {figure.batch}"


def _looked(asked: _Asked, parts: list[Part], found: _Found) -> Simulated:
    parts.append(
        Part("overhead", CONTEXT_GIB, f"{CONTEXT_GIB:g} GiB for the CUDA context and workspaces")
    )
    how = "published memory figures" if found.exact else "an estimate from published figures"
    confidence = (GOOD if not found.warning else FAIR) if found.exact else WEAK
    warnings = (found.warning,) if found.warning else ()
    if not asked.pipeline.verified and asked.pipeline.denoiser:
        warnings += (f"the component sizes of {asked.pipeline.name} are not confirmed",)
    return Simulated(
        tuple(part for part in parts if part.gib > 0),
        f"{asked.pipeline.name}, {asked.words}: {how}; each GPU holds a whole copy",
        confidence,
        FIGURE_MARGIN if found.exact else ESTIMATE_MARGIN,
        warnings,
    )


def _training(asked: _Asked, training: Training, table: Figures) -> Simulated:
    """A published training run where there is one, else an estimate part by part."""
    kind = "full" if training.method == "full" else "lora"
    checkpointed = training.gradient_checkpointing != "none"
    runs = [
        figure
        for figure in table.of(asked.pipeline)
        if figure.trains == kind
        and (figure.form == "4-bit") == (training.method == "qlora")
        and (figure.checkpointed or not checkpointed)
    ]
    if runs:
        found = _nearest(asked, runs, "4-bit" if training.method == "qlora" else SIXTEEN_BIT)
        form = "4-bit" if training.method == "qlora" else SIXTEEN_BIT
        weights = _weights_gib(asked.pipeline, form)
        parts = [Part("weights", weights, _weights_words(asked.pipeline, form))] if weights else []
        parts.append(Part("activations", found.activations_gib, found.words))
        return _looked(asked, parts, found)
    return _estimated_training(asked, training, table)


def _estimated_training(asked: _Asked, training: Training, table: Figures) -> Simulated:
    form = "4-bit" if training.method == "qlora" else SIXTEEN_BIT
    pipeline = asked.pipeline
    parts = [Part("weights", _weights_gib(pipeline, form), _weights_words(pipeline, form))]
    trained = billions(pipeline.denoiser)
    if training.method == "full":
        used = recipe(training, training.state)
        extra = STATES[training.state].weights - 2.0
        size = pipeline.denoiser * (used.gradients + extra) / GIB
        parts.append(Part("gradients", size, f"{trained} × {used.gradients + extra:g} B"))
        size = pipeline.denoiser * used.optimizer / GIB
        parts.append(Part("optimizer", size, f"{trained} × {used.optimizer:g} B"))
    else:
        used = adapter_recipe(training)
        each = used.weights + used.gradients + used.moments
        size = pipeline.denoiser * ADAPTER_SHARE * each / GIB
        parts.append(Part("adapters", size, f"{ADAPTER_SHARE:.0%} of {trained} × {each:g} B"))
    factor = TRAINING_ACTIVATIONS[training.gradient_checkpointing]
    step = _serving(asked, table)
    parts.append(
        Part("activations", step.activations_gib * factor, f"{factor:g} × one step: {step.words}")
    )
    warning = f"no training run of {pipeline.name} is published: this is an estimate"
    return _looked(asked, parts, _Found(0.0, "", False, warning))
