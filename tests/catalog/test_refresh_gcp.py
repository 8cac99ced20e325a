"""What gcloud and the Cloud Billing Catalog print, through the refresh code.

Synthesised after compute.v1's and cloudbilling.v1's documented shapes. SKU descriptions are real;
the component prices of us-west1 are those of 2026-09 (G2 core 0.024988, memory 0.002927, L4
0.56004; N1 core 0.031611, memory 0.004237; T4 0.35), so that sums can be held against another
source's prices of whole machines.
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


def machine(name: str, zone: str, gpus: tuple[str, int] | None, **more: object) -> Json:
    """A MachineType as `gcloud compute machine-types list --format json` prints it."""
    accelerators = (
        [{"guestAcceleratorType": gpus[0], "guestAcceleratorCount": gpus[1]}] if gpus else []
    )
    return (
        {
            "kind": "compute#machineType",
            "name": name,
            "zone": zone,
            "guestCpus": 4,
            "memoryMb": 16384,
            "isSharedCpu": False,
            "architecture": "X86_64",
            "maximumPersistentDisks": 128,
            "selfLink": f"https://www.googleapis.com/compute/v1/projects/p/zones/{zone}/machineTypes/x",
        }
        | ({"accelerators": accelerators} if accelerators else {})
        | more
    )


L4 = ("nvidia-l4", 1)


def test_a_machine_type_gives_its_packaged_row_back(
    printed: Printed, tmp_path: Path, catalog: Catalog
) -> None:
    listing = [
        machine("g2-standard-4", "us-central1-a", L4),
        machine(
            "a3-highgpu-8g",
            "us-central1-a",
            ("nvidia-h100-80gb", 8),
            guestCpus=208,
            memoryMb=1872 * 1024,
            bundledLocalSsds={"partitionCount": 16, "defaultInterface": "NVME"},
        ),
        machine(
            "a4x-highgpu-4g",
            "us-central1-a",
            ("nvidia-gb200", 4),
            guestCpus=140,
            memoryMb=884 * 1024,
            architecture="ARM64",
            bundledLocalSsds={"partitionCount": 4},
        ),
    ]
    report = refresh([printed(listing)], tmp_path / "out")
    other = load(tmp_path / "out")
    for record in listing:
        before, after = (one.types["gcp", record["name"]] for one in (catalog, other))
        assert after == before._replace(source=after.source, as_of=after.as_of)
    assert report.new_types == ()


def test_fractional_g4_shapes_stay_slices_although_the_api_says_one_gpu(
    printed: Printed, tmp_path: Path
) -> None:
    rtx = ("nvidia-rtx-pro-6000", 1)
    listing = [
        machine("g4-standard-6", "us-central1-b", rtx, guestCpus=6, memoryMb=22 * 1024),
        machine("g4-standard-36", "us-central1-b", rtx, guestCpus=36, memoryMb=135 * 1024),
        machine("g4-standard-48", "us-central1-b", rtx, guestCpus=48, memoryMb=180 * 1024),
    ]
    refresh([printed(listing)], tmp_path / "out")
    types = load(tmp_path / "out").types
    shares = {
        name: (types["gcp", name].gpu_count, types["gcp", name].gpu_memory_gib)
        for name in ("g4-standard-6", "g4-standard-36", "g4-standard-48")
    }
    assert shares == {
        "g4-standard-6": (0.125, 12),
        "g4-standard-36": (0.75, 72),
        "g4-standard-48": (1, 96),
    }


def test_a_new_machine_type_is_added_and_what_is_not_known_of_it_is_named(
    printed: Printed, tmp_path: Path
) -> None:
    listing = [machine("g2-standard-64", "us-central1-a", L4, guestCpus=64, memoryMb=262144)]
    report = refresh([printed(listing)], tmp_path / "out")
    one = load(tmp_path / "out").types["gcp", "g2-standard-64"]
    assert report.new_types == ("gcp g2-standard-64",)
    assert (one.gpu_model, one.vcpus, one.memory_gib) == ("L4", 64, 256)
    assert (one.network_sustained_gbps, one.on_demand, one.spot) == (None, None, None)
    assert "interconnect" in one.unverified


def test_the_size_of_a_new_machines_bundled_disks_is_known_only_where_it_is_one_size(
    printed: Printed, tmp_path: Path
) -> None:
    listing = [
        machine("g2-standard-64-lssd", "us-central1-a", L4, bundledLocalSsds={"partitionCount": 2}),
        machine(
            "a4x-highgpu-2g",
            "us-central1-a",
            ("nvidia-gb200", 2),
            architecture="ARM64",
            bundledLocalSsds={"partitionCount": 2},
        ),
    ]
    refresh([printed(listing)], tmp_path / "out")
    types = load(tmp_path / "out").types
    assert types["gcp", "g2-standard-64-lssd"].local_nvme_gib == 750
    assert types["gcp", "a4x-highgpu-2g"].local_nvme_count == 2
    assert types["gcp", "a4x-highgpu-2g"].local_nvme_gib is None


def test_unknown_accelerators_are_listed_and_never_crash(printed: Printed, tmp_path: Path) -> None:
    listing = [
        machine("a9-highgpu-8g", "us-central1-a", ("nvidia-r300", 8)),
        machine("ct6e-standard-8t", "us-central1-a", ("ct6e", 8)),
        machine("a3-highgpu-8g", "us-central1-a", ("nvidia-h100-80gb", 0)),
        machine("g2-standard-4", "us-central1-a", L4),
    ]
    report = refresh([printed(listing)], tmp_path / "out")
    assert report.unknown == ("gcp a9-highgpu-8g: nvidia-r300",)
    assert report.refused == ("gcp a3-highgpu-8g: nvidia-h100-80gb with 0 GPUs",)
    assert sum(report.ignored.values()) == 1


def test_a_whole_listing_moves_zones_and_one_zone_says_nothing_of_the_others(
    printed: Printed, tmp_path: Path, catalog: Catalog
) -> None:
    before = catalog.zones("gcp", "g2-standard-4")["us-central1"]
    assert "us-central1-a" in before
    listing = [machine("e2-standard-4", "us-central1-a", None)]
    listing += [machine("a2-highgpu-1g", "us-central1-a", ("nvidia-tesla-a100", 1), guestCpus=12)]
    listing[1]["memoryMb"] = 85 * 1024
    refresh([printed(listing)], tmp_path / "out")
    other = load(tmp_path / "out")
    after = other.zones("gcp", "g2-standard-4")["us-central1"]
    assert set(before) - set(after) == {"us-central1-a"}
    assert "us-central1-a" in other.zones("gcp", "a2-highgpu-1g")["us-central1"]
    name = "n1+nvidia-tesla-t4x1"
    assert other.zones("gcp", name) == catalog.zones("gcp", name)


def test_n1_machines_of_a_listing_are_hosts(printed: Printed, tmp_path: Path) -> None:
    zone = "us-central1-a"
    listing = [
        machine("n1-highcpu-2", zone, None, guestCpus=2, memoryMb=1843),
        machine("n1-standard-4", zone, None, guestCpus=4, memoryMb=15360),
        machine("n1-megamem-96", zone, None, guestCpus=96, memoryMb=1468006),
        machine("g2-standard-4", zone, L4),
    ]
    refresh([printed(listing)], tmp_path / "out")
    hosts = {host.name: host for host in load(tmp_path / "out").hosts()}
    assert (hosts["n1-highcpu-2"].memory_gib, hosts["n1-standard-4"].memory_gib) == (1.8, 15)
    assert hosts["n1-highcpu-2"].source == "gcloud-machine-types 2025-12-01"
    assert "n1-megamem-96" not in hosts


def test_accelerator_types_say_where_gpus_attach_to_n1(
    printed: Printed, tmp_path: Path, catalog: Catalog
) -> None:
    url = "https://www.googleapis.com/compute/v1/projects/p/zones/"
    listing = [
        {"name": "nvidia-tesla-t4", "zone": url + "us-west9-a", "maximumCardsPerInstance": 2},
        {"name": "nvidia-tesla-t4-vws", "zone": url + "us-west9-a", "maximumCardsPerInstance": 2},
        {"name": "nvidia-tesla-p4", "zone": url + "us-west9-a", "maximumCardsPerInstance": 4},
        {"name": "nvidia-r300", "zone": url + "us-west9-a", "maximumCardsPerInstance": 8},
        {"name": "ct6e", "zone": url + "us-west9-a", "maximumCardsPerInstance": 8},
    ]
    report = refresh([printed(listing)], tmp_path / "out")
    other = load(tmp_path / "out")
    assert other.zones("gcp", "n1+nvidia-tesla-t4x2")["us-west9"] == ("us-west9-a",)
    assert "us-west9" not in other.zones("gcp", "n1+nvidia-tesla-t4x4")
    assert report.unknown == ("gcp us-west9-a: nvidia-r300",)
    name = "g2-standard-4"
    assert other.zones("gcp", name) == catalog.zones("gcp", name)


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
