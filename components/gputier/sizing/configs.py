"""A model's config.json to a shape."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, cast

from gputier.sizing import blocks, hybrids
from gputier.sizing.files import MOST_CONFIG_BYTES, Json, is_map, positive, read_json, refuse
from gputier.sizing.shape import Mla, Shape, counted
from gputier.sizing.spellings import Config

_UNGATED = frozenset((
    "gpt2", "gptj", "gpt_neo", "gpt_neox", "gpt_bigcode", "opt", "bloom", "falcon", "RefinedWeb",
    "RefinedWebModel", "mpt", "phi", "phi-msft", "starcoder2", "bert", "roberta", "xlm-roberta",
    "distilbert", "electra", "codegen", "nemotron", "persimmon", "stablelm_alpha", "nemotron_h",
    "whisper", "wav2vec2",
))  # fmt: skip
"""Model types whose feed-forward layer has two matrices, not three."""

_TIED = frozenset((
    "gpt2", "gpt_bigcode", "gpt_neo", "opt", "bloom", "falcon", "RefinedWeb", "RefinedWebModel",
    "mpt", "gemma", "gemma2", "gemma3", "gemma3_text", "cohere", "cohere2", "bert", "roberta",
    "xlm-roberta", "distilbert", "electra", "starcoder2", "whisper",
))  # fmt: skip
"""Model types that tie input and output embedding when `tie_word_embeddings` is not written."""

_TEXT_ENCODERS = frozenset(
    ("bert", "roberta", "xlm-roberta", "distilbert", "electra", "modernbert")
)

_DTYPES = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float8_e4m3fn": "fp8"}


class FromConfig(NamedTuple):
    """What a config.json says. `notes` are the places where it does not say enough."""

    shape: Shape
    precision: str | None
    notes: tuple[str, ...]
    quantised: bool = False


def beside(path: Path) -> Path:
    """The file in which TensorRT Model Optimizer writes how it quantised the model."""
    return path.with_name("hf_quant_config.json")


def read_config(path: Path) -> FromConfig:
    """Read a config.json, and a hf_quant_config.json beside it where the former says nothing of
    quantisation. Raises InvalidInput when it cannot be read or is no model's."""
    found = from_config(read_json(path, "model.config", MOST_CONFIG_BYTES), path)
    if found.quantised or not beside(path).is_file():
        return found
    raw = read_json(beside(path), "model.config", MOST_CONFIG_BYTES)
    quantised = raw.get("quantization")
    precision = _quantised(cast("Json", quantised)) if is_map(quantised) else None
    if precision is None:
        note = f"`{beside(path)}` names no quantisation that is sized"
        return found._replace(notes=(*found.notes, note))
    return found._replace(precision=precision, quantised=True)


def from_config(raw: Json, path: Path | str = "config.json") -> FromConfig:
    """A parsed config.json as a shape. Raises InvalidInput when it describes no transformer."""
    config = Config(raw)
    hidden = config.number("hidden")
    layers = config.number("layers") or len(config.words("layers_block_type"))
    if not hidden or not layers or layers > 10_000:
        what = "a diffusers pipeline's" if "_class_name" in raw else "no language model's"
        refuse(
            "model.config",
            f"`{path}` is {what} config.json: it has no hidden size and number of layers",
            "give the config.json beside the weights; for an image model `model.name`",
        )
    notes: list[str] = []
    kinds = hybrids.layer_kinds(config, layers)
    mixer = hybrids.mixer(config, hidden) if kinds.linear else hybrids.NO_MIXER
    shape = replace(
        _with_experts(config, _attention(config, hidden, kinds), kinds),
        layers=layers,
        linear_layers=kinds.linear,
        mixer=mixer.parameters,
        state_values=mixer.state * kinds.linear,
        extra=_vision(config, notes),
    )
    if kinds.linear:
        notes.append("a hybrid model: its parameters are estimated from the configuration")
    if blocks.described(config):
        shape = blocks.applied(shape, config)
        notes.append("its layers differ (block_configs): sized with their means")
    shape = replace(shape, parameters=counted(shape))
    quantised = config.raw.get("quantization_config") or config.text.get("quantization_config")
    return FromConfig(shape, _precision(config), tuple(notes), is_map(quantised))


def _attention(config: Config, hidden: int, kinds: hybrids.Kinds) -> Shape:
    heads = config.number("heads") or max(1, hidden // 128)
    attention = kinds.attention
    local, window = _windows(config, attention)
    ffn = config.number("ffn") or config.first("expansion_ratio") * hidden or 4 * hidden
    if config.kind == "qwen":
        ffn //= 2  # the first Qwen writes both halves of its gated layer as one width
    tied = config.flag("tie_word_embeddings")
    encoder = "text" if config.kind in _TEXT_ENCODERS else ""
    return Shape(
        parameters=0.0,
        layers=attention,
        hidden=hidden,
        heads=heads,
        kv_heads=_kv_heads(config, heads),
        head_size=config.number("head_size") or max(1, hidden // heads),
        ffn=ffn,
        vocabulary=config.number("vocabulary"),
        gated=config.kind not in _UNGATED,
        tied=bool(encoder) or (config.kind in _TIED if tied is None else tied),
        attention_layers=attention,
        cache_layers=0 if encoder else attention,
        local_layers=local,
        window=window,
        mla=_mla(config),
        gated_attention=bool(config.flag("attn_output_gate")) or config.kind == "qwen3_next",
        dense_layers=kinds.dense,
        encoder=encoder,
        max_context=config.number("max_context") or None,
    )


def _kv_heads(config: Config, heads: int) -> int:
    multi_query = config.flag("multi_query") and not config.flag("new_decoder_architecture")
    if config.flag("multi_query_attention"):  # ChatGLM
        return config.first("multi_query_group_num") or 1
    return min(heads, 1 if multi_query else config.number("kv_heads") or heads)


def _mla(config: Config) -> Mla | None:
    rank = config.first("kv_lora_rank")
    if not rank:
        return None
    keys = ("qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim", "q_lora_rank")
    return Mla(rank, *(config.first(key) for key in keys))


def _windows(config: Config, attention: int) -> tuple[int, int]:
    """(layers that keep only a window, the window)."""
    window = config.first("sliding_window", "sliding_window_size", "attention_chunk_size")
    if not window or config.flag("use_sliding_window") is False:
        return 0, 0
    kinds = config.words("layer_types")
    if kinds:
        local = sum("sliding" in kind or "chunked" in kind for kind in kinds)
    elif period := config.first("sliding_window_pattern", "_sliding_window_pattern"):
        local = attention - attention // period
    elif config.kind == "gemma2":  # every second layer, by its code
        local = attention // 2
    elif config.kind in ("gemma3", "gemma3_text"):  # five local for one global, by its code
        local = attention - attention // 6
    elif config.first("attention_chunk_size"):  # Llama 4: three of four layers
        local = attention - attention // 4
    elif config.kind in ("mistral", "mixtral", "phi3", "starcoder2"):
        local = attention
    else:
        local = 0  # which layers use the window is not written: count on none
    return min(local, attention), window


def _moe_layers(config: Config, kinds: hybrids.Kinds) -> int:
    if kinds.moe is not None:
        return kinds.moe
    listed = config.text.get("moe_layer_freq")
    if isinstance(listed, list):
        return sum(1 for item in cast("list[object]", listed) if item == 1)
    dense = config.first("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index")
    step = config.first("decoder_sparse_step", "expert_layer_period", "interleave_moe_layer_step")
    return max(0, kinds.dense - dense) // (step or 1)


def _with_experts(config: Config, shape: Shape, kinds: hybrids.Kinds) -> Shape:
    experts = config.number("experts")
    if experts <= 1:
        return shape
    width = config.number("expert_ffn") or shape.ffn
    moe = _moe_layers(config, kinds)
    shared = config.first(
        "shared_expert_intermediate_size",
        "moe_shared_expert_intermediate_size",
        "shared_intermediate_size",
    )
    shared = shared or config.first("n_shared_experts", "num_shared_experts") * width
    if config.kind == "llama4_text":  # one shared expert beside the routed ones, by its code
        shared = shared or width
    dense_ffn = config.first("intermediate_size_mlp", "dense_intermediate_size") or shape.ffn
    return replace(
        shape,
        ffn=dense_ffn,
        dense_layers=kinds.dense if kinds.moe is not None else kinds.dense - moe,
        moe_layers=moe,
        experts=experts,
        experts_per_token=config.number("experts_per_token") or 2,
        expert_ffn=width,
        shared_ffn=shared,
        expert_hidden=config.first("moe_latent_size"),
    )


def _vision(config: Config, notes: list[str]) -> float:
    """Parameters of a vision tower, from its width, depth and FFN; they stay at 16 bit."""
    tower = config.raw.get("vision_config")
    if not is_map(tower) or config.text is config.raw:
        return 0.0
    vision = cast("Json", tower)
    width = positive(vision.get("hidden_size") or vision.get("embed_dim") or vision.get("width"))
    depth = positive(vision.get("num_hidden_layers") or vision.get("depth") or vision.get("layers"))
    inner = positive(vision.get("intermediate_size")) or 4 * width
    notes.append("the vision tower's parameters are estimated from its width and depth")
    return depth * (4 * width**2 + 2 * width * inner)


def _precision(config: Config) -> str | None:
    quantised = config.raw.get("quantization_config") or config.text.get("quantization_config")
    if is_map(quantised):
        return _quantised(cast("Json", quantised))
    for place in (config.text, config.raw):
        dtype = place.get("dtype") or place.get("torch_dtype")
        if isinstance(dtype, str) and dtype.removeprefix("torch.") in _DTYPES:
            return _DTYPES[dtype.removeprefix("torch.")]
    return None


def _quantised(config: Json) -> str | None:
    """The precision of a quantization_config; None for a method that is not known."""
    text = json.dumps(config).lower()
    method = str(config.get("quant_method") or config.get("quant_algo") or "").lower()
    if "awq" in method and method.startswith("w4"):  # Model Optimizer's W4A16_AWQ, W4A8_AWQ
        return "int4-awq"
    if method in ("int8_sq", "w8a16", "int8"):
        return "int8"
    bits = int(positive(config.get("bits") or config.get("w_bit")))
    if method in ("gptq", "awq"):
        return "int8" if bits == 8 else f"int4-{method}"
    if method == "bitsandbytes":
        if config.get("load_in_8bit") or config.get("_load_in_8bit"):
            return "int8"
        return "nf4-dq" if config.get("bnb_4bit_use_double_quant") else "nf4"
    for word in ("mxfp4", "nvfp4", "fp8"):
        if word in text:
            return word
    if method == "compressed-tensors":
        found = re.search(r'"num_bits": (\d+)', text)
        integers = '"type": "float"' not in text
        return {"8": "int8" if integers else "fp8", "4": "int4-gptq"}.get(found[1] if found else "")
    return None
