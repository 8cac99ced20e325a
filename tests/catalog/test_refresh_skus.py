"""SKUs of the Cloud Billing Catalog, through the refresh code.

Synthesised after cloudbilling.v1's documented shapes. The descriptions are real; the component
prices of us-west1 are those of 2026-09 (G2 core 0.024988, memory 0.002927, L4 0.56004; N1 core
0.031611, memory 0.004237; T4 0.35), so that sums can be held against another source's prices of
whole machines.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gputier.catalog import Catalog, load
from gputier.catalog.refresh import Report, refresh
from gputier.errors import InvalidInput

Json = dict[str, Any]
Printed = Callable[[object], Path]


def sku(
    description: str, usd: float, unit: str = "h", usage: str = "OnDemand", **more: object
) -> Json:
    """A Sku of the Cloud Billing Catalog."""
    units, nanos = int(usd), round((usd - int(usd)) * 1e9)
    rate = {"startUsageAmount": 0, "unitPrice": _money(units, nanos)}
    return {
        "name": "services/6F81-5844-456A/skus/AAAA",
        "skuId": "AAAA-BBBB-CCCC",
        "description": description,
        "category": {"resourceFamily": "Compute", "usageType": usage},
        "serviceRegions": ["us-west1"],
        "pricingInfo": [
            {
                "effectiveTime": "2026-11-20T00:00:00Z",
                "pricingExpression": {"usageUnit": unit, "tieredRates": [rate]},
            }
        ],
        "serviceProviderName": "Google",
    } | more


def _money(units: int, nanos: int) -> Json:
    return {"currencyCode": "USD", "units": str(units), "nanos": nanos}


G2 = [
    sku("G2 Instance Core running in Americas", 0.024988),
    sku("G2 Instance Ram running in Americas", 0.002927, "GiBy.h"),
    sku("Nvidia L4 GPU running in Americas", 0.56004),
]
G2_SPOT = [
    sku("Spot Preemptible G2 Instance Core running in Americas", 0.01499, usage="Preemptible"),
    sku("Spot Preemptible G2 Instance Ram running in Americas", 0.001756, "GiBy.h", "Preemptible"),
    sku(
        "Nvidia L4 GPU attached to Spot Preemptible VMs running in Americas",
        0.336,
        usage="Preemptible",
    ),
]
N1 = [
    sku("N1 Predefined Instance Core running in Americas", 0.031611),
    sku("N1 Predefined Instance Ram running in Americas", 0.004237, "GiBy.h"),
    sku("Nvidia Tesla T4 GPU running in Americas", 0.35),
]


def prices(printed: Printed, out: Path, skus: list[Json]) -> Report:
    return refresh([printed({"skus": skus, "nextPageToken": ""})], out)


def _usd(report: Report, name: str, purchase: str = "on_demand") -> float | None:
    price = load(report.out).price("gcp", name, "us-west1", purchase)
    return price.usd_per_hour if price else None


def _rows(report: Report) -> set[tuple[str, str]]:
    rows = load(report.out).facts("prices")
    return {
        (row["instance_type"], row["purchase"])
        for row in rows
        if row["source"] == "gcp-billing-skus"
    }


def test_a_machines_price_is_the_sum_of_its_parts_and_agrees_with_another_source(
    printed: Printed, tmp_path: Path, catalog: Catalog
) -> None:
    report = prices(printed, tmp_path / "out", [*G2, *G2_SPOT, *N1])
    for name in ("g2-standard-4", "g2-standard-12", "g2-standard-96", "n1-standard-4"):
        other = catalog.price("gcp", name, "us-west1", "on_demand")
        assert other is not None
        assert _usd(report, name) == pytest.approx(other.usd_per_hour, rel=0.01)
    assert _usd(report, "g2-standard-4") == pytest.approx(4 * 0.024988 + 16 * 0.002927 + 0.56004)
    assert _usd(report, "g2-standard-96", "spot") == pytest.approx(
        96 * 0.01499 + 384 * 0.001756 + 8 * 0.336
    )
    assert _usd(report, "n1-highcpu-2") == pytest.approx(2 * 0.031611 + 1.8 * 0.004237, abs=1e-6)
    assert _usd(report, "accelerator:nvidia-tesla-t4") == 0.35
    assert report.refused == ()


def test_without_one_of_its_parts_a_machine_has_no_price_at_all(
    printed: Printed, tmp_path: Path
) -> None:
    for missing in range(3):
        skus = [one for place, one in enumerate(G2) if place != missing]
        report = prices(printed, tmp_path / str(missing), [*skus, *N1])
        assert not any(name.startswith("g2-") for name, _ in _rows(report))


def test_bundled_local_ssd_is_in_the_price_and_its_month_has_730_hours(
    printed: Printed, tmp_path: Path
) -> None:
    skus = [
        sku("A2 Instance Core running in Americas", 0.03),
        sku("A2 Instance Ram running in Americas", 0.004, "GiBy.h"),
        sku("Nvidia Tesla A100 80GB GPU running in Americas", 3.9),
        sku("SSD backed Local Storage", 0.08, "GiBy.mo"),
    ]
    report = prices(printed, tmp_path / "out", skus)
    parts = 12 * 0.03 + 170 * 0.004 + 3.9
    assert _usd(report, "a2-ultragpu-1g") == pytest.approx(parts + 375 * 0.08 / 730, abs=1e-6)
    without = prices(printed, tmp_path / "without", [*skus[:3], *N1])
    assert not any(name.startswith("a2-ultra") for name, _ in _rows(without))


@pytest.mark.parametrize(
    "description",
    [
        "Nvidia L4 GPU attached to DWS Defined Duration VMs running in Americas",
        "DWS Calendar Mode Nvidia L4 GPU running in Americas",
        "Reserved Nvidia L4 GPU in Americas",
        "Nvidia L4 GPU attached to Sole Tenancy VMs running in Americas",
        "Nvidia L4 Virtual Workstation GPU running in Americas",
        "Commitment v1: Nvidia L4 GPU for an unknown time",
        "Nvidia L40 GPU running in Americas",
    ],
)
def test_a_sku_of_other_terms_is_never_taken_for_the_on_demand_price(
    printed: Printed, tmp_path: Path, description: str
) -> None:
    report = prices(printed, tmp_path / "out", [*G2, sku(description, 0.21)])
    assert _usd(report, "g2-standard-4") == pytest.approx(0.706824)
    assert report.refused == ()


def test_a_gpu_slice_is_the_whole_machine_and_its_spot_sku_says_on_demand(
    printed: Printed, tmp_path: Path
) -> None:
    skus = [
        sku("A4 Nvidia B200 (1 gpu slice) running in Americas", 16.11),
        sku("Spot Preemptible A4 Nvidia B200 (1 gpu slice) running in Americas", 4.9542),
        sku("DWS Calendar Mode A4 Nvidia B200 (1 gpu slice) running in Americas", 2.0),
    ]
    report = prices(printed, tmp_path / "out", skus)
    assert _usd(report, "a4-highgpu-8g", "spot") == pytest.approx(8 * 4.9542)
    # An A4 cannot be had on demand, whatever the list price says.
    assert _usd(report, "a4-highgpu-8g") is None
    assert sum(report.ignored.values()) == 2


def test_an_on_demand_price_at_or_below_spot_is_refused(printed: Printed, tmp_path: Path) -> None:
    cheap = [*G2[:2], sku("Nvidia L4 GPU running in Americas", 0.2)]
    report = prices(printed, tmp_path / "out", [*cheap, *G2_SPOT])
    assert ("g2-standard-4", "spot") in _rows(report)
    assert ("g2-standard-4", "on_demand") not in _rows(report)
    assert any("on demand at" in one and "not above spot" in one for one in report.refused)


def test_a_sku_of_zero_is_refused_and_so_is_the_machine(printed: Printed, tmp_path: Path) -> None:
    free = [*G2[:2], sku("Nvidia L4 GPU running in Americas", 0.0)]
    report = prices(printed, tmp_path / "out", [*free, *N1])
    assert report.refused == ("gcp nvidia-l4 in us-west1: on_demand at 0 USD",)
    assert not any(name.startswith("g2-") for name, _ in _rows(report))


def test_two_prices_of_one_part_are_reported_and_the_dearer_counts(
    printed: Printed, tmp_path: Path
) -> None:
    report = prices(printed, tmp_path / "out", [*G2, sku("Nvidia L4 GPU running in Iowa", 0.66)])
    assert _usd(report, "g2-standard-4") == pytest.approx(0.806784)
    assert len(report.refused) == 1
    assert "the dearer is taken" in report.refused[0]


def test_commitments_are_priced_by_their_years(printed: Printed, tmp_path: Path) -> None:
    skus = [
        sku("Commitment v1: G2 Cpu in Americas for 1 Year", 0.0157, usage="Commit1Yr"),
        sku("Commitment v1: G2 Ram in Americas for 1 Year", 0.0018, "GiBy.h", "Commit1Yr"),
        sku("Commitment v1: Nvidia L4 GPU running in Americas for 1 Year", 0.35),
        sku("Commitment v1: Cpu in Americas for 3 Years", 0.0142, usage="Commit3Yr"),
        sku("Commitment v1: Ram in Americas for 3 Years", 0.0019, "GiBy.h", "Commit3Yr"),
    ]
    report = prices(printed, tmp_path / "out", [*G2, *N1, *skus])
    assert _usd(report, "g2-standard-4", "reserved_1y") == pytest.approx(
        4 * 0.0157 + 16 * 0.0018 + 0.35
    )
    assert _usd(report, "n1-standard-4", "reserved_3y") == pytest.approx(4 * 0.0142 + 15 * 0.0019)


def test_the_newest_price_of_a_sku_counts(printed: Printed, tmp_path: Path) -> None:
    gpu = sku("Nvidia L4 GPU running in Americas", 0.56004)
    older = sku("Nvidia L4 GPU running in Americas", 0.9)["pricingInfo"][0]
    gpu["pricingInfo"].append(older | {"effectiveTime": "2024-01-01T00:00:00Z"})
    report = prices(printed, tmp_path / "out", [*G2[:2], gpu])
    assert _usd(report, "g2-standard-4") == pytest.approx(0.706824)


def test_pages_of_the_sku_catalogue_are_one_catalogue(printed: Printed, tmp_path: Path) -> None:
    first = printed({"skus": G2[:2], "nextPageToken": "abc"})
    last = printed({"skus": G2[2:], "nextPageToken": ""})
    report = refresh([first, last], tmp_path / "out")
    assert _usd(report, "g2-standard-4") == pytest.approx(0.706824)
    pages = printed([{"skus": G2[:2], "nextPageToken": "abc"}, {"skus": G2[2:]}])
    slurped = refresh([pages], tmp_path / "slurped")
    assert _usd(slurped, "g2-standard-4") == pytest.approx(0.706824)


def test_a_page_alone_is_refused(printed: Printed, tmp_path: Path) -> None:
    page = printed({"skus": G2, "nextPageToken": "abc"})
    with pytest.raises(InvalidInput, match="one page of several"):
        refresh([page], tmp_path / "out")


def test_another_currency_or_unit_is_refused(printed: Printed, tmp_path: Path) -> None:
    euro = sku("Nvidia L4 GPU running in Americas", 0.5)
    rate = euro["pricingInfo"][0]["pricingExpression"]["tieredRates"][0]
    rate["unitPrice"]["currencyCode"] = "EUR"
    with pytest.raises(InvalidInput, match="currencyCode=USD"):
        prices(printed, tmp_path / "out", [euro])
    with pytest.raises(InvalidInput, match="its unit is `mo`"):
        prices(printed, tmp_path / "out", [sku("Nvidia L4 GPU running in Americas", 400, "mo")])
