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
        Format("fp64", 8.0, False, 64, "IEEE 754", 8.0, 8.0),
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

# Bits per weight of a whole file, measured by llama.cpp on Llama-3.1-8B (its tools/quantize/
# README.md). A mix keeps some matrices finer; embedding and output are inside the mean.
_GGUF_BITS = {
    "iq1_s": 2.0042, "iq1_m": 2.1460, "iq2_xxs": 2.3824, "iq2_xs": 2.5882, "iq2_s": 2.7403,
    "iq2_m": 2.9294, "iq3_xxs": 3.2548, "iq3_xs": 3.4977, "iq3_s": 3.6606, "iq3_m": 3.7628,
    "iq4_xs": 4.4597, "iq4_nl": 4.6818, "q2_k_s": 2.9697, "q2_k": 3.1593, "q3_k_s": 3.6429,
    "q3_k_l": 4.2979, "q4_k_s": 4.6672, "q4_k_m": 4.8944, "q5_k_s": 5.5704, "q5_k_m": 5.7036,
    "q6_k": 6.5633, "q8_0": 8.5008,
}  # fmt: skip
# A mix that the table leaves out counts as the next finer one that it has.
_GGUF_AS = {"q2_k_l": "q3_k_s", "q3_k_m": "q3_k_l", "q4_1": "q5_k_s", "q5_0": "q5_k_s",
            "q5_1": "q6_k", "q4_k_l": "q5_k_s", "q5_k_l": "q6_k", "q6_k_l": "q8_0",
            "q3_k_xl": "q4_k_s", "q4_k": "q4_k_m", "q5_k": "q5_k_m", "q3_k": "q3_k_l",
            "q8_k": "q8_0"}  # fmt: skip

GGUF: dict[str, Format] = {
    name: Format(
        name, bits / 8, True, int(bits), "llama.cpp tools/quantize/README.md", bits / 8, bits / 8
    )
    for name, bits in _GGUF_BITS.items()
} | {
    name: Format(
        name, _GGUF_BITS[like] / 8, True, int(_GGUF_BITS[like]), f"counted as {like}",
        _GGUF_BITS[like] / 8, _GGUF_BITS[like] / 8,
    )
    for name, like in _GGUF_AS.items()
}  # fmt: skip
"""File types of llama.cpp. They come with a model's name or file; `precision` has q4_0 alone."""

KV_BYTES: dict[str, float] = {"fp16": 2.0, "fp8": 1.0, "int8": 1.0, "fp32": 4.0}


def of(precision: str) -> Format:
    """The format of a declared precision, or of a GGUF file's name; an unknown word is a bug."""
    return FORMATS.get(precision) or GGUF[precision]
