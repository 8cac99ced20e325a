"""The digest names what a declaration means: the same for the same, another for anything else."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputier.workload import (
    Cpu,
    Discount,
    Disk,
    Gpu,
    Identity,
    Network,
    Software,
    Validation,
    Workload,
    base,
    digest,
    meaning,
    read_text,
)

BASE: dict[str, Any] = {
    "tier": "mid",
    "purpose": "fine-tuning",
    "model": {"parameters": "13B", "context_tokens": 4096, "training": {"method": "qlora"}},
    "gpu": {"models": ["L4", "A10G"], "memory": "24GB"},
    "disk": {"throughput": "1GB/s", "data": "500GB"},
    "network": {"bandwidth": "10Gbps"},
    "clouds": ["aws", "gcp"],
    "regions": {"aws": ["us-east-1", "us-west-2"], "gcp": ["us-central1"]},
    "capacity": ["spot", "on_demand"],
    "schedule": [{"start": "0 20 * * mon-fri", "stop": "0 6 * * tue-sat"}],
    "budget": {"usd_per_month": 500},
    "scale": {"min": 1, "max": 6},
    "max_usd_per_hour": 2.5,
    "hours_per_month": 100,
}


def of(declared: dict[str, Any]) -> str:
    return digest(Workload.model_validate(declared), "dev", ())


def test_fsdp_is_the_third_stage_and_its_library_in_one_word() -> None:
    def trained(**training: str) -> str:
        return of({"model": {"parameters": "7B", "training": {"method": "lora", **training}}})

    assert trained(sharding="fsdp") == trained(sharding="zero-3", sharded_by="fsdp")
    assert trained(sharding="fsdp") != trained(sharding="zero-3")


def test_a_digest_is_sixteen_hex_digits() -> None:
    assert re.fullmatch(r"[0-9a-f]{16}", of(BASE))


def test_digests_of_a_release_are_kept_by_the_next() -> None:
    """Pinned: a change here makes every lock stale, so it needs a changelog line and a reason."""
    assert of({}) == "f76113e6bfc57a4d"
    assert of(BASE) == "96487fff3578b4a4"


SAME: dict[str, dict[str, Any]] = {
    "key order": dict(reversed(BASE.items())),
    "a card's GB and GiB": {**BASE, "gpu": {"models": ["L4", "A10G"], "memory": "24 GiB"}},
    "list order": {**BASE, "gpu": {"models": ["A10G", "L4"], "memory": "24GB"}},
    "cloud order": {**BASE, "clouds": ["gcp", "aws"]},
    "region order": {
        **BASE,
        "regions": {"gcp": "us-central1", "aws": ["us-west-2", "us-east-1"]},
    },
    "units of speed": {**BASE, "disk": {"throughput": "1000MB/s", "data": "0.5TB"}},
    "units of bandwidth": {**BASE, "network": {"bandwidth": "10000Mbps"}},
    "money": {**BASE, "max_usd_per_hour": "$2.50/h", "budget": {"usd_per_month": "$500/month"}},
    "counts": {**BASE, "model": {**BASE["model"], "parameters": 13_000_000_000}},
    "counts as floats": {**BASE, "model": {**BASE["model"], "parameters": 1.3e10}},
    "whole floats": {**BASE, "hours_per_month": 100.0},
    "quoted numbers": {**BASE, "hours_per_month": "100", "scale": {"min": "1", "max": "6"}},
    "letter case and spaces of cron": {
        **BASE,
        "schedule": {"start": "0  20 * * MON-FRI", "stop": "0 6 * * tue-sat"},
    },
    "spelt-out defaults": {
        **BASE,
        "prefer": "price",
        "cpu": {"architecture": "x86_64"},
        "network": {"bandwidth": "10Gbps", "burst": False, "egress": "nat", "placement": None},
        "schedule": [{**BASE["schedule"][0], "timezone": "UTC"}],
        "budget": {"usd_per_month": 500, "alerts": [100, 80, 50], "action": "none"},
        "scale": {"min": 1, "max": 6, "target": 70, "metric": "gpu_utilization"},
        "model": {**BASE["model"], "concurrent_sequences": 1,
                  "training": {"method": "qlora", "sharding": "none", "optimizer": "adamw"}},
    },
    "words for the same capacity": {**BASE, "capacity": [{"use": "spot"}, {"use": "on_demand"}]},
    "nothing written out": {**BASE, "zones": None, "gpu": {**BASE["gpu"], "count": None}},
}  # fmt: skip


@pytest.mark.parametrize("declared", SAME.values(), ids=SAME.keys())
def test_equal_meaning_has_an_equal_digest(declared: dict[str, Any]) -> None:
    assert of(declared) == of(BASE)


def test_the_order_of_capacities_is_the_order_tried_and_counts() -> None:
    assert of({**BASE, "capacity": ["on_demand", "spot"]}) != of(BASE)


OTHER: dict[str, Any] = {
    "Workload": {
        "tier": "entry",
        "purpose": "rendering",
        "model": {"name": "a"},
        "gpu": {"count": 2},
        "cpu": {"count": 8},
        "memory": "64GiB",
        "nodes": 2,
        "disk": {"scratch": "1TB"},
        "network": {"vpc": "vpc-1"},
        "fabric": "any",
        "clouds": ["azure"],
        "regions": {"aws": ["us-east-1"]},
        "zones": ["us-east-1a"],
        "capacity": "spot",
        "max_usd_per_hour": 3,
        "prefer": "value",
        "hours_per_month": 100,
        "scale": {"max": 3},
        "schedule": {"start": "0 8 * * *", "stop": "0 9 * * *"},
        "budget": {"usd_per_month": 5},
        "software": {"framework": "pytorch==2.9"},
        "validation": {"gate": "off"},
        "identity": {"reports": "remove"},
        "rollout": "rolling",
        "tags": {"team": "vision"},
    },
    "gpu": {
        "models": ["H100"],
        "exclude": ["T4"],
        "count": 2,
        "memory": "24GB",
        "total_memory": "48GB",
        "compute_capability": 8.9,
        "nvlink": False,
        "fractional": "allow",
        "graphics": ["vulkan"],
        "video_encode": False,
        "video_decode": True,
        "vgpu": True,
        "mig": "1g.10gb",
    },
    "cpu": {"count": 4, "architecture": "any"},
    "disk": {
        "scratch": "1TB",
        "data": "1TB",
        "throughput": "1GB/s",
        "iops": 9,
        "persist": True,
        "snapshot": "snap-1",
        "kms_key": "create",
    },
    "network": {
        "bandwidth": "1Gbps",
        "burst": True,
        "placement": "none",
        "egress": "public",
        "vpc": "v",
        "subnets": ["s"],
    },
    "identity": {
        "role": "r",
        "permissions_boundary": "arn:aws:iam::1:policy/b",
        "reports": "remove",
    },
    "software": {
        "image": {"driver": 580},
        "framework": "pytorch==2.9",
        "container": {"image": "a", "args": ["x"]},
        "run": "a",
        "before_stop": "b",
        "packages": ["git"],
        "proxy": "http://p:1",
        "mirrors": {"apt": "http://m"},
        "mpi": "horovod",
        "ssh_keys": ["ssh-ed25519 " + "A" * 68],
    },
    "validation": {"gate": "off", "depth": "quick"},
}


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [(part, name, value) for part, fields in OTHER.items() for name, value in fields.items()],
)
def test_every_field_changes_the_digest(part: str, name: str, value: Any) -> None:
    # What a field is about: a volume, a framework.
    about = {"disk": {"data": "2TB"}, "mpi": {"framework": "pytorch==2.9"}, "subnets": {"vpc": "v"}}
    others: dict[str, Any] = about.get(name, about.get(part, {}))
    with_it = {name: value} if part == "Workload" else {part: {**others, name: value}}
    without = {} if part == "Workload" else {part: others}
    assert of(with_it) != of(without)


def test_the_table_above_names_every_field_of_its_models() -> None:
    for part, fields in OTHER.items():
        kinds: dict[str, type[base.Spec]] = {
            "Workload": Workload, "gpu": Gpu, "cpu": Cpu, "disk": Disk, "network": Network,
            "software": Software, "validation": Validation, "identity": Identity,
        }  # fmt: skip
        # A former name decides nothing: the digest of what is renamed stays.
        assert set(fields) == set(kinds[part].model_fields) - {"was"}, part


def test_a_former_name_is_no_other_meaning() -> None:
    assert of({**BASE, "was": "former"}) == of(BASE)


def test_the_order_of_arguments_is_part_of_the_meaning_and_that_of_packages_is_not() -> None:
    def args(*given: str) -> dict[str, Any]:
        return {"software": {"container": {"image": "a", "args": list(given)}}}

    def packages(*given: str) -> dict[str, Any]:
        return {"software": {"packages": list(given)}}

    assert of(args("--port", "80")) != of(args("80", "--port"))
    assert of(packages("git", "htop")) == of(packages("htop", "git"))


def test_environment_and_discounts_are_part_of_the_meaning() -> None:
    one = Discount.model_validate(
        {"cloud": "aws", "families": ["p5", "p4d"], "percent": 10, "reason": "a"}
    )
    two = Discount.model_validate({"cloud": "gcp", "families": ["a3"], "percent": 5, "reason": "b"})
    made = Workload()
    assert digest(made, "dev", ()) != digest(made, "prod", ())
    assert digest(made, "dev", (one,)) != digest(made, "dev", ())
    assert digest(made, "dev", (one, two)) == digest(made, "dev", (two, one))
    assert digest(made, "dev", (one,)) != digest(made, "dev", (two,))


def test_defaults_are_left_out_so_that_new_fields_keep_old_digests() -> None:
    class Later(base.Spec):
        old: int | None = None
        new: int | None = None

    class Earlier(base.Spec):
        old: int | None = None

    assert meaning.meaning(Later(old=1)) == meaning.meaning(Earlier(old=1)) == {"old": 1}


def shuffled(value: Any, random: Any) -> Any:
    if isinstance(value, dict):
        items: list[Any] = [(key, shuffled(item, random)) for key, item in value.items()]  # pyright: ignore[reportUnknownVariableType]
        random.shuffle(items)
        return dict(items)
    return value


@given(st.randoms(use_true_random=False))
def test_no_order_of_keys_changes_the_digest(random: Any) -> None:
    text = json.dumps({"workloads": {"a": shuffled(BASE, random)}})
    assert of(BASE) == digest(read_text(text, "f.json").workloads["a"], "dev", ())
