"""One way to ask a config.json for things that every family spells its own way.

The spellings are those of the configuration classes of Hugging Face transformers, and of the own
code of MPT, DBRX, Qwen and ChatGLM.
"""

from __future__ import annotations

from typing import cast

from gputier.sizing.files import Json, is_map, positive

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
    "experts_per_token": (
        "num_experts_per_tok", "num_experts_per_token", "moe_top_k", "moe_topk", "top_k_experts",
    ),
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


class Config:
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
        """The first of the keys with a positive number, in attn_config and ffn_config too; or 0."""
        places: list[Json] = [self.text]
        places += [cast("Json", self.text[k]) for k in _INNER if is_map(self.text.get(k))]
        for key in keys:
            for place in places:
                if found := positive(place.get(key)):
                    return int(found)
        return 0

    def flag(self, key: str) -> bool | None:
        """True or false as written, in the language model's part first; None when not written."""
        value = self.text.get(key, self.raw.get(key))
        return value if isinstance(value, bool) else None

    def words(self, key: str) -> list[str]:
        """The words of a list, or the one word; [] when there is neither."""
        value: object = self.text.get(key)
        if isinstance(value, str):
            return [value]
        if not isinstance(value, list):
            return []
        return [item for item in cast("list[object]", value) if isinstance(item, str)]
