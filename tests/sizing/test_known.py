"""Inputs: the best one wins, declared figures correct it, and the answer says which was used."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gputier.errors import InvalidInput
from gputier.sizing import Sizing, size, table
from gputier.sizing.shape import TYPICAL_VOCABULARY, counted, typical
from gputier.workload import Workload

Sized = Callable[..., Sizing]
Parts = Callable[..., dict[str, float]]
GIB = 2**30

QWEN3_8B: dict[str, Any] = {
    "layers": 36,
    "hidden_size": 4096,
    "attention_heads": 32,
    "kv_heads": 8,
    "head_size": 128,
    "ffn_size": 12_288,
    "vocabulary_size": 151_936,
}


def test_no_model_is_nothing_to_size() -> None:
    assert size(Workload.model_validate({"gpu": {"count": 1}}), gpus=1) is None


def test_a_measurement_wins_over_every_formula(sized: Sized) -> None:
    found = sized(4, name="llama-3.1-70b", measured_gib=33.5)
    assert found.needed_gib == 33.5
    assert "your own measurement" in found.basis


def test_a_name_is_read_from_the_table_and_named(sized: Sized) -> None:
    assert "meta-llama/Llama-3.1-8B-Instruct in the model table" in sized(name="llama3.1:8b").basis


def test_a_declared_architecture_gives_what_the_table_gives(parts: Parts) -> None:
    job = {"context_tokens": 4096, "training": {"method": "lora"}}
    by_name = parts(name="qwen3-8b", **job)
    declared = parts(architecture=QWEN3_8B, **job)
    assert declared == pytest.approx(by_name, rel=1e-3)


def test_a_declared_figure_corrects_the_tables(parts: Parts, sized: Sized) -> None:
    plain = parts(name="qwen3-8b", context_tokens=4096)
    halved = parts(name="qwen3-8b", context_tokens=4096, architecture={"kv_heads": 4})
    assert halved["kv_cache"] == pytest.approx(plain["kv_cache"] / 2)
    # Keys and values of 36 layers lose 4 heads of 128 each.
    lost = 36 * 2 * 4 * 128 * 4096 * 2 / GIB
    assert plain["weights"] - halved["weights"] == pytest.approx(lost)


def test_a_declared_vocabulary_moves_embedding_and_logits(parts: Parts) -> None:
    job = {"name": "qwen3-8b", "context_tokens": 1024, "training": {"method": "lora"}}
    found = parts(**job, architecture={"vocabulary_size": 32_000})
    assert found["logits"] == pytest.approx(1024 * 32_000 * 12 / GIB)
    lost = 2 * (151_936 - 32_000) * 4096 * 2 / GIB
    assert parts(**job)["weights"] - found["weights"] == pytest.approx(lost)


def test_fewer_layers_than_the_table_says_need_less_of_everything(parts: Parts) -> None:
    plain = parts(name="gemma-3-27b", context_tokens=8192)
    cut = parts(name="gemma-3-27b", context_tokens=8192, architecture={"layers": 31})
    assert cut["kv_cache"] == pytest.approx(plain["kv_cache"] / 2, rel=0.1)
    assert cut["weights"] < plain["weights"] * 0.6


def test_a_declared_count_beside_an_architecture_is_the_count(parts: Parts) -> None:
    found = parts(parameters=8_190_735_360, architecture=QWEN3_8B, context_tokens=4096)
    assert found["weights"] == pytest.approx(8_190_735_360 * 2 / GIB)


@pytest.mark.parametrize(("count", "tied"), [(8_190_735_360, False), (7_568_000_000, True)])
def test_whether_embeddings_are_tied_follows_from_the_count(
    parts: Parts, count: int, tied: bool
) -> None:
    ends = 151_936 * 4096 * (1 if tied else 2)
    found = parts(parameters=count, architecture=QWEN3_8B, precision="nf4", context_tokens=1)
    assert found["weights"] == pytest.approx(((count - ends) * 0.5625 + ends * 2) / GIB)


def test_an_architecture_that_leaves_something_out_says_what_stands_in(sized: Sized) -> None:
    found = sized(architecture={"layers": 32, "hidden_size": 4096}, context_tokens=4096)
    warning = next(w for w in found.warnings if "typical figures stand in" in w)
    assert "attention_heads, ffn_size, vocabulary_size" in warning
    cache = next(p for p in found.parts if p.name == "kv_cache")
    assert cache.gib == pytest.approx(2 * 32 * 32 * 128 * 2 * 4096 / GIB)  # as many KV heads


# --- a parameter count alone ---------------------------------------------------------------------


def test_a_count_alone_says_that_the_rule_of_thumb_was_used(sized: Sized) -> None:
    found = sized(parameters="7B")
    assert "rule of thumb" in found.basis
    assert any("rule of thumb" in warning for warning in found.warnings)
    assert found.confidence == "weak"


def test_the_rule_of_thumb_is_weights_and_half_again_and_thirty_percent(parts: Parts) -> None:
    found = parts(parameters="7B")
    assert found["weights"] == pytest.approx(7e9 * 2 / GIB)
    assert found["kv_cache"] == pytest.approx(7e9 / GIB)
    needed = sum(gib for name, gib in found.items() if name != "margin")
    assert found["margin"] == pytest.approx(0.3 * needed + 1 - found["overhead"])


def test_many_sequences_outgrow_the_rule_of_thumb(parts: Parts) -> None:
    one = parts(parameters="7B")["kv_cache"]
    many = parts(parameters="7B", concurrent_sequences=64)["kv_cache"]
    assert many == pytest.approx(2 * 33 * 8 * 128 * 2 * 8192 * 64 / GIB)
    assert many > one


def test_a_declared_context_replaces_the_rule_of_thumb_by_a_typical_cache(parts: Parts) -> None:
    found = parts(parameters="7B", context_tokens=2048)
    assert found["kv_cache"] == pytest.approx(2 * 33 * 8 * 128 * 2 * 2048 / GIB)


@pytest.mark.parametrize(
    ("parameters", "layers", "hidden"),
    [(6.7e9, 32, 4096), (13.0e9, 40, 5120), (70e9, 71, 9088), (1.1e9, 18, 2304)],
)
def test_the_typical_shape_is_that_of_the_llama_family(
    parameters: float, layers: int, hidden: int
) -> None:
    shape = typical(parameters)
    assert (shape.layers, shape.hidden) == (layers, hidden)


def test_the_typical_shape_of_a_mixture_is_that_of_its_active_part() -> None:
    assert typical(671e9, 37e9).layers == typical(37e9).layers
    assert typical(671e9, 37e9).parameters == 671e9


def test_typical_figures_are_the_medians_of_the_table() -> None:
    held = table.load()
    dense = [
        table.entry(row).shape
        for row in map(held.row, range(len(held.rows)))
        if row["architecture"] == "decoder" and row["kind"] == "llm" and row["linear_kind"] == ""
    ]
    vocabularies = sorted(shape.vocabulary for shape in dense)
    assert vocabularies[len(dense) // 2] == TYPICAL_VOCABULARY
    heads = sorted(shape.kv_heads for shape in dense)
    assert heads[len(dense) // 2] == typical(7e9).kv_heads
    small = [shape for shape in dense if shape.parameters < 5e9]
    assert sum(shape.tied for shape in small) * 2 > len(small)
    large = [shape for shape in dense if shape.parameters >= 5e9]
    assert sum(shape.tied for shape in large) * 2 < len(large)


def test_more_parameters_never_make_a_typical_model_smaller() -> None:
    shapes = [typical(1e6 * 1.13**n) for n in range(120)]
    for smaller, larger in itertools.pairwise(shapes):
        assert smaller.layers <= larger.layers
        assert smaller.hidden <= larger.hidden
        assert smaller.embedding + smaller.output <= larger.embedding + larger.output


def test_the_typical_block_explains_its_own_count() -> None:
    for parameters in (7e9, 13e9, 70e9):
        shape = typical(parameters)
        blocks = counted(shape) - shape.vocabulary * shape.hidden * 2
        assert blocks == pytest.approx(parameters, rel=0.2)


# --- files ---------------------------------------------------------------------------------------

LLAMA_CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14_336,
    "vocab_size": 128_256,
    "max_position_embeddings": 131_072,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
}


def written(path: Path, content: object) -> str:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return str(path)


def test_a_config_gives_what_the_table_gives(parts: Parts, tmp_path: Path) -> None:
    path = written(tmp_path / "config.json", LLAMA_CONFIG)
    by_name = parts(name="llama-3.1-8b", context_tokens=4096)
    assert parts(config=path, context_tokens=4096) == pytest.approx(by_name)


def test_a_config_that_changes_is_read_again(sized: Sized, tmp_path: Path) -> None:
    path = written(tmp_path / "config.json", LLAMA_CONFIG)
    before = sized(config=path, context_tokens=64).per_gpu_gib
    written(tmp_path / "config.json", {**LLAMA_CONFIG, "num_hidden_layers": 16})
    assert sized(config=path, context_tokens=64).per_gpu_gib < before * 0.7


def test_an_index_gives_the_bytes_of_the_weights(sized: Sized, tmp_path: Path) -> None:
    names = [f"model.layers.{n}.self_attn.q_proj.weight" for n in range(32)]
    index = {"metadata": {"total_size": 16_060_522_496}, "weight_map": dict.fromkeys(names, "a")}
    path = written(tmp_path / "model.safetensors.index.json", index)
    found = sized(weights_index=path, context_tokens=4096)
    assert found.parts[0].gib == pytest.approx(16_060_522_496 / GIB)
    assert "model.safetensors.index.json" in found.basis
    assert any("not the model's shape" in warning for warning in found.warnings)
    cache = next(p for p in found.parts if p.name == "kv_cache")
    assert cache.formula.startswith("32 layers")


def test_an_index_of_a_quantised_copy_keeps_its_bytes(parts: Parts, tmp_path: Path) -> None:
    path = written(tmp_path / "i.json", {"metadata": {"total_size": 5_700_000_000}})
    found = parts(weights_index=path, precision="int4-awq", context_tokens=4096)
    assert found["weights"] == pytest.approx(5_700_000_000 / GIB)


def test_an_index_with_an_architecture_has_a_real_cache(sized: Sized, tmp_path: Path) -> None:
    path = written(tmp_path / "i.json", {"metadata": {"total_size": 16_381_470_720}})
    found = sized(weights_index=path, architecture=QWEN3_8B, context_tokens=4096)
    cache = next(p for p in found.parts if p.name == "kv_cache")
    assert cache.gib == pytest.approx(2 * 36 * 8 * 128 * 2 * 4096 / GIB)


def refused(model: dict[str, Any]) -> str:
    with pytest.raises(InvalidInput) as caught:
        size(Workload.model_validate({"model": model}), gpus=1)
    (problem,) = caught.value.problems
    assert problem.path in ("model.config", "model.weights_index")
    return problem.message


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{not json", "not valid JSON"),
        ("[1, 2]", "holds no JSON object"),
        ("{}", "no language model's config.json"),
        ('{"hidden_size": 4096}', "no language model's config.json"),
        ('{"hidden_size": "big", "num_hidden_layers": null}', "no language model's config.json"),
        ('{"hidden_size": 4096, "num_hidden_layers": 99999}', "no language model's config.json"),
        ('{"_class_name": "UNet2DConditionModel"}', "a diffusers pipeline's config.json"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_a_file_that_is_no_models_config_is_refused(
    tmp_path: Path, content: str, says: str
) -> None:
    assert says in refused({"config": written(tmp_path / "config.json", content)})


def test_a_config_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(b"\xff\xfe{\x00}\x00")
    assert "not valid JSON in UTF-8" in refused({"config": str(tmp_path / "config.json")})


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    assert "no such file" in refused({"config": str(tmp_path / "nowhere.json")})
    assert "a folder" in refused({"config": str(tmp_path)})
    assert "no such file" in refused({"weights_index": str(tmp_path / "nowhere.json")})


def test_a_file_that_is_far_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gputier.sizing.configs.MOST_CONFIG_BYTES", 1000)
    path = written(tmp_path / "config.json", {**LLAMA_CONFIG, "padding": "x" * 2000})
    assert "is over" in refused({"config": path})


@pytest.mark.parametrize(
    "content", ['{"weight_map": {}}', '{"metadata": {}}', '{"metadata": {"total_size": -4}}']
)
def test_a_file_that_is_no_index_is_refused(tmp_path: Path, content: str) -> None:
    path = written(tmp_path / "index.json", content)
    assert "no safetensors index" in refused({"weights_index": path})


def test_the_same_model_is_resolved_once(sized: Sized, monkeypatch: pytest.MonkeyPatch) -> None:
    """Selection asks for every GPU count; reading the table each time would be most of its time."""
    sized(name="qwen2.5-14b")
    monkeypatch.setattr(table, "find", pytest.fail)
    assert sized(2, name="qwen2.5-14b").gpus == 2


# --- fields of other kinds of work ---------------------------------------------------------------


def test_an_image_field_beside_a_language_model_is_said_to_be_unread(sized: Sized) -> None:
    found = sized(name="llama-3.1-8b", image={"batch": 2})
    assert any("`model.image` is for image and video models" in w for w in found.warnings)


def test_seats_beside_a_model_are_said_to_be_unread(sized: Sized) -> None:
    found = sized(name="llama-3.1-8b", seats=2)
    assert any("`model.seats` is not read" in warning for warning in found.warnings)
