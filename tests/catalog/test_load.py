"""Records and look-ups over the packaged data, and overlays that win over it by key."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gputier.catalog import CLOUDS, Catalog, load
from gputier.catalog.tables import DATA

Overlay = Callable[..., Path]
Rows = Callable[[str], list[dict[str, str]]]


def test_the_catalogue_holds_what_its_sources_say_it_holds(catalog: Catalog) -> None:
    count = {cloud: len(catalog.rows([cloud])) for cloud in CLOUDS}
    assert count == {"aws": 76, "gcp": 49, "azure": 43, "alibaba": 160, "tencent": 43}
    assert len(catalog.types) == 371
    assert len(catalog.gpus) == 46
    assert sum(len(catalog.prices(*key)) for key in catalog.priced()) == 7000
    assert len(catalog.facts("offerings")) == 3372
    assert len(catalog.facts("spot_advisor_aws")) == 642


def test_every_empty_cell_of_a_type_stays_unknown(catalog: Catalog, rows: Rows) -> None:
    fields = {
        "gpu_memory_visible_mib": "gpu_memory_visible_mib",
        "cpu_platform": "cpu_platform",
        "numa_nodes": "numa_nodes",
        "host_pcie_generation": "host_pcie_generation",
        "gpu_pcie_link_width": "gpu_pcie_link_width",
        "local_nvme_count": "local_nvme_count",
        "local_nvme_gib_total": "local_nvme_gib",
        "network_gbps": "network_burst_gbps",
        "network_cards": "network_cards",
        "network_interfaces_max": "network_interfaces_max",
        "interconnect_gbps": "interconnect_gbps",
        "gpudirect_rdma": "gpudirect_rdma",
    }
    unknown = 0
    for cloud in CLOUDS:
        for row in rows(cloud):
            one = catalog.types[cloud, row["instance_type"]]
            for column, field in fields.items():
                value = getattr(one, field)
                assert (value is None) == (row[column] == ""), (one.name, field)
                unknown += value is None
    assert unknown > 1000


def test_every_empty_cell_of_a_gpu_stays_unknown(catalog: Catalog, rows: Rows) -> None:
    for row in rows("gpus"):
        gpu = catalog.gpus[row["gpu_model"]]
        assert (gpu.fp8_tflops is None) == (row["fp8_tensor_tflops_dense"] == "")
        assert (gpu.nvenc_count is None) == (row["nvenc_count"] == "")
        assert (gpu.cuda_toolkit_last is None) == (row["cuda_toolkit_last"] == "")
        assert (gpu.usable_gib is None) == (row["usable_gib"] == "")


def test_a_type_joins_its_row_with_volume_and_interface_limits(catalog: Catalog) -> None:
    g5, p5 = catalog.types["aws", "g5.xlarge"], catalog.types["aws", "p5.48xlarge"]
    assert (g5.volume_mb_s, g5.volume_burst_mb_s) == (87.5, 437.5)
    assert (g5.volume_iops, g5.volume_burst_iops) == (3000, 15000)
    assert (g5.network_sustained_gbps, g5.network_burst_gbps) == (2.5, 10)
    assert (g5.efa_interfaces_max, g5.ipv4_per_interface) == (0, 15)
    assert (p5.network_cards, p5.network_interfaces_max, p5.efa_interfaces_max) == (32, 64, 32)
    assert p5.other_purchase == ("capacity-block",)
    assert catalog.types["aws", "g3.4xlarge"].volume_mb_s is None
    g2, g4 = catalog.types["gcp", "g2-standard-4"], catalog.types["gcp", "g4-standard-48"]
    assert (g2.volume_mb_s, g2.volume_iops) == (240, 15000)
    assert (g4.volume_mb_s, g4.volume_iops) == (None, None)


def test_the_interface_facts_of_both_tables_agree(catalog: Catalog) -> None:
    layouts = {row["instance_type"]: row for row in catalog.facts("aws_network")}
    for (cloud, name), one in catalog.types.items():
        if cloud == "aws" and name in layouts and layouts[name]["max_efa_interfaces"].isdecimal():
            assert str(one.efa_interfaces_max) == layouts[name]["max_efa_interfaces"]
            assert str(one.network_cards) == layouts[name]["network_cards"]
            assert str(one.network_interfaces_max) == layouts[name]["max_interfaces"]
        elif cloud == "aws" and name not in layouts:
            assert one.efa_interfaces_max == 0


def test_outside_aws_the_one_network_figure_counts_as_sustained(catalog: Catalog) -> None:
    g2 = catalog.types["gcp", "g2-standard-48"]
    assert g2.network_sustained_gbps == g2.network_burst_gbps == 50
    edge = catalog.types["gcp", "a3-edgegpu-8g"]
    assert (edge.network_sustained_gbps, edge.network_burst_gbps) == (400, 600)


def test_an_n1_row_is_ranges_and_an_accelerator(catalog: Catalog) -> None:
    one = catalog.types["gcp", "n1+nvidia-tesla-t4x2"]
    assert (one.vcpus, one.memory_gib) == (None, None)
    assert (one.vcpu_range, one.memory_range) == ((1, 48), (1, 312))
    assert (one.accelerator, one.attached_count, one.gpu_devices) == ("nvidia-tesla-t4", 2, 2)
    assert (one.network_sustained_gbps, one.network_burst_gbps) == (32, 100)
    price = catalog.price("gcp", "accelerator:nvidia-tesla-t4", "us-central1", "on_demand")
    assert price is not None
    assert price.usd_per_hour == 0.35
    four = catalog.types["gcp", "n1+nvidia-tesla-p100x4"]
    assert {cap.zone: (cap.vcpus, cap.memory_gib) for cap in four.zone_caps} == {
        "us-east1-c": (64, 208),
        "europe-west1-b": (64, 208),
        "europe-west1-d": (64, 208),
    }


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("a2-highgpu-1g", (1, 2, 4, 8)),
        ("a2-highgpu-8g", (8,)),
        ("g2-standard-48", (4,)),
        ("a3-highgpu-8g", ()),
        ("a3-ultragpu-8g-nolssd", ()),
        ("g4-standard-6", ()),
        ("g4-standard-384", (32,)),
        ("n1+nvidia-tesla-t4x1", (1, 2, 3, 4, 5, 6, 7, 8, 16)),
        ("n1+nvidia-tesla-v100x1", (1, 2, 3, 4, 5, 6, 7, 8, 16, 24)),
    ],
)
def test_optional_local_ssds_come_in_permitted_numbers(
    catalog: Catalog, name: str, counts: tuple[int, ...]
) -> None:
    one = catalog.types["gcp", name]
    assert one.attachable_ssd_counts == counts
    assert one.attachable_ssd_gib == (375 if counts else None)


def test_doubted_figures_keep_their_value_and_are_named(catalog: Catalog) -> None:
    one = catalog.types["gcp", "a2-highgpu-1g"]
    assert (one.network_interfaces_max, one.unverified) == (8, ("network_interfaces_max",))
    edge = catalog.types["gcp", "a3-edgegpu-8g"]
    assert edge.on_demand is True
    assert "on_demand_support" in edge.unverified
    assert catalog.types["gcp", "a4x-maxgpu-4g-metal"].gpu_memory_gib == 279
    assert catalog.types["gcp", "a3-highgpu-8g"].network_cards == 5
    assert "vcpus" in catalog.types["aws", "p6e-gb200.36xlarge"].unverified


@pytest.mark.parametrize(
    ("cloud", "name", "usable", "marketed"),
    [
        ("aws", "g6.xlarge", 22.0, 24),
        ("aws", "g5.xlarge", 22.0, 24),
        ("aws", "g6e.xlarge", 44.7, 48),
        ("aws", "p4d.24xlarge", 39.4, 40),
        ("aws", "p5.48xlarge", 79.1, 80),
        ("aws", "p5en.48xlarge", 139.7, 141),
        ("aws", "g4dn.xlarge", 14.6, 16),
        ("aws", "g6f.4xlarge", 11.0, 12),
        ("aws", "p6-b200.48xlarge", 178.3, 192),
        ("aws", "p6-b300.48xlarge", 267.6, 288),
        ("gcp", "a4x-highgpu-4g", 184.3, 192),
        ("gcp", "a4x-maxgpu-4g-metal", 273.4, 288),
        ("gcp", "g2-standard-4", 22.0, 24),
        ("gcp", "n1+nvidia-tesla-p4x1", 7.36, 8),
        ("azure", "Standard_NV6ads_A10_v5", 3.68, 4),
    ],
)
def test_usable_memory_is_below_the_class_a_card_is_sold_as(
    catalog: Catalog, cloud: str, name: str, usable: float, marketed: float
) -> None:
    one = catalog.types[cloud, name]
    assert (one.usable_gib, one.memory_class_gb) == (usable, marketed)


def test_rows_are_sorted_and_of_the_asked_clouds(catalog: Catalog) -> None:
    rows = catalog.rows(["gcp", "aws", "gcp"])
    names = [(one.cloud, one.name) for one in rows]
    assert names == sorted(names)
    assert {cloud for cloud, _ in names} == {"aws", "gcp"}
    assert catalog.rows(["hetzner"]) == ()


def test_a_type_is_found_by_name_in_the_asked_clouds(catalog: Catalog) -> None:
    assert [one.cloud for one in catalog.find_type("p5.48xlarge")] == ["aws"]
    assert catalog.find_type("p5.48xlarge", ["gcp"]) == ()
    assert catalog.find_type("p5.48XLARGE") == ()


def test_a_price_look_up_says_none_where_nothing_is_known(catalog: Catalog) -> None:
    price = catalog.price("aws", "g6.xlarge", "us-east-1", "on_demand")
    assert price is not None
    assert (price.usd_per_hour, price.as_of) == (0.8048, "2026-07-20")
    assert catalog.price("aws", "g6.xlarge", "mars-north-1", "on_demand") is None
    assert catalog.price("tencent", "GN7.2XLARGE32", "ap-tokyo", "on_demand") is None
    assert catalog.prices("tencent", "GN7.2XLARGE32", "on_demand") == {}


def test_prices_of_a_type_are_sorted_by_region(catalog: Catalog) -> None:
    regions = list(catalog.prices("aws", "g6.xlarge", "on_demand"))
    assert regions == sorted(regions)
    assert "us-east-1" in regions


def test_zones_tell_absent_from_unconfirmed(catalog: Catalog) -> None:
    p5 = catalog.zones("aws", "p5.48xlarge")
    assert set(p5["us-east-1"]) <= catalog.region_zones("aws", "us-east-1")
    assert "eu-west-3" not in p5
    assert catalog.zones("azure", "Standard_NC4as_T4_v3") == {}


def test_regions_come_from_prices_and_offerings(catalog: Catalog) -> None:
    aws = catalog.regions("aws")
    assert list(aws) == sorted(set(aws))
    assert {"us-east-1", "us-gov-west-1", "cn-north-1"} <= set(aws)
    assert "ap-tokyo" in catalog.regions("tencent")
    assert catalog.regions("hetzner") == ()
    assert catalog.region_zones("aws", "mars-north-1") == frozenset()


def test_an_item_without_a_price_of_its_own_region_is_borrowed_and_says_so(
    catalog: Catalog,
) -> None:
    own = catalog.item("aws", "gp3-storage", "us-east-1")
    lent = catalog.item("aws", "gp3-storage", "eu-west-1")
    everywhere = catalog.item("aws", "public-ipv4-hour", "eu-west-1")
    assert own is not None
    assert lent is not None
    assert everywhere is not None
    assert (own.usd, own.borrowed) == (0.08, False)
    assert (lent.usd, lent.borrowed, lent.region) == (0.08, True, "us-east-1")
    assert (everywhere.usd, everywhere.borrowed) == (0.005, False)
    ssd = catalog.item("gcp", "local-ssd", "europe-west4")
    assert ssd is not None
    assert (ssd.borrowed, ssd.region, ssd.unit) == (True, "us-central1", "GiB-month")
    assert catalog.item("gcp", "gold", "us-central1") is None
    assert catalog.item("azure", "gp3-storage", "eastus") is None


def test_an_unsourced_item_stays_visible_as_such(catalog: Catalog) -> None:
    hyperdisk = catalog.item("gcp", "hyperdisk-balanced", "us-central1")
    unknown = catalog.item("gcp", "hyperdisk-ml", "us-central1")
    assert hyperdisk is not None
    assert unknown is not None
    assert (hyperdisk.usd, hyperdisk.status) == (0.08, "unverified")
    assert unknown.usd is None


def test_the_hosts_are_the_priced_predefined_n1_machines(catalog: Catalog) -> None:
    priced = {name for _, name, _ in catalog.priced() if name.startswith("n1-")}
    assert {host.name for host in catalog.hosts()} == priced
    shapes = {host.name: (host.vcpus, host.memory_gib) for host in catalog.hosts()}
    assert shapes["n1-standard-8"] == (8, 30)
    assert shapes["n1-highmem-96"] == (96, 624)
    assert shapes["n1-highcpu-2"] == (2, 1.8)


def test_the_packaged_catalogue_is_read_once_and_has_a_stable_identity(catalog: Catalog) -> None:
    assert load() is load()
    assert re.fullmatch(r"[0-9a-f]{16}", catalog.id)
    assert catalog.as_of == "2026-08-26"


def test_nothing_in_the_catalogue_can_be_changed(catalog: Catalog) -> None:
    with pytest.raises(TypeError):
        catalog.types["aws", "x"] = catalog.types["aws", "g5.xlarge"]  # type: ignore[index]
    with pytest.raises(AttributeError):
        catalog.types["aws", "g5.xlarge"].vcpus = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        catalog.prices("aws", "g5.xlarge", "spot")["x"] = None  # type: ignore[index]


def test_every_packaged_file_is_one_that_is_read() -> None:
    from gputier.catalog.tables import KEYS

    assert {path.stem for path in DATA.glob("*.csv")} == set(KEYS)


def test_the_machine_facts_of_gcp_agree_with_the_types(catalog: Catalog) -> None:
    fractions = {"1/8": 0.125, "1/4": 0.25, "1/2": 0.5}
    for row in catalog.facts("gcp_machines"):
        one = catalog.types["gcp", row["machine_type"]]
        count = fractions.get(row["gpu_count"]) or float(row["gpu_count"])
        assert one.gpu_count == count
        assert one.cpu_arch == {"X86_64": "x86_64", "ARM64": "arm64"}[row["arch"]]
        assert one.local_nvme_count == int(row["bundled_local_ssd_count"])
        assert one.local_nvme_gib == float(row["bundled_local_ssd_gib"])
        if one.vcpus is not None:
            memory = row["memory_gb"].split()[0]  # `16 (16-32)`: the custom range beside it
            assert (str(one.vcpus), f"{one.memory_gib:g}") == (row["vcpus"], memory)
    named = {row["machine_type"] for row in catalog.facts("gcp_machines")}
    missing = {one.name for one in catalog.rows(["gcp"])} - named
    assert missing == {"a3-edgegpu-8g-nolssd", "a3-ultragpu-8g-nolssd"}


def test_only_geforce_cards_are_consumer_cards(catalog: Catalog) -> None:
    assert {gpu.model for gpu in catalog.gpus.values() if gpu.consumer} == {"RTX-4090", "RTX-5090"}


def test_generations_are_in_the_order_of_the_architectures(catalog: Catalog) -> None:
    order = ("K80", "M60", "P100", "V100-16GB", "T4", "A10", "L4", "B200", "B300")
    assert [catalog.gpus[model].generation for model in order] == list(range(1, 10))
    assert catalog.gpus["H100-80GB"].generation == catalog.gpus["L4"].generation
