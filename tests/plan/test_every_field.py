"""Every field of a workload is read by something: changing it alone changes the plan, or is
refused. What a floor merely repeats of the declaration does not count as a change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast, get_args

import pytest
from pydantic import BaseModel
from tests.plan.world import declared

from gputier.catalog import load
from gputier.errors import InvalidInput
from gputier.plan import plan_declaration, plan_document
from gputier.workload import Defaults, Discount, Workload

Fields = dict[str, Any]

CHAT: Fields = {"model": {"name": "llama-3.1-8b", "precision": "bf16", "context_tokens": 8192}}
PLAIN: Fields = {"model": {"parameters": "7B", "context_tokens": 4096}}
SHAPE: Fields = {"layers": 32, "hidden_size": 4096, "attention_heads": 32, "kv_heads": 8,
                 "ffn_size": 14336, "vocabulary_size": 128256, "gated_ffn": True}  # fmt: skip
SHAPED: Fields = {"model": {"architecture": SHAPE, "context_tokens": 32768, "precision": "bf16"}}
FULL: Fields = {"gpu": {"count": 8}, "model": {
    "architecture": SHAPE, "context_tokens": 4096, "training": {"batch_per_gpu": 1}}}  # fmt: skip
QLORA: Fields = {"model": {"architecture": SHAPE, "context_tokens": 4096,
                           "training": {"method": "qlora"}}}  # fmt: skip
PICTURE: Fields = {"model": {"name": "sdxl", "image": {"batch": 1}}}
MOVIE: Fields = {
    "model": {"name": "hunyuanvideo", "image": {"resolution": "1280x720", "frames": 61}}
}
AWS: Fields = {"clouds": ["aws"], "regions": {"aws": ["us-east-1"]}}
HELD: Fields = {"capacity": {"use": "reservation", "instance_type": "p5.48xlarge",
                             "zone": "use1-az4", "count": 2}}  # fmt: skip
SPOT: Fields = {"capacity": {"use": "spot"}, "nodes": 3}
NIGHTS: Fields = {"schedule": [{"start": "0 20 * * *", "stop": "0 6 * * *"}]}
EXPERTS: Fields = {"model": {"parameters": "30B", "context_tokens": 65536}}
PAIR: Fields = {"gpu": {"count": 8}, "model": {"name": "llama-3.1-8b", "context_tokens": 4096,
    "training": {"method": "full", "state": "pure-16bit"}}}  # fmt: skip
FEW: Fields = {"gpu": {"count": 2}, "model": {**PAIR["model"]}}
STAGED: Fields = {"gpu": {"count": 8}, "model": {"name": "deepseek-v3", "context_tokens": 8192}}
DESKS: Fields = {"purpose": "vdi", "model": {"seats": 3}}
BOXED: Fields = {"software": {"container": {"image": "vllm/vllm-openai:v0.11.0"}}}
PROXIED: Fields = {"software": {"proxy": {"http": "http://proxy.internal:3128"}}}
BUDGET: Fields = {"budget": {"usd_per_month": 500}}


@dataclass(frozen=True)
class Case:
    """A base workload and the value that the field gets on it; `refused` when it must not."""

    to: object
    base: Fields = field(default_factory=lambda: {})
    refused: bool = False


CASES: dict[str, Case] = {
    "tier": Case("mid"),
    "purpose": Case("hpc"),
    "model.name": Case("llama-3.2-1b", CHAT),
    "model.config": Case("config.json", {"model": {"context_tokens": 4096}}),
    "model.weights_index": Case("index.json", {"model": {"context_tokens": 4096}}),
    "model.parameters": Case("13B", PLAIN),
    "model.active_parameters": Case("3B", EXPERTS),
    "model.precision": Case("fp8", CHAT),
    "model.context_tokens": Case(131072, CHAT),
    "model.concurrent_sequences": Case(32, CHAT),
    "model.measured_gib": Case(30, CHAT),
    "model.kv_precision": Case("fp8", CHAT),
    "model.seats": Case(9, {"purpose": "vdi"}),
    "model.profile": Case("16GB", DESKS),
    "model.cells": Case(500_000_000, {"model": {"cells": 1_000_000}}),
    "model.qubits": Case(31, {"model": {"qubits": 20}}),
    "model.atoms": Case(2_000_000, {"model": {"atoms": 1000}}),
    "model.scene": Case("40GB", {"model": {"scene": "2GB"}}),
    "model.pipeline_parallel": Case(8, STAGED),
    "model.architecture.layers": Case(64, SHAPED),
    "model.architecture.hidden_size": Case(8192, SHAPED),
    "model.architecture.attention_heads": Case(16, {"model": {
        "architecture": {**SHAPE, "kv_heads": None}, "context_tokens": 32768}}),
    "model.architecture.kv_heads": Case(32, SHAPED),
    "model.architecture.head_size": Case(256, SHAPED),
    "model.architecture.ffn_size": Case(28672, SHAPED),
    "model.architecture.vocabulary_size": Case(512000, SHAPED),
    "model.architecture.gated_ffn": Case(False, SHAPED),
    "model.training.method": Case("lora", QLORA),
    "model.training.optimizer": Case("sgd", FULL),
    "model.training.state": Case("pure-16bit", FULL),
    "model.training.batch_per_gpu": Case(8, QLORA),
    "model.training.gradient_checkpointing": Case("full", QLORA),
    "model.training.sharding": Case("none", FULL),
    "model.training.lora_rank": Case(256, QLORA),
    "model.training.lora_targets": Case(["q"], QLORA),
    "model.training.lora_dropout": Case(0.1, QLORA),
    "model.training.mean_tokens": Case(64, QLORA),
    "model.training.fused_loss": Case(True, QLORA),
    "model.training.optimizer_in_backward": Case(True, FULL),
    "model.training.offload": Case(True, FULL),
    "model.training.sharded_by": Case("deepspeed", FEW),
    "model.training.tensor_parallel": Case(8, {"gpu": {"count": 8}, "model": {
        **PAIR["model"], "training": {"method": "full", "sharding": "none"}}}),
    "model.training.sequence_parallel": Case(8, PAIR),
    "model.training.objective": Case("dpo", PAIR),
    "model.image.resolution": Case("2048x2048", PICTURE),
    "model.image.frames": Case(129, MOVIE),
    "model.image.batch": Case(8, PICTURE),
    "model.image.offload": Case("model", PICTURE),
    "model.image.text_encoders": Case("precomputed", PICTURE),
    "gpu.models": Case(["L4"]),
    "gpu.exclude": Case(["T4"]),
    "gpu.count": Case(4),
    "gpu.memory": Case("40GB"),
    "gpu.total_memory": Case("300GB"),
    "gpu.compute_capability": Case(8.9),
    "gpu.nvlink": Case(True),
    "gpu.fractional": Case("allow"),
    "gpu.graphics": Case(["vulkan"]),
    "gpu.video_encode": Case(True),
    "gpu.video_decode": Case(True),
    "gpu.vgpu": Case(False, {"purpose": "vdi"}),
    "gpu.mig": Case(True),
    "cpu.count": Case(64),
    "cpu.architecture": Case("arm64"),
    "memory": Case("500GiB"),
    "nodes": Case(3),
    "disk.scratch": Case("2TB"),
    "disk.data": Case("500GB"),
    "disk.throughput": Case("2GB/s"),
    "disk.iops": Case(20000),
    "disk.persist": Case(True, {"disk": {"data": "500GB"}, **NIGHTS}),
    "network.bandwidth": Case("50Gbps"),
    "network.burst": Case(True, {"network": {"bandwidth": "10Gbps"}}),
    "network.placement": Case("cluster", {"nodes": 2}),
    "network.egress": Case("public"),
    "network.vpc": Case("vpc-0abc"),
    "fabric": Case("efa"),
    "clouds": Case(["gcp"]),
    "regions": Case({"aws": ["eu-west-2"]}, {"clouds": ["aws"]}),
    "zones": Case(["use1-az4"], AWS),
    "capacity.use": Case("spot", {"capacity": {"use": "on_demand"}}),
    "capacity.id": Case("cr-0abc", HELD),
    "capacity.instance_type": Case("g6.xlarge", {"capacity": {"use": "on_demand"}}),
    "capacity.zone": Case("use2-az1", {"capacity": {"use": "on_demand"}}),
    "capacity.count": Case(3, HELD),
    "capacity.start": Case("2036-11-01", HELD),
    "capacity.end": Case("2036-12-01", HELD),
    "capacity.max_usd_per_hour": Case(0.2, SPOT),
    "capacity.on_demand_base": Case(2, SPOT),
    "max_usd_per_hour": Case("$0.60/h"),
    "prefer": Case("speed"),
    "hours_per_month": Case(100),
    "scale.min": Case(2),
    "scale.max": Case(4),
    "scale.metric": Case("requests", {"scale": {"max": 4}}, refused=True),
    "scale.target": Case(50, {"scale": {"max": 4}}),
    "schedule.start": Case("0 22 * * *", NIGHTS),
    "schedule.stop": Case("0 8 * * *", NIGHTS),
    "schedule.timezone": Case("America/New_York", NIGHTS),
    "budget.usd_per_month": Case(100, BUDGET),
    "budget.alerts": Case([10], BUDGET),
    "budget.action": Case("scale-to-zero", BUDGET),
    "budget.anomalies": Case("create", {**AWS, **BUDGET}),
    "budget.billing_account": Case("01AB-23", BUDGET),
    "software.image.id": Case("ami-0abc12345678def00"),
    "software.image.driver": Case("580"),
    "software.image.cuda": Case("12.8"),
    "software.image.os": Case("ubuntu-22.04"),
    "software.framework": Case("pytorch==2.9"),
    "software.container.image": Case("nvcr.io/nvidia/pytorch:25.10-py3"),
    "software.container.args": Case(["--port", "80"], BOXED),
    "software.container.env": Case({"LOG_LEVEL": "info"}, BOXED),
    "software.container.ports": Case([8000], BOXED),
    "software.run": Case("exec /opt/serve"),
    "software.before_stop": Case("sync"),
    "software.packages": Case(["htop"]),
    "software.proxy.http": Case("http://proxy.internal:3128"),
    "software.proxy.https": Case("http://other.internal:3128", PROXIED),
    "software.proxy.no_proxy": Case([".internal"], PROXIED),
    "software.mirrors.apt": Case("http://mirror.internal/ubuntu"),
    "software.mirrors.pip": Case("https://mirror.internal/simple"),
    "software.mirrors.container": Case("mirror.internal:5000"),
    "software.mpi": Case("horovod", {"software": {"framework": "pytorch==2.9"}}),
    "software.ssh_keys": Case(["ssh-ed25519 " + "A" * 68 + " me@desk"]),
    "validation.gate": Case("off"),
    "validation.depth": Case("burn-in"),
    "disk.snapshot": Case("snap-0abc", {"disk": {"data": "500GB"}}),
    "disk.kms_key": Case("alias/gpu"),
    "network.subnets": Case(["subnet-0abc"], {"network": {"vpc": "vpc-0abc"}}),
    "identity.role": Case("gpu-node"),
    "identity.permissions_boundary": Case("arn:aws:iam::123456789012:policy/bound", AWS),
    "identity.reports": Case("remove"),
    "rollout": Case("rolling"),
    "tags": Case({"team": "vision"}),
    "was": Case("former"),
}  # fmt: skip


def paths(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Every field below a model by its dotted path, sub-models opened."""
    for name, info in model.model_fields.items():
        inner = [a for a in parts_of(info.annotation) if is_model(a)]
        if inner:
            for one in inner:
                yield from paths(one, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def parts_of(annotation: Any) -> Iterator[Any]:
    yield annotation
    for part in get_args(annotation):
        yield from parts_of(part)


def is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def test_every_field_has_a_case_and_every_case_a_field() -> None:
    assert set(CASES) == set(paths(Workload))


def with_(base: Fields, path: str, value: object) -> Fields:
    """The base with one field set; a list of one (schedule) counts as its entry."""
    outer, _, inner = path.partition(".")
    if not inner:
        return {**base, outer: value}
    below: Any = base.get(outer) or {}
    if isinstance(below, list):
        (entry,) = cast("list[Fields]", below)
        return {**base, outer: [with_(entry, inner, value)]}
    return {**base, outer: with_(below, inner, value)}


def plan(workload: Fields, **keys: Any) -> str:
    """The plan as JSON text, without the floors that repeat the declaration."""
    document = cast(
        "Any", plan_document(plan_declaration(declared({"job": workload}, **keys), load()))
    )
    for found in document["workloads"]:
        del found["need"]["floors"], found["need"]["overrides"]
    return json.dumps(document)


@pytest.fixture(autouse=True)
def model_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`config` and `weights_index` are paths from the current folder."""
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
        "intermediate_size": 14336, "vocab_size": 128256, "torch_dtype": "bfloat16",
        "max_position_embeddings": 8192, "tie_word_embeddings": False,
    }  # fmt: skip
    index = {"metadata": {"total_size": 16_060_522_496}, "weight_map": {"a": "model-1.safetensors"}}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "index.json").write_text(json.dumps(index), encoding="utf-8")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("path", CASES)
def test_a_field_that_is_set_changes_the_plan_or_is_refused(path: str) -> None:
    case = CASES[path]
    changed = with_(case.base, path, case.to)
    if case.refused:
        with pytest.raises(InvalidInput, match=path.rpartition(".")[2]):
            plan(changed)
        return
    before = case.base if path not in {"model.config", "model.weights_index"} else PLAIN
    assert plan(changed) != plan(before)


DECLARATION: dict[str, tuple[Fields, Fields]] = {
    # keys of the file before and after
    "environment": ({}, {"environment": "prod"}),
    "max_price_age_days": ({}, {"max_price_age_days": 40}),
    "discounts.cloud": (
        {"discounts": [{"cloud": "aws", "families": ["g5"], "percent": 5, "reason": "x"}]},
        {"discounts": [{"cloud": "alibaba", "families": ["gn5"], "percent": 5, "reason": "x"}]},
    ),
    "discounts.families": (
        {"discounts": [{"cloud": "aws", "families": ["g5"], "percent": 5, "reason": "x"}]},
        {"discounts": [{"cloud": "aws", "families": ["g6"], "percent": 5, "reason": "x"}]},
    ),
    "discounts.percent": (
        {"discounts": [{"cloud": "aws", "families": ["g5"], "percent": 5, "reason": "x"}]},
        {"discounts": [{"cloud": "aws", "families": ["g5"], "percent": 6, "reason": "x"}]},
    ),
    "discounts.reason": (
        {"discounts": [{"cloud": "aws", "families": ["g5"], "percent": 60, "reason": "x"}]},
        {"discounts": [{"cloud": "aws", "families": ["g5"], "percent": 60, "reason": "y"}]},
    ),
    "defaults.clouds": ({}, {"defaults": {"clouds": ["gcp"]}}),
    "defaults.regions": ({}, {"defaults": {"regions": {"aws": ["eu-west-2"]}}}),
    "defaults.zones": ({}, {"defaults": {"zones": ["use1-az4"]}}),
    "defaults.capacity": ({}, {"defaults": {"capacity": "spot"}}),
    "defaults.prefer": ({}, {"defaults": {"prefer": "speed"}}),
}


def test_every_key_beside_the_workloads_has_a_case() -> None:
    named = {f"discounts.{n}" for n in Discount.model_fields}
    named |= {f"defaults.{n}" for n in Defaults.model_fields}
    assert set(DECLARATION) == {"environment", "max_price_age_days", *named}


@pytest.mark.parametrize("key", DECLARATION)
def test_a_key_beside_the_workloads_changes_the_plan(key: str) -> None:
    before, after = DECLARATION[key]
    job = {"gpu": {"memory": "24GB"}}
    assert plan(job, **after) != plan(job, **before)
