"""Simulations and scenes: memory that follows from one declared size (docs/sizing.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gputier.sizing.known import FAIR, GOOD, WEAK
from gputier.sizing.records import GIB, Part, billions, over
from gputier.workload.ml import Model

CELL_BYTES = {"fp64": 344.0, "fp32": 93.0, "fp16": 55.0}
"""Bytes of a D3Q19 lattice-Boltzmann cell: 19 distributions twice (or once, streamed in place), the
density, velocity and flags. FluidX3D's README: 344 in FP64 as usually done, 93 and 55 in its own
in-place layout with FP32 and FP16 storage."""

AMPLITUDE_BYTES = {"fp64": 16.0, "fp32": 8.0}
"""A complex number: complex128 is what simulators default to (Qiskit Aer), complex64 the other."""

ATOM_BYTES = 201_964 * 1024 / 12_294
"""AMBER's own report of a solvated box of 12,294 atoms, 201,964 KB with a 64³ mesh and an 8 Å
cutoff (pmemd.cuda mdout, "GPU memory in use"). Pair lists and mesh grow with the atoms at a given
density; small boxes hold more of what is fixed, so that larger ones need less than this."""

RENDERER_GIB = 1.0
"""Frame buffers, denoiser and the renderer's own code beside the scene."""

_EXACT, _ROUGH = 0.05, 0.25


class Simulated(NamedTuple):
    """What a look-up found of anything but a language model: parts without a margin, how they were
    come by, and the share that is kept as one."""

    parts: tuple[Part, ...]
    basis: str
    confidence: str
    margin: float
    warnings: tuple[str, ...] = ()


def look_up(model: Model, gpus: int) -> Simulated | None:
    """Memory per GPU of the simulation or scene that is declared; None when none is."""
    ways: tuple[tuple[float | None, Callable[[Model, int], Simulated]], ...] = (
        (model.cells, _cells),
        (model.qubits, _qubits),
        (model.atoms, _atoms),
        (model.scene, _scene),
    )
    return next((way(model, gpus) for value, way in ways if value is not None), None)


def _precision(model: Model, table: dict[str, float], default: str) -> tuple[str, tuple[str, ...]]:
    """The declared precision where the table has it, else the default with a warning."""
    asked = {"bf16": "fp16"}.get(model.precision or "", model.precision)
    if asked is None or asked in table:
        return asked or default, ()
    words = f"`precision: {model.precision}` is none of {', '.join(table)}: sized for {default}"
    return default, (words,)


def _cells(model: Model, gpus: int) -> Simulated:
    count = model.cells or 0
    precision, said = _precision(model, CELL_BYTES, "fp32")
    each = CELL_BYTES[precision]
    formula = f"{billions(count)} cells × {each:g} B ({precision} storage){over(gpus)}"
    return Simulated(
        (Part("activations", count * each / gpus / GIB, formula),),
        f"{count:,} cells of a D3Q19 lattice-Boltzmann simulation",
        GOOD,
        _EXACT,
        said,
    )


def _qubits(model: Model, gpus: int) -> Simulated:
    qubits = model.qubits or 0
    precision, said = _precision(model, AMPLITUDE_BYTES, "fp64")
    each = AMPLITUDE_BYTES[precision]
    shared = 2 ** (gpus.bit_length() - 1)
    if shared != gpus:
        said += (f"a state vector is split over a power of two: {shared} of {gpus} GPUs hold it",)
    formula = f"2^{qubits} = {2**qubits:,} amplitudes × {each:g} B{over(shared)}"
    return Simulated(
        (Part("activations", 2.0**qubits * each / shared / GIB, formula),),
        f"the state vector of {qubits} qubits",
        GOOD,
        _EXACT,
        said,
    )


def _atoms(model: Model, gpus: int) -> Simulated:
    count = model.atoms or 0
    formula = f"{billions(count)} atoms × {ATOM_BYTES:,.0f} B"
    several = (
        "each GPU is counted with the whole system: engines split work before memory"
        if gpus > 1
        else ""
    )
    return Simulated(
        (Part("activations", count * ATOM_BYTES / GIB, formula),),
        f"{count:,} atoms of molecular dynamics, at what AMBER reports for a small solvated box",
        WEAK,
        _ROUGH,
        tuple(
            said
            for said in (
                "GROMACS, AMBER and NAMD need less for a large system than this; measure yours and"
                " set `model.measured_gib`",
                several,
            )
            if said
        ),
    )


def _scene(model: Model, _gpus: int) -> Simulated:
    scene = model.scene or 0.0
    return Simulated(
        (
            Part("weights", scene, f"{scene:.2f} GiB of scene, whole on each GPU"),
            Part("overhead", RENDERER_GIB, f"{RENDERER_GIB:g} GiB of frame buffers and denoiser"),
        ),
        "the declared scene and the renderer beside it",
        FAIR,
        0.10,
    )
