"""Training: each part of each method against arithmetic done by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gputier.sizing import Sizing

GIB = 2**30
Parts = Callable[..., dict[str, float]]
Sized = Callable[..., Sizing]

# Llama-2-7B: 32 layers, hidden 4096, 32 heads of 128, FFN 11,008 gated, vocabulary 32,000.
N = 6_738_417_664
ENDS = 2 * 32_000 * 4096
BLOCK = (N - ENDS) / 32


def llama(**training: Any) -> dict[str, Any]:
    return {"name": "llama-2-7b", "context_tokens": 1024, "training": training}


@pytest.mark.parametrize(
    ("training", "weights", "gradients", "optimizer"),
    [
        # Mixed precision: 16-bit weights, FP32 gradients, master copy and two FP32 moments.
        ({}, 2, 4, 4 + 8),
        ({"state": "pure-16bit"}, 2, 2, 4),
        ({"state": "fp32"}, 4, 4, 8),
        ({"state": "pure-16bit", "optimizer": "adamw-8bit"}, 2, 2, 2),
        ({"optimizer": "paged-adamw-8bit"}, 2, 4, 4 + 2),
        ({"state": "pure-16bit", "optimizer_in_backward": True}, 2, 0, 4),
        (
            {"state": "pure-16bit", "optimizer": "adamw-8bit", "optimizer_in_backward": True},
            2,
            0,
            2,
        ),
        ({"optimizer": "lion"}, 2, 4, 4 + 4),
        ({"optimizer": "sgd"}, 2, 4, 4 + 4),
        ({"optimizer": "lomo"}, 2, 0, 0),
    ],
)
def test_full_training_holds_the_bytes_of_its_recipe(
    parts: Parts, training: dict[str, Any], weights: int, gradients: int, optimizer: int
) -> None:
    found = parts(**llama(method="full", **training))
    for name, each in (("weights", weights), ("gradients", gradients), ("optimizer", optimizer)):
        assert found.get(name, 0.0) == pytest.approx(N * each / GIB), name


def test_adafactor_keeps_a_row_and_a_column_of_each_matrix(parts: Parts) -> None:
    found = parts(**llama(method="full", optimizer="adafactor", state="pure-16bit"))
    edges = 32 * (4 * (4096 + 4096) + 3 * (4096 + 11_008)) + 2 * (32_000 + 4096)
    assert found["optimizer"] == pytest.approx(edges * 4 / GIB)


@pytest.mark.parametrize(
    ("sharding", "weights", "gradients", "optimizer"),
    [("none", 1, 1, 1), ("zero-1", 1, 1, 8), ("zero-2", 1, 8, 8), ("zero-3", 8, 8, 8)],
)
def test_each_zero_stage_shares_what_it_names(
    parts: Parts, sharding: str, weights: int, gradients: int, optimizer: int
) -> None:
    found = parts(8, **llama(method="full", sharding=sharding))
    assert found["weights"] == pytest.approx(N * 2 / weights / GIB)
    assert found["gradients"] == pytest.approx(N * 4 / gradients / GIB)
    assert found["optimizer"] == pytest.approx(N * 12 / optimizer / GIB)


def test_full_training_on_several_gpus_is_sharded_unless_declared_otherwise(parts: Parts) -> None:
    assert parts(8, **llama(method="full")) == parts(8, **llama(method="full", sharding="zero-3"))


def test_adapters_are_not_sharded_unless_declared(parts: Parts) -> None:
    assert parts(8, **llama(method="lora")) == parts(1, **llama(method="lora"))


def test_two_blocks_and_the_output_layer_are_gathered_from_shards(
    parts: Parts,
) -> None:
    found = parts(8, **llama(method="full"))
    assert found["overhead"] == pytest.approx(0.5 + (2 * BLOCK + ENDS / 2) * 2 / GIB)
    assert parts(1, **llama(method="full"))["overhead"] == pytest.approx(0.5)


def test_no_more_is_gathered_than_lies_elsewhere(parts: Parts) -> None:
    """Of a two-layer model that two GPUs share, half is elsewhere, and not two blocks."""
    shape = {"layers": 2, "hidden_size": 4096, "attention_heads": 32, "vocabulary_size": 100}
    job = {"architecture": shape, "context_tokens": 64, "training": {"method": "full"}}
    whole = parts(1, **job)["weights"]
    two = parts(2, **job)
    assert two["weights"] == pytest.approx(whole / 2)
    assert two["overhead"] == pytest.approx(0.5 + whole / 2)


# --- adapters ------------------------------------------------------------------------------------

QKVO = 4 * (4096 + 4096)
MLP = 3 * (4096 + 11_008)


@pytest.mark.parametrize(
    ("targets", "edges"),
    [
        (["all-linear"], QKVO + MLP),
        (["q", "v"], 2 * 8192),
        (["q_proj", "k_proj", "v_proj", "o_proj"], QKVO),
        (["attn"], QKVO),
        (["mlp"], MLP),
        (["self_attn.q_proj"], 8192),
        (["gate", "up"], 2 * (4096 + 11_008)),
        (["c_attn"], 3 * 8192),
    ],
)
def test_an_adapter_adds_rank_times_inputs_plus_outputs(
    parts: Parts, targets: list[str], edges: int
) -> None:
    found = parts(**llama(method="lora", lora_rank=8, lora_targets=targets))
    assert found["adapters"] == pytest.approx(32 * 8 * edges * 16 / GIB)


def test_the_adapter_count_is_the_one_that_litgpt_prints(parts: Parts) -> None:
    """Rank 8 on q and v of Llama-2-7B: 4,194,304 trainable parameters."""
    found = parts(**llama(method="lora", lora_rank=8, lora_targets=["q", "v"]))
    assert found["adapters"] * GIB / 16 == pytest.approx(4_194_304)


@pytest.mark.parametrize(
    ("training", "each"),
    [
        ({}, 16),
        ({"optimizer": "adamw-8bit"}, 10),
        ({"optimizer": "lion"}, 12),
        ({"optimizer_in_backward": True}, 12),
        ({"optimizer": "lomo"}, 4),
    ],
)
def test_adapters_train_in_fp32(parts: Parts, training: dict[str, Any], each: int) -> None:
    found = parts(**llama(method="lora", lora_rank=8, lora_targets=["q"], **training))
    assert found["adapters"] == pytest.approx(32 * 8 * 8192 * each / GIB)


def test_zero_stages_share_adapter_state_too(parts: Parts) -> None:
    training = {"method": "lora", "lora_rank": 8, "lora_targets": ["q"]}
    count = 32 * 8 * 8192
    for stage, each in (("zero-1", 8 + 8 / 4), ("zero-2", 4 + 12 / 4), ("zero-3", 16 / 4)):
        found = parts(4, **llama(**training, sharding=stage))
        assert found["adapters"] == pytest.approx(count * each / GIB), stage


def test_training_the_embeddings_under_lora_trains_them_whole(sized: Sized) -> None:
    targets = ["q", "embed_tokens", "lm_head"]
    found = sized(**llama(method="lora", lora_rank=8, lora_targets=targets))
    adapters = next(p for p in found.parts if p.name == "adapters").gib
    assert adapters == pytest.approx((32 * 8 * 8192 + ENDS) * 16 / GIB)
    assert any("train embeddings" in warning for warning in found.warnings)


def test_the_output_layer_of_a_tied_model_is_its_embedding(parts: Parts) -> None:
    job = {"method": "lora", "lora_rank": 8, "lora_targets": ["lm_head"]}
    found = parts(name="llama-3.2-1b", context_tokens=64, training=job)
    assert found["adapters"] == pytest.approx(128_256 * 2048 * 16 / GIB)


def test_an_unknown_module_counts_as_the_widest_and_is_named(sized: Sized) -> None:
    found = sized(**llama(method="lora", lora_rank=8, lora_targets=["q", "frobnicate"]))
    adapters = next(p for p in found.parts if p.name == "adapters").gib
    assert adapters == pytest.approx(32 * 8 * (8192 + 4096 + 11_008) * 16 / GIB)
    assert any("frobnicate" in warning for warning in found.warnings)


def test_qlora_holds_a_four_bit_base_and_the_rest_at_16_bit(parts: Parts) -> None:
    found = parts(**llama(method="qlora"))
    assert found["weights"] == pytest.approx(((N - ENDS) * 0.5625 + ENDS * 2) / GIB)
    double = parts(precision="nf4-dq", **llama(method="qlora"))
    assert double["weights"] == pytest.approx(((N - ENDS) * 0.515869140625 + ENDS * 2) / GIB)


def test_lora_holds_a_sixteen_bit_base(parts: Parts) -> None:
    assert parts(**llama(method="lora"))["weights"] == pytest.approx(N * 2 / GIB)
    assert parts(4, **llama(method="lora", sharding="zero-3"))["weights"] == pytest.approx(
        N * 2 / 4 / GIB
    )


# --- odd pairs and silence -----------------------------------------------------------------------


def test_qlora_of_a_16_bit_model_says_that_the_base_is_nf4(sized: Sized, parts: Parts) -> None:
    found = sized(precision="bf16", **llama(method="qlora"))
    assert any("qlora holds its base at nf4" in warning for warning in found.warnings)
    assert {p.name: p.gib for p in found.parts} == parts(precision="nf4", **llama(method="qlora"))


def test_lora_on_a_quantised_base_is_qlora(sized: Sized, parts: Parts) -> None:
    found = sized(precision="nf4", **llama(method="lora"))
    assert any("sized as qlora" in warning for warning in found.warnings)
    assert {p.name: p.gib for p in found.parts} == parts(precision="nf4", **llama(method="qlora"))


def test_full_training_of_a_quantised_model_is_sized_at_16_bit(sized: Sized, parts: Parts) -> None:
    found = sized(precision="int4-awq", **llama(method="full"))
    assert any("not trained in full" in warning for warning in found.warnings)
    assert {p.name: p.gib for p in found.parts} == parts(**llama(method="full"))


def test_fp32_weights_mean_fp32_state_unless_a_state_is_declared(
    sized: Sized, parts: Parts
) -> None:
    silent = parts(precision="fp32", **llama(method="full"))
    assert silent == parts(**llama(method="full", state="fp32"))
    declared = sized(precision="fp32", **llama(method="full", state="mixed"))
    assert any("sized as mixed" in warning for warning in declared.warnings)


def test_a_lora_of_a_model_published_in_fp8_keeps_a_16_bit_base(sized: Sized) -> None:
    found = sized(name="deepseek-v3", context_tokens=512, training={"method": "lora"})
    assert found.parts[0].gib == pytest.approx(684_531_386_000 * 2 / GIB)


def test_a_training_sequence_is_4096_tokens_unless_declared(sized: Sized, parts: Parts) -> None:
    silent = sized(name="llama-3.1-8b", training={"method": "lora"})
    assert any("4,096 tokens assumed" in warning for warning in silent.warnings)
    declared = parts(name="llama-3.1-8b", context_tokens=4096, training={"method": "lora"})
    assert {p.name: p.gib for p in silent.parts} == declared


# --- offload -------------------------------------------------------------------------------------


def test_offload_moves_gradients_and_optimizer_off_the_gpu(sized: Sized, parts: Parts) -> None:
    found = parts(**llama(method="full", sharding="none", offload=True))
    assert found["weights"] == pytest.approx(N * 2 / GIB)
    assert "gradients" not in found
    assert "optimizer" not in found
    said = sized(**llama(method="full", sharding="none", offload=True)).warnings
    # 6.74 billion × (4 + 12) B
    assert any("moves 100 GiB to host memory" in warning for warning in said)


def test_offload_with_zero_3_moves_the_weights_too(parts: Parts) -> None:
    found = parts(**llama(method="full", offload=True))
    assert "weights" not in found
    assert found["overhead"] == pytest.approx(0.5 + (2 * BLOCK + ENDS / 2) * 2 / GIB)


def test_offload_of_adapters_says_what_stays_without_zero_3(sized: Sized) -> None:
    found = sized(**llama(method="qlora", offload=True))
    assert any("the base stays on the GPU" in warning for warning in found.warnings)
    sharded = sized(2, **llama(method="qlora", offload=True, sharding="zero-3"))
    assert not any(p.name == "weights" for p in sharded.parts)


def test_offload_is_never_assumed(parts: Parts) -> None:
    assert parts(**llama(method="full")) == parts(**llama(method="full", offload=False))


def test_training_may_fill_95_percent_of_the_card(sized: Sized) -> None:
    assert sized(**llama(method="lora")).limit_fraction == 0.95
