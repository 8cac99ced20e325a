"""What a person is told beside a choice: each note where it is true, and only there."""

from __future__ import annotations

from typing import Any

import pytest
from tests.plan.world import Doctored, discount, held, planned, row

from gputier.catalog import InstanceType, Price, load

HERE = {"clouds": ["aws"], "regions": {"aws": ["us-east-1"]}}


def notes(fields: dict[str, Any], **how: Any) -> tuple[str, ...]:
    plan = planned(fields, **how)
    assert plan.chosen is not None
    return plan.chosen.notes


def on(name: str, **fields: Any) -> dict[str, Any]:
    return {"capacity": {"use": "on_demand", "instance_type": name}, **fields}


def told(fields: dict[str, Any], start: str, **how: Any) -> list[str]:
    """The notes that begin so."""
    return [note for note in notes(fields, **how) if note.startswith(start)]


def test_a_plain_choice_of_a_known_machine_has_no_notes() -> None:
    assert notes(on("g6.xlarge", **HERE)) == ()


# ---- availability --------------------------------------------------------------------------


def test_an_unconfirmed_type_says_what_nobody_lists() -> None:
    assert told(on("g4-standard-48", clouds=["gcp"]), "availability") == [
        "availability unconfirmed: no source lists g4-standard-48 in any region"
    ]


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        (on("g6.xlarge", regions={"aws": ["us-gov-west-1"]}), "us-gov-west-1"),
        (on("g7e.2xlarge", zones=["us-east-1a"]), "us-east-1a"),
        ({"capacity": held("g7e.2xlarge", "use1-az4")}, "use1-az4"),
    ],
    ids=["region", "zone name", "held zone"],
)
def test_a_listed_type_in_an_unlisted_place_says_which_place(
    fields: dict[str, Any], where: str
) -> None:
    (note,) = told(fields, "availability")
    assert note.startswith(f"availability unconfirmed: no source says that {where} sells ")


def test_open_regions_are_told_for_the_cloud_that_was_chosen() -> None:
    assert told(on("g6.xlarge"), "no region") == [
        "no region declared for aws: every commercial region was searched"
    ]
    assert told(on("g6.xlarge", regions={"aws": ["us-east-1"]}), "no region") == []


# ---- price ---------------------------------------------------------------------------------


def test_a_borrowed_price_names_its_lender() -> None:
    (note,) = told(on("p5.4xlarge", regions={"aws": ["eu-north-1"]}), "price borrowed")
    assert note == "price borrowed from eu-west-2"


@pytest.mark.parametrize(("as_of", "days"), [("2026-02-26", 181), ("2026-02-27", None)])
def test_a_price_older_than_180_days_is_told_with_its_age(as_of: str, days: int | None) -> None:
    assert load().as_of == "2026-08-26"
    old = load().price("aws", "g6.xlarge", "us-east-1", "on_demand")
    assert isinstance(old, Price)
    prices = {("aws", "g6.xlarge", "on_demand"): {"us-east-1": old._replace(as_of=as_of)}}
    found = told(on("g6.xlarge", **HERE), "price of", catalog=Doctored(prices=prices))
    assert found == ([f"price of {as_of}, {days} days old"] if days else [])


def test_a_spot_price_is_a_hint_with_its_date() -> None:
    spot = load().price("aws", "g6.xlarge", "us-east-1", "spot")
    assert spot is not None
    fields = {"capacity": {"use": "spot", "instance_type": "g6.xlarge"}, **HERE}
    assert told(fields, "spot price") == [f"spot price of {spot.as_of}: a hint, it moves"]
    assert told(on("g6.xlarge", **HERE), "spot") == []


@pytest.mark.parametrize(("environment", "said"), [("prod", 1), ("production", 1), ("dev", 0)])
def test_spot_in_prod_is_warned_of(environment: str, said: int) -> None:
    fields = {"capacity": {"use": "spot", "instance_type": "g6.xlarge"}, **HERE}
    assert len(told(fields, "spot in prod", environment=environment)) == said
    assert told(on("g6.xlarge", **HERE), "spot in prod", environment=environment) == []


def test_a_discount_says_why_and_what_it_was_before() -> None:
    found = told(on("g6.xlarge", **HERE), "25 %", discounts=[discount(25, "g6")])
    assert found == ["25 % off for 25 off; $0.80/h before"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"gpu": {"models": ["T4"]}, "clouds": ["gcp"]}, 1),
        ({"gpu": {"models": ["T4"]}, "clouds": ["gcp"], "capacity": "spot"}, 0),
        ({"gpu": {"models": ["L4"]}, "clouds": ["gcp"]}, 0),
    ],
    ids=["T4", "T4 on spot", "L4"],
)
def test_sustained_use_is_told_for_n1_on_demand_alone(fields: dict[str, Any], said: int) -> None:
    assert len(told(fields, "sustained-use")) == said


# ---- the machine ---------------------------------------------------------------------------


def with_(**facts: Any) -> Doctored:
    return Doctored(types=[row("aws", "g6.xlarge")._replace(**facts)])


@pytest.mark.parametrize(
    ("facts", "start"),
    [
        ({"bare_metal": True}, "bare metal"),
        ({"lifecycle": "previous-generation"}, "previous generation"),
        ({"gpu_model_confidence": "inferred"}, "the cloud does not name this GPU; L4"),
        ({"unverified": ("gpu_model",)}, "unverified in the catalogue: gpu_model"),
    ],
    ids=lambda v: str(v),
)
def test_each_oddity_of_a_machine_is_told(facts: dict[str, Any], start: str) -> None:
    assert len(told(on("g6.xlarge", **HERE), start, catalog=with_(**facts))) == 1
    assert told(on("g6.xlarge", **HERE), start) == []


@pytest.mark.parametrize(
    ("column", "fields"),
    [
        ("vcpus", {"cpu": {"count": 2}}),
        ("memory_gib", {"memory": "8GiB"}),
        ("network_baseline_gbps", {"network": {"bandwidth": "1Gbps"}}),
        ("local_nvme_count", {"disk": {"throughput": "100MB/s"}}),
        ("local_nvme_gib_total", {"disk": {"scratch": "100GB"}}),
        ("on_demand_support", {}),
        ("gpu_count", {}),
    ],
)
def test_a_doubtful_fact_is_told_where_the_choice_rests_on_it(
    column: str, fields: dict[str, Any]
) -> None:
    catalog = with_(unverified=(column, "nvlink"))
    found = told(on("g6.xlarge", **HERE, **fields), "unverified", catalog=catalog)
    assert found == [f"unverified in the catalogue: {column}"]


def test_every_column_that_a_note_can_name_is_one_the_data_can_doubt() -> None:
    doubted = {f for t in load().rows(["aws", "gcp"]) for f in t.unverified}
    fields = set(InstanceType._fields) | doubted
    assert doubted <= fields


def test_the_speed_of_nvme_is_told_as_a_count_where_a_floor_rests_on_it() -> None:
    assert len(told(on("g6.xlarge", **HERE, disk={"throughput": "400MB/s"}), "NVMe counts")) == 1
    assert told(on("g6.xlarge", **HERE), "NVMe counts") == []


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"tier": "mid", "gpu": {"memory": "16GB"}}, "tier mid: gpu_memory is 16, not 24"),
        ({"tier": "high-end", "gpu": {"nvlink": False}}, "tier high-end: nvlink dropped, not 600"),
        ({"tier": "high-end", "cpu": {"count": 48}}, "tier high-end: vcpu is 48, not 12 per GPU"),
        ({"tier": "high-end", "memory": "256GiB"},
         "tier high-end: host_memory is 256, not 1 per GiB of installed GPU memory"),
        ({"tier": "entry", "memory": "16GiB"},
         "tier entry: host_memory is 16, not 4 per GiB of needed GPU memory"),
        ({"purpose": "rendering", "gpu": {"graphics": ["vulkan"]}},
         "purpose rendering: graphics is vulkan, not opengl, vulkan"),
    ],
    ids=lambda v: str(v)[:40],
)  # fmt: skip
def test_each_override_is_told_with_what_it_replaced(fields: dict[str, Any], says: str) -> None:
    assert f"your own word overrides {says}" in notes(fields)
