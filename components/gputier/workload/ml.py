"""The model a workload runs: what sizing turns into GPU memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr

from gputier.workload import fields, known
from gputier.workload.base import Clash, Spec
from gputier.workload.complaints import complaint, listed
from gputier.workload.training import Training

Precision = Literal[
    "fp64", "fp32", "bf16", "fp16", "fp8", "int8", "int4-gptq", "int4-awq", "nf4", "nf4-dq", "q4_0",
    "mxfp4", "nvfp4",
]  # fmt: skip
KvPrecision = Literal["fp16", "fp8", "int8"]
ImageOffload = Literal["none", "model", "sequential"]
Encoders = Literal["resident", "precomputed"]

_PRECISION_NAMES = {
    "float64": "fp64", "double": "fp64", "float32": "fp32", "float16": "fp16", "half": "fp16",
    "bfloat16": "bf16", "float8": "fp8",
    "gptq": "int4-gptq", "awq": "int4-awq", "int4": "int4-awq", "4bit": "nf4", "q4-0": "q4_0",
    "fp4": "nvfp4", "8bit": "int8",
}  # fmt: skip
_KV_NAMES = {"bf16": "fp16", "bfloat16": "fp16", "float16": "fp16", "float8": "fp8"}


_SOURCES = ("name", "config", "weights_index", "parameters")
_SIMULATED = ("cells", "qubits", "atoms", "scene")


class Architecture(Spec):
    """The shape of a transformer; each figure given here wins over what name or config says."""

    layers: Annotated[int, fields.whole(1, 1000)] | None = Field(
        default=None, description="Transformer layers (blocks)."
    )
    hidden_size: Annotated[int, fields.whole(1, 1_000_000)] | None = Field(
        default=None, description="Width of the residual stream."
    )
    attention_heads: Annotated[int, fields.whole(1, 10_000)] | None = Field(
        default=None, description="Query heads of each attention layer."
    )
    kv_heads: Annotated[int, fields.whole(1, 10_000)] | None = Field(
        default=None,
        description="Key and value heads; fewer than `attention_heads` with grouped-query"
        " attention. Default: as many as `attention_heads`.",
    )
    head_size: Annotated[int, fields.whole(1, 100_000)] | None = Field(
        default=None, description="Width of one head. Default: `hidden_size` / `attention_heads`."
    )
    ffn_size: Annotated[int, fields.whole(1, 10_000_000)] | None = Field(
        default=None, description="Inner width of the feed-forward layer (`intermediate_size`)."
    )
    vocabulary_size: Annotated[int, fields.whole(1, 10_000_000)] | None = Field(
        default=None, description="Tokens in the vocabulary; it decides the size of the logits."
    )
    gated_ffn: fields.Truth | None = Field(
        default=None,
        description="Whether the feed-forward layer is gated (SwiGLU: three matrices, not two).",
    )

    def cross_checks(self) -> Iterator[Clash]:
        if self.kv_heads and self.attention_heads and self.kv_heads > self.attention_heads:
            yield Clash(
                ("kv_heads",),
                complaint(
                    f" is {self.kv_heads}, more than the {self.attention_heads} attention heads",
                    "were `kv_heads` and `attention_heads` swapped?",
                ),
                ("kv_heads", "attention_heads"),
            )


class Image(Spec):
    """What an image or video model makes at once."""

    resolution: Annotated[
        str,
        fields.text(
            r"[1-9][0-9]{1,4}x[1-9][0-9]{1,4}", "width x height in pixels such as 1024x1024"
        ),
    ] = Field(
        default="1024x1024", description="Width x height in pixels; one number means a square."
    )
    frames: Annotated[int, fields.whole(1, 100_000)] = Field(
        default=1, description="Frames made together (1 for a still image)."
    )
    batch: Annotated[int, fields.whole(1, 10_000)] = Field(
        default=1, description="Images made together."
    )
    offload: Annotated[ImageOffload, fields.choice(ImageOffload)] = Field(
        default="none",
        description="What waits in host memory: `model` keeps one component of the pipeline on the"
        " GPU at a time, `sequential` one block. Slower, and never assumed.",
    )
    text_encoders: Annotated[Encoders, fields.choice(Encoders)] = Field(
        default="resident",
        description="`precomputed`: prompts are encoded elsewhere, so that no text encoder lies on"
        " the GPU.",
    )

    @classmethod
    def prepared(cls, data: dict[str, Any]) -> dict[str, Any]:
        side = data.get("resolution")
        if isinstance(side, int) and not isinstance(side, bool) and 10 <= side < 100_000:
            return {**data, "resolution": f"{side}x{side}"}
        return data

    @property
    def pixels(self) -> int:
        """Pixels of one frame."""
        width, height = self.resolution.split("x")
        return int(width) * int(height)


class Model(Spec):
    """The model, by one of `name`, `config`, `weights_index` or `parameters`."""

    name: (
        Annotated[
            str,
            fields.text(r"[A-Za-z0-9][A-Za-z0-9 ._:/+\-]*", "a model's name such as llama-3.1-8b"),
        ]
        | None
    ) = Field(default=None, description="A model of the built-in table, such as `llama-3.1-8b`.")
    config: (
        Annotated[str, fields.text(r"[^\x00-\x1f]+", "the path of a config.json", 1000)] | None
    ) = Field(
        default=None,
        description="Path of the model's own `config.json`, from the folder of the file that"
        " names it.",
    )
    weights_index: (
        Annotated[str, fields.text(r"[^\x00-\x1f]+", "the path of a safetensors index", 1000)]
        | None
    ) = Field(
        default=None,
        description="Path of the model's `model.safetensors.index.json`, a single `.safetensors` or"
        " a `.gguf` file, from the folder of the file that names it; it gives the exact size of the"
        " weights (a GGUF header also the shape).",
    )
    parameters: fields.Parameters | None = Field(
        default=None,
        description="How many parameters: `7B`, `350M`. The roughest of the four inputs.",
    )
    active_parameters: fields.Parameters | None = Field(
        default=None,
        description="Parameters used per token, for a mixture of experts. Default: all.",
    )
    precision: Annotated[Precision, fields.choice(Precision, _PRECISION_NAMES)] | None = Field(
        default=None,
        description="Number format of the weights. Default: what `config` says, else bf16.",
    )
    context_tokens: Annotated[int, fields.whole(1, 100_000_000)] | None = Field(
        default=None,
        description="Tokens of one sequence, prompt and answer together. Default: the model's own"
        " maximum, because a serving engine takes that.",
    )
    concurrent_sequences: Annotated[int, fields.whole(1, 1_000_000)] = Field(
        default=1, description="Sequences served at once; each has its own KV cache."
    )
    measured_gib: fields.MeasuredGib | None = Field(
        default=None,
        description="Your own measured peak per GPU in GiB. It wins over every formula; a margin is"
        " still kept.",
    )
    kv_precision: Annotated[KvPrecision, fields.choice(KvPrecision, _KV_NAMES)] | None = Field(
        default=None, description="Number format of the KV cache. Default: fp16 (bf16 is as large)."
    )
    seats: Annotated[int, fields.whole(1, 10_000)] | None = Field(
        default=None, description="Virtual desktops that share the machine (purpose vdi)."
    )
    profile: fields.GpuMemory | None = Field(
        default=None,
        description="Frame buffer of one virtual desktop (`8GB`), with `seats`. Default: 8 GB.",
    )
    cells: Annotated[int, fields.whole(1, 10**13)] | None = Field(
        default=None,
        description="Cells of a lattice-Boltzmann flow simulation; `precision` decides the bytes of"
        " each (fp64 344, fp32 93, fp16 55).",
    )
    qubits: Annotated[int, fields.whole(1, 60)] | None = Field(
        default=None,
        description="Qubits of a state-vector simulation: 2^qubits amplitudes of 16 B, or 8 B with"
        " `precision: fp32`.",
    )
    atoms: Annotated[int, fields.whole(1, 10**10)] | None = Field(
        default=None,
        description="Atoms of a molecular-dynamics system (GROMACS, AMBER, NAMD) with its solvent.",
    )
    scene: fields.MemoryGib | None = Field(
        default=None,
        description="Size of a rendered scene in GPU memory: geometry, textures and acceleration"
        " structures (`20GB`).",
    )
    pipeline_parallel: Annotated[int, fields.whole(1, 1024)] = Field(
        default=1,
        description="Stages that a served model's layers are split into; the other GPUs split each"
        " layer (tensor parallel).",
    )
    architecture: Architecture | None = Field(
        default=None,
        description="The model's shape, where name and config do not give it or are wrong.",
    )
    training: Training | None = Field(
        default=None, description="How the model is trained. Absent: it is served."
    )
    image: Image | None = Field(
        default=None, description="What an image or video model makes; needs `name`."
    )

    _directory: str | None = PrivateAttr(default=None)

    def model_post_init(self, context: Any, /) -> None:
        if isinstance(context, dict):
            self._directory = context.get("directory")  # pyright: ignore[reportUnknownMemberType]

    @property
    def config_path(self) -> Path | None:
        """`config` as a path that can be opened: from the declaring file's folder."""
        return self._located(self.config)

    @property
    def weights_index_path(self) -> Path | None:
        """`weights_index` as a path that can be opened: from the declaring file's folder."""
        return self._located(self.weights_index)

    def _located(self, path: str | None) -> Path | None:
        return None if path is None else Path(self._directory or ".") / path

    def cross_checks(self) -> Iterator[Clash]:
        given = [name for name in _SOURCES if getattr(self, name) is not None]
        names = known.asked()
        if names and len(given) == 1:
            for field, unknown in names.model(self):
                where = (field,) if field in type(self).model_fields else ()
                yield Clash(where, complaint(*unknown), (field,))
        if len(given) > 1:
            yield Clash(
                (),
                complaint(
                    f" is given {len(given)} times, by {listed(f'`{name}`' for name in given)}",
                    f"keep one; `architecture` may correct single figures of `{given[0]}`",
                    place="key",
                ),
                _SOURCES,
            )
        if not given and self.measured_gib is None:
            yield from self._without_source()
        if self.active_parameters and self.parameters and self.active_parameters > self.parameters:
            yield Clash(
                ("active_parameters",),
                complaint(
                    f" is {self.active_parameters:,}, more than all {self.parameters:,}"
                    " `parameters`"
                ),
                ("active_parameters", "parameters"),
            )
        yield from self._simulations(given)
        yield from self._packed()
        yield from self._pictures()

    def _pictures(self) -> Iterator[Clash]:
        if self.image and self.name is None and self.measured_gib is None:
            yield Clash(
                ("image",),
                complaint(
                    " needs the model's `name`: no formula in parameters alone sizes an image"
                    " model",
                    "set `model.name`, or your own `model.measured_gib`",
                    place="key",
                ),
                ("image", "name", "measured_gib"),
            )

    def _packed(self) -> Iterator[Clash]:
        """A mean is no longer than the longest sample."""
        mean = self.training.mean_tokens if self.training else None
        if mean and self.context_tokens and mean > self.context_tokens:
            yield Clash(
                ("training", "mean_tokens"),
                complaint(
                    f" is {mean:,}, more than the {self.context_tokens:,} of `context_tokens`, the"
                    " longest sample",
                    "were `mean_tokens` and `context_tokens` swapped?",
                ),
                ("training", "context_tokens"),
            )

    def _simulations(self, given: list[str]) -> Iterator[Clash]:
        """A simulation or a scene is sized by its own figure, beside no model and no other one."""
        found = [name for name in _SIMULATED if getattr(self, name) is not None]
        if found and len(found) + len(given) > 1:
            yield Clash(
                (found[0],),
                complaint(
                    f" stands beside {listed((f'`{n}`' for n in [*given, *found[1:]]), 'and')}: one"
                    " workload is one job",
                    "keep one, and make a workload of its own for the other",
                    place="key",
                ),
                (*_SOURCES, *_SIMULATED),
            )
        if found and self.training is not None:
            yield Clash(
                ("training",),
                complaint(f" does not go with `{found[0]}`", "remove one of them", place="key"),
                ("training", *_SIMULATED),
            )
        if self.profile is not None and self.seats is None:
            yield Clash(
                ("profile",),
                complaint(" is the frame buffer of each of `seats`", "set `seats`", place="key"),
                ("profile", "seats"),
            )

    def _without_source(self) -> Iterator[Clash]:
        shape = self.architecture
        others = (self.seats, *(getattr(self, name) for name in _SIMULATED))
        if shape is None and all(other is None for other in others):
            yield Clash(
                (),
                complaint(
                    " says nothing that can be sized",
                    "give one of `name`, `config`, `weights_index` or `parameters`; or your own"
                    " `measured_gib` per GPU",
                    place="key",
                ),
                (*_SOURCES, "measured_gib", "architecture", "seats", *_SIMULATED),
            )
        elif shape is not None and (shape.layers is None or shape.hidden_size is None):
            yield Clash(
                ("architecture",),
                complaint(
                    " needs at least `layers` and `hidden_size` where nothing else names the model",
                    "or give one of `name`, `config`, `weights_index` or `parameters`",
                    place="key",
                ),
                (*_SOURCES, "measured_gib", "architecture"),
            )
