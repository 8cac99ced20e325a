"""The rules of money that judge a machine by itself: its GPU, its age, its tags."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.aws import world
from tests.policies import cases
from tests.policies.tables import Case, check

from gputier_policies import cards, facts, tags
from gputier_policies.machine import (
    CONFIGURATION,
    GCP_FROM_TEMPLATE,
    GCP_INSTANCE,
    GCP_REGION_TEMPLATE,
    GCP_TEMPLATE,
    GROUP,
    INSTANCE,
    NODE_GROUP,
    NODE_POOL,
    SPOT_FLEET,
    SPOT_INSTANCE,
    TEMPLATE,
    Machine,
)
from gputier_policies.rule import Rule
from gputier_policies.values import UNKNOWN

L4 = {"models": ["L4"]}
T4 = [{"type": "nvidia-tesla-t4", "count": 1}]
V100 = "projects/p/zones/us-central1-a/acceleratorTypes/nvidia-tesla-v100"
MODEL_CASES = [
    Case(INSTANCE, {"instanceType": "g6.xlarge"}, "instanceType", "p5.48xlarge",
         "instanceType is p5.48xlarge, which has an H100-80GB; it must be one of L4", config=L4),
    Case(TEMPLATE, {"instanceType": "g6.xlarge"}, "instanceType", "g4dn.xlarge",
         "which has a T4", config=L4),
    Case(CONFIGURATION, {"instanceType": "g6.xlarge"}, "instanceType", "g9.xlarge",
         "whose GPU nobody here knows", config=L4),
    Case(NODE_GROUP, {"instanceTypes": ["g6.xlarge", "g6.2xlarge"]}, "instanceTypes[1]",
         "g5.xlarge", "instanceTypes[1] is g5.xlarge, which has an A10G", config=L4),
    Case(SPOT_FLEET, {"launchSpecifications": [{"instanceType": "g6.xlarge"}]},
         "launchSpecifications[0].instanceType", "g5.xlarge", "launchSpecifications[0]", config=L4),
    Case(GROUP, {"mixedInstancesPolicy": {"launchTemplate": {"launchTemplateSpecification": {},
         "overrides": [{"instanceType": "g6.xlarge"}]}}},
         "mixedInstancesPolicy.launchTemplate.overrides[0]",
         {"instanceRequirements": {"acceleratorNames": ["a100"]}},
         "takes any machine with such traits", config=L4),
    Case(GCP_INSTANCE, {"machineType": "g2-standard-4", "zone": "us-central1-a"}, "machineType",
         "zones/us-central1-a/machineTypes/a2-highgpu-1g", "a2-highgpu-1g, which has an A100-40GB",
         config=L4),
    Case(GCP_TEMPLATE, {"machineType": "n1-standard-8", "guestAccelerators": T4},
         "guestAccelerators[0].type", V100, "with 1 × nvidia-tesla-v100, which has a V100-16GB",
         also=("machineType", "guestAccelerators[0].count"), config={"models": ["T4"]}),
    Case(NODE_POOL, {"nodeConfig": {"machineType": "g2-standard-4"}}, "nodeConfig.machineType",
         "a3-highgpu-8g", "nodeConfig.machineType is a3-highgpu-8g, which has an H100-80GB",
         config=L4),
]  # fmt: skip


@pytest.mark.parametrize("case", MODEL_CASES, ids=str)
def test_only_gpus_that_are_allowed_are_used(case: Case) -> None:
    check(cards.MODELS, case)


@pytest.mark.parametrize(("model", "wanted", "meant"), [
    ("H100-80GB", ["H100"], True), ("H100-80GB", ["h100-80gb"], True), ("A10G", ["A10"], False),
    ("A100-40GB", ["A100-80GB"], False), ("L40S", ["L4"], False), ("L4", [], False),
])  # fmt: skip
def test_a_bare_name_means_every_variant_of_it_and_nothing_else(
    model: str, wanted: list[str], meant: bool
) -> None:
    assert facts.names(model, wanted) is meant
    assert (model in {m for w in wanted for m in world.catalog().match_gpus(w)}) is meant


def test_any_gpu_is_allowed_where_nothing_is_said() -> None:
    assert cases.found(cards.MODELS, cases.resource(INSTANCE, instanceType="p5.48xlarge")) == []


@pytest.mark.parametrize("rule", [cards.MODELS, cards.CONSUMER, cards.GENERATIONS, tags.MACHINE])
@pytest.mark.parametrize(("type_", "props"), [
    (INSTANCE, {"instanceType": "m7i.large"}), (TEMPLATE, {"name": "no type"}),
    (GCP_INSTANCE, {"machineType": "e2-medium", "zone": "us-central1-a"}),
    (GCP_INSTANCE, {"machineType": "n1-standard-1",
                    "guestAccelerators": [{"type": "nvidia-tesla-t4", "count": 0}]}),
    (TEMPLATE, {"instanceRequirements": {"acceleratorTypes": ["fpga"],
                                         "acceleratorCount": {"min": 1}}}),
    (TEMPLATE, {"instanceRequirements": {"vcpuCount": {"min": 2}, "memoryMib": {"min": 2}}}),
])  # fmt: skip
def test_what_has_no_gpu_is_left_alone(rule: Rule, type_: str, props: Mapping[str, Any]) -> None:
    config = L4 if rule is cards.MODELS else {}
    assert cases.found(rule, cases.resource(type_, **props), **config) == []


# No machine of either cloud has one: the names are how such cards are called.
GEFORCE = "nvidia-geforce-rtx-4090"
CONSUMER_CASES = [
    Case(type_, {"machineType": "n1-standard-8", "guestAccelerators": T4, **more},
         "guestAccelerators[0].type", GEFORCE, "a card for desktops", also=("machineType",))
    for type_, more in (
        (GCP_INSTANCE, {"zone": "us-central1-a"}), (GCP_TEMPLATE, {}), (GCP_REGION_TEMPLATE, {}),
        (GCP_FROM_TEMPLATE, {"sourceInstanceTemplate": "x"}),
    )
]  # fmt: skip


@pytest.mark.parametrize("case", CONSUMER_CASES, ids=str)
def test_no_card_for_desktops_is_used_in_production(case: Case) -> None:
    check(cards.CONSUMER, case)
    bad = cases.changed(case.good, case.path, case.bad)
    one = cases.resource(case.type, **bad)
    assert cases.found(cards.CONSUMER, one, environment="dev") == []


def test_cards_that_the_catalogue_calls_consumer_are(monkeypatch: pytest.MonkeyPatch) -> None:
    consumer = {gpu.model for gpu in world.catalog().gpus.values() if gpu.consumer}
    assert consumer
    for model in world.catalog().gpus:
        with monkeypatch.context() as patch:
            patch.setattr(facts, "gpu", _always(model))
            assert facts.is_consumer(Machine("aws", "x", "")) is (model in consumer)


def _always(model: str) -> Callable[[Machine], tuple[str, facts.Gpu | None]]:
    return lambda _machine: (model, facts.card(model))


REGION = {"region": "us-east-1"}
OLD_CASES = [
    Case(INSTANCE, {"instanceType": "p4d.24xlarge", **REGION}, "instanceType", "p3dn.24xlarge",
         "p4d.24xlarge has 8 × A100-40GB and costs $6,756 less a month on demand in us-east-1",
         also=("region",)),
    Case(TEMPLATE, {"instanceType": "g6.xlarge", **REGION}, "instanceType", "g5.xlarge",
         "g6.xlarge has 1 × L4, GPU memory of 300 GB/s instead of 600, and costs $147 less",
         also=("region",), config={"lesser": ["gpu_memory_speed"]}),
    Case(TEMPLATE, {"instanceType": "g6.xlarge", **REGION}, "instanceType", "p2.xlarge",
         "16 GiB of memory instead of 61", also=("region",), config={"lesser": ["memory"]}),
    Case(GCP_INSTANCE,
         {"machineType": "n1-standard-8", "zone": "us-central1-a", "guestAccelerators": T4},
         "guestAccelerators[0].type", "nvidia-tesla-p4",
         "g2-standard-8 has 1 × L4 and costs $92.27 less",
         also=("machineType", "zone", "guestAccelerators[0].count")),
]  # fmt: skip


@pytest.mark.parametrize("case", OLD_CASES, ids=str)
def test_a_newer_machine_that_costs_less_is_named(case: Case) -> None:
    if "instanceMarketOptions" not in case.good and case.type in (INSTANCE, TEMPLATE):
        case = Case(case.type, {**case.good, "instanceMarketOptions": {}}, case.path, case.bad,
                    case.says, (*case.also, "instanceMarketOptions",
                    "capacityReservationSpecification"), case.config)  # fmt: skip
    if case.type == GCP_INSTANCE:
        case = Case(case.type, {**case.good, "scheduling": {}}, case.path, case.bad, case.says,
                    (*case.also, "scheduling"), case.config)  # fmt: skip
    check(cards.GENERATIONS, case)


@pytest.mark.parametrize("props", [
    {"instanceType": "g5.xlarge"},  # its successor's memory is slower
    {"instanceType": "p3.2xlarge"},  # nothing newer is cheaper
    {"instanceType": "p3dn.24xlarge", "region": "eu-south-2"},  # nothing is known there
])  # fmt: skip
def test_nothing_is_said_without_a_successor(props: Mapping[str, Any]) -> None:
    assert cases.found(cards.GENERATIONS, cases.resource(INSTANCE, **props)) == []


def test_a_discount_on_the_old_machine_counts() -> None:
    declared = '[{"cloud": "aws", "families": ["p3dn"], "percent": 60, "reason": "plan"}]'
    where = cases.stack(
        cases.resource(INSTANCE, instanceType="p3dn.24xlarge"),
        config={"gputier:discounts": declared},
    )
    assert cases.found(cards.GENERATIONS, where.resources[0]) == []


def test_a_successor_is_newer_and_no_worse_in_anything() -> None:
    catalog, found = world.catalog(), 0
    for cloud, region in (("aws", "us-east-1"), ("gcp", "us-central1")):
        for name, what in facts.machines(cloud):
            new = cards.successor(Machine(cloud, name, ""), what, (region, ()), cards.LESSER)
            if new is None:
                continue
            found += 1
            old, row = catalog.types[cloud, name], catalog.types[cloud, new.name]
            assert row.gpu_count >= old.gpu_count, name
            assert (row.vcpus or 0) >= (old.vcpus or 0), name
            assert catalog.gpus[row.gpu_model].generation > catalog.gpus[old.gpu_model].generation
            before, after = (catalog.price(cloud, n, region, "on_demand") for n in (name, new.name))
            assert before
            assert after
            saved = (before.usd_per_hour - after.usd_per_hour) * 730
            assert new.usd_per_month == pytest.approx(saved)
    assert found > 5


TAGS = {"owner": "research", "cost-center": "4711"}
TAG_CASES = [
    Case(INSTANCE, {"instanceType": "g6.xlarge", "tags": TAGS}, "tags", {"owner": "research"},
         'tags names no cost centre, under none of cost-center, CostCenter, cost_center; it must:'
         ' tags={"cost-center": "..."}', also=("instanceType",)),
    Case(SPOT_INSTANCE, {"instanceType": "g6.xlarge", "tags": TAGS}, "tags.owner", " ",
         "names no owner", also=("instanceType", "tags")),
    Case(GCP_INSTANCE,
         {"machineType": "g2-standard-4", "zone": "us-central1-a", "labels": TAGS}, "labels.owner",
         None, 'labels={"owner": "..."}', also=("machineType", "labels")),
    Case(GCP_TEMPLATE, {"machineType": "g2-standard-4", "labels": TAGS}, "labels", {
         "owner": "me"}, "labels names no cost centre", also=("machineType",)),
    Case(NODE_POOL, {"nodeConfig": {"machineType": "g2-standard-4", "resourceLabels": TAGS}},
         "nodeConfig.resourceLabels", {"owner": "me"},
         'node_config={"resource_labels": {"cost-center": "..."}}',
         also=("nodeConfig.machineType",)),
]  # fmt: skip


@pytest.mark.parametrize("case", TAG_CASES, ids=str)
def test_machines_say_whose_they_are(case: Case) -> None:
    check(tags.MACHINE, case)


@pytest.mark.parametrize("provider", [
    {"defaultTags": {"tags": TAGS}},
    {"defaultTags": '{"tags": {"owner": "a", "cost-center": "b"}}'},
])  # fmt: skip
def test_the_providers_default_tags_count(provider: Mapping[str, Any]) -> None:
    bare = cases.resource(INSTANCE, instanceType="g6.xlarge")
    assert len(cases.violations(tags.MACHINE, bare)) == 2
    assert cases.found(tags.MACHINE, cases.of(bare, provider)) == []


def test_the_providers_default_labels_count() -> None:
    bare = cases.resource(GCP_INSTANCE, machineType="g2-standard-4")
    assert len(cases.violations(tags.MACHINE, bare)) == 2
    assert cases.found(tags.MACHINE, cases.of(bare, {"defaultLabels": TAGS})) == []
    assert cases.violations(tags.MACHINE, cases.of(bare, {"defaultLabels": "no JSON"}))


def test_tags_that_the_provider_computed_count() -> None:
    done = cases.resource(INSTANCE, instanceType="g6.xlarge", tags={}, tagsAll=TAGS)
    assert cases.found(tags.MACHINE, done) == []
    done = cases.resource(GCP_INSTANCE, machineType="g2-standard-4", effectiveLabels=TAGS)
    assert cases.found(tags.MACHINE, done) == []


def test_other_keys_may_be_asked_for() -> None:
    one = cases.resource(INSTANCE, instanceType="g6.xlarge", tags={"team": "a", "cc": UNKNOWN})
    assert cases.found(tags.MACHINE, one, owner=["squad", "team"], cost_center=["cc"]) == []


FILL = {"owner": ["team:owner", "owner"], "fill": {"owner": "ann", "team:owner": "bob",
        "cost-center": "4711"}}  # fmt: skip
FILLED = [
    (INSTANCE, {"instanceType": "g6.xlarge"},
     {"tags": {"team:owner": "bob", "cost-center": "4711"}}),
    (INSTANCE, {"instanceType": "g6.xlarge", "tags": {"owner": "cy"}},
     {"tags": {"owner": "cy", "cost-center": "4711"}}),
    # Google takes no colon in a label.
    (GCP_TEMPLATE, {"machineType": "g2-standard-4"},
     {"labels": {"owner": "ann", "cost-center": "4711"}}),
    (NODE_POOL, {"nodeConfig": {"machineType": "g2-standard-4"}},
     {"nodeConfig": {"machineType": "g2-standard-4",
                     "resourceLabels": {"owner": "ann", "cost-center": "4711"}}}),
    (GROUP, {"tags": [{"key": "owner", "value": "cy", "propagateAtLaunch": False},
                      {"key": "owner", "value": "dee", "propagateAtLaunch": True}]},
     {"tags": [{"key": "owner", "value": "cy", "propagateAtLaunch": False},
               {"key": "owner", "value": "dee", "propagateAtLaunch": True},
               {"key": "cost-center", "value": "4711", "propagateAtLaunch": True}]}),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "props", "more"), FILLED)
def test_a_remediation_fills_in_what_the_configuration_says(
    type_: str, props: Mapping[str, Any], more: Mapping[str, Any]
) -> None:
    assert tags.MACHINE.remedy
    given = dict(props)
    assert tags.MACHINE.remedy(type_, given, tags.MACHINE.configured(FILL)) is True
    assert given == {**props, **more}
    assert tags.MACHINE.remedy(type_, given, tags.MACHINE.configured(FILL)) is False


def test_nothing_is_filled_in_that_nobody_said() -> None:
    assert tags.MACHINE.remedy
    given = {"instanceType": "g6.xlarge"}
    assert tags.MACHINE.remedy(INSTANCE, given, tags.MACHINE.configured()) is False
    assert given == {"instanceType": "g6.xlarge"}
