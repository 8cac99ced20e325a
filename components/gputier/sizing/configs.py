"""A parsed config.json to a shape.

config.json has no standard spelling; `_SPELLINGS` lists what the common families call the same
thing (the configuration classes of Hugging Face transformers, and MPT, DBRX, Qwen and ChatGLM's
own code).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from gputier.sizing.files import MOST_CONFIG_BYTES, Json, is_map, positive, read_json, refuse
from gputier.sizing.shape import Mla, Shape, counted

_SPELLINGS: dict[str, tuple[str, ...]] = {
    "hidden": ("hidden_size", "n_embd", "d_model", "dim", "model_dim", "n_embed"),
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads", "decoder_attention_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads", "kv_n_heads"),
    "head_size": ("head_dim", "kv_channels", "attention_head_dim", "d_kv"),
    "ffn": (
        "intermediate_size", "n_inner", "ffn_dim", "d_ff", "ffn_hidden_size", "inner_dim",
        "feed_forward_size", "decoder_ffn_dim", "hidden_dim",
    ),
    "vocabulary": ("vocab_size", "padded_vocab_size", "n_vocab"),
    "experts": ("num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts"),
    "experts_per_token": ("num_experts_per_tok", "num_experts_per_token", "moe_top_k", "moe_topk", "top_k_experts"),
    "expert_ffn": ("moe_intermediate_size", "expert_ffn_hidden_size", "moe_ffn_hidden_size"),
    "max_context": (
        "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx",
        "max_sequence_length", "model_max_length",
    ),
}  # fmt: skip

_NESTED = (
    "text_config",
    "llm_config",
    "language_config",
    "language_model_config",
    "thinker_config",
)
_INNER = ("attn_config", "ffn_config", "attention")

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


@dataclass(frozen=True, slots=True)
class FromConfig:
    """What a config.json says. `notes` are the places where it does not say enough."""

    shape: Shape
    precision: str | None
    notes: tuple[str, ...]


class _Config:
    """A config.json's language model, with one way to ask for a thing of many names."""

    def __init__(self, raw: Json) -> None:
        nested = next((raw[key] for key in _NESTED if is_map(raw.get(key))), None)
        if nested and is_map(nested.get("text_config")):
            nested = nested["text_config"]
        self.raw: Json = raw
        self.text: Json = cast("Json", nested) if nested else raw
        kind = self.text.get("model_type") or raw.get("model_type")
        self.kind = kind if isinstance(kind, str) else ""

    def number(self, thing: str) -> int:
        """The first spelling of `thing` that has a positive number; 0 when none."""
        return self.first(*_SPELLINGS[thing])

    def first(self, *keys: str) -> int:
        places: list[Json] = [self.text]
        places += [cast("Json", self.text[k]) for k in _INNER if is_map(self.text.get(k))]
        for key in keys:
            for place in places:
                if found := positive(place.get(key)):
                    return int(found)
        return 0

    def flag(self, key: str) -> bool | None:
        value = self.text.get(key, self.raw.get(key))
        return value if isinstance(value, bool) else None

    def words(self, key: str) -> list[str]:
        value: object = self.text.get(key)
        if isinstance(value, str):
            return [value]
        if not isinstance(value, list):
            return []
        return [item for item in cast("list[object]", value) if isinstance(item, str)]


def read_config(path: Path) -> FromConfig:
    """Read a config.json. Raises InvalidInput when it cannot be read or is no model's."""
    return from_config(read_json(path, "model.config", MOST_CONFIG_BYTES), path)


def from_config(raw: Json, path: Path | str = "config.json") -> FromConfig:
    """A parsed config.json as a shape. Raises InvalidInput when it describes no transformer."""
    config = _Config(raw)
    hidden, layers = config.number("hidden"), config.number("layers")
    if not hidden or not layers or layers > 10_000:
        what = "a diffusers pipeline's" if "_class_name" in raw else "no language model's"
        refuse(
            "model.config",
            f"`{path}` is {what} config.json: it has no hidden size and number of layers",
            "for an image or video model give `model.name`; else the config.json beside the weights",
        )
    notes: list[str] = []
    shape = _with_experts(config, _attention(config, hidden, layers, notes))
    extra = _vision(config, notes)
    shape = replace(shape, extra=extra)
    shape = replace(shape, parameters=counted(shape))
    return FromConfig(shape, _precision(config), tuple(notes))


def _attention(config: _Config, hidden: int, layers: int, notes: list[str]) -> Shape:
    heads = config.number("heads") or max(1, hidden // 128)
    attention, linear = _layer_kinds(config, layers, notes)
    local, window = _windows(config, attention)
    ffn = config.number("ffn") or config.first("expansion_ratio") * hidden or 4 * hidden
    if config.kind == "qwen":
        ffn //= 2  # the first Qwen writes both halves of its gated layer as one width
    tied = config.flag("tie_word_embeddings")
    encoder = "text" if config.kind in _TEXT_ENCODERS else ""
    return Shape(
        parameters=0.0,
        layers=layers,
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
        linear_layers=linear,
        state_values=linear * _state_per_layer(config, hidden),
        dense_layers=layers,
        encoder=encoder,
        max_context=config.number("max_context") or None,
    )


def _kv_heads(config: _Config, heads: int) -> int:
    multi_query = config.flag("multi_query") and not config.flag("new_decoder_architecture")
    if config.flag("multi_query_attention"):  # ChatGLM
        return config.first("multi_query_group_num") or 1
    return min(heads, 1 if multi_query else config.number("kv_heads") or heads)


def _mla(config: _Config) -> Mla | None:
    rank = config.first("kv_lora_rank")
    if not rank:
        return None
    keys = ("qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim", "q_lora_rank")
    return Mla(rank, *(config.first(key) for key in keys))


def _layer_kinds(config: _Config, layers: int, notes: list[str]) -> tuple[int, int]:
    """(layers with attention, layers with a fixed state), from the spellings hybrids use."""
    kinds = config.words("layer_types") or config.words("layers_block_type")
    pattern = config.text.get("hybrid_override_pattern")
    if kinds:
        linear = sum("linear" in kind or "mamba" in kind or "recurrent" in kind for kind in kinds)
    elif isinstance(pattern, str):  # Nemotron-H: M mamba, * attention, - feed-forward
        linear = pattern.count("M")
        notes.append("a hybrid model: parameters are estimated from its config; check them")
        return pattern.count("*"), linear
    elif period := config.first("attn_layer_period", "full_attention_interval"):
        linear = layers - len(range(config.first("attn_layer_offset"), layers, period))
    elif config.kind in ("mamba", "mamba2", "falcon_mamba"):
        linear = layers
    else:
        return layers, 0
    if linear:
        notes.append("a hybrid model: parameters are estimated from its config; check them")
    return max(0, layers - linear), min(layers, linear)


def _state_per_layer(config: _Config, hidden: int) -> float:
    """Values per sequence of one linear layer."""
    if heads := config.first("linear_num_value_heads"):
        return heads * config.first("linear_key_head_dim") * config.first("linear_value_head_dim")
    state = config.first("mamba_d_state", "ssm_state_size", "state_size")
    inner = config.first(
        "mamba_d_ssm", "intermediate_size" if config.kind == "mamba" else "d_inner"
    )
    return float(state * (inner or hidden * (config.first("mamba_expand", "expand") or 2)))


def _windows(config: _Config, attention: int) -> tuple[int, int]:
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


def _with_experts(config: _Config, shape: Shape) -> Shape:
    experts = config.number("experts")
    if experts <= 1:
        return shape
    width = config.number("expert_ffn") or shape.ffn
    dense = config.first("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index")
    step = config.first("decoder_sparse_step", "expert_layer_period", "interleave_moe_layer_step")
    moe = max(0, shape.layers - dense) // (step or 1)
    shared = config.first("shared_expert_intermediate_size")
    shared = shared or config.first("n_shared_experts", "num_shared_experts") * width
    if config.kind == "llama4_text":  # one shared expert beside the routed ones, by its code
        shared = shared or width
    dense_ffn = config.first("intermediate_size_mlp") or shape.ffn
    return replace(
        shape,
        ffn=dense_ffn,
        dense_layers=shape.layers - moe,
        moe_layers=moe,
        experts=experts,
        experts_per_token=config.number("experts_per_token") or 2,
        expert_ffn=width,
        shared_ffn=shared,
    )


def _vision(config: _Config, notes: list[str]) -> float:
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


def _precision(config: _Config) -> str | None:
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
