"""Published memory figures of image and video models: data/diffusion.csv as records."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from gputier.sizing import names
from gputier.sizing.table import DATA

SIXTEEN_BIT = "16-bit"

_CLASSES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("4-bit", ("int4", "4-bit", "nf4", "svdquant", "q4_", "q2_")),
    ("fp8", ("fp8",)),
    ("int8", ("int8", "8-bit", "q8_")),
)


class Pipeline(NamedTuple):
    """One image or video model: parameters of its parts, what it makes when not told otherwise."""

    name: str
    kind: str
    denoiser: float
    text_encoders: float
    vae: float
    resolution: str
    frames: int
    verified: bool


class Figure(NamedTuple):
    """One published figure. `pixels` is width × height × frames × batch; GB as the source says."""

    model: str
    task: str
    resolution: str
    frames: int
    batch: int
    pixels: float
    precision: str
    form: str
    offload: str
    gb: float
    measure: str
    gpu: str
    source: str

    @property
    def _makes(self) -> bool:
        makes = self.task.removeprefix("load and ").startswith(
            ("text-to-", "image-to-", "inpainting")
        )
        bounded = not self.measure.startswith(("minimum", "more than", "GPU with", "from"))
        return makes and bounded and "DialogGen" not in self.task

    @property
    def serves(self) -> bool:
        """Whether it is a whole run that makes an image or video, nothing moved to the host."""
        whole = self.offload == "none" or self.offload.startswith(("none (", "none, "))
        return self._makes and whole and "precomputed" not in self.offload

    @property
    def waits(self) -> str:
        """What waits in host memory in a run that makes something: model, sequential or ""."""
        if not self._makes:
            return ""
        if self.offload.startswith(("model CPU offload", "model offload")):
            return "model"
        return "sequential" if self.offload.startswith("sequential") else ""

    @property
    def trains(self) -> str:
        """full, lora or "" when it is no training run of a whole model on one GPU."""
        if not self.offload.startswith("none") and "precomputed" not in self.offload:
            return ""
        if "CPU" in self.task or "offload" in self.task or "DeepSpeed" in self.precision:
            return ""
        if "LoRA training" in self.task:
            return "lora"
        return "full" if self.task.startswith(("full training", "DreamBooth training")) else ""

    @property
    def checkpointed(self) -> bool:
        """Whether the training run says that it used gradient checkpointing."""
        return (
            "checkpointing" in (text := self.task + self.precision)
            and "checkpointing off" not in text
        )


def pixels(resolution: str) -> float:
    """`1024x576` as pixels; what follows (a second resolution in brackets) is not read."""
    width, height = resolution.split(" ")[0].split("x")
    return float(int(width) * int(height))


def form_of(precision: str) -> str:
    """The class of a published precision: fp32, 16-bit, fp8, int8 or 4-bit."""
    text = precision.lower()
    for form, marks in _CLASSES:
        if any(mark in text for mark in marks):
            return form
    return "fp32" if text.startswith("fp32") and "16" not in text else SIXTEEN_BIT


def _total(text: str) -> float:
    """`123060480+694659840` summed; 0 for an empty cell (not published)."""
    return sum(float(piece) for piece in text.split("+")) if text else 0.0


class Figures(NamedTuple):
    """All pipelines and figures, with the names indexed."""

    pipelines: tuple[Pipeline, ...]
    figures: tuple[Figure, ...]
    names: tuple[tuple[str, ...], ...]
    by_name: names.NameIndex

    def find(self, name: str) -> Pipeline | None:
        """The pipeline that a name means; None when there is none or it may mean several."""
        found = self.by_name.find(name)
        return self.pipelines[found[0]] if len(found) == 1 else None

    def of(self, pipeline: Pipeline) -> Sequence[Figure]:
        """The figures that are published for a pipeline."""
        return [figure for figure in self.figures if figure.model == pipeline.name]


@cache
def load() -> Figures:
    """The figures, read once (280 rows)."""
    with (DATA / "diffusion.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    described = [row for row in rows if row["record"] == "model"]
    figures = tuple(_figure(row) for row in rows if row["record"] == "memory")
    pipelines = [_pipeline(row) for row in described]
    known = {pipeline.name for pipeline in pipelines}
    for figure in figures:
        if figure.model not in known:
            known.add(figure.model)
            pipelines.append(_undescribed(figure))
    spellings = [(row["model"], *_split(row["aliases"])) for row in described]
    spellings += [(pipeline.name,) for pipeline in pipelines[len(described) :]]
    return Figures(tuple(pipelines), figures, tuple(spellings), names.NameIndex(spellings))


def _split(aliases: str) -> Iterable[str]:
    return aliases.split("|") if aliases else ()


def _pipeline(row: dict[str, str]) -> Pipeline:
    return Pipeline(
        name=row["model"],
        kind=row["kind"],
        denoiser=_total(row["denoiser_parameters"]),
        text_encoders=_total(row["text_encoder_parameters"]),
        vae=_total(row["vae_parameters"]),
        resolution=row["native_resolution"].split(" ")[0],
        frames=int(row["native_frames"] or 1),
        verified=row["verified"] == "yes",
    )


def _undescribed(figure: Figure) -> Pipeline:
    """A model of which only figures are known."""
    kind = "video" if "video" in figure.task else "image"
    return Pipeline(figure.model, kind, 0.0, 0.0, 0.0, figure.resolution, figure.frames, False)


def _figure(row: dict[str, str]) -> Figure:
    frames, batch = int(row["frames"] or 1), int(row["batch"] or 1)
    return Figure(
        model=row["model"],
        task=row["task"],
        resolution=row["resolution"],
        frames=frames,
        batch=batch,
        pixels=pixels(row["resolution"]) * frames * batch,
        precision=row["precision"],
        form=form_of(row["precision"]),
        offload=row["offload_mode"],
        gb=float(row["memory_gb"]),
        measure=row["measure"],
        gpu=row["gpu"],
        source=row["source"],
    )
