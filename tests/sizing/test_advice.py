"""How much more a card holds, what would need less, and the list of what may be named."""

from __future__ import annotations

from typing import Any

import pytest

from gputier.sizing import listing, room, savings, size
from gputier.workload import Workload

CHAT = {"name": "llama-3.1-8b", "context_tokens": 8192}
TUNER = {
    "name": "llama-2-13b",
    "context_tokens": 4096,
    "training": {"method": "lora", "batch_per_gpu": 4},
}


def declared(model: dict[str, Any]) -> Workload:
    purpose = "vdi" if "seats" in model else None
    return Workload.model_validate({"model": model, "purpose": purpose})


def fits(model: dict[str, Any], usable: float, gpus: int = 1) -> bool:
    found = size(declared(model), gpus=gpus)
    assert found
    return found.fits(usable)


@pytest.mark.parametrize("usable", [22.0, 44.7, 79.1])
def test_one_sequence_more_than_the_room_does_not_fit(usable: float) -> None:
    by_field = {r.field: r.most for r in room(declared(CHAT), 1, 0.0, usable)}
    most = by_field["concurrent_sequences"]
    assert fits({**CHAT, "concurrent_sequences": most}, usable)
    assert not fits({**CHAT, "concurrent_sequences": most + 1}, usable)


def test_the_room_for_tokens_ends_at_the_models_own_maximum() -> None:
    by_field = {r.field: r.most for r in room(declared(CHAT), 1, 0.0, 22.0)}
    assert fits({**CHAT, "context_tokens": by_field["context_tokens"]}, 22.0)
    assert not fits({**CHAT, "context_tokens": by_field["context_tokens"] + 1}, 22.0)
    large = {r.field: r.most for r in room(declared(CHAT), 1, 0.0, 139.7)}
    assert large["context_tokens"] == 131_072


def test_the_room_reaches_a_maximum_that_is_no_power_of_two() -> None:
    model = {"name": "qwen3-8b", "precision": "bf16"}
    by_field = {r.field: r.most for r in room(declared(model), 1, 0.0, 139.7)}
    assert by_field["context_tokens"] == 40_960


def test_training_has_room_for_samples() -> None:
    by_field = {r.field: r.most for r in room(declared(TUNER), 1, 0.0, 79.1)}
    batch = by_field["batch_per_gpu"]
    training = {"method": "lora", "batch_per_gpu": batch}
    assert fits({**TUNER, "training": training}, 79.1)
    assert not fits({**TUNER, "training": {**training, "batch_per_gpu": batch + 1}}, 79.1)


def test_a_card_that_is_too_small_has_no_room() -> None:
    assert {r.most for r in room(declared(CHAT), 1, 0.0, 8.0)} == {0}


@pytest.mark.parametrize(
    "model",
    [{"measured_gib": 20}, {"qubits": 20}, {"name": "sdxl"}, {"seats": 2}, {"name": "bge-large"}],
)
def test_what_holds_no_tokens_has_no_room_to_name(model: dict[str, Any]) -> None:
    assert room(declared(model), 1, 0.0, 80.0) == ()


def test_savings_are_what_sizing_says_with_the_change_made() -> None:
    found = {s.change: s for s in savings(declared(TUNER), 1, 0.0)}
    now = size(declared(TUNER), gpus=1)
    assert now
    fused = size(
        declared({**TUNER, "training": {**TUNER["training"], "fused_loss": True}}),  # pyright: ignore[reportGeneralTypeIssues, reportUnknownArgumentType]
        gpus=1,
    )
    assert fused
    assert found["fused_loss: true"].saves_gib == pytest.approx(now.per_gpu_gib - fused.per_gpu_gib)
    # QLoRA is none here: without checkpointing a 4-bit base keeps half as many activations again.
    assert set(found) == {"gradient_checkpointing: full", "fused_loss: true", "batch_per_gpu: 1"}


def test_savings_come_largest_first_and_only_where_worth_a_word() -> None:
    for model in (CHAT, TUNER, {"name": "flux-dev", "image": {"batch": 1}}):
        found = savings(declared(model), 1, 0.0)
        assert [s.saves_gib for s in found] == sorted((s.saves_gib for s in found), reverse=True)
        assert all(s.saves_gib >= 0.1 for s in found)
        assert found
    assert savings(declared({"measured_gib": 20}), 1, 0.0) == ()
    assert savings(declared({"qubits": 20}), 1, 0.0) == ()


def test_what_is_declared_already_is_no_saving() -> None:
    lean = {
        "name": "llama-3.1-8b",
        "context_tokens": 1024,
        "training": {"method": "full", "fused_loss": True, "gradient_checkpointing": "full",
                     "optimizer": "adamw-8bit", "sharding": "zero-3"},
    }  # fmt: skip
    assert savings(declared(lean), 4, 0.0) == ()
    served = {**CHAT, "precision": "int4-awq", "kv_precision": "fp8"}
    assert savings(declared(served), 1, 0.0) == ()


# --- the list ------------------------------------------------------------------------------------


def test_the_list_has_everything_that_may_be_named() -> None:
    found = listing.listed()
    assert sum(one.kind in ("image", "video") for one in found) >= 33
    assert sum(one.parameters is not None for one in found) >= 405 + 33
    assert sum(one.figures for one in found) == 247 + 121
    assert all(one.source for one in found)


def test_a_search_needs_every_word_in_any_spelling() -> None:
    names = [one.name for one in listing.search("LLAMA-3.1 8b")]
    assert "meta-llama/Llama-3.1-8B-Instruct" in names
    assert all("8b" in name.lower() for name in names)
    assert any(one.name.startswith("deepseek-ai/") for one in listing.search("deepseek-ai v3"))
    assert listing.search("no such model") == ()
    assert {one.kind for one in listing.search("video")} >= {"video"}


def test_a_row_that_nothing_confirms_or_that_was_recalled_is_marked() -> None:
    assert sum(not one.verified for one in listing.listed() if one.layers) == 20
    assert sum(one.recalled for one in listing.listed()) == 48
    recalled = next(one.name for one in listing.listed() if one.recalled)
    found = size(declared({"name": recalled, "context_tokens": 64}), gpus=1)
    assert found
    assert "as generally given" in found.basis


def test_a_mixture_lists_what_one_token_passes() -> None:
    mixture = next(one for one in listing.search("mixtral 8x7b"))
    assert mixture.active_parameters == pytest.approx(12.9e9, rel=0.01)
    assert mixture.kv_bytes_per_token == 2 * 2 * 8 * 128 * 32
