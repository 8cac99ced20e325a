"""config.json: every family's own spelling gives the shape that the table has for it.

The texts are the published files' fields that decide the shape, shortened; the table's figures for
the same models come from other sources.
"""

from __future__ import annotations

from typing import Any

import pytest

from gputier.sizing import configs, table
from gputier.sizing.shape import Shape

FAMILIES: dict[str, dict[str, Any]] = {
    "llama-3.1-70b": {
        "model_type": "llama", "hidden_size": 8192, "intermediate_size": 28_672,
        "num_attention_heads": 64, "num_hidden_layers": 80, "num_key_value_heads": 8,
        "vocab_size": 128_256, "max_position_embeddings": 131_072, "tie_word_embeddings": False,
    },
    "qwen2.5-0.5b": {
        "model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864,
        "num_attention_heads": 14, "num_hidden_layers": 24, "num_key_value_heads": 2,
        "vocab_size": 151_936, "max_position_embeddings": 32_768, "tie_word_embeddings": True,
        "sliding_window": 32_768, "use_sliding_window": False,
    },
    "gpt2": {
        "model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024,
        "n_ctx": 1024, "vocab_size": 50_257, "n_inner": None,
    },
    "falcon-7b": {
        "model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32,
        "num_attention_heads": 71, "multi_query": True, "new_decoder_architecture": False,
        "vocab_size": 65_024, "max_position_embeddings": 2048,
    },
    "falcon-40b": {
        "model_type": "RefinedWeb", "hidden_size": 8192, "n_layer": 60, "n_head": 128,
        "n_head_kv": 8, "vocab_size": 65_024, "new_decoder_architecture": True, "multi_query": True,
        "max_position_embeddings": 2048,
    },
    "opt-1.3b": {
        "model_type": "opt", "hidden_size": 2048, "ffn_dim": 8192, "num_attention_heads": 32,
        "num_hidden_layers": 24, "vocab_size": 50_272, "max_position_embeddings": 2048,
    },
    "mpt-7b": {
        "model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32, "expansion_ratio": 4,
        "max_seq_len": 2048, "vocab_size": 50_432, "attn_config": {"kv_n_heads": 32},
    },
    "bloom-7b1": {
        "model_type": "bloom", "n_embed": 4096, "n_layer": 30, "num_attention_heads": 32,
        "vocab_size": 250_880, "seq_length": 2048,
    },
    "starcoder2:7b": {
        "model_type": "starcoder2", "hidden_size": 4608, "intermediate_size": 18_432,
        "num_attention_heads": 36, "num_hidden_layers": 32, "num_key_value_heads": 4,
        "vocab_size": 49_152, "max_position_embeddings": 16_384, "sliding_window": 4096,
    },
    "chatglm3": {
        "model_type": "chatglm", "hidden_size": 4096, "ffn_hidden_size": 13_696, "num_layers": 28,
        "num_attention_heads": 32, "kv_channels": 128, "multi_query_attention": True,
        "multi_query_group_num": 2, "padded_vocab_size": 65_024, "seq_length": 8192,
        "tie_word_embeddings": False,
    },
    "dbrx": {
        "model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40, "vocab_size": 100_352,
        "max_seq_len": 32_768, "tie_word_embeddings": False, "attn_config": {"kv_n_heads": 8},
        "ffn_config": {"ffn_hidden_size": 10_752, "moe_num_experts": 16, "moe_top_k": 4},
    },
    "mixtral-8x7b": {
        "model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14_336,
        "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
        "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32_000,
        "max_position_embeddings": 32_768, "sliding_window": None, "tie_word_embeddings": False,
    },
    "qwen3-30b-a3b": {
        "model_type": "qwen3_moe", "hidden_size": 2048, "head_dim": 128, "intermediate_size": 6144,
        "moe_intermediate_size": 768, "num_attention_heads": 32, "num_hidden_layers": 48,
        "num_key_value_heads": 4, "num_experts": 128, "num_experts_per_tok": 8,
        "decoder_sparse_step": 1, "vocab_size": 151_936, "max_position_embeddings": 40_960,
        "tie_word_embeddings": False,
    },
    "deepseek-v2-lite": {
        "model_type": "deepseek_v2", "hidden_size": 2048, "intermediate_size": 10_944,
        "moe_intermediate_size": 1408, "num_attention_heads": 16, "num_hidden_layers": 27,
        "num_key_value_heads": 16, "n_routed_experts": 64, "n_shared_experts": 2,
        "num_experts_per_tok": 6, "first_k_dense_replace": 1, "kv_lora_rank": 512,
        "q_lora_rank": None, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "vocab_size": 102_400, "max_position_embeddings": 163_840, "tie_word_embeddings": False,
    },
    "gemma-2-9b": {
        "model_type": "gemma2", "hidden_size": 3584, "head_dim": 256, "intermediate_size": 14_336,
        "num_attention_heads": 16, "num_hidden_layers": 42, "num_key_value_heads": 8,
        "sliding_window": 4096, "vocab_size": 256_000, "max_position_embeddings": 8192,
    },
    "gemma-3-27b": {
        "model_type": "gemma3",
        "text_config": {
            "model_type": "gemma3_text", "hidden_size": 5376, "head_dim": 128,
            "intermediate_size": 21_504, "num_attention_heads": 32, "num_hidden_layers": 62,
            "num_key_value_heads": 16, "sliding_window": 1024, "vocab_size": 262_208,
            "max_position_embeddings": 131_072,
        },
        "vision_config": {"hidden_size": 1152, "num_hidden_layers": 27, "intermediate_size": 4304},
    },
    "gpt-oss-20b": {
        "model_type": "gpt_oss", "hidden_size": 2880, "head_dim": 64, "intermediate_size": 2880,
        "num_attention_heads": 64, "num_hidden_layers": 24, "num_key_value_heads": 8,
        "num_local_experts": 32, "num_experts_per_tok": 4, "sliding_window": 128,
        "layer_types": ["sliding_attention", "full_attention"] * 12, "vocab_size": 201_088,
        "max_position_embeddings": 131_072, "tie_word_embeddings": False,
    },
    "llama-4-scout": {
        "model_type": "llama4",
        "text_config": {
            "model_type": "llama4_text", "hidden_size": 5120, "head_dim": 128,
            "intermediate_size": 8192, "intermediate_size_mlp": 16_384, "num_attention_heads": 40,
            "num_hidden_layers": 48, "num_key_value_heads": 8, "num_local_experts": 16,
            "num_experts_per_tok": 1, "interleave_moe_layer_step": 1, "attention_chunk_size": 8192,
            "vocab_size": 202_048, "max_position_embeddings": 10_485_760,
        },
        "vision_config": {"hidden_size": 1408, "num_hidden_layers": 34, "intermediate_size": 5632},
        "tie_word_embeddings": False,
    },
    "qwen3-next:80b": {
        "model_type": "qwen3_next", "hidden_size": 2048, "head_dim": 256, "intermediate_size": 5120,
        "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, "num_experts": 512,
        "num_experts_per_tok": 10, "num_attention_heads": 16, "num_hidden_layers": 48,
        "num_key_value_heads": 2, "full_attention_interval": 4, "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32,
        "linear_value_head_dim": 128, "vocab_size": 151_936, "max_position_embeddings": 262_144,
        "tie_word_embeddings": False,
    },
    "jamba-v0.1": {
        "model_type": "jamba", "hidden_size": 4096, "intermediate_size": 14_336,
        "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
        "attn_layer_period": 8, "attn_layer_offset": 4, "expert_layer_period": 2,
        "expert_layer_offset": 1, "num_experts": 16, "num_experts_per_tok": 2,
        "mamba_d_conv": 4, "mamba_d_state": 16, "mamba_dt_rank": 256, "mamba_expand": 2,
        "vocab_size": 65_536, "max_position_embeddings": 262_144, "tie_word_embeddings": False,
    },
    "nemotron-h-56b": {
        "model_type": "nemotron_h", "hidden_size": 8192, "attention_head_dim": 128,
        "intermediate_size": 32_768, "num_attention_heads": 64, "num_hidden_layers": 118,
        "num_key_value_heads": 8, "mamba_head_dim": 64, "mamba_num_heads": 256, "n_groups": 8,
        "ssm_state_size": 256, "conv_kernel": 4, "vocab_size": 131_072,
        "tie_word_embeddings": False, "max_position_embeddings": 8192,
        "hybrid_override_pattern": "M-" * 54 + "*" * 10,
    },
    "kimi-linear-48b-a3b": {
        "model_type": "kimi_linear", "hidden_size": 2304, "intermediate_size": 9216,
        "moe_intermediate_size": 1024, "num_attention_heads": 32, "num_hidden_layers": 27,
        "num_key_value_heads": 32, "num_experts": 256, "num_experts_per_token": 8,
        "num_shared_experts": 1, "first_k_dense_replace": 1, "moe_layer_freq": 1,
        "kv_lora_rank": 512, "q_lora_rank": None, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
        "v_head_dim": 128, "vocab_size": 163_840, "tie_word_embeddings": False,
        "max_position_embeddings": 1_048_576,
        "linear_attn_config": {
            "full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
            "kda_layers": [n for n in range(1, 27) if n % 4],
            "head_dim": 128, "num_heads": 32, "short_conv_kernel_size": 4,
        },
    },
    "minimax-text-01": {
        "model_type": "minimax_text_01", "hidden_size": 6144, "intermediate_size": 9216,
        "num_attention_heads": 64, "num_hidden_layers": 80, "num_key_value_heads": 8,
        "head_dim": 128, "num_local_experts": 32, "num_experts_per_tok": 2,
        "attn_type_list": [0, 0, 0, 0, 0, 0, 0, 1] * 10, "vocab_size": 200_064,
        "max_position_embeddings": 10_240_000, "tie_word_embeddings": False,
    },
    "nemotron-3-nano:30b": {
        "model_type": "nemotron_h", "hidden_size": 2688, "head_dim": 128, "intermediate_size": 1856,
        "moe_intermediate_size": 1856, "moe_shared_expert_intermediate_size": 3712,
        "n_routed_experts": 128, "n_shared_experts": 1, "num_experts_per_tok": 6,
        "num_attention_heads": 32, "num_key_value_heads": 2, "mamba_head_dim": 64,
        "mamba_num_heads": 64, "n_groups": 8, "ssm_state_size": 128, "conv_kernel": 4,
        "layers_block_type": ["mamba"] * 23 + ["moe"] * 23 + ["attention"] * 6,
        "vocab_size": 131_072, "max_position_embeddings": 262_144, "tie_word_embeddings": False,
    },
    "falcon-mamba:7b": {
        "model_type": "falcon_mamba", "hidden_size": 4096, "intermediate_size": 8192,
        "num_hidden_layers": 64, "state_size": 16, "conv_kernel": 4, "time_step_rank": 256,
        "vocab_size": 65_024, "tie_word_embeddings": False,
    },
    "bge-large": {
        "model_type": "bert", "hidden_size": 1024, "intermediate_size": 4096,
        "num_attention_heads": 16, "num_hidden_layers": 24, "vocab_size": 30_522,
        "max_position_embeddings": 512,
    },
}  # fmt: skip


def read(raw: dict[str, Any]) -> Shape:
    return configs.from_config(raw).shape


@pytest.mark.parametrize("name", FAMILIES)
def test_the_parameter_count_is_the_published_one(name: str) -> None:
    entry = table.find(name)
    assert entry
    # Draft blocks, vision projectors and encoder poolers are no part of a text model's config.
    assert read(FAMILIES[name]).parameters == pytest.approx(entry.shape.parameters, rel=0.025)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_cache_is_the_one_of_the_table(name: str) -> None:
    entry = table.find(name)
    assert entry

    def cache(shape: Shape) -> tuple[object, ...]:
        cached = shape.cached_values if shape.cache_layers else 0
        return (shape.cache_layers, shape.local_layers, shape.window, cached, shape.kv_heads)

    expected, found = cache(entry.shape), cache(read(FAMILIES[name]))
    if not entry.shape.cache_layers or entry.shape.encoder:
        assert found[0] == 0 or entry.shape.encoder
    else:
        assert found == expected
    assert read(FAMILIES[name]).state_values == pytest.approx(entry.shape.state_values, rel=1e-6)


def test_embeddings_are_tied_where_the_families_code_ties_them() -> None:
    tied = {name for name in FAMILIES if read(FAMILIES[name]).tied}
    assert tied == {
        "qwen2.5-0.5b", "gpt2", "falcon-7b", "falcon-40b", "opt-1.3b", "mpt-7b", "bloom-7b1",
        "starcoder2:7b", "gemma-2-9b", "gemma-3-27b", "bge-large",
    }  # fmt: skip


def test_the_first_qwen_writes_both_halves_of_its_gated_layer_as_one_width() -> None:
    raw = {
        "model_type": "qwen", "hidden_size": 4096, "intermediate_size": 22_016,
        "num_attention_heads": 32, "num_hidden_layers": 32, "kv_channels": 128, "seq_length": 8192,
        "vocab_size": 151_936, "tie_word_embeddings": False,
    }  # fmt: skip
    shape = read(raw)
    assert shape.ffn == 11_008
    assert shape.parameters == pytest.approx(7.72e9, rel=0.001)


def test_what_is_estimated_is_said() -> None:
    assert configs.from_config(FAMILIES["llama-3.1-70b"]).notes == ()
    assert "vision tower" in " ".join(configs.from_config(FAMILIES["gemma-3-27b"]).notes)
    assert "hybrid" in " ".join(configs.from_config(FAMILIES["jamba-v0.1"]).notes)


@pytest.mark.parametrize(
    ("fields", "window"),
    [
        ({"model_type": "mistral", "sliding_window": 4096}, (32, 4096)),
        ({"model_type": "mistral", "sliding_window": None}, (0, 0)),
        ({"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": False}, (0, 0)),
        (
            {"model_type": "cohere2", "sliding_window": 4096, "sliding_window_pattern": 4},
            (24, 4096),
        ),
        ({"model_type": "unheard-of", "sliding_window": 4096}, (0, 4096)),
    ],
)
def test_a_window_counts_where_it_is_known_which_layers_use_it(
    fields: dict[str, Any], window: tuple[int, int]
) -> None:
    base = {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32}
    shape = read({**base, **fields})
    assert (shape.local_layers, shape.window) == window


@pytest.mark.parametrize(
    ("fields", "precision"),
    [
        ({}, None),
        ({"torch_dtype": "float16"}, "fp16"),
        ({"dtype": "torch.bfloat16"}, "bf16"),
        ({"torch_dtype": "complex64"}, None),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, "int4-gptq"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 8}}, "int8"),
        ({"quantization_config": {"quant_method": "awq", "w_bit": 4}}, "int4-awq"),
        ({"quantization_config": {"quant_method": "fp8", "fmt": "e4m3"}}, "fp8"),
        ({"quantization_config": {"quant_method": "mxfp4"}}, "mxfp4"),
        ({"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}}, "nvfp4"),
        (
            {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}},
            "nf4",
        ),
        (
            {
                "quantization_config": {
                    "quant_method": "bitsandbytes",
                    "load_in_4bit": True,
                    "bnb_4bit_use_double_quant": True,
                }
            },
            "nf4-dq",
        ),
        (
            {"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True}},
            "int8",
        ),
        (
            {
                "quantization_config": {
                    "quant_method": "compressed-tensors",
                    "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}}},
                }
            },
            "fp8",
        ),
        (
            {
                "quantization_config": {
                    "quant_method": "compressed-tensors",
                    "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int"}}},
                }
            },
            "int4-gptq",
        ),
    ],
)
def test_the_precision_is_the_one_of_the_quantisation_or_the_dtype(
    fields: dict[str, Any], precision: str | None
) -> None:
    base = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 9}
    assert configs.from_config({**base, **fields}).precision == precision


def test_nonsense_in_optional_fields_is_not_given() -> None:
    raw = {
        **FAMILIES["llama-3.1-70b"],
        "head_dim": -1,
        "sliding_window": float("inf"),
        "num_experts": True,
        "layer_types": [1, None, "full_attention"],
        "vision_config": "none",
        "quantization_config": [],
        "torch_dtype": 16,
    }
    assert read(raw).parameters == read(FAMILIES["llama-3.1-70b"]).parameters


@pytest.mark.parametrize(("offset", "attention"), [(0, 2), (4, 1)])
def test_a_hybrids_period_starts_at_its_offset(offset: int, attention: int) -> None:
    raw = {**FAMILIES["jamba-v0.1"], "num_hidden_layers": 10, "attn_layer_offset": offset}
    assert read(raw).cache_layers == attention


def test_a_list_says_which_layers_have_experts() -> None:
    raw = {**FAMILIES["mixtral-8x7b"], "moe_layer_freq": [0, 0] + [1] * 30}
    shape = read(raw)
    assert (shape.dense_layers, shape.moe_layers) == (2, 30)


def test_a_language_model_may_be_two_levels_down() -> None:
    inner = {"text_config": FAMILIES["llama-3.1-70b"], "model_type": "omni_thinker"}
    raw = {"model_type": "omni", "thinker_config": inner}
    assert read(raw).parameters == read(FAMILIES["llama-3.1-70b"]).parameters


def test_an_unknown_method_of_quantisation_gives_no_precision() -> None:
    raw = {**FAMILIES["gpt2"], "quantization_config": {"quant_method": "hqq", "bits": 3}}
    assert configs.from_config(raw).precision is None
