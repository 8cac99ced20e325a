"""Where machines are sold and how they may be bought."""

from __future__ import annotations

from typing import Any

import pytest
from tests.plan.world import Doctored, best, of, planned, row, rules_of

from gputier.catalog import is_commercial, load
from gputier.errors import InvalidInput
from gputier.plan import DEPLOYABLE, Reason, WorkloadPlan
from gputier.plan.market import (
    ABSENT,
    CONFIRMED,
    UNCONFIRMED,
    Market,
    Places,
    availability_reason,
    market_of,
    places,
)
from gputier.workload import CapacityChoice, Workload

ON_DEMAND = CapacityChoice(use="on_demand")
EVERYWHERE = ["aws", "gcp", "azure", "alibaba", "tencent"]


def market(**fields: Any) -> Market:
    return market_of(load(), Workload(**fields))


def found(cloud: str, name: str, choice: CapacityChoice = ON_DEMAND, **fields: Any) -> Places:
    return places(load(), row(cloud, name), market(**fields), choice)


# ---- which clouds and regions --------------------------------------------------------------


def test_default_clouds_are_the_two_that_can_be_deployed() -> None:
    assert market().clouds == DEPLOYABLE == ("aws", "gcp")


def test_without_declared_regions_every_commercial_region_is_searched_and_that_is_told() -> None:
    open_ = market()
    assert open_.open_regions == {"aws", "gcp"}
    assert all(is_commercial("aws", region) for region in open_.regions["aws"])
    assert "us-east-1" in open_.regions["aws"]
    assert {"us-gov-west-1", "cn-north-1"} & set(load().regions("aws"))
    assert any("every commercial region" in note for note in notes(planned({})))
    assert not any(
        "every commercial region" in note
        for note in notes(planned({"regions": {"aws": ["us-east-1"]}, "clouds": ["aws"]}))
    )


def notes(plan: WorkloadPlan) -> tuple[str, ...]:
    assert plan.chosen is not None
    return plan.chosen.notes


def test_regions_alone_name_the_clouds_too() -> None:
    assert market(regions={"aws": ["eu-west-1"]}).clouds == ("aws",)


def test_regions_of_one_cloud_leave_a_named_other_cloud_open() -> None:
    mixed = market(clouds=["aws", "gcp"], regions={"aws": ["eu-west-1"]})
    assert mixed.regions["aws"] == ("eu-west-1",)
    assert mixed.regions["gcp"] == load().regions("gcp")
    assert mixed.open_regions == {"gcp"}


def test_govcloud_is_searched_only_when_it_is_named() -> None:
    plan = planned({"clouds": ["aws"], "regions": {"aws": ["us-gov-west-1"]}})
    assert {v.region for v in plan.order} == {"us-gov-west-1"}
    for fields in ({}, {"capacity": "spot"}, {"gpu": {"count": 8}}):
        offered = planned({**fields, "clouds": ["aws"]}).order
        assert offered
        assert all(is_commercial("aws", v.region) for v in offered)


@pytest.mark.parametrize(
    ("fields", "path", "says"),
    [
        ({"regions": {"aws": ["us-eas-1"]}}, "job.regions.aws", "us-east-1"),
        ({"regions": {"gcp": ["qqq"]}}, "job.regions.gcp", "gputier catalog regions"),
        ({"zones": ["use1-4"]}, "job.zones", "use1-az4"),
        ({"capacity": {"use": "spot", "instance_type": "g6.xlage"}},
         "job.capacity.instance_type", "g6.xlarge"),
        ({"gpu": {"models": ["H1000"]}}, "job.gpu.models", "H100"),
        ({"gpu": {"exclude": ["L44"]}}, "job.gpu.exclude", "L4"),
    ],
)  # fmt: skip
def test_names_the_catalogue_does_not_know_are_refused_with_a_way_out(
    fields: dict[str, Any], path: str, says: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        planned(fields)
    (problem,) = refused.value.problems
    assert problem.path == path
    assert says in problem.hint


# ---- availability --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cloud", "name", "fields", "availability"),
    [
        ("aws", "g6.xlarge", {"regions": {"aws": ["us-east-1"]}}, CONFIRMED),
        ("aws", "p5.4xlarge", {"regions": {"aws": ["eu-central-1"]}}, ABSENT),
        ("aws", "p5.4xlarge", {}, CONFIRMED),
        ("aws", "g6.xlarge", {"regions": {"aws": ["us-gov-west-1"]}}, UNCONFIRMED),
        ("aws", "p6e-gb200.36xlarge", {}, UNCONFIRMED),
        ("gcp", "g4-standard-48", {}, UNCONFIRMED),
        ("gcp", "g2-standard-4", {}, CONFIRMED),
        ("azure", "Standard_NC24ads_A100_v4", {"clouds": ["azure"]}, UNCONFIRMED),
        ("tencent", "GN10Xp.2XLARGE40", {"clouds": ["tencent"]}, CONFIRMED),
    ],
)
def test_availability_has_three_values(
    cloud: str, name: str, fields: dict[str, Any], availability: str
) -> None:
    assert found(cloud, name, **fields).availability == availability


def test_an_absent_type_is_rejected_with_where_it_is_sold() -> None:
    plan = planned({"regions": {"aws": ["eu-central-1"]}})
    (reason,) = [r for r in of(plan, "aws", "p5.4xlarge").reasons if r.rule == "availability"]
    sold = sorted(load().zones("aws", "p5.4xlarge"))
    assert reason == Reason(
        "availability",
        "eu-central-1",
        f"sold in {len(sold)} regions: {', '.join(sold[:4])}, …",
        "regions.aws: add one of them",
    )


@pytest.mark.parametrize(
    ("sold", "allowed", "needed", "has"),
    [
        (["b"], ["x"], "x", "sold in 1 region: b"),
        (["a", "b", "c", "d"], ["x", "y", "z"], "x, y, z", "sold in 4 regions: a, b, c, d"),
        (["a", "b", "c", "d", "e"], ["w", "x", "y", "z"], "the allowed regions",
         "sold in 5 regions: a, b, c, d, …"),
    ],
)  # fmt: skip
def test_long_lists_of_regions_are_cut_and_said_to_be(
    sold: list[str], allowed: list[str], needed: str, has: str
) -> None:
    where = Market(("aws",), {"aws": tuple(allowed)}, (), frozenset())
    elsewhere = Places(ABSENT, {}, tuple(sold))
    reason = availability_reason(load(), row("aws", "g6.xlarge"), where, (elsewhere, ""))
    assert reason is not None
    assert (reason.needed, reason.has) == (needed, has)


@pytest.mark.parametrize(
    ("fields", "name", "needed", "has", "relax"),
    [
        ({"zones": ["use1-az4"]}, "g7e.2xlarge", "use1-az4", "sold in use1-az2, use1-az6",
         "zones: one of these"),
        ({"capacity": {"use": "on_demand", "zone": "use1-az4"}}, "g7e.2xlarge", "use1-az4",
         "sold in use1-az2, use1-az6", "capacity.zone: one of these"),
        ({"zones": ["use1-az9"]}, "p5.48xlarge", "use1-az9",
         "sold in use1-az1, use1-az2, use1-az3, use1-az4, use1-az5, use1-az6",
         "zones: one of these"),
        ({"zones": ["euc1-az1"], "regions": {"aws": ["us-east-1"]}}, "g7e.2xlarge", "euc1-az1",
         "sold in use1-az2, use1-az6", "zones: one of these"),
        ({"zones": ["euc1-az1"], "regions": {"aws": ["eu-central-1"]}}, "p5.4xlarge", "euc1-az1",
         "sold in 10 regions: ap-northeast-1, ap-south-1, ap-southeast-2, ap-southeast-3, …",
         "no zones, and one of these regions"),
    ],
    ids=["zones", "capacity", "six zones", "zone outside the region", "nowhere near"],
)  # fmt: skip
def test_a_zone_without_the_type_names_the_zones_of_its_region_that_have_it(
    fields: dict[str, Any], name: str, needed: str, has: str, relax: str
) -> None:
    (reason,) = of(planned(fields), "aws", name).reasons
    assert reason == Reason("availability", needed, has, relax)


def test_more_than_six_zones_are_cut() -> None:
    where = Market(("aws",), {"aws": load().regions("aws")}, ("euc1-az1",), frozenset())
    reason = availability_reason(
        load(), row("aws", "p5.4xlarge"), where, (Places(ABSENT, {}, ("us-east-1",)), "")
    )
    assert reason is not None
    assert reason.has.count(", ") == 6
    assert reason.has.endswith(", …")


def test_a_price_alone_is_not_an_offer() -> None:
    priced = set(load().prices("aws", "p3.2xlarge", "on_demand"))
    assert priced, "the data still prices a type that is no longer sold"
    plan = planned({"clouds": ["aws"]})
    assert rules_of(of(plan, "aws", "p3.2xlarge"))[0] == "lifecycle"
    catalog = Doctored(zones={("aws", "g6.xlarge"): {"eu-west-1": ("euw1-az1",)}})
    elsewhere = planned({"regions": {"aws": ["us-east-1"]}, "clouds": ["aws"]}, catalog=catalog)
    assert load().price("aws", "g6.xlarge", "us-east-1", "on_demand") is not None
    assert rules_of(of(elsewhere, "aws", "g6.xlarge")) == ["availability"]


def test_every_unconfirmed_machine_comes_after_every_confirmed_one() -> None:
    plan = planned({"gpu": {"memory": "48GB"}})
    kinds = [v.confirmed for v in plan.order if not v.plan_only]
    assert kinds == sorted(kinds, reverse=True)
    assert True in kinds
    assert False in kinds


def test_a_cheaper_unconfirmed_machine_is_accepted_labelled_and_shown() -> None:
    plan = planned({"tier": "entry", "purpose": "rendering"})
    cheaper = plan.cheaper_unconfirmed
    assert cheaper is not None
    assert cheaper.availability == UNCONFIRMED
    assert cheaper.total is not None
    assert best(plan).confirmed
    assert cheaper.total < (best(plan).total or 0)
    alone = planned({"tier": "entry", "purpose": "rendering", "clouds": ["gcp"]})
    assert any(note.startswith("availability unconfirmed") for note in notes(alone))


def test_confirmed_regions_win_over_regions_nobody_lists() -> None:
    where = found("aws", "g6.xlarge", regions={"aws": ["us-east-1", "us-gov-west-1"]})
    assert (where.availability, list(where.regions)) == (CONFIRMED, ["us-east-1"])


# ---- zones ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "zones", "availability", "ids"),
    [
        ("g7e.2xlarge", ["use1-az2"], CONFIRMED, {"us-east-1": ("use1-az2",)}),
        ("g7e.2xlarge", ["use1-az2", "use1-az4"], CONFIRMED, {"us-east-1": ("use1-az2",)}),
        ("g7e.2xlarge", ["use1-az4"], ABSENT, {}),
        # AWS names mean another zone in every account: sure only where all zones sell the type.
        ("g7e.2xlarge", ["us-east-1a"], UNCONFIRMED, {"us-east-1": ("us-east-1a",)}),
        ("g7e.2xlarge", ["us-east-1a", "use1-az4"], UNCONFIRMED, {"us-east-1": ("us-east-1a",)}),
        ("g7e.2xlarge", ["us-east-1a", "use1-az9"], UNCONFIRMED, {"us-east-1": ("us-east-1a",)}),
        ("p5.48xlarge", ["us-east-1a"], CONFIRMED, {"us-east-1": ("us-east-1a",)}),
        ("p5.48xlarge", ["use1-az9"], ABSENT, {}),
        ("p5.48xlarge", ["use1-az1", "usw2-az1"], CONFIRMED,
         {"us-east-1": ("use1-az1",), "us-west-2": ("usw2-az1",)}),
    ],
)  # fmt: skip
def test_aws_zones_are_taken_by_id_and_by_name(
    name: str, zones: list[str], availability: str, ids: dict[str, tuple[str, ...]]
) -> None:
    where = found("aws", name, zones=zones)
    assert (where.availability, dict(where.regions)) == (availability, ids)


@pytest.mark.parametrize(
    ("zone", "availability"),
    [("us-central1-a", CONFIRMED), ("us-central1-f", ABSENT), ("us-central1-z", ABSENT)],
)
def test_gcp_zones_are_taken_by_name(zone: str, availability: str) -> None:
    assert found("gcp", "g2-standard-4", zones=[zone]).availability == availability


def test_a_zone_outside_the_declared_regions_is_not_offered() -> None:
    where = found("aws", "g6.xlarge", zones=["use1-az1"], regions={"aws": ["us-west-2"]})
    assert where.availability == ABSENT


@pytest.mark.parametrize(
    "fields",
    [
        {"zones": ["use1-az4"]},
        {"zones": ["us-central1-a"], "clouds": EVERYWHERE},
        {"zones": ["use1-az1"], "regions": {"aws": ["us-west-2"]}},
        {"capacity": {"use": "on_demand", "zone": "us-central1-a"}, "clouds": EVERYWHERE},
        {"capacity": {"use": "spot", "zone": "use1-az4"}},
    ],
    ids=str,
)
def test_nothing_is_accepted_outside_the_wanted_zones(fields: dict[str, Any]) -> None:
    for verdict in planned(fields).verdicts:
        if verdict.accepted:
            assert verdict.region, f"{verdict.type.name} is accepted in no region at all"


def test_a_type_no_list_names_is_rejected_where_its_cloud_has_none_of_the_wanted_zones() -> None:
    plan = planned({"zones": ["use1-az4"]})
    assert of(plan, "gcp", "g4-standard-48").reasons == (
        Reason(
            "availability",
            "use1-az4",
            "no allowed region of gcp has these zones",
            "zones: add one of gcp",
        ),
    )


def test_a_chosen_machine_lists_the_zones_that_sell_it() -> None:
    chosen = best(planned({"regions": {"aws": ["us-east-1"]}, "clouds": ["aws"]}))
    assert chosen.zones == load().zones("aws", chosen.type.name)["us-east-1"]
