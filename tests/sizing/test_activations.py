"""What training keeps of each token: activations, adapters' inputs, logits, packed batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gputier.sizing import Sizing

GIB = 2**30
Parts = Callable[..., dict[str, float]]
Sized = Callable[..., Sizing]

# Llama-2-7B: 32 layers, hidden 4096, 32 heads of 128, FFN 11,008 gated, vocabulary 32,000.
LAYER = 2 * (6 * 4096 + 2 * 4096 + 2 * 4096 + 4 * 11_008)  # activation bytes of a token
BLOCK = (6_738_417_664 - 2 * 32_000 * 4096) / 32


def llama(**training: Any) -> dict[str, Any]:
    return {"name": "llama-2-7b", "context_tokens": 1024, "training": training}


@pytest.mark.parametrize(
    ("checkpointing", "bytes_per_token"),
    [
        ("none", 32 * LAYER),
        ("selective", 16 * LAYER),
        ("full", LAYER + 2 * 4096 * 32),
    ],
)
def test_activations_follow_checkpointing(
    parts: Parts, checkpointing: str, bytes_per_token: int
) -> None:
    assert LAYER == 169_984
    found = parts(**llama(method="lora", gradient_checkpointing=checkpointing, batch_per_gpu=2))
    assert found["activations"] == pytest.approx(bytes_per_token * 2 * 1024 / GIB)


def test_one_layer_with_checkpointing_is_at_most_one_layer(parts: Parts) -> None:
    shape = {"layers": 1, "hidden_size": 4096, "attention_heads": 32, "ffn_size": 64}
    found = [
        parts(
            architecture=shape,
            context_tokens=64,
            training={"method": "full", "gradient_checkpointing": word},
        )["activations"]
        for word in ("none", "full")
    ]
    assert found[0] == found[1]


def test_a_feed_forward_layer_without_a_gate_keeps_two_widths(parts: Parts) -> None:
    # phi-2: 32 layers, hidden 2560, 32 heads of 80, FFN 10,240 not gated.
    layer = 2 * (6 * 2560 + 2 * 2560 + 2 * 2560 + 2 * 10_240)
    found = parts(name="phi-2", context_tokens=512, training={"method": "lora"})
    assert found["activations"] == pytest.approx(32 * layer * 512 / GIB)


@pytest.mark.parametrize(
    ("checkpointing", "layers"), [("none", 32), ("selective", 16), ("full", 1)]
)
def test_a_four_bit_base_keeps_the_inputs_of_its_matrices(
    parts: Parts, checkpointing: str, layers: int
) -> None:
    """Two normed inputs and the attention's output, 4096 wide each, and the FFN's 11,008."""
    lora, qlora = (
        parts(**llama(method=m, gradient_checkpointing=checkpointing))["activations"]
        for m in ("lora", "qlora")
    )
    more = 2 * (3 * 4096 + 11_008) * layers * 1024 / GIB
    assert qlora - lora == pytest.approx(more)


@pytest.mark.parametrize("precision", ["int8", "int4-gptq"])
def test_other_packed_products_keep_no_inputs(parts: Parts, precision: str) -> None:
    found = parts(precision=precision, **llama(method="qlora"))["activations"]
    assert found == pytest.approx(parts(**llama(method="lora"))["activations"])


@pytest.mark.parametrize(
    ("precision", "values"),
    [("nf4", 4096 * 11_008), ("int4-awq", 4096 * 11_008), ("int4-gptq", BLOCK)],
)
def test_packed_matrices_are_unpacked_one_at_a_time_or_a_block(
    parts: Parts, precision: str, values: float
) -> None:
    found = parts(precision=precision, **llama(method="qlora"))
    assert found["overhead"] == pytest.approx(0.5 + values * 2 / GIB)
    assert parts(**llama(method="lora"))["overhead"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("targets", "inputs"),
    [
        (["q", "v"], 2 * 4096),
        (["qkv"], 4096),  # one matrix, one adapter
        (["o"], 4096),
        (["mlp"], 2 * 4096 + 11_008),
        (["all-linear"], 6 * 4096 + 11_008),
        (["frobnicate"], 4096),
    ],
)
def test_adapters_with_dropout_keep_their_inputs_and_a_mask(
    parts: Parts, targets: list[str], inputs: int
) -> None:
    job = {"method": "lora", "lora_targets": targets}
    with_it = parts(**llama(**job, lora_dropout=0.05))["activations"]
    without = parts(**llama(**job))["activations"]
    assert with_it - without == pytest.approx(3 * inputs * 32 * 1024 / GIB)


def test_adapters_of_a_mixture_keep_the_inputs_of_the_chosen_experts(parts: Parts) -> None:
    """Mixtral-8x7B: 2 of 8 experts, gate and up 4096 wide and down 14,336."""
    job = {"method": "lora", "lora_targets": ["mlp"]}
    found = [
        parts(name="mixtral-8x7b", context_tokens=512, training={**job, "lora_dropout": share})
        for share in (0.0, 0.1)
    ]
    more = found[1]["activations"] - found[0]["activations"]
    assert more == pytest.approx(3 * 2 * (2 * 4096 + 14_336) * 32 * 512 / GIB)


def test_a_packed_batch_is_one_longest_sample_and_mean_ones(parts: Parts, sized: Sized) -> None:
    padded = parts(**llama(method="lora", batch_per_gpu=8))
    packed = parts(**llama(method="lora", batch_per_gpu=8, mean_tokens=256))
    for name in ("activations", "logits"):
        assert packed[name] == pytest.approx(padded[name] * (1024 + 7 * 256) / (8 * 1024)), name
    formula = {p.name: p.formula for p in sized(**llama(batch_per_gpu=8, mean_tokens=256)).parts}[
        "logits"
    ]
    assert formula.startswith("(1,024 + 7 × 256 tokens)")


def test_a_single_sample_may_be_the_longest(parts: Parts) -> None:
    alone = llama(method="lora", batch_per_gpu=1)
    assert parts(**llama(method="lora", mean_tokens=256)) == parts(**alone)


@pytest.mark.parametrize(("fused", "each"), [(False, 12), (True, 1)])
def test_logits_are_twelve_bytes_a_vocabulary_entry_or_one_when_fused(
    parts: Parts, fused: bool, each: int
) -> None:
    found = parts(**llama(method="lora", batch_per_gpu=4, fused_loss=fused))
    assert found["logits"] == pytest.approx(4 * 1024 * 32_000 * each / GIB)


def test_8k_tokens_with_a_150k_vocabulary_are_14_gib_of_logits(parts: Parts) -> None:
    found = parts(name="qwen1.5-7b", context_tokens=8192, training={"method": "lora"})
    assert found["logits"] == pytest.approx(13.9, abs=0.1)
