"""What a machine costs in a region, where the figure comes from, and what is never made up."""

from __future__ import annotations

import pytest
from tests.plan.world import Doctored, in_file, machine, row

from gputier.catalog import is_commercial, load
from gputier.plan.price import age_days, machine_price

G6 = machine(row("aws", "g6.xlarge"))
T4X1 = row("gcp", "n1+nvidia-tesla-t4x1")


@pytest.mark.parametrize(
    ("cloud", "name", "region", "use", "purchase"),
    [
        ("aws", "g6.xlarge", "us-east-1", "on_demand", "on_demand"),
        ("aws", "g6.xlarge", "us-east-1", "reservation", "on_demand"),
        ("aws", "p5.48xlarge", "us-east-1", "spot", "spot"),
        ("gcp", "g2-standard-12", "europe-west4", "on_demand", "on_demand"),
        ("gcp", "a2-highgpu-1g", "us-central1", "spot", "spot"),
    ],
)
def test_a_listed_price_is_the_files(
    cloud: str, name: str, region: str, use: str, purchase: str
) -> None:
    found = machine_price(load(), machine(row(cloud, name)), region, use)
    assert found.usd == in_file(cloud, region, name, purchase)
    assert found.basis == "listed"
    assert not found.borrowed


@pytest.mark.parametrize("host", ["n1-standard-4", "n1-highmem-2", "n1-highcpu-96"])
@pytest.mark.parametrize(("name", "count"), [("t4x1", 1), ("t4x4", 4)])
@pytest.mark.parametrize(("use", "purchase"), [("on_demand", "on_demand"), ("spot", "spot")])
def test_an_n1_machine_with_gpus_costs_the_host_and_each_gpu(
    host: str, name: str, count: int, use: str, purchase: str
) -> None:
    composed = machine(row("gcp", f"n1+nvidia-tesla-{name}"), on=host)
    found = machine_price(load(), composed, "us-central1", use)
    carrier = in_file("gcp", "us-central1", host, purchase)
    each = in_file("gcp", "us-central1", "accelerator:nvidia-tesla-t4", purchase)
    assert found.usd == pytest.approx(carrier + count * each)
    assert found.basis == "listed"


def test_a_region_without_a_price_borrows_the_dearest_of_its_part_of_the_world() -> None:
    name, region = "p5.4xlarge", "eu-north-1"
    listed = load().prices("aws", name, "on_demand")
    assert region not in listed
    near = {r: p.usd_per_hour for r, p in listed.items() if r.startswith("eu-")}
    lender = max(near, key=lambda r: (near[r], r))
    found = machine_price(load(), machine(row("aws", name)), region, "on_demand")
    assert found.usd == near[lender]
    assert (found.basis, found.borrowed) == (f"borrowed from {lender}", True)


def test_where_no_neighbour_has_a_price_the_dearest_anywhere_lends() -> None:
    prices = {("aws", "g6.xlarge", "on_demand"): {"us-east-1": 1.0, "eu-west-1": 3.0}}
    found = machine_price(Doctored(prices=prices), G6, "ap-south-1", "on_demand")
    assert (found.usd, found.basis) == (3.0, "borrowed from eu-west-1")


@pytest.mark.parametrize(
    ("has", "asked", "lends"),
    [
        ("us-gov-west-1", "us-east-1", False),
        ("us-east-1", "us-gov-west-1", False),
        ("us-gov-west-1", "us-gov-east-1", True),
        ("cn-north-1", "ap-east-1", False),
        ("ap-east-1", "cn-north-1", False),
        ("us-east-1", "us-west-2", True),
    ],
)
def test_govcloud_and_china_never_lend_to_commercial_regions_nor_borrow_from_them(
    has: str, asked: str, lends: bool
) -> None:
    catalog = Doctored(prices={("aws", "g6.xlarge", "on_demand"): {has: 2.0}})
    found = machine_price(catalog, G6, asked, "on_demand")
    assert (found.usd == 2.0) == lends
    assert (found.basis == "unknown") != lends


def test_every_borrowed_price_in_the_catalogue_is_of_the_same_kind_of_region() -> None:
    seen = 0
    for type_ in load().rows(["aws", "gcp"]):
        listed = load().prices(type_.cloud, type_.name, "on_demand")
        for region in load().regions(type_.cloud) if listed and not type_.vcpu_range else ():
            found = machine_price(load(), machine(type_), region, "on_demand")
            if not found.borrowed:
                continue
            seen += 1
            lender = found.basis.removeprefix("borrowed from ")
            assert found.usd == listed[lender].usd_per_hour
            assert is_commercial(type_.cloud, lender) == is_commercial(type_.cloud, region)
    assert seen > 100


def test_spot_without_a_figure_is_estimated_from_the_advisors_saving_and_says_so() -> None:
    region = "ap-southeast-5"
    assert region not in load().prices("aws", "g6.xlarge", "spot")
    advice = load().spot_advice(region, "g6.xlarge")
    assert advice is not None
    full = in_file("aws", region, "g6.xlarge", "on_demand")
    found = machine_price(load(), G6, region, "spot")
    assert found.usd == pytest.approx(full * (1 - advice.savings_percent / 100))
    saving = f"{advice.savings_percent:g} %"
    assert found.basis == f"estimated from the spot advisor's saving of {saving}"
    assert found.as_of == advice.as_of  # the older of the two dates


def test_an_estimate_on_a_borrowed_price_is_a_borrowed_price() -> None:
    catalog = Doctored(prices={
        ("aws", "g6.xlarge", "spot"): {},
        ("aws", "g6.xlarge", "on_demand"): {"ap-south-1": 1.0},
    })  # fmt: skip
    found = machine_price(catalog, G6, "ap-southeast-5", "spot")
    assert found.usd == pytest.approx(0.49)
    assert found.borrowed


@pytest.mark.parametrize("cloud_and_name", [("aws", "p5.48xlarge"), ("gcp", "g2-standard-4")])
def test_spot_without_a_figure_and_without_advice_is_unknown(
    cloud_and_name: tuple[str, str],
) -> None:
    catalog = Doctored(prices={(*cloud_and_name, "spot"): {}})
    region = "us-gov-west-1" if cloud_and_name[0] == "aws" else "us-central1"
    found = machine_price(catalog, machine(row(*cloud_and_name)), region, "spot")
    assert (found.usd, found.basis, found.as_of) == (None, "unknown", None)


@pytest.mark.parametrize("use", ["capacity_block", "flex_start"])
def test_what_is_sold_by_quotation_has_no_price_even_where_on_demand_has(use: str) -> None:
    found = machine_price(load(), machine(row("aws", "p5.48xlarge")), "us-east-1", use)
    assert found.usd is None


def test_a_composed_price_is_unknown_when_a_part_is() -> None:
    catalog = Doctored(prices={("gcp", "accelerator:nvidia-tesla-t4", "on_demand"): {}})
    found = machine_price(catalog, machine(T4X1, on="n1-standard-4"), "us-central1", "on_demand")
    assert (found.usd, found.basis) == (None, "unknown")


def test_a_composed_price_with_a_borrowed_part_is_borrowed() -> None:
    prices = {("gcp", "accelerator:nvidia-tesla-t4", "on_demand"): {"us-west1": 0.5}}
    found = machine_price(
        Doctored(prices=prices), machine(T4X1, on="n1-standard-4"), "us-central1", "on_demand"
    )
    assert found.usd == pytest.approx(
        0.5 + in_file("gcp", "us-central1", "n1-standard-4", "on_demand")
    )
    assert (found.basis, found.borrowed) == ("borrowed from us-west1", True)


# ---- ages ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("as_of", "today", "days"),
    [
        ("2026-08-26", "2026-08-26", 0),
        ("2026-08-25", "2026-08-26", 1),
        ("2025-08-26", "2026-08-26", 365),
        ("2026-08", "2026-08-26", 25),
        ("2026", "2026-01-11", 10),
        ("2026-09-01", "2026-08-26", 0),
    ],
)
def test_ages_count_from_the_catalogues_date_and_a_month_from_its_first_day(
    as_of: str, today: str, days: int
) -> None:
    assert age_days(as_of, today) == days
