"""Bytes per parameter of each number format, with the block layouts they follow from.

Each figure is the format's own arithmetic (bits of a value + its share of the block's scales), so
that it can be checked by hand; `reference` is where the layout is published.
"""

from __future__ import annotations

from typing import NamedTuple


class Format(NamedTuple):
    """How weights are stored, in bytes per parameter; `embedding`, `output`: those two layers."""

    name: str
    bytes: float
    quantised: bool
    bits: int
    reference: str
    embedding: float = 2.0
    output: float = 2.0


_BITS_4 = 0.5

FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        Format("fp32", 4.0, False, 32, "IEEE 754", 4.0, 4.0),
        Format("bf16", 2.0, False, 16, "IEEE 754 binary32's upper half"),
        Format("fp16", 2.0, False, 16, "IEEE 754"),
        Format("fp8", 1.0, True, 8, "OCP FP8; per-tensor or 128×128-block scales are below 0.1 %"),
        # Group of 128: a 2-byte scale and a 1-byte zero point. Row-wise LLM.int8 is a little less.
        Format("int8", 1.0 + 3 / 128, True, 8, "GPTQ group-128 checkpoints; arXiv 2208.07339"),
        # 0.5 + (2 + 0.5) / 128 = 0.5195 for AWQ; GPTQ also keeps a 4-byte group index per input
        # row, and real checkpoints measure 0.52–0.53.
        Format("int4-gptq", 0.53, True, 4, "arXiv 2210.17323, AutoGPTQ checkpoint layout"),
        Format("int4-awq", _BITS_4 + 2.5 / 128, True, 4, "arXiv 2306.00978, AutoAWQ layout"),
        Format("nf4", _BITS_4 + 4 / 64, True, 4, "QLoRA (arXiv 2305.14314): FP32 scale per 64"),
        # Double quantisation: an 8-bit scale per 64, an FP32 one per 256 of those.
        Format("nf4-dq", _BITS_4 + 1 / 64 + 4 / (64 * 256), True, 4, "QLoRA section 3"),
        # 18 bytes per 32 values. llama.cpp keeps the embedding in the same format and the output
        # layer in Q6_K, 210 bytes per 256 (llama-quant.cpp, llama_tensor_get_type).
        Format("q4_0", 18 / 32, True, 4, "ggml-common.h block_q4_0", 18 / 32, 210 / 256),
        Format("mxfp4", _BITS_4 + 1 / 32, True, 4, "OCP MX 1.0: E8M0 scale per 32"),
        Format("nvfp4", _BITS_4 + 1 / 16, True, 4, "NVIDIA NVFP4: FP8 scale per 16"),
    )
}

KV_BYTES: dict[str, float] = {"fp16": 2.0, "fp8": 1.0, "int8": 1.0, "fp32": 4.0}


def of(precision: str) -> Format:
    """The format of a declared precision; unknown words are a bug, the schema has refused them."""
    return FORMATS[precision]
