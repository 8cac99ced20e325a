"""AWS prices, as the Price List and the spot price history print them, through the refresh code.

Synthesised after the Price List's products and botocore's `SpotPrice`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from gputier.catalog import Catalog, load
from gputier.catalog.refresh import Report, refresh

Json = dict[str, Any]
Described = Mapping[str, Json]
Printed = Callable[[object], Path]


def product(name: str = "g6.xlarge", usd: str = "0.9000000000", **attributes: str) -> str:
    """One member of PriceList: a string of JSON, as `aws pricing get-products` prints it."""
    return json.dumps(
        {
            "product": {
                "productFamily": "Compute Instance",
                "attributes": {
                    "instanceType": name,
                    "regionCode": "us-east-1",
                    "location": "US East (N. Virginia)",
                    "locationType": "AWS Region",
                    "operatingSystem": "Linux",
                    "tenancy": "Shared",
                    "preInstalledSw": "NA",
                    "capacitystatus": "Used",
                    "marketoption": "OnDemand",
                }
                | attributes,
                "sku": "ABC",
            },
            "serviceCode": "AmazonEC2",
            "terms": {
                "OnDemand": {"ABC.JRTCKXETXF": _term(usd)},
                "Reserved": {
                    "ABC.1": _term("0.55", "1yr", "No Upfront", "standard"),
                    "ABC.2": _term("0.40", "3yr", "No Upfront", "standard"),
                    "ABC.3": _term("0.30", "3yr", "No Upfront", "convertible"),
                    "ABC.4": _term("0.00", "1yr", "All Upfront", "standard"),
                },
            },
            "version": "20261126000000",
            "publicationDate": "2026-11-26T00:00:00Z",
        }
    )


def _term(usd: str, lease: str = "", option: str = "", offering: str = "") -> Json:
    named = {"LeaseContractLength": lease, "PurchaseOption": option, "OfferingClass": offering}
    dimension = {"unit": "Hrs", "pricePerUnit": {"USD": usd}}
    return {"priceDimensions": {"x": dimension}, "termAttributes": named if lease else {}}


def _usd(report: Report, name: str, purchase: str, region: str = "us-east-1") -> float | None:
    price = load(report.out).price("aws", name, region, purchase)
    return price.usd_per_hour if price else None


def test_a_product_gives_its_on_demand_and_plain_reserved_prices(
    printed: Printed, tmp_path: Path
) -> None:
    report = refresh(
        [printed({"FormatVersion": "aws_v1", "PriceList": [product()]})], tmp_path / "o"
    )
    assert _usd(report, "g6.xlarge", "on_demand") == 0.9
    assert _usd(report, "g6.xlarge", "reserved_1y") == 0.55
    assert _usd(report, "g6.xlarge", "reserved_3y") == 0.40
    assert report.as_of == "2026-11-26"


@pytest.mark.parametrize(
    "attributes",
    [
        {"operatingSystem": "Windows"},
        {"tenancy": "Dedicated"},
        {"preInstalledSw": "SQL Web"},
        {"capacitystatus": "UnusedCapacityReservation"},
        {"marketoption": "CapacityBlock"},
        {"locationType": "AWS Local Zone"},
        {"instanceType": "m5.large"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_prices_of_anything_else_are_left_out(
    printed: Printed, tmp_path: Path, attributes: dict[str, str]
) -> None:
    file = printed({"PriceList": [product(), product(usd="0.1", **attributes)]})
    report = refresh([file], tmp_path / "out")
    assert _usd(report, "g6.xlarge", "on_demand") == 0.9
    assert sum(report.ignored.values()) == 1


def test_a_price_of_zero_is_refused_and_the_old_one_stays(
    printed: Printed, tmp_path: Path, catalog: Catalog
) -> None:
    file = printed({"PriceList": [product("p5.48xlarge", "0.0000000000"), product()]})
    report = refresh([file], tmp_path / "out")
    assert report.refused == ("aws p5.48xlarge in us-east-1: on_demand at 0 USD",)
    before = catalog.price("aws", "p5.48xlarge", "us-east-1", "on_demand")
    assert before is not None
    assert _usd(report, "p5.48xlarge", "on_demand") == before.usd_per_hour


def test_after_a_price_cut_dearer_old_spot_and_reserved_prices_are_unknown(
    printed: Printed, tmp_path: Path, catalog: Catalog
) -> None:
    cut = json.loads(product(usd="0.2"))
    cut["terms"]["Reserved"] = {}
    report = refresh([printed({"PriceList": [json.dumps(cut)]})], tmp_path / "out")
    assert catalog.price("aws", "g6.xlarge", "us-east-1", "reserved_1y") is not None
    assert _usd(report, "g6.xlarge", "on_demand") == 0.2
    assert _usd(report, "g6.xlarge", "reserved_1y") is None
    assert _usd(report, "g6.xlarge", "spot") is None


def spot_price(zone: str, usd: str, when: str = "2026-11-29T10:00:00+00:00", **more: str) -> Json:
    return {
        "AvailabilityZone": zone,
        "AvailabilityZoneId": {"us-east-1a": "use1-az6", "us-east-1b": "use1-az1"}.get(zone, ""),
        "InstanceType": "g6.xlarge",
        "ProductDescription": "Linux/UNIX",
        "SpotPrice": usd,
        "Timestamp": when,
    } | more


def test_spot_history_is_the_latest_of_each_zone_and_the_dearest_zone_for_the_region(
    printed: Printed, tmp_path: Path
) -> None:
    history = [
        spot_price("us-east-1a", "0.35", "2026-11-29T10:00:00+00:00"),
        spot_price("us-east-1a", "0.10", "2026-11-28T10:00:00+00:00"),
        spot_price("us-east-1b", "0.45", "2026-11-27T10:00:00+00:00"),
        spot_price("us-east-1b", "0.99", ProductDescription="Windows"),
        spot_price("us-east-1b", "0.01", InstanceType="m5.large"),
    ]
    report = refresh([printed({"SpotPriceHistory": history})], tmp_path / "out")
    catalog = load(report.out)
    region = catalog.price("aws", "g6.xlarge", "us-east-1", "spot")
    assert region is not None
    assert (region.usd_per_hour, region.as_of) == (0.45, "2026-11-27")
    assert region.note == "dearest of 2 zones, cheapest 0.35"
    zones = catalog.zone_prices("aws", "g6.xlarge", "us-east-1", "spot")
    assert {zone: price.usd_per_hour for zone, price in zones.items()} == {
        "use1-az6": 0.35,
        "use1-az1": 0.45,
    }


def test_spot_above_on_demand_is_kept_as_no_saving(printed: Printed, tmp_path: Path) -> None:
    report = refresh(
        [printed({"SpotPriceHistory": [spot_price("us-east-1a", "1.50")]})], tmp_path / "out"
    )
    price = load(report.out).price("aws", "g6.xlarge", "us-east-1", "spot")
    assert price is not None
    assert price.usd_per_hour == _usd(report, "g6.xlarge", "on_demand") == 0.8048
    assert price.note == "the market's 1.5 is above on demand"


def test_a_second_refresh_adds_to_the_first(
    described: Described, printed: Printed, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    refresh([printed({"PriceList": [product()]})], out)
    refresh([printed({"InstanceTypes": [described["g5.xlarge"]]})], out)
    report = refresh([printed({"PriceList": [product("g6.2xlarge", "1.0")]})], out)
    assert _usd(report, "g6.xlarge", "on_demand") == 0.9
    assert _usd(report, "g6.2xlarge", "on_demand") == 1.0
    assert load(out).types["aws", "g5.xlarge"].source == "aws-describe-instance-types+gputier"
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith("p")) == [
        "out"
    ]
