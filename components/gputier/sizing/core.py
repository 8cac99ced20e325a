"""The one question that selection asks: how much memory does each of n GPUs need?"""

from __future__ import annotations

from gputier import errors
from gputier.sizing import images, margins, names, published, simulations, table
from gputier.sizing.formats import of
from gputier.sizing.known import FAIR, GOOD, MEASURED, Known, resolve
from gputier.sizing.margins import Own
from gputier.sizing.records import Part, Sizing, several
from gputier.sizing.serving import Draft, reserve_gib, serve
from gputier.sizing.simulations import Simulated
from gputier.sizing.training import train
from gputier.workload.ml import Model
from gputier.workload.model import Workload
from gputier.workload.training import Training

SEAT_GB = 8.0
"""A virtual desktop's frame buffer where no `profile` is declared (8–16 GB is usual)."""

SEAT_USABLE = 0.91
"""Of a profile a driver shows about nine tenths, as of any card of that name (T4: 14.6 of 16 GiB,
L4 and A10G: 22 of 24)."""


def size(workload: Workload, *, gpus: int, kept_free: float = 0.0) -> Sizing | None:
    """GPU memory per GPU when `gpus` GPUs work together (per machine × machines), part by part.

    `kept_free` is the share of a card that the tier keeps free (0.3 means 30 %); it and sizing's
    own margin are not added, the larger counts. None when the workload names no model: nothing
    to size. Raises InvalidInput for a model name that no table has or that may mean several, and
    for a model file that cannot be read.
    """
    model = workload.model
    if model is None:
        return None
    if gpus < 1 or not 0 <= kept_free < 1:
        raise ValueError(f"gpus {gpus} must be at least 1 and kept_free {kept_free} in [0, 1)")
    if model.measured_gib is not None:
        return _measured(model, model.measured_gib, gpus, kept_free)
    if model.seats is not None and _only_seats(model):
        return _seats(model, gpus, kept_free)
    simulated = simulations.look_up(model, gpus)
    if simulated is not None:
        return _simulated(simulated, gpus, kept_free)
    known = resolve(model)
    if known is None:
        return _by_figures(model, gpus, kept_free)
    if model.training is not None:
        return _training(model, model.training, known, (gpus, kept_free))
    return _serving(model, known, gpus, kept_free)


def _only_seats(model: Model) -> bool:
    return not (model.name or model.config or model.weights_index or model.parameters)


def _needed(draft: Draft) -> float:
    return sum(part.gib for part in draft.parts)


def _finish(draft: Draft, own: Own, limit: float, kept_free: float) -> tuple[Part, ...]:
    margin = margins.with_kept_free(_needed(draft), own, limit, kept_free)
    return tuple(draft.parts) + ((margin,) if margin else ())


def _measured(model: Model, measured_gib: float, gpus: int, kept_free: float) -> Sizing:
    limit = margins.TRAINING_LIMIT if model.training else margins.SERVING_LIMIT
    draft = Draft(
        [Part("weights", measured_gib, f"measured: {measured_gib:g} GiB per GPU, all parts")]
    )
    own = Own(measured_gib * margins.MEASURED_MARGIN, f"{margins.MEASURED_MARGIN:.0%}")
    parts = _finish(draft, own, limit, kept_free)
    basis = "your own measurement (`model.measured_gib`)"
    return Sizing(gpus, parts, limit, basis, MEASURED, (), (1.0, 1 + margins.MEASURED_MARGIN))


def _seats(model: Model, gpus: int, kept_free: float) -> Sizing:
    seats = model.seats or 0
    profile = model.profile or SEAT_GB
    each, usable = -(-seats // gpus), profile * SEAT_USABLE
    draft = Draft()
    draft.parts.append(
        Part(
            "activations",
            each * usable,
            f"{several(each, 'seat')} × {profile:g} GB profile, {usable:.2f} GiB of it usable"
            + ("" if model.profile else " (8–16 GB is usual)"),
        )
    )
    # A profile is a fixed slice of the card, not an estimate: no margin, and it may be filled.
    parts = _finish(draft, Own(0.0, ""), 1.0, kept_free)
    return Sizing(gpus, parts, 1.0, f"{seats} virtual desktops", GOOD if model.profile else FAIR)


def _simulated(found: Simulated, gpus: int, kept_free: float) -> Sizing:
    """A simulation, a scene or a published figure: its parts, the CUDA context and a share."""
    needed = sum(part.gib for part in found.parts)
    words = f"{margins.CONTEXT_GIB:g} GiB of CUDA context + {found.margin:g} of {needed:.1f} GiB"
    own = Own(margins.CONTEXT_GIB + needed * found.margin, words)
    return _found(found, gpus, kept_free, own, margins.TRAINING_LIMIT)


def _found(found: Simulated, gpus: int, kept_free: float, own: Own, limit: float) -> Sizing:
    draft = Draft(list(found.parts), list(found.warnings))
    parts = _finish(draft, own, limit, kept_free)
    spread = (1 - found.margin, 1 + found.margin)
    warnings = tuple(draft.warnings)
    return Sizing(gpus, parts, limit, found.basis, found.confidence, warnings, spread)


def _serving(model: Model, known: Known, gpus: int, kept_free: float) -> Sizing:
    draft = serve(model, known, gpus)
    limit = margins.SERVING_LIMIT
    own = margins.serving_margin(_needed(draft), reserve_gib(draft), known)
    kind = "serving quantised" if of(known.precision).quantised else "serving 16-bit"
    return Sizing(
        gpus,
        _finish(draft, own, limit, kept_free),
        limit,
        known.basis,
        known.confidence,
        (*known.warnings, *draft.warnings, *_unread(model)),
        margins.spread(kind, known.confidence),
        known.shape.parameters,
        known.precision,
    )


def _training(model: Model, training: Training, known: Known, asked: tuple[int, float]) -> Sizing:
    gpus, kept_free = asked
    draft, job = train(model, known, training, gpus)
    own = margins.training_margin(job, _needed(draft), known)
    limit = margins.TRAINING_LIMIT
    weak = own.warnings or job.fsdp_on_few or training.objective != "sft"
    confidence = FAIR if weak and known.confidence == GOOD else known.confidence
    return Sizing(
        gpus,
        _finish(draft, own, limit, kept_free),
        limit,
        known.basis,
        confidence,
        (*known.warnings, *draft.warnings, *own.warnings, *_unread(model)),
        margins.spread(job.method, confidence),
        known.shape.parameters,
        known.precision,
    )


def _by_figures(model: Model, gpus: int, kept_free: float) -> Sizing:
    """An image or video model, else whatever else a figure is published for."""
    image = images.look_up(model)
    if image is not None:
        return _image(model, image, gpus, kept_free)
    other = published.look_up(model, gpus)
    if other is None:
        raise _unknown_name(model.name or "")
    return _simulated(other, gpus, kept_free)


def _image(model: Model, found: Simulated, gpus: int, kept_free: float) -> Sizing:
    limit = margins.TRAINING_LIMIT if model.training else margins.SERVING_LIMIT
    needed = sum(part.gib for part in found.parts)
    own = Own(needed * found.margin, f"{found.margin:.0%} of {needed:.1f} GiB")
    return _found(found, gpus, kept_free, own, limit)


def _unread(model: Model) -> tuple[str, ...]:
    said: list[str] = []
    if model.image is not None:
        said.append("`model.image` is for image and video models; this one is sized without it")
    if model.seats is not None:
        said.append("`model.seats` is not read beside a model: desktops are sized without one")
    return tuple(said)


def _unknown_name(name: str) -> errors.InvalidInput:
    """The refusal of a name that no table has, with the nearest one and the other inputs."""
    text = names.understood(name).text.rsplit("/", 1)[-1]
    listed = [*table.load().all_names(), *images.all_names(), *published.all_names()]
    near = errors.did_you_mean(text, listed, cutoff=0.7)
    hint = (f"did you mean `{near}`? Or " if near else "") + table.OTHER_INPUTS
    return errors.InvalidInput(
        errors.Problem("model.name", f"no model `{name}` in the built-in table", hint)
    )
