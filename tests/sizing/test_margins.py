"""Margins: how wide, why, and that they never add up with what a tier keeps free."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from gputier.sizing import Part, Sizing

Sized = Callable[..., Sizing]


def llama(**training: Any) -> dict[str, Any]:
    return {"name": "llama-2-7b", "context_tokens": 1024, "training": training}


def margin(found: Sizing) -> Part | None:
    return next((part for part in found.parts if part.name == "margin"), None)


def fraction(found: Sizing) -> float:
    part = margin(found)
    return part.gib / found.needed_gib if part else 0.0


def own(found: Sizing, unseen: float = 0.5) -> float:
    """The margin's share of the need, without the memory that counters do not see."""
    part = margin(found)
    assert part
    return (part.gib - unseen) / found.needed_gib


@pytest.mark.parametrize("method", ["full", "lora", "qlora"])
def test_training_keeps_the_cuda_context_and_a_fiftieth(sized: Sized, method: str) -> None:
    assert own(sized(**llama(method=method))) == pytest.approx(0.02)


def test_serving_a_known_model_keeps_what_an_engine_takes_unseen(sized: Sized) -> None:
    """The 0.90 limit is its margin; overhead and this are 1 GiB together."""
    found = sized(name="llama-3.1-8b", context_tokens=8192)
    part = margin(found)
    assert part
    overhead = next(p.gib for p in found.parts if p.name == "overhead")
    assert 0.05 < overhead < 0.3
    assert part.gib + overhead == pytest.approx(1.0)
    assert "counters do not see" in part.formula


def test_a_large_overhead_leaves_no_margin_to_serving(sized: Sized) -> None:
    found = sized(name="llama-3.1-8b", context_tokens=16, concurrent_sequences=4000)
    assert next(p.gib for p in found.parts if p.name == "overhead") > 1
    assert margin(found) is None


def test_a_parameter_count_alone_widens_the_margin(sized: Sized) -> None:
    found = sized(parameters="8B", context_tokens=8192)
    overhead = next(p.gib for p in found.parts if p.name == "overhead")
    assert own(found, 1 - overhead) == pytest.approx(0.30)
    training = {"method": "qlora"}
    assert own(sized(parameters="8B", training=training)) == pytest.approx(0.02 + 0.10)


def test_an_unconfirmed_row_of_the_table_widens_the_margin(sized: Sized) -> None:
    found = sized(name="nemotron-ultra-253b", context_tokens=8192)
    overhead = next(p.gib for p in found.parts if p.name == "overhead")
    assert own(found, 1 - overhead) == pytest.approx(0.05)
    assert found.confidence == "fair"
    assert any("not confirmed by a second source" in warning for warning in found.warnings)


def test_a_measurement_keeps_a_small_margin(sized: Sized) -> None:
    found = sized(measured_gib=20)
    assert found.per_gpu_gib == pytest.approx(21.0)
    assert found.confidence == "measured"


@pytest.mark.parametrize("gpus", [2, 3, 4])
def test_sharding_over_few_gpus_widens_the_margin_and_says_why(sized: Sized, gpus: int) -> None:
    found = sized(gpus, **llama(method="lora", sharding="zero-3"))
    assert own(found) == pytest.approx(0.02 + 0.05)
    assert any("FSDP on two to four" in warning for warning in found.warnings)
    assert found.confidence == "fair"


def test_a_declared_library_ends_that_doubt(sized: Sized) -> None:
    job = llama(method="lora", sharding="zero-3", sharded_by="deepspeed")
    assert own(sized(2, **job)) == pytest.approx(0.02)
    assert sized(2, **job).warnings == ()


def test_sharding_over_many_gpus_keeps_the_usual_margin(sized: Sized) -> None:
    found = sized(5, **llama(method="lora", sharding="zero-3"))
    assert own(found) == pytest.approx(0.02)
    assert not any("FSDP" in warning for warning in found.warnings)


def test_the_widening_is_at_most_what_sharding_saves(sized: Sized) -> None:
    """A small model with large activations: a second GPU may not raise what each one needs."""
    job = {
        "name": "tinyllama",
        "context_tokens": 2048,
        "training": {"method": "lora", "batch_per_gpu": 64, "sharding": "zero-3"},
    }
    one, two = sized(1, **job), sized(2, **job)
    assert two.per_gpu_gib < one.per_gpu_gib
    assert 0.02 < own(two) < 0.07


def test_eight_bit_lora_with_a_large_vocabulary_widens_the_margin(sized: Sized) -> None:
    def job(name: str) -> Sizing:
        return sized(name=name, precision="int8", context_tokens=512, training={"method": "qlora"})

    assert own(job("gemma-2-9b")) == pytest.approx(0.02 + 0.10)  # 256,000 tokens
    assert own(job("llama-3.1-8b")) == pytest.approx(0.02)  # 128,256


def test_adapters_on_embeddings_widen_the_margin(sized: Sized) -> None:
    found = sized(**llama(method="lora", lora_targets=["all-linear", "embed_tokens"]))
    assert own(found) == pytest.approx(0.02 + 0.10)


# --- the range -----------------------------------------------------------------------------------


def test_a_range_is_wider_where_less_is_known(sized: Sized) -> None:
    known, unconfirmed, count = (
        sized(**model, context_tokens=8192, precision="bf16")
        for model in (
            {"name": "llama-3.1-8b"},
            {"name": "nemotron-ultra-253b"},
            {"parameters": "8B"},
        )
    )
    widths = [(s.range_gib[1] - s.range_gib[0]) / s.needed_gib for s in (known, unconfirmed, count)]
    assert widths == sorted(widths)
    assert widths[0] < widths[1] < widths[2]
    for found in (known, unconfirmed, count):
        assert found.range_gib[0] < found.needed_gib < found.range_gib[1]


def test_the_rule_of_thumb_stands_beside(sized: Sized) -> None:
    found = sized(2, name="llama-2-7b", context_tokens=8)
    assert found.rule_of_thumb_gib == pytest.approx(6_738_417_664 * 3 / 2 / 2**30)
    assert sized(name="sdxl").rule_of_thumb_gib is None


# --- what a tier keeps free ----------------------------------------------------------------------


def test_kept_free_wins_over_a_smaller_margin(sized: Sized) -> None:
    found = sized(kept_free=0.3, name="llama-3.1-8b", context_tokens=8192)
    part = margin(found)
    assert part
    assert part.gib == pytest.approx(found.needed_gib * (0.90 / 0.70 - 1))
    assert "30% of the card stays free" in part.formula


def test_kept_free_wins_over_the_margin_of_a_training_job_too(sized: Sized) -> None:
    found = sized(kept_free=0.3, **llama(method="lora"))  # 0.95 / 0.7 − 1 = 35.7 %
    assert fraction(found) == pytest.approx(0.95 / 0.70 - 1)


def test_sizings_own_margin_wins_over_a_smaller_kept_free(sized: Sized) -> None:
    # 0.95 / 0.94 − 1 = 1.1 %, less than 2 % and half a GiB
    found = sized(kept_free=0.06, **llama(method="lora"))
    assert own(found) == pytest.approx(0.02)
    part = margin(found)
    assert part
    assert "sizing's own margin" in part.formula


@pytest.mark.parametrize("kept_free", [0.3, 0.5])
def test_with_kept_free_a_card_fits_when_the_need_leaves_that_share_free(
    sized: Sized, kept_free: float
) -> None:
    found = sized(kept_free=kept_free, name="llama-3.1-8b", context_tokens=8192)
    just = found.needed_gib / (1 - kept_free)
    assert found.fits(just * (1 + 1e-9))
    assert not found.fits(just * (1 - 1e-6))


def test_a_card_kept_free_never_needs_less(sized: Sized) -> None:
    needs = [
        sized(kept_free=free, **llama(method="lora")).per_gpu_gib
        for free in (0.0, 0.1, 0.2, 0.3, 0.5)
    ]
    assert needs == sorted(needs)


@pytest.mark.parametrize(("gpus", "kept_free"), [(0, 0.0), (-1, 0.0), (1, 1.0), (1, -0.1)])
def test_impossible_questions_are_refused(sized: Sized, gpus: int, kept_free: float) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        sized(gpus, kept_free, name="llama-3.1-8b")


def test_the_parts_sum_to_the_answer(sized: Sized) -> None:
    for job in (llama(method="full"), llama(method="qlora"), {"name": "sdxl"}):
        found = sized(3, 0.3, **job)
        assert math.fsum(part.gib for part in found.parts) == pytest.approx(
            found.per_gpu_gib, abs=1e-9
        )
        assert found.total_gib == pytest.approx(3 * found.per_gpu_gib)
        assert found.needed_gib < found.per_gpu_gib


# --- seats ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seats", "usable", "fits"),
    [
        (2, 14.6, True),  # a T4's 16 GB hold two 8 GB profiles
        (3, 14.6, False),
        (3, 22.0, True),  # an L4's or A10G's 24 GB hold three
        (4, 22.0, False),
        (6, 44.7, True),  # an L40S's 48 GB hold six
        (7, 44.7, False),
        (1, 8 * 0.92, True),  # a third of an A10
    ],
)
def test_a_card_holds_as_many_8_gb_profiles_as_its_class_says(
    sized: Sized, seats: int, usable: float, fits: bool
) -> None:
    assert sized(seats=seats).fits(usable) == fits


def test_seats_are_spread_over_the_gpus(sized: Sized) -> None:
    assert sized(4, seats=10).per_gpu_gib == pytest.approx(3 * 8 * 0.91)
