"""config.json of models that mix attention with other layers: which layers are what."""

from __future__ import annotations

from typing import NamedTuple, cast

from gputier.sizing import mixers
from gputier.sizing.files import Json, is_map
from gputier.sizing.spellings import Config

NO_MIXER = mixers.Mixer(0.0, 0.0)


class Kinds(NamedTuple):
    """Layers with attention, with a fixed state, and with a feed-forward part.

    `moe` is None when which of the feed-forward parts have experts is written elsewhere; else
    `dense` are the others only.
    """

    attention: int
    linear: int
    dense: int
    moe: int | None = None


def layer_kinds(config: Config, layers: int) -> Kinds:
    """From the spellings that hybrids use; a plain transformer has attention in every layer."""
    pattern = config.text.get("hybrid_override_pattern")
    if isinstance(pattern, str):  # Nemotron-H: a layer is attention, mamba, an FFN or experts
        return Kinds(*(pattern.count(mark) for mark in "*M-E"))
    kinds = config.words("layers_block_type")
    if "moe" in kinds or "mlp" in kinds:
        return Kinds(*(kinds.count(kind) for kind in ("attention", "mamba", "mlp", "moe")))
    linear = min(layers, _linear(config, kinds or config.words("layer_types"), layers))
    has_ffn = config.kind not in ("mamba", "mamba2", "falcon_mamba")
    return Kinds(layers - linear, linear, layers if has_ffn else 0)


def _linear(config: Config, kinds: list[str], layers: int) -> int:
    if kinds:
        return sum("linear" in kind or "mamba" in kind or "recurrent" in kind for kind in kinds)
    if config.kind in ("mamba", "mamba2", "falcon_mamba"):
        return layers
    own = config.text.get("linear_attn_config")
    if is_map(own):  # Kimi Linear lists the layers of each kind
        return _length(cast("Json", own).get("kda_layers"))
    types = config.text.get("attn_type_list")
    if isinstance(types, list):  # MiniMax: 0 is lightning attention
        return sum(1 for item in cast("list[object]", types) if item == 0)
    if period := config.first("attn_layer_period", "full_attention_interval"):
        return layers - len(range(config.first("attn_layer_offset"), layers, period))
    return 0


def _length(value: object) -> int:
    return len(cast("list[object]", value)) if isinstance(value, list) else 0


def mixer(config: Config, hidden: int) -> mixers.Mixer:
    """The linear layer that the configuration describes; four square projections if it does not."""
    if config.first("linear_num_value_heads"):
        keys = (
            "linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim",
            "linear_value_head_dim",
        )  # fmt: skip
        heads = mixers.Heads(*(config.first(key) for key in keys))
        return mixers.gated_delta(hidden, heads, config.first("linear_conv_kernel_dim") or 4)
    own = config.text.get("linear_attn_config")
    if is_map(own):
        inner = Config(cast("Json", own))
        count, size = inner.first("num_heads"), inner.first("head_dim")
        heads = mixers.Heads(count, count, size, size)
        return mixers.kimi_delta(hidden, heads, inner.first("short_conv_kernel_size") or 4)
    state = config.first("mamba_d_state", "ssm_state_size", "state_size")
    if state:
        return _mamba(config, hidden, state)
    heads = config.number("heads")
    size = config.number("head_size") or hidden // max(1, heads)
    return mixers.lightning(hidden, mixers.Heads(heads, heads, size, size))


def _mamba(config: Config, hidden: int, state: int) -> mixers.Mixer:
    kernel = config.first("mamba_d_conv", "conv_kernel") or 4
    heads = config.first("mamba_num_heads", "mamba_n_heads", "num_heads" if _pure(config) else "")
    expanded = hidden * (config.first("mamba_expand", "expand") or 2)
    if heads:
        size = config.first("mamba_head_dim", "mamba_d_head", "head_dim") or expanded // heads
        groups = config.first("mamba_n_groups", "n_groups") or 1
        return mixers.mamba2(hidden, heads * size, state, (heads, groups), kernel)
    inner = config.first("intermediate_size") if _pure(config) else 0
    rank = config.first("mamba_dt_rank", "time_step_rank") or -(-hidden // 16)
    return mixers.mamba1(hidden, inner or expanded, state, rank, kernel)


def _pure(config: Config) -> bool:
    """Whether the model has nothing but state-space layers, whose plain words then mean them."""
    return config.kind in ("mamba", "mamba2", "falcon_mamba")
