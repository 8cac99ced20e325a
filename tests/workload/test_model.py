"""The schema from Python: closed, frozen, plain, documented, and in our words on every path."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from gputier import errors, workload
from gputier.workload import (
    CapacityChoice,
    Declaration,
    Gpu,
    Model,
    ScheduleEntry,
    Training,
    Workload,
    base,
    model,
)

SPECS: list[type[base.Spec]] = [
    kind for _, kind in inspect.getmembers(workload, inspect.isclass) if issubclass(kind, base.Spec)
]


def test_the_schema_has_the_models_it_should_have() -> None:
    assert {kind.__name__ for kind in SPECS} == {
        *("Workload", "Model", "Architecture", "Training", "Image", "Gpu", "Cpu", "Disk"),
        *("Network", "CapacityChoice", "Scale", "ScheduleEntry", "Budget", "Defaults", "Discount"),
        *("Software", "ImageChoice", "Container", "Proxy", "Mirrors", "Validation"),
        "Identity",
    }


@pytest.mark.parametrize("kind", SPECS, ids=lambda kind: kind.__name__)
def test_every_field_is_described_for_users(kind: type[base.Spec]) -> None:
    for name, field in kind.model_fields.items():
        text = field.description or ""
        assert len(text) > 10, f"{kind.__name__}.{name} has no description"
        assert text.endswith("."), f"{kind.__name__}.{name}: a description is a sentence"
        assert text[0].isupper() or text[0] == "`", f"{kind.__name__}.{name}"


@pytest.mark.parametrize("kind", SPECS, ids=lambda kind: kind.__name__)
def test_models_are_closed_and_frozen_and_keep_their_constructor(kind: type[base.Spec]) -> None:
    assert kind.model_config.get("frozen") is True
    assert kind.model_config.get("extra") == "forbid"
    assert kind.__init__ is BaseModel.__init__


WAYS: dict[str, Callable[[dict[str, Any]], object]] = {
    "the constructor": lambda data: Workload(**data),
    "model_validate": Workload.model_validate,
    "model_validate, strictly": lambda data: Workload.model_validate(data, strict=True),
    "a type adapter": TypeAdapter(list[Workload]).validate_python,
    "JSON": lambda data: Workload.model_validate_json(json.dumps(data)),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_a_mistake_in_python_is_invalid_input_on_every_path(
    way: Callable[[Any], object],
) -> None:
    data: Any = {"gpu": {"count": "x"}, "purpos": 1}
    with pytest.raises(errors.InvalidInput) as caught:
        way([data] if way is WAYS["a type adapter"] else data)
    assert [(p.path, p.message, p.hint) for p in caught.value.problems] == [
        ("purpos", "unknown field `purpos`", "did you mean `purpose`?"),
        ("gpu.count", "`gpu.count` must be a whole number from 1 to 72, not `x`", ""),
    ]
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_part_made_alone_speaks_for_itself() -> None:
    with pytest.raises(errors.InvalidInput, match="`memory` needs a unit"):
        Gpu(memory=24)
    with pytest.raises(errors.InvalidInput, match=r"^error: this is a reservation"):
        CapacityChoice(use="reservation")


def test_text_that_is_no_json_is_invalid_input() -> None:
    with pytest.raises(errors.InvalidInput, match="this is not JSON text"):
        Workload.model_validate_json("{")


def test_inside_a_reader_pydantics_exception_carries_our_lines_only() -> None:
    with base.collected(), pytest.raises(ValidationError) as caught:
        Workload.model_validate({"gpu": {"count": "x"}, "budget": {}})
    assert {line["type"] for line in caught.value.errors()} == {"gputier"}


def test_the_state_of_a_reader_does_not_leak_into_other_threads() -> None:
    seen: list[BaseException] = []

    def build() -> None:
        try:
            Workload.model_validate({"nodes": 0})
        except (errors.InvalidInput, ValidationError) as error:
            seen.append(error)

    with base.collected():
        thread = threading.Thread(target=build)
        thread.start()
        thread.join()
    assert [type(error) for error in seen] == [errors.InvalidInput]


def test_a_workload_cannot_be_changed() -> None:
    made = Workload(nodes=2)
    for change in (
        lambda: setattr(made, "nodes", 3),
        lambda: setattr(made, "nonsense", 3),
        lambda: delattr(made, "nodes"),
    ):
        with pytest.raises(errors.InvalidInput, match="a Workload cannot be changed"):
            change()
    assert made.nodes == 2


def test_regions_cannot_be_changed_either() -> None:
    regions: Any = Workload.model_validate({"regions": {"aws": ["us-east-1"]}}).regions
    for change in (
        lambda: regions.update(gcp=("x",)),
        lambda: regions.pop("aws"),
        lambda: regions.clear(),
        lambda: regions.__setitem__("gcp", ("x",)),
        lambda: regions.__delitem__("aws"),
        lambda: regions.setdefault("gcp", ("x",)),
        lambda: regions.__ior__({"gcp": ("x",)}),
        lambda: regions.popitem(),
    ):
        with pytest.raises(TypeError, match="cannot be changed"):
            change()
    assert regions == {"aws": ("us-east-1",)}


FULL: dict[str, Any] = {
    "tier": "mid",
    "purpose": "fine-tuning",
    "model": {"parameters": "13B", "training": {"method": "qlora"}, "context_tokens": 4096},
    "gpu": {"models": ["L4", "A10G"], "memory": "24GB", "nvlink": "600GB/s", "mig": "1g.10gb"},
    "regions": {"aws": ["us-east-1"]},
    "capacity": ["spot", {"use": "on_demand", "max_usd_per_hour": "$2.50/h"}],
    "schedule": [{"start": "0 20 * * mon-fri", "stop": "0 6 * * tue-sat"}],
    "budget": {"usd_per_month": 500},
}


def test_equal_declarations_are_equal_and_hash_alike_and_survive_a_pickle() -> None:
    one, two = Workload.model_validate(FULL), Workload.model_validate(copy.deepcopy(FULL))
    assert one == two
    assert hash(one) == hash(two)
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301 made one line above
    assert copy.deepcopy(one) == one
    assert one != Workload.model_validate({**FULL, "nodes": 2})


def test_values_are_plain_and_in_the_units_of_the_program() -> None:
    made = Workload.model_validate(
        {
            "gpu": {"memory": "80GiB", "nvlink": "0.6TB/s", "total_memory": "1TB"},
            "memory": "64GB",
            "disk": {"scratch": "1TiB", "throughput": "1GiB/s"},
            "network": {"bandwidth": "400Mbps"},
            "max_usd_per_hour": "$2.50/h",
            "model": {"parameters": "6.7B", "measured_gib": "1GiB"},
        }
    )
    assert (made.gpu.memory, made.gpu.nvlink, made.gpu.total_memory) == (80.0, 600.0, 1024.0)
    assert made.memory == pytest.approx(59.6046447)
    assert (made.disk.scratch, made.disk.throughput) == (1024.0, pytest.approx(1073.741824))
    assert made.network.bandwidth == 0.4
    assert made.max_usd_per_hour == 2.5
    assert made.model is not None
    assert (made.model.parameters, made.model.measured_gib) == (6_700_000_000, 1.0)


@pytest.mark.parametrize(
    ("written", "nvlink", "mig"),
    [(True, True, True), ("false", False, False), (False, False, False)],
)
def test_nvlink_and_mig_may_be_asked_for_or_waived(
    written: Any, nvlink: object, mig: object
) -> None:
    made = Gpu.model_validate({"nvlink": written, "mig": written})
    assert (made.nvlink, made.mig) == (nvlink, mig)
    assert (Gpu().nvlink, Gpu().mig, Gpu().video_encode) == (None, None, None)


def test_numbers_that_a_person_or_the_cli_quoted_are_numbers() -> None:
    made = Workload.model_validate({"nodes": "4", "hours_per_month": "1e2", "scale": {"max": 6.0}})
    assert (made.nodes, made.hours_per_month, made.scale.max) == (4, 100.0, 6)


@pytest.mark.parametrize(
    ("written", "value"),
    [(True, True), (False, False), ("true", True), ("false", False)],
)
def test_true_and_false_may_be_quoted(written: object, value: bool) -> None:
    assert Gpu.model_validate({"vgpu": written}).vgpu is value


# A field's path → the least and the most it takes, and just outside of each.
BOUNDS: dict[str, tuple[list[Any], list[Any]]] = {
    "nodes": ([1, 1000], [0, 1001, -1]),
    "memory": (["1GiB", "64TiB", "1.08GB"], ["0.99GiB", "1GB", "65TiB"]),
    "hours_per_month": ([1, 744], [0.99, 744.1]),
    "max_usd_per_hour": ([0.01, 1e6, "$1000000/h"], [0, 1e6 + 1, "$0/h", -1]),
    "gpu.count": ([1, 72], [0, 73]),
    "gpu.memory": (["1GB", "2048GB", "2TB"], ["0.9GB", "2049GB", "3TB"]),
    "gpu.total_memory": (["1GB", "256TB"], ["0.9GB", "257TB"]),
    "gpu.nvlink": (["1GB/s", "100TB/s"], ["0.9GB/s", "101TB/s"]),
    "gpu.compute_capability": ([1, 20, "8.9"], [0.9, 20.1]),
    "disk.data": (["1GB", "1PB", "1GiB"], ["0.9GB", "1.1PB", "1PiB"]),
    "disk.throughput": (["1MB/s", "1000GB/s"], ["0.9MB/s", "1001GB/s"]),
    "disk.iops": ([1, 10_000_000], [0, 10_000_001]),
    "network.bandwidth": (["100Mbps", "100Tbps"], ["99Mbps", "101Tbps"]),
    "model.parameters": (["100K", "100T", 2001 * 1e6], ["99K", "101T", 0, 2000, 2001, -7]),
    "model.measured_gib": ([0.1, 2048, "2TiB"], [0, 2048.1, "3TiB"]),
    "model.context_tokens": ([1, 100_000_000], [0, 10**100]),
    "budget.usd_per_month": ([1, 1e9], [0, 1e9 + 1, "$5/h"]),
    "scale.max": ([1, 1000], [0, 1001]),
    "gpu.models": (["x" * 60], ["x" * 61, ["a"] * 101]),
    "network.vpc": (["x" * 200], ["x" * 201]),
    "model.config": (["x" * 1000], ["x" * 1001, "a\nb"]),
    "zones": (["x" * 40], ["x" * 41, "A"]),
}


def with_field(path: str, value: Any) -> dict[str, Any]:
    part, _, name = path.rpartition(".")
    needed: dict[str, dict[str, Any]] = {"model": {"measured_gib": 1}, "disk": {"data": "1TB"}}
    others = needed.get(part, {})  # what the part cannot do without
    return {part: {**others, name: value}} if part else {name: value}


@pytest.mark.parametrize(
    ("path", "value"), [(path, v) for path, (good, _) in BOUNDS.items() for v in good]
)
def test_a_field_takes_its_least_and_its_most(path: str, value: Any) -> None:
    Workload.model_validate(with_field(path, value))


@pytest.mark.parametrize(
    ("path", "value"), [(path, v) for path, (_, bad) in BOUNDS.items() for v in bad]
)
def test_a_field_takes_nothing_beyond(path: str, value: Any) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        Workload.model_validate(with_field(path, value))
    (problem,) = caught.value.problems
    assert problem.path.startswith(path)


def test_nothing_declares_nothing() -> None:
    assert Workload.model_validate({"gpu": None, "nodes": None, "capacity": None}) == Workload()
    assert Workload.model_validate({"gpu": {}, "schedule": [], "scale": {}}) == Workload()


def test_one_alone_stands_for_a_list_of_one() -> None:
    made = Workload.model_validate(
        {
            "gpu": {"models": "H100", "graphics": "vulkan"},
            "clouds": "aws",
            "regions": {"aws": "us-east-1"},
            "zones": "us-east-1a",
            "capacity": "spot",
            "schedule": {"start": "0 8 * * *", "stop": "0 9 * * *"},
            "budget": {"usd_per_month": 1, "alerts": 90},
        }
    )
    assert made.gpu.models == ("H100",)
    assert made.gpu.graphics == ("vulkan",)
    assert made.clouds == ("aws",)
    assert made.regions == {"aws": ("us-east-1",)}
    assert made.zones == ("us-east-1a",)
    assert made.capacity == (CapacityChoice(use="spot"),)
    assert made.schedule == (ScheduleEntry(start="0 8 * * *", stop="0 9 * * *"),)
    assert made.budget is not None
    assert made.budget.alerts == (90,)


def test_repeats_in_a_list_count_once_and_alerts_are_sorted() -> None:
    made = Workload.model_validate(
        {"clouds": ["aws", "gcp", "aws"], "budget": {"usd_per_month": 1, "alerts": [90, 50, 90]}}
    )
    assert made.clouds == ("aws", "gcp")
    assert made.budget is not None
    assert made.budget.alerts == (50, 90)


@pytest.mark.parametrize(
    ("declared", "purpose"),
    [
        ({}, None),
        ({"gpu": {"count": 1}}, None),
        ({"model": {"name": "a"}}, "inference"),
        ({"model": {"name": "a", "training": {}}}, "fine-tuning"),
        ({"model": {"name": "a", "training": {}}, "purpose": "training"}, "training"),
        ({"model": Model(name="a", training=Training())}, "fine-tuning"),
        ({"model": Model(name="a")}, "inference"),
    ],
)
def test_a_model_says_what_the_machines_are_for(
    declared: dict[str, Any], purpose: str | None
) -> None:
    assert Workload.model_validate(declared).purpose == purpose


@pytest.mark.parametrize(
    ("training", "sharding"),
    [
        ({}, "zero-3"),
        ({"method": "full"}, "zero-3"),
        ({"method": "lora"}, "none"),
        ({"method": "qlora"}, "none"),
        ({"method": "full", "sharding": "none"}, "none"),
        ({"method": "lora", "sharding": "zero-2"}, "zero-2"),
        ({"method": "lora", "sharding": "fsdp"}, "zero-3"),
        ({"sharding": "fsdp", "sharded_by": "fsdp"}, "zero-3"),
    ],
)
def test_full_training_is_sharded_unless_said_otherwise(
    training: dict[str, str], sharding: str
) -> None:
    assert Training.model_validate(training).sharding == sharding


@pytest.mark.parametrize(
    ("written", "utc"),
    [
        ("2026-11-01", "2026-11-01T00:00:00Z"),
        ("2000-01-01", "2000-01-01T00:00:00Z"),
        ("2026-11-01T11:30:00Z", "2026-11-01T11:30:00Z"),
        ("2026-11-01T11:30+02:00", "2026-11-01T09:30:00Z"),
        ("2026-11-01 11:30:00", "2026-11-01T11:30:00Z"),
        # The engine prints an unquoted date of a stack file in Go's way.
        ("2026-11-01 00:00:00 +0000 UTC", "2026-11-01T00:00:00Z"),
        ("2026-11-01 11:30:00 +0200 +0200", "2026-11-01T09:30:00Z"),
        ("2026-11-01 11:30:00 -0800 PST", "2026-11-01T19:30:00Z"),
    ],
)
def test_moments_are_kept_as_utc(written: str, utc: str) -> None:
    block = {"use": "capacity_block", "instance_type": "p5.48xlarge", "zone": "use1-az4"}
    assert CapacityChoice.model_validate({**block, "start": written}).start == utc


@pytest.mark.parametrize(
    "written",
    ["2026-13-01", "2026-02-30", "1999-12-31", "2200-01-01", "2026-11-01T25:00Z", "soon", 5, ""],
)
def test_what_is_no_moment_is_refused(written: object) -> None:
    block = {"use": "capacity_block", "instance_type": "p5.48xlarge", "zone": "use1-az4"}
    with pytest.raises(errors.InvalidInput, match="must be a date or a time"):
        CapacityChoice.model_validate({**block, "start": written})


@pytest.mark.parametrize("side", [512, "512x512"])
def test_an_images_side_may_stand_for_a_square(side: object) -> None:
    made = Model.model_validate({"name": "sdxl", "image": {"resolution": side}})
    assert made.image is not None
    assert (made.image.resolution, made.image.pixels) == ("512x512", 262_144)


def test_a_models_paths_count_from_the_folder_of_the_file_that_names_them() -> None:
    made = Model.model_validate({"config": "c/config.json"}, context={"directory": "stacks"})
    assert made.config_path is not None
    assert made.config_path.as_posix() == "stacks/c/config.json"
    alone = Model(weights_index="/abs/index.json")
    assert alone.weights_index_path is not None
    assert alone.weights_index_path.as_posix() == "/abs/index.json"
    assert alone.config_path is None


@pytest.mark.parametrize(
    "declared",
    [
        {"measured_gib": 20},
        {"architecture": {"layers": 32, "hidden_size": 4096}},
        {"seats": 8},
        {"parameters": 7e9},
        {"name": "sdxl", "image": {}},
        {"measured_gib": 20, "image": {}},
        {"parameters": "8x7B".replace("8x7", "46.7"), "active_parameters": "12.9B"},
    ],
)
def test_each_of_these_can_be_sized(declared: dict[str, Any]) -> None:
    Model.model_validate(declared)


def test_a_json_schema_can_be_made_and_is_closed() -> None:
    schema = Workload.model_json_schema()
    assert schema["additionalProperties"] is False
    assert schema["properties"]["tier"]["description"].startswith("A set of floors")


def test_the_declaration_knows_production(declared: Callable[[str], Declaration]) -> None:
    for name, production in (("prod", True), ("production", True), ("staging", False)):
        text = f"environment: {name}\nworkloads: {{a: }}\n"
        assert declared(text).is_production is production


def test_defaults_of_the_program_are_the_models_own() -> None:
    """Made without validation for the sake of import time; they must not differ for it."""
    made = Workload()
    for part in (made.gpu, made.cpu, made.disk, made.network, made.scale):
        assert part == type(part)()
    assert made.capacity == (CapacityChoice(use="on_demand"),)
    assert model.DEFAULT_CLOUDS == ("aws", "gcp")


def test_a_reservation_that_is_just_large_enough_will_do() -> None:
    held = {"use": "reservation", "instance_type": "p5.48xlarge", "zone": "use1-az4", "count": 4}
    assert Workload.model_validate({"nodes": 4, "capacity": held}).capacity[0].count == 4
