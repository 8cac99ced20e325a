"""Defects that users of other catalogues reported, each shown not to be one of this catalogue.

The numbers are those of the collected reports (3A: GPU metadata, 3D: prices, 2b: read in source);
the rows about selection and budgets are tested where those live.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from gputier.catalog import CLOUDS, Catalog, load
from gputier.catalog.refresh import refresh
from gputier.catalog.refresh_gcp import GPU_OF_ACCELERATOR
from gputier.errors import InvalidInput

Json = dict[str, Any]
Described = Mapping[str, Json]
Printed = Callable[[object], Path]
Overlay = Callable[..., Path]


def test_field_3a_01_an_l4_is_24_gb_whatever_the_api_prints(catalog: Catalog) -> None:
    for one in catalog.types.values():
        if one.gpu_model == "L4" and not one.fractional:
            assert one.memory_class_gb == 24
            assert one.gpu_memory_visible_mib in (22888, 23034)


def test_field_3a_02_a_total_printed_as_if_per_gpu_is_noticed(
    described: Described, printed: Printed, tmp_path: Path
) -> None:
    wrong = copy.deepcopy(described["g6e.48xlarge"])
    wrong["GpuInfo"]["Gpus"][0]["MemoryInfo"]["SizeInMiB"] *= 8
    refresh([printed({"InstanceTypes": [wrong]})], tmp_path / "out")
    one = load(tmp_path / "out").types["aws", "g6e.48xlarge"]
    assert (one.gpu_memory_gib, one.gpu_memory_visible_mib) == (48, 45776)


def test_field_3a_03_a_gpu_family_with_no_gpus_is_refused(
    described: Described, printed: Printed, tmp_path: Path, catalog: Catalog
) -> None:
    wrong = {key: value for key, value in described["p5.4xlarge"].items() if key != "GpuInfo"}
    with pytest.raises(InvalidInput, match="listed without a GPU, although its family has them"):
        refresh([printed({"InstanceTypes": [wrong]})], tmp_path / "out")
    assert catalog.types["aws", "p5.4xlarge"].gpu_count == 1
    assert all(one.gpu_count > 0 for one in catalog.types.values())


def test_field_3a_04_a_slice_with_count_0_has_a_fraction(catalog: Catalog) -> None:
    assert catalog.types["aws", "g6f.large"].gpu_count == 0.125
    assert catalog.types["aws", "gr6f.4xlarge"].gpu_count == 0.5


def test_field_3a_05_a_slice_is_never_one_whole_gpu(catalog: Catalog) -> None:
    for one in catalog.rows(["aws"]):
        assert one.fractional == (one.family in ("g6f", "gr6f"))
        if one.fractional:
            assert one.gpu_count < 1
            assert one.memory_class_gb < 24


def test_field_3a_06_slices_are_in_the_catalogue_rather_than_left_out(catalog: Catalog) -> None:
    assert sum(one.fractional for one in catalog.rows(["aws"])) == 5
    assert sum(one.fractional for one in catalog.types.values()) == 42


def test_field_3a_07_a_third_of_an_a10_on_azure_is_a_third(catalog: Catalog) -> None:
    sizes = {"6ads": (0.1667, 4), "12ads": (0.3333, 8), "18ads": (0.5, 12), "36ads": (1, 24)}
    for size, (count, memory) in sizes.items():
        one = catalog.types["azure", f"Standard_NV{size}_A10_v5"]
        assert (one.gpu_count, one.gpu_memory_gib, one.fractional) == (count, memory, count < 1)


def test_field_3a_08_every_clouds_slices_are_modelled(catalog: Catalog) -> None:
    clouds = {one.cloud for one in catalog.types.values() if one.fractional}
    assert clouds == set(CLOUDS)


def test_field_3a_09_no_row_lacks_its_gpus_details(catalog: Catalog) -> None:
    for one in catalog.types.values():
        gpu = catalog.gpus[one.gpu_model]
        assert one.gpu_memory_gib > 0
        assert gpu.memory_bandwidth_gb_s is not None
        assert gpu.fp32_tflops is not None
        assert gpu.compute_capability >= 3.7
        assert gpu.display_name.startswith("NVIDIA ")
    assert {"g6e", "g7", "g7e", "p6-b200", "p6-b300"} <= {o.family for o in catalog.rows(["aws"])}


def test_field_3a_10_host_memory_is_gib_everywhere(catalog: Catalog) -> None:
    assert catalog.types["aws", "g6.48xlarge"].memory_gib == 768
    assert catalog.types["gcp", "a3-highgpu-8g"].memory_gib == 1872
    for one in catalog.types.values():
        if one.vcpus and one.memory_gib:
            assert 0.9 <= one.memory_gib / one.vcpus <= 25, one.name


def test_field_3a_11_unknown_accelerators_do_not_crash_a_refresh(
    described: Described, printed: Printed, tmp_path: Path
) -> None:
    report = refresh([printed({"InstanceTypes": list(described.values())})], tmp_path / "out")
    assert report.written["aws"] == 65
    assert (report.refused, report.unknown) == ((), ())
    assert "inf2.xlarge" in described
    assert "trn1.2xlarge" in described


def test_field_3a_12_every_providers_name_maps_to_a_model(catalog: Catalog) -> None:
    assert set(GPU_OF_ACCELERATOR.values()) <= set(catalog.gpus)
    named = {one.accelerator for one in catalog.types.values() if one.accelerator}
    assert named <= set(GPU_OF_ACCELERATOR)
    for row in catalog.facts("gcp_machines"):
        accelerator = row["accelerator_type"].split(" ")[0]
        one = catalog.types["gcp", row["machine_type"]]
        assert GPU_OF_ACCELERATOR[accelerator] == one.gpu_model
    assert catalog.types["aws", "p6-b200.48xlarge"].gpu_model == "B200"


def test_field_3a_13_a_name_resolves_to_exactly_that_gpu(catalog: Catalog) -> None:
    h200 = catalog.match_gpus("H200")
    types = [one for one in catalog.types.values() if one.gpu_model in h200]
    assert {one.gpu_memory_gib for one in types} == {141}
    assert {one.gpu_model for one in types} == {"H200-141GB"}


def test_field_3a_15_an_accepted_gpu_that_nobody_sells_is_known_as_such(catalog: Catalog) -> None:
    sold = {one.gpu_model for one in catalog.types.values()}
    assert set(catalog.gpus) - sold == {
        "A40",
        "GH200-144GB",
        "GH200-96GB",
        "H100-PCIE-80GB",
        "H200-NVL-141GB",
        "L40",
        "RTX-4090",
        "RTX-5090",
        "RTX-6000-ADA",
        "RTX-A6000",
    }


def test_field_3a_16_a_boundary_figure_is_exact(catalog: Catalog) -> None:
    at_least = [one.name for one in catalog.rows(["aws"]) if (one.memory_gib or 0) >= 2048]
    assert {"p5.48xlarge", "p5e.48xlarge", "p5en.48xlarge", "p6-b200.48xlarge"} <= set(at_least)
    assert catalog.types["aws", "p5.48xlarge"].memory_gib == 2048.0


def test_field_3d_55_a_price_of_zero_never_enters(overlay: Overlay) -> None:
    here = {"provider": "aws", "region": "us-east-1", "instance_type": "p5.48xlarge"}
    with pytest.raises(InvalidInput, match="a price is more than 0"):
        load(overlay("prices", {**here, "purchase": "on_demand"}, usd_per_hour="0"))


def test_field_3d_56_a_type_without_a_price_is_neither_free_nor_hidden(catalog: Catalog) -> None:
    assert catalog.prices("aws", "p5e.48xlarge", "on_demand") == {}
    assert catalog.price("aws", "p5e.48xlarge", "us-east-1", "on_demand") is None
    assert "p5e.48xlarge" in {one.name for one in catalog.rows(["aws"])}
    assert catalog.zones("aws", "p5e.48xlarge")


def test_field_3d_57_capacity_block_rows_are_not_prices(printed: Printed, tmp_path: Path) -> None:
    attributes = {
        "instanceType": "p5.48xlarge",
        "regionCode": "us-east-1",
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
    }

    def product(usd: str, **more: str) -> str:
        dimension = {"unit": "Hrs", "pricePerUnit": {"USD": usd}}
        terms = {"OnDemand": {"t": {"priceDimensions": {"d": dimension}}}}
        return json.dumps({"product": {"attributes": attributes | more}, "terms": terms})

    block = product("0.0000000000", marketoption="CapacityBlock", operation="RunInstances:CB")
    report = refresh([printed({"PriceList": [block, product("55.04")]})], tmp_path / "out")
    price = load(report.out).price("aws", "p5.48xlarge", "us-east-1", "on_demand")
    assert price is not None
    assert price.usd_per_hour == 55.04
    assert report.refused == ()


def test_field_3d_58_priced_is_not_purchasable(catalog: Catalog) -> None:
    for (cloud, name), one in catalog.types.items():
        if one.on_demand is False and one.lifecycle != "retired":
            assert catalog.prices(cloud, name, "on_demand") == {}, name


def test_field_3d_59_prices_agree_with_a_second_source_within_a_percent(catalog: Catalog) -> None:
    # Google's own component prices of us-west1 (2026-09), against another tool's whole machines.
    gpu = catalog.item("gcp", "gpu-l4-hour", "us-west1")
    assert gpu is not None
    assert "g2 core 0.024988" in gpu.note
    for one in catalog.rows(["gcp"]):
        price = catalog.price("gcp", one.name, "us-west1", "on_demand")
        if one.family == "g2" and price is not None and one.vcpus and one.memory_gib and gpu.usd:
            parts = one.vcpus * 0.024988 + one.memory_gib * 0.002927 + one.gpu_count * gpu.usd
            assert price.usd_per_hour == pytest.approx(parts, rel=0.01)
    # A machine with twice everything costs twice as much.
    for region in catalog.prices("gcp", "a2-ultragpu-1g", "on_demand"):
        one = catalog.price("gcp", "a2-ultragpu-1g", region, "on_demand")
        eight = catalog.price("gcp", "a2-ultragpu-8g", region, "on_demand")
        if one and eight:
            assert eight.usd_per_hour == pytest.approx(8 * one.usd_per_hour, rel=0.01)


def test_field_3d_60_a_fixed_shapes_price_is_the_whole_machine(catalog: Catalog) -> None:
    l4 = catalog.item("gcp", "gpu-l4-hour", "us-west1")
    assert l4 is not None
    for name in ("g2-standard-4", "g2-standard-8", "g2-standard-12"):
        price = catalog.price("gcp", name, "us-west1", "on_demand")
        assert price is not None
        assert price.usd_per_hour > (l4.usd or 0) * 1.2
    a2 = catalog.price("gcp", "a2-highgpu-1g", "us-central1", "on_demand")
    assert a2 is not None
    assert a2.usd_per_hour == pytest.approx(3.67, rel=0.01)
    split = {name for _, name, _ in catalog.priced() if name.startswith("accelerator:")}
    assert split == {f"accelerator:nvidia-tesla-{gpu}" for gpu in ("t4", "p4", "p100", "v100")}


def test_field_3d_61_a_catalogue_has_a_version_that_an_estimate_can_name(
    catalog: Catalog, overlay: Overlay
) -> None:
    other = load(overlay("gpus", {"gpu_model": "L4"}, notes="changed"))
    assert len(catalog.id) == len(other.id) == 16
    assert catalog.id != other.id


def test_field_3d_62_a_retired_type_can_still_be_looked_up(catalog: Catalog) -> None:
    for name in ("p2.xlarge", "p3.2xlarge", "g3.4xlarge"):
        (one,) = catalog.find_type(name)
        assert one.lifecycle == "retired"
    assert catalog.price("aws", "p3.2xlarge", "us-east-1", "on_demand") is not None


def test_field_3d_68_a_g2_machine_is_never_free_or_half_priced(catalog: Catalog) -> None:
    for one in catalog.rows(["gcp"]):
        if one.family == "g2":
            for price in catalog.prices("gcp", one.name, "on_demand").values():
                assert price.usd_per_hour > 0.5 * one.gpu_count


def test_field_3d_73_not_sold_here_is_told_from_missing(catalog: Catalog) -> None:
    zones = catalog.zones("aws", "g5.12xlarge")
    assert "us-west-1" not in zones
    assert "us-west-2" in zones
    assert catalog.price("aws", "g5.12xlarge", "us-west-1", "on_demand") is None
    assert catalog.region_zones("aws", "us-west-1")


def test_field_3d_74_metal_sizes_have_a_price_or_none_and_never_zero(catalog: Catalog) -> None:
    metal = [one for one in catalog.types.values() if one.bare_metal]
    assert {"g4dn.metal", "g5g.metal"} <= {one.name for one in metal}
    for name in ("g4dn.metal", "g5g.metal"):
        price = catalog.price("aws", name, "us-east-1", "on_demand")
        assert price is not None
        assert price.usd_per_hour > 1


def test_field_2b_03_maps_come_from_one_catalogue(catalog: Catalog) -> None:
    for one in catalog.rows(["gcp"]):
        if one.name.startswith("a2-"):
            wanted = "A100-80GB" if "ultra" in one.name else "A100-40GB"
            assert one.gpu_model == wanted
    single = [o for o in catalog.rows(["gcp"]) if o.gpu_model == "L4" and o.gpu_count == 1]
    by_price = {
        o.name: price.usd_per_hour
        for o in single
        if (price := catalog.price("gcp", o.name, "us-central1", "on_demand"))
    }
    assert min(by_price, key=lambda name: by_price[name]) == "g2-standard-4"


def test_field_2b_04_a_familys_gpu_is_the_one_its_memory_says(catalog: Catalog) -> None:
    for one in catalog.rows(["aws"]):
        if one.family in ("g6", "gr6", "g6f", "gr6f"):
            assert one.gpu_model == "L4"
        if one.family == "g6e":
            assert one.gpu_model == "L40S"
        assert one.gpu_memory_gib == pytest.approx(
            catalog.gpus[one.gpu_model].vram_gib * min(1, one.gpu_count), rel=0.01
        )


def test_field_2b_10_efa_is_a_fact_of_the_size_not_of_the_family(catalog: Catalog) -> None:
    by_family: dict[str, set[bool]] = {}
    for one in catalog.rows(["aws"]):
        has = bool(one.efa_interfaces_max)
        assert has == (one.interconnect == "efa")
        by_family.setdefault(one.family, set()).add(has)
    mixed = {family for family, found in by_family.items() if found == {True, False}}
    assert {"g4dn", "g5", "g6", "g6e", "g7", "g7e", "gr6"} == mixed
    assert catalog.types["aws", "g6.4xlarge"].efa_interfaces_max == 0
    assert catalog.types["aws", "g6.8xlarge"].efa_interfaces_max == 1
