"""Loose names: what people write finds the model that they mean, or says why not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gputier.errors import InvalidInput
from gputier.sizing import Sizing, names, size, table
from gputier.workload import Workload

Sized = Callable[..., Sizing]
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


@pytest.mark.parametrize(
    "name",
    [
        LLAMA,
        "meta-llama/llama-3.1-8b-instruct",
        "meta-llama/Llama-3.1-8B",
        "meta-llama/Meta-Llama-3.1-8B",
        "unsloth/Meta-Llama-3.1-8B-Instruct",
        "llama3.1:8b",
        "llama3.1:8b-instruct",
        "llama-3.1-8b",
        "Llama 3.1 8B",
        "LLAMA_3.1_8B",
        "llama-3.1-8b-base",
        "llama-3.1-8b-it",
    ],
)
def test_the_same_model_has_many_spellings(name: str) -> None:
    found = table.find(name)
    assert found
    assert found.name == LLAMA


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("mistralai/Mistral-7B-v0.3", "mistralai/Mistral-7B-Instruct-v0.3"),
        ("llama2-7b-chat", "meta-llama/Llama-2-7b-hf"),
        ("meta-llama/Llama-2-7b-chat-hf", "meta-llama/Llama-2-7b-hf"),
        ("Qwen3-8B-Base", "Qwen/Qwen3-8B"),
        ("falcon-7b-hf", "tiiuae/falcon-7b-instruct"),
        ("gemma-2-9b", "google/gemma-2-9b-it"),
        ("falcon-7b", "tiiuae/falcon-7b-instruct"),
        ("deepseek-r1", "deepseek-ai/DeepSeek-R1"),
        ("phi-1_5", "microsoft/phi-1_5"),
        ("qwen3-30b-a3b-2507", "Qwen/Qwen3-30B-A3B-Instruct-2507"),
        ("bloom", "bigscience/bloom"),
        ("mistral-large", "mistralai/Mistral-Large-Instruct-2407"),  # both dates are one size
    ],
)
def test_a_name_finds_the_model_that_is_meant(name: str, meant: str) -> None:
    found = table.find(name)
    assert found
    assert found.name == meant


def test_3_1_is_not_31() -> None:
    assert table.find("llama-31-8b") is None


def test_every_name_and_alias_of_the_table_finds_its_own_row() -> None:
    rows = table.load().rows
    assert len(rows) == 405
    for row in rows:
        for name in (row[0], *row[1].split("|")):
            found = table.find(name)
            assert found, name
            assert found.name == row[0], name


@pytest.mark.parametrize("name", ["llama-3.1", "qwen3", "gpt-oss", "mixtral", "llama"])
def test_a_name_that_may_mean_several_sizes_is_refused_with_the_choices(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        table.find(name)
    problem = caught.value.problems[0]
    assert problem.path == "model.name"
    assert "may mean" in problem.message
    assert problem.hint.count("`") >= 4


def test_a_long_list_of_choices_is_cut() -> None:
    with pytest.raises(InvalidInput) as caught:
        table.find("llama")
    assert problem_hint(caught.value).endswith("more")


def problem_hint(error: InvalidInput) -> str:
    return error.problems[0].hint


@pytest.mark.parametrize(
    ("name", "near"),
    [("lama-3.1-8b", "llama-3.1-8b"), ("mystral-7b", "mistral-7b"), ("stable-difusion-xl", "")],
)
def test_an_unknown_name_gets_the_nearest_one_and_the_other_inputs(name: str, near: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        size(Workload.model_validate({"model": {"name": name}}), gpus=1)
    problem = caught.value.problems[0]
    assert problem.path == "model.name"
    assert problem.message == f"no model `{name}` in the built-in table"
    assert f"did you mean `{near or 'stable-diffusion-xl'}`?" in problem.hint
    for other in ("model.config", "model.weights_index", "model.parameters"):
        assert other in problem.hint


def test_a_name_like_none_only_gets_the_other_inputs() -> None:
    with pytest.raises(InvalidInput) as caught:
        size(Workload.model_validate({"model": {"name": "zzzzqqqq"}}), gpus=1)
    assert problem_hint(caught.value).startswith("give `model.config`")


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", "int4-awq"),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", "int4-gptq"),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8", "int8"),
        ("neuralmagic/Meta-Llama-3.1-70B-Instruct-FP8", "fp8"),
        ("unsloth/llama-3.1-8b-bnb-4bit", "nf4"),
        ("Meta-Llama-3.1-8B-Instruct-Q4_0.gguf", "q4_0"),
        ("nvidia/Llama-3.1-8B-Instruct-NVFP4", "nvfp4"),
        ("llama-3.1-8b", None),
    ],
)
def test_a_quantised_copys_name_carries_its_precision(name: str, precision: str | None) -> None:
    asked = names.understood(name)
    assert asked.precision == precision
    assert table.find(asked.text), asked.text


def test_the_precision_in_a_name_counts_unless_another_is_declared(sized: Sized) -> None:
    copy = sized(name="Qwen2.5-7B-Instruct-AWQ", context_tokens=512)
    plain = sized(name="qwen2.5-7b", precision="int4-awq", context_tokens=512)
    assert copy.parts == plain.parts
    other = sized(name="Qwen2.5-7B-Instruct-AWQ", precision="bf16", context_tokens=512)
    assert other.parts == sized(name="qwen2.5-7b", context_tokens=512).parts


@pytest.mark.parametrize(
    ("name", "gib"),
    # The file's size as llama.cpp's tools/quantize/README.md measures it.
    [
        ("llama3.1:8b-instruct-q4_K_M", 4.58),
        ("Meta-Llama-3.1-8B-Instruct-Q8_0.gguf", 7.95),
        ("Meta-Llama-3.1-8B-Instruct.Q6_K.gguf", 6.14),
        ("Meta-Llama-3.1-8B-Instruct-IQ2_M.gguf", 2.74),
        ("Llama-3.1-8B-Q3_K_M.gguf", 4.02),  # counted as Q3_K_L, the next that was measured
    ],
)
def test_a_gguf_files_name_carries_its_mean_bits(sized: Sized, name: str, gib: float) -> None:
    found = sized(name=name, context_tokens=512)
    assert found.parts[0].gib == pytest.approx(gib, abs=0.01)
    assert found.warnings == ()


def test_a_gguf_format_that_is_not_sized_is_said(sized: Sized) -> None:
    found = sized(name="llama3.1:8b-instruct-q7_X", context_tokens=512)
    assert any("q7_X, which is not sized" in warning for warning in found.warnings)
    assert found.parts == sized(name="llama-3.1-8b", context_tokens=512).parts
    declared = sized(name="llama3.1:8b-q7_X", precision="q4_0", context_tokens=512)
    assert not any("not sized" in warning for warning in declared.warnings)
