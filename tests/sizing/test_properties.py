"""What holds for every workload that can be declared."""

from __future__ import annotations

import itertools
import math
from typing import Any, get_args

from hypothesis import assume, given
from hypothesis import strategies as st

from gputier.sizing import Sizing, size, table
from gputier.sizing.records import Part
from gputier.workload import Workload
from gputier.workload.ml import KvPrecision, Precision
from gputier.workload.training import (
    Checkpointing,
    Objective,
    Optimizer,
    ShardedBy,
    Sharding,
    State,
)

NAMES = [row[0] for row in table.load().rows]
# Bytes a parameter, ascending: the order in which weights may not shrink.
PRECISIONS = [
    "nf4-dq", "int4-awq", "int4-gptq", "mxfp4", "nf4", "nvfp4", "fp8", "int8", "bf16", "fp32",
    "fp64",
]  # fmt: skip

architectures = st.fixed_dictionaries(
    {
        "layers": st.integers(1, 120),
        "hidden_size": st.integers(1, 160).map(lambda n: 128 * n),
        "attention_heads": st.sampled_from([1, 8, 12, 32, 71, 128]),
        "head_size": st.sampled_from([64, 80, 128, 256]),
        "ffn_size": st.integers(1, 60_000),
        "vocabulary_size": st.integers(1, 300_000),
        "gated_ffn": st.booleans(),
    },
    optional={"kv_heads": st.just(1)},
)
sources = st.one_of(
    st.sampled_from(NAMES).map(lambda name: {"name": name}),
    st.integers(10**5, 10**13).map(lambda count: {"parameters": count}),
    architectures.map(lambda shape: {"architecture": shape}),
    st.tuples(st.integers(10**8, 10**12), architectures).map(
        lambda pair: {"parameters": pair[0], "architecture": pair[1]}
    ),
)


def words(literal: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(get_args(literal))


trainings = st.fixed_dictionaries(
    {"method": st.sampled_from(["full", "lora", "qlora"])},
    optional={
        "optimizer": words(Optimizer),
        "state": words(State),
        "batch_per_gpu": st.integers(1, 256),
        "gradient_checkpointing": words(Checkpointing),
        "sharding": words(Sharding),
        "fused_loss": st.booleans(),
        "optimizer_in_backward": st.booleans(),
        "offload": st.booleans(),
        "sharded_by": words(ShardedBy),
        "objective": words(Objective),
        "tensor_parallel": st.integers(1, 16),
        "sequence_parallel": st.integers(1, 16),
        "mean_tokens": st.just(1),
    },
).filter(lambda t: (t.get("sharding"), t.get("sharded_by")) != ("fsdp", "deepspeed"))
extras = st.fixed_dictionaries(
    {},
    optional={
        "precision": words(Precision),
        "context_tokens": st.integers(1, 2_000_000),
        "concurrent_sequences": st.integers(1, 1000),
        "kv_precision": words(KvPrecision),
        "pipeline_parallel": st.integers(1, 16),
        "training": trainings,
    },
)
models = st.tuples(sources, extras).map(lambda pair: {**pair[0], **pair[1]})
gpu_counts = st.integers(1, 512)
kept = st.sampled_from([0.0, 0.3, 0.5])


def sized(model: dict[str, Any], gpus: int = 1, kept_free: float = 0.0) -> Sizing:
    workload = Workload.model_validate({"model": model})
    found = size(workload, gpus=gpus, kept_free=kept_free)
    assert found is not None
    return found


def part(found: Sizing, name: str) -> float:
    return next((p.gib for p in found.parts if p.name == name), 0.0)


@given(models, gpu_counts, kept)
def test_every_valid_workload_gets_an_answer_of_positive_parts(
    model: dict[str, Any], gpus: int, kept_free: float
) -> None:
    found = sized(model, gpus, kept_free)
    assert all(isinstance(p, Part) and p.gib > 0 and math.isfinite(p.gib) for p in found.parts)
    names = [p.name for p in found.parts]
    order = "weights kv_cache gradients optimizer adapters activations logits overhead margin"
    assert len(set(names)) == len(names)
    assert set(names) <= set(order.split())
    assert all(p.formula for p in found.parts)
    total = math.fsum(p.gib for p in found.parts)
    assert math.isclose(total, found.per_gpu_gib, rel_tol=1e-12, abs_tol=1e-9)
    assert found.needed_gib <= found.per_gpu_gib
    assert found.basis
    assert found.confidence in ("good", "fair", "weak")


@given(models, gpu_counts, st.integers(1, 512))
def test_more_gpus_never_need_more_on_each(model: dict[str, Any], gpus: int, more: int) -> None:
    # A lone GPU has no shards to load into: what FSDP gathers beside them begins with the second.
    training = model.get("training", {})
    by_fsdp = "fsdp" in training.values() or training.get("state") == "pure-16bit"
    assume(gpus > 1 or not by_fsdp)
    assert sized(model, gpus + more).per_gpu_gib <= sized(model, gpus).per_gpu_gib * (1 + 1e-12)


@given(models, gpu_counts, st.integers(1, 1_000_000), st.integers(1, 1_000_000))
def test_more_tokens_never_need_less(
    model: dict[str, Any], gpus: int, tokens: int, more: int
) -> None:
    few = sized({**model, "context_tokens": tokens}, gpus).per_gpu_gib
    assert sized({**model, "context_tokens": tokens + more}, gpus).per_gpu_gib >= few * (1 - 1e-12)


@given(models, gpu_counts, st.integers(1, 500), st.integers(1, 500))
def test_more_sequences_never_need_less(
    model: dict[str, Any], gpus: int, sequences: int, more: int
) -> None:
    field = "concurrent_sequences"
    few = sized({**model, field: sequences}, gpus).per_gpu_gib
    assert sized({**model, field: sequences + more}, gpus).per_gpu_gib >= few * (1 - 1e-12)


@given(models, trainings, gpu_counts, st.integers(1, 128), st.integers(1, 128))
def test_a_larger_batch_or_rank_never_needs_less(
    model: dict[str, Any], training: dict[str, Any], gpus: int, low: int, more: int
) -> None:
    fields = ["batch_per_gpu"] if training["method"] == "full" else ["batch_per_gpu", "lora_rank"]
    for field in fields:
        few = sized({**model, "training": {**training, field: low}}, gpus).per_gpu_gib
        many = sized({**model, "training": {**training, field: low + more}}, gpus).per_gpu_gib
        assert many >= few * (1 - 1e-12), field


@given(extras, st.integers(10**5, 10**12), st.integers(1, 10**12), gpu_counts)
def test_more_parameters_never_need_less(
    extra: dict[str, Any], parameters: int, more: int, gpus: int
) -> None:
    few = sized({**extra, "parameters": parameters}, gpus).per_gpu_gib
    many = sized({**extra, "parameters": parameters + more}, gpus).per_gpu_gib
    assert many >= few * (1 - 1e-12)


@given(sources, gpu_counts, st.integers(1, 100_000))
def test_a_finer_precision_never_needs_less_to_serve(
    source: dict[str, Any], gpus: int, tokens: int
) -> None:
    mixture = (found := table.find(source.get("name", "gpt2"))) and found.shape.experts
    # MXFP4 quantises nothing but the experts of a mixture, so there it has no place in the order.
    order = [word for word in PRECISIONS if word != "mxfp4" or not mixture]
    job = {**source, "context_tokens": tokens}
    needs = [sized({**job, "precision": word}, gpus).per_gpu_gib for word in order]
    for low, high in itertools.pairwise(needs):
        assert low <= high * (1 + 1e-12)


@given(models, trainings, gpu_counts)
def test_a_later_zero_stage_never_needs_more_state(
    model: dict[str, Any], training: dict[str, Any], gpus: int
) -> None:
    state = ("weights", "gradients", "optimizer", "adapters")
    needs = [
        sum(
            part(sized({**model, "training": {**training, "sharding": stage}}, gpus), name)
            for name in state
        )
        for stage in ("none", "zero-1", "zero-2", "zero-3")
    ]
    assert needs == sorted(needs, reverse=True)


@given(models, trainings, gpu_counts)
def test_what_saves_memory_never_costs_any(
    model: dict[str, Any], training: dict[str, Any], gpus: int
) -> None:
    for field in ("fused_loss", "optimizer_in_backward", "offload"):
        without, with_it = (
            sized({**model, "training": {**training, field: on}}, gpus).needed_gib
            for on in (False, True)
        )
        assert with_it <= without * (1 + 1e-12), field
    kept_all, half, least = (
        part(
            sized({**model, "training": {**training, "gradient_checkpointing": word}}, gpus),
            "activations",
        )
        for word in ("none", "selective", "full")
    )
    assert half <= kept_all
    assert least <= kept_all


@given(models, trainings, gpu_counts, st.integers(1, 64))
def test_more_parallelism_never_needs_more(
    model: dict[str, Any], training: dict[str, Any], gpus: int, ways: int
) -> None:
    # One at a time: GPUs that tensor parallelism takes are lost to sequence parallelism.
    training = {key: value for key, value in training.items() if not key.endswith("_parallel")}
    for field in ("tensor_parallel", "sequence_parallel"):
        one, more = (
            sized({**model, "training": {**training, field: n}}, gpus).needed_gib for n in (1, ways)
        )
        assert more <= one * (1 + 1e-12), field


@given(models, trainings, gpu_counts)
def test_preference_training_never_needs_less_than_plain(
    model: dict[str, Any], training: dict[str, Any], gpus: int
) -> None:
    plain, *others = (
        sized({**model, "training": {**training, "objective": word}}, gpus).needed_gib
        for word in ("sft", "dpo", "grpo")
    )
    assert all(other >= plain * (1 - 1e-12) for other in others)


@given(models, gpu_counts)
def test_the_range_holds_the_estimate(model: dict[str, Any], gpus: int) -> None:
    found = sized(model, gpus)
    low, high = found.range_gib
    assert 0 < low <= found.needed_gib <= high


def test_a_mixture_is_never_below_its_dense_part() -> None:
    mixtures = 0
    for name in NAMES:
        found = table.find(name)
        assert found
        if found.shape.experts:
            mixtures += 1
            dense = found.shape.parameters - found.shape.expert_parameters
            weights = part(sized({"name": name, "precision": "bf16"}), "weights")
            assert weights > dense * 2 / 2**30, name
    assert mixtures == 63
