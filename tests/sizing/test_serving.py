"""Serving: each part against arithmetic done by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gputier.sizing import Sizing

GIB = 2**30
Parts = Callable[..., dict[str, float]]
Sized = Callable[..., Sizing]

# meta-llama/Llama-3.1-8B: 32 layers, 8 KV heads of 128, hidden 4096, vocabulary 128,256, untied.
LLAMA_8B = 8_030_261_248
LLAMA_8B_ENDS = 2 * 128_256 * 4096


def test_sixteen_bit_weights_are_two_bytes_a_parameter(parts: Parts) -> None:
    assert parts(name="llama-3.1-8b", precision="bf16")["weights"] == pytest.approx(
        LLAMA_8B * 2 / GIB
    )


@pytest.mark.parametrize(
    ("precision", "per_parameter"),
    [
        ("fp8", 1.0),
        ("int8", 1 + 3 / 128),
        ("int4-gptq", 0.53),
        ("int4-awq", 0.5 + 2.5 / 128),
        ("nf4", 0.5 + 4 / 64),
        ("nf4-dq", 0.5 + 1 / 64 + 4 / 16384),
        ("mxfp4", 0.5 + 1 / 32),
        ("nvfp4", 0.5 + 1 / 16),
    ],
)
def test_a_quantised_model_keeps_embeddings_and_output_at_sixteen_bit(
    parts: Parts, precision: str, per_parameter: float
) -> None:
    expected = (LLAMA_8B - LLAMA_8B_ENDS) * per_parameter + LLAMA_8B_ENDS * 2
    found = parts(name="llama-3.1-8b", precision=precision)
    assert found["weights"] == pytest.approx(expected / GIB)


def test_a_gguf_file_quantises_its_embedding_and_keeps_its_output_at_six_bits(parts: Parts) -> None:
    """The published Q4_0 file of this model has 4.66 GB (llama.cpp's own layout)."""
    ends = 128_256 * 4096
    expected = (LLAMA_8B - 2 * ends) * 18 / 32 + ends * 18 / 32 + ends * 210 / 256
    found = parts(name="llama-3.1-8b", precision="q4_0")["weights"]
    assert found == pytest.approx(expected / GIB)
    assert found * GIB == pytest.approx(4.66e9, rel=0.01)


def test_a_gguf_file_with_tied_embeddings_keeps_them_at_six_bits(parts: Parts) -> None:
    """Llama-3.2-1B: the published Q4_0 file has 0.77 GB."""
    ends = 128_256 * 2048
    expected = (1_235_814_400 - ends) * 18 / 32 + ends * 210 / 256
    found = parts(name="llama-3.2-1b", precision="q4_0", context_tokens=1)["weights"]
    assert found == pytest.approx(expected / GIB)
    assert found * GIB == pytest.approx(0.77e9, rel=0.02)


def test_only_the_experts_of_a_mxfp4_mixture_are_four_bit(parts: Parts) -> None:
    """gpt-oss-20b: the published checkpoint has 13.76 GB."""
    found = parts(name="gpt-oss-20b", context_tokens=1)["weights"]
    assert found * GIB == pytest.approx(13.76e9, rel=0.02)


def test_the_cache_of_grouped_query_attention(sized: Sized) -> None:
    found = sized(name="llama-3.1-8b", context_tokens=8192, concurrent_sequences=4)
    cache = next(p for p in found.parts if p.name == "kv_cache")
    # 2 × 32 layers × 8 KV heads × 128 × 2 B = 131,072 B a token; × 8,192 × 4 = 4 GiB.
    assert cache.gib == pytest.approx(2 * 32 * 8 * 128 * 2 * 8192 * 4 / GIB)
    assert cache.gib == pytest.approx(4.0)
    assert cache.formula == ("32 layers × 8,192 tokens × 8 kv heads × 128 × 2 × 2 B × 4 sequences")


@pytest.mark.parametrize(("kv_precision", "factor"), [("fp16", 1.0), ("fp8", 0.5), ("int8", 0.5)])
def test_the_cache_follows_its_own_precision(
    parts: Parts, kv_precision: str, factor: float
) -> None:
    found = parts(name="llama-3.1-8b", context_tokens=8192, kv_precision=kv_precision)
    assert found["kv_cache"] == pytest.approx(1.0 * factor)


def test_fp32_weights_have_an_fp32_cache(parts: Parts) -> None:
    assert parts(name="gpt2", context_tokens=1024)["kv_cache"] == pytest.approx(
        2 * 12 * 768 * 4 * 1024 / GIB
    )


def test_sliding_windows_cap_the_local_layers(parts: Parts) -> None:
    # gemma-3-27b: 62 layers, 5 local for 1 global, window 1,024, 16 KV heads of 128.
    per_layer = 2 * 16 * 128 * 2
    expected = per_layer * (10 * 32_768 + 52 * 1024)
    found = parts(name="gemma-3-27b", context_tokens=32_768)
    assert found["kv_cache"] == pytest.approx(expected / GIB)


def test_a_context_shorter_than_the_window_is_cached_whole(parts: Parts) -> None:
    found = parts(name="gemma-3-27b", context_tokens=512)
    assert found["kv_cache"] == pytest.approx(2 * 16 * 128 * 2 * 62 * 512 / GIB)


def test_latent_attention_caches_the_latent(parts: Parts) -> None:
    # DeepSeek-V3: 61 layers × (512 + 64) values × 2 B = 70,272 B a token.
    found = parts(name="deepseek-v3", context_tokens=32_768)
    assert found["kv_cache"] == pytest.approx(61 * (512 + 64) * 2 * 32_768 / GIB)


def test_the_latent_is_whole_on_each_gpu(sized: Sized) -> None:
    """Every query head of a tensor-parallel group needs all of it."""
    one, eight = (sized(gpus, name="deepseek-v3", context_tokens=8192) for gpus in (1, 8))
    assert eight.parts[1].gib == pytest.approx(one.parts[1].gib)
    assert eight.parts[0].gib == pytest.approx(one.parts[0].gib / 8)


def test_hybrids_cache_their_attention_layers_and_a_fixed_state(parts: Parts) -> None:
    # Qwen3-Next-80B: 12 of 48 layers attend, 2 KV heads of 256; 36 hold 32 heads of 128 × 128 and
    # three inputs of a convolution over 2 × 16 × 128 + 32 × 128 channels, in FP32.
    cache = 12 * 2 * 256 * 2 * 2 * 16_384 * 3
    state = 36 * (32 * 128 * 128 + (2 * 16 * 128 + 32 * 128) * 3) * 4 * 3
    found = parts(name="qwen3-next:80b", context_tokens=16_384, concurrent_sequences=3)
    assert found["kv_cache"] == pytest.approx((cache + state) / GIB)


def test_a_state_space_model_has_a_state_that_does_not_grow(parts: Parts) -> None:
    short = parts(name="falcon-mamba:7b", context_tokens=100)["kv_cache"]
    assert parts(name="falcon-mamba:7b", context_tokens=8000)["kv_cache"] == short
    assert short == pytest.approx(64 * 8192 * (16 + 3) * 4 / GIB)


def test_layers_that_share_a_cache_count_once(parts: Parts) -> None:
    # gemma-3n-E2B: 30 layers, the last 10 use the cache of earlier ones; 16 of 20 are local.
    per_layer = 2 * 2 * 256 * 2
    found = parts(name="gemma3n:e2b", context_tokens=8192)
    assert found["kv_cache"] == pytest.approx(per_layer * (4 * 8192 + 16 * 512) / GIB)


def test_tensor_parallelism_shares_weights_and_cache_but_not_the_engine(parts: Parts) -> None:
    one, four = (parts(gpus, name="llama-3.1-70b", context_tokens=8192) for gpus in (1, 4))
    assert four["weights"] == pytest.approx(one["weights"] / 4)
    assert four["kv_cache"] == pytest.approx(one["kv_cache"] / 4)
    for found in (one, four):
        assert found["overhead"] + found["margin"] == pytest.approx(1.0)


def test_the_overhead_is_a_chunk_of_prefill_and_the_samplers_logits(parts: Parts) -> None:
    # Two residual streams, gate, up and product of the FFN, queries, keys and values, at 16 bit.
    each = 2 * (2 * 4096 + 3 * 14_336 + 4096 + 2 * 1024)
    found = parts(name="llama-3.1-8b", context_tokens=8192, concurrent_sequences=3)
    assert found["overhead"] == pytest.approx((2048 * each + 3 * 128_256 * 4) / GIB)
    short = parts(name="llama-3.1-8b", context_tokens=100)
    assert short["overhead"] == pytest.approx((100 * each + 128_256 * 4) / GIB)


def test_packed_weights_are_unpacked_a_matrix_at_a_time(parts: Parts) -> None:
    model = {"name": "llama-3.1-8b", "context_tokens": 8192}
    plain, packed = parts(**model), parts(**model, precision="int4-awq")
    assert packed["overhead"] - plain["overhead"] == pytest.approx(2 * 4096 * 14_336 / GIB)


def test_each_gpu_holds_at_least_one_kv_head(sized: Sized) -> None:
    """Multi-query attention has one head, which every query head needs."""
    one = sized(1, name="falcon-7b", context_tokens=2048)
    eight = sized(8, name="falcon-7b", context_tokens=2048)
    caches = [next(p for p in s.parts if p.name == "kv_cache") for s in (one, eight)]
    assert caches[0].gib == pytest.approx(caches[1].gib)
    assert "whole on each of 8 GPUs" in caches[1].formula


def test_sixteen_gpus_hold_one_of_eight_kv_heads_each(sized: Sized) -> None:
    found = sized(16, name="llama-3.1-70b", context_tokens=8192)
    cache = next(p for p in found.parts if p.name == "kv_cache")
    assert cache.gib == pytest.approx(2 * 80 * 128 * 2 * 8192 / GIB)
    assert "each of 16 GPUs holds one KV head" in cache.formula


def test_heads_that_do_not_divide_are_a_warning_and_no_refusal(sized: Sized) -> None:
    found = sized(3, name="llama-3.1-8b", context_tokens=1024)
    assert any("does not divide 32 attention heads" in warning for warning in found.warnings)
    assert not any("divide" in w for w in sized(4, name="llama-3.1-8b").warnings)


def test_no_context_means_the_models_own_maximum_and_says_so(sized: Sized, parts: Parts) -> None:
    found = sized(name="llama-3.1-8b")
    assert any("maximum of 131,072 tokens" in warning for warning in found.warnings)
    declared = parts(name="llama-3.1-8b", context_tokens=131_072)
    assert {p.name: p.gib for p in found.parts} == declared


def test_more_tokens_than_the_model_supports_are_a_warning(sized: Sized) -> None:
    found = sized(name="llama-2-7b", context_tokens=8192)
    assert any("more than the 4,096 the model supports" in w for w in found.warnings)


def test_an_embedding_model_has_activations_and_no_cache(parts: Parts) -> None:
    # bge-large: hidden 1024, 16 heads of 64, FFN 4096 not gated.
    layer = 2 * (6 * 1024 + 2 * 1024 + 2 * 1024 + 2 * 4096)
    found = parts(8, name="bge-large", context_tokens=512, concurrent_sequences=64)
    assert found["activations"] == pytest.approx(layer * 512 * 64 / GIB)
    assert "kv_cache" not in found
    assert found["weights"] == parts(name="bge-large")["weights"], "each GPU holds a copy"


def test_a_speech_model_caches_the_audio_it_listens_to(parts: Parts) -> None:
    """Measured for this model by faster-whisper: 4.4 GiB with beam search, 4.8 by transformers."""
    found = parts(name="whisper-large-v3", concurrent_sequences=2)
    assert found["kv_cache"] == pytest.approx(2 * 32 * 1280 * 2 * (448 + 1500) * 2 / GIB)
    assert 4.0 < sum(parts(name="whisper-large-v3").values()) < 4.9


def test_serving_leaves_a_tenth_of_the_card_to_the_engine(sized: Sized) -> None:
    found = sized(name="llama-3.1-8b", context_tokens=8192)
    assert found.limit_fraction == 0.90
    assert found.fits(found.per_gpu_gib / 0.90 + 1e-9)
    assert not found.fits(found.per_gpu_gib / 0.90 - 1e-6)


def test_every_expert_of_a_mixture_is_resident(sized: Sized) -> None:
    found = sized(name="mixtral-8x7b", context_tokens=4096)
    assert found.parts[0].gib == pytest.approx(46_702_792_704 * 2 / GIB)
    assert found.parts[0].formula.endswith("all 8 experts resident")
    by_count = sized(parameters="30.5B", active_parameters="3.3B", context_tokens=4096)
    assert by_count.parts[0].gib == pytest.approx(30.5e9 * 2 / GIB)
    assert "all experts resident" in by_count.parts[0].formula


def test_a_speech_encoder_listens_to_thirty_seconds_unless_declared(parts: Parts) -> None:
    # wav2vec2-large: hidden 1024, 16 heads of 64, FFN 4096 not gated; 50 frames a second.
    layer = 2 * (6 * 1024 + 2 * 1024 + 2 * 1024 + 2 * 4096)
    assert parts(name="wav2vec2-large")["activations"] == pytest.approx(layer * 1500 / GIB)
    longer = parts(name="wav2vec2-large", context_tokens=3000)
    assert longer["activations"] == pytest.approx(layer * 3000 / GIB)


def test_embeddings_are_never_more_than_the_model(parts: Parts) -> None:
    """A count so small that a typical vocabulary would outweigh it."""
    found = parts(parameters="1M", precision="nf4", context_tokens=1)
    assert found["weights"] == pytest.approx(1e6 * 2 / GIB)
