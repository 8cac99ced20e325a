"""The bytes of a model's weights as they lie on a GPU, for serving and under adapters."""

from __future__ import annotations

from typing import NamedTuple

from gputier.sizing.formats import Format, of
from gputier.sizing.known import Known
from gputier.sizing.records import billions

BASE_KEEPS = 2.0
"""Bytes of what stays unquantised under adapters. PEFT's prepare_model_for_kbit_training casts it
to FP32, but the trainers on top cast embeddings and output layer back to 16 bit (QLoRA's own
qlora.py, TRL's peft_module_casting_to_bf16, Axolotl) or never call it (LLaMA-Factory, Unsloth,
torchtune, LitGPT), and it leaves GPTQ, AQLM, EETQ and HQQ models as they are."""


class Stored(NamedTuple):
    """Bytes of all weights together, and the arithmetic in words."""

    bytes: float
    formula: str


def stored(known: Known, precision: str, kept_bytes: float | None = None) -> Stored:
    """All weights at their real bytes, every expert of a mixture included.

    A quantised model keeps its embeddings, output layer and vision tower unquantised: at the
    format's own figure (16 bit for most), or at `kept_bytes` each.
    """
    layout = of(precision)
    shape = known.shape
    if known.stored_bytes is not None and kept_bytes is None:
        return Stored(
            known.stored_bytes, f"{known.stored_bytes / 1e9:.2f} GB in the weights' index"
        )
    if not layout.quantised:
        text = f"{billions(shape.parameters)} parameters × {layout.bytes:g} B ({precision})"
        return Stored(shape.parameters * layout.bytes, text + _experts(known))
    return _quantised(known, layout, kept_bytes)


def base(known: Known, precision: str) -> Stored:
    """The frozen weights under adapters."""
    return stored(known, precision, BASE_KEEPS if of(precision).quantised else None)


def _quantised(known: Known, layout: Format, kept_bytes: float | None) -> Stored:
    shape = known.shape
    embedding, output = kept_bytes or layout.embedding, kept_bytes or layout.output
    if shape.tied:
        embedding = max(embedding, output)  # one matrix serves as both: the finer format is kept
    ends = shape.embedding * embedding + shape.output * output
    whole = shape.embedding + shape.output
    rest = max(0.0, shape.parameters - whole)
    kept = min(shape.extra, rest)
    if layout.name == "mxfp4" and shape.experts:
        # OpenAI's gpt-oss card: only the experts are MXFP4, attention and the rest stay bf16.
        kept = max(kept, rest - shape.expert_parameters)
    text = f"{billions(rest - kept)} × {layout.bytes:.3g} B ({layout.name})"
    if shape.tied or embedding == output:
        text += f" + {billions(whole)} embeddings and output × {embedding:.3g} B"
    else:
        text += f" + {billions(shape.embedding)} embeddings × {embedding:.3g} B"
        text += f" + {billions(shape.output)} output × {output:.3g} B"
    if kept:
        text += f" + {billions(kept)} unquantised × 2 B"
    total = (rest - kept) * layout.bytes + ends + kept * 2.0
    return Stored(total, text + _experts(known))


def _experts(known: Known) -> str:
    if known.shape.experts:
        return f", all {known.shape.experts} experts resident"
    if known.active and known.active < known.shape.parameters:
        return ", all experts resident"
    return ""
