"""The thirteen traps that GPU catalogues fall into, each shown not to be fallen into here.

docs/catalog.md tells them in words.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gputier.catalog import Catalog, InstanceType, load
from gputier.catalog.refresh import refresh
from gputier.catalog.refresh_skus import component

Printed = Callable[[object], Path]
Json = dict[str, Any]


def _type(catalog: Catalog, cloud: str, name: str) -> InstanceType:
    return catalog.types[cloud, name]


def test_trap_01_a_price_is_not_an_offer(catalog: Catalog) -> None:
    retired = [
        one
        for one in catalog.types.values()
        if one.lifecycle == "retired" and catalog.prices(one.cloud, one.name, "on_demand")
    ]
    assert {one.family for one in retired if one.cloud == "aws"} == {"p2", "p3", "g3", "g3s"}
    assert {one.cloud for one in retired} == {"aws", "azure"}
    for one in retired:
        assert catalog.zones(one.cloud, one.name) == {}
    # Priced where it is not offered, and the look-ups say so each for itself.
    assert catalog.price("aws", "p4d.24xlarge", "ap-southeast-1", "on_demand") is not None
    assert "ap-southeast-1" not in catalog.zones("aws", "p4d.24xlarge")


def test_trap_02_dws_skus_are_never_on_demand_prices(catalog: Catalog) -> None:
    for words in (
        "Nvidia H100 80GB GPU attached to DWS Defined Duration VMs running in Americas",
        "DWS Calendar Mode A4 Nvidia B200 (1 gpu slice) running in Americas",
        "A3 Instance Core running in Americas (DWS Calendar Mode)",
        "Reserved Nvidia H100 80GB Mega GPU in Americas",
        "Commitment - dollar based v1: GPU for 1 Year",
    ):
        assert component(words) is None
    assert component("Nvidia H100 80GB GPU running in Americas") == (
        "nvidia-h100-80gb",
        "on_demand",
    )
    # Half of the true price was what a DWS SKU gave elsewhere: 33.61 for 8 GPUs, not 88.49.
    price = catalog.price("gcp", "a3-highgpu-8g", "us-central1", "on_demand")
    assert price is not None
    assert price.usd_per_hour == pytest.approx(88.49, rel=0.01)
    for name in (one.name for one in catalog.rows(["gcp"])):
        spot = catalog.prices("gcp", name, "spot")
        for region, full in catalog.prices("gcp", name, "on_demand").items():
            assert region not in spot or full.usd_per_hour > spot[region].usd_per_hour


def test_trap_03_a_list_price_without_on_demand_supply_is_no_on_demand_price(
    catalog: Catalog,
) -> None:
    for name in (
        "a3-highgpu-1g",
        "a3-highgpu-2g",
        "a3-highgpu-4g",
        "a3-ultragpu-8g",
        "a4-highgpu-8g",
        "a4x-highgpu-4g",
    ):
        assert _type(catalog, "gcp", name).on_demand is False
        assert catalog.prices("gcp", name, "on_demand") == {}
    assert _type(catalog, "gcp", "a4x-highgpu-4g").spot is False
    assert _type(catalog, "gcp", "a4x-highgpu-4g").other_purchase == ("reservation",)


def test_trap_04_slices_are_fractions_although_apis_say_0_or_1(catalog: Catalog) -> None:
    fractions = {
        ("aws", "g6f.xlarge"): 0.125,
        ("aws", "gr6f.4xlarge"): 0.5,
        ("gcp", "g4-standard-6"): 0.125,
        ("gcp", "g4-standard-24"): 0.5,
        ("azure", "Standard_NV6ads_A10_v5"): 0.1667,
        ("azure", "Standard_NC36ds_xl_RTXPRO6000BSE_v6"): 0.25,
        ("tencent", "GN7.2XLARGE32"): 1,
    }
    for (cloud, name), count in fractions.items():
        one = _type(catalog, cloud, name)
        assert one.gpu_count == count
        assert one.fractional == (count < 1)
        assert one.gpu_devices == 1
    for name in ("Standard_ND128isr_NDR_GB200_v6", "Standard_NCC40ads_H100_v5"):
        assert _type(catalog, "azure", name).gpu_count in (1, 4)  # the API says 0
    slices = [one for one in catalog.types.values() if one.fractional]
    assert {one.cloud for one in slices} == {"aws", "gcp", "azure", "alibaba", "tencent"}
    assert all(one.gpu_memory_gib < catalog.gpus[one.gpu_model].vram_gib for one in slices)


def test_trap_05_vram_is_compared_as_usable_or_as_marketed_never_mixed(catalog: Catalog) -> None:
    l4 = _type(catalog, "aws", "g6.xlarge")
    assert (l4.gpu_memory_gib, l4.gpu_memory_visible_mib) == (24, 22888)
    assert (l4.usable_gib, l4.memory_class_gb) == (22.0, 24)
    # The API prints the nominal size of these: it says nothing of what can be used.
    for name, usable in (("g4dn.xlarge", 14.6), ("p5.48xlarge", 79.1), ("g3.4xlarge", 7.36)):
        one = _type(catalog, "aws", name)
        assert one.gpu_memory_visible_mib == one.gpu_memory_gib * 1024
        assert one.usable_gib == usable
    for model, vram, marketed in (("B200", 180, 192), ("B300", 268, 288), ("GB200", 186, 192)):
        gpu = catalog.gpus[model]
        assert (gpu.vram_gib, gpu.marketed_gb) == (vram, marketed)
    for one in catalog.types.values():
        assert one.usable_gib < one.memory_class_gb


def test_trap_06_one_name_is_not_one_silicon(catalog: Catalog) -> None:
    a10, a10g = catalog.gpus["A10"], catalog.gpus["A10G"]
    assert a10.fp16_tflops is not None
    assert a10g.fp16_tflops is not None
    assert a10g.fp16_tflops < 0.6 * a10.fp16_tflops
    assert a10g.tdp_w == 2 * (a10.tdp_w or 0)
    assert _type(catalog, "azure", "Standard_NC40ads_H100_v5").gpu_model == "H100-NVL-94GB"
    assert _type(catalog, "azure", "Standard_NC24ads_A100_v4").gpu_model == "A100-PCIE-80GB"
    three = [catalog.gpus[m] for m in ("QUADRO-RTX-6000", "RTX-6000-ADA", "RTX-PRO-6000-SE")]
    assert [gpu.architecture for gpu in three] == ["Turing", "Ada", "Blackwell"]
    h20, h200 = catalog.gpus["H20-141GB"], catalog.gpus["H200-141GB"]
    assert h20.vram_gib == h200.vram_gib
    assert (h20.bf16_tflops or 0) < 0.16 * (h200.bf16_tflops or 0)


def test_trap_07_a_newer_generation_is_not_faster_at_everything(catalog: Catalog) -> None:
    for newer, older in (("B300", "B200"), ("GB300", "GB200")):
        new, old = catalog.gpus[newer], catalog.gpus[older]
        assert new.generation > old.generation
        assert (new.int8_tops or 0) * 25 < (old.int8_tops or 0)
        assert (new.fp64_tflops or 0) * 25 < (old.fp64_tflops or 0)
        assert (new.fp4_tflops or 0) > (old.fp4_tflops or 0)


def test_trap_08_data_centre_cards_have_no_graphics(catalog: Catalog) -> None:
    for model in ("A100-40GB", "A100-80GB", "A30", "H100-80GB", "H200-141GB", "H20-96GB", "B200"):
        gpu = catalog.gpus[model]
        assert gpu.graphics_capable is False
        assert gpu.opengl_vulkan == "headless-only"
        assert (gpu.rt_cores, gpu.nvenc_count) == (0, 0)
    for model in ("L4", "L40S", "A10G", "T4", "RTX-PRO-6000-SE"):
        assert catalog.gpus[model].graphics_capable is True
        assert (catalog.gpus[model].nvenc_count or 0) > 0
    for name in ("GN7.LARGE20", "GN7.2XLARGE40"):
        assert "CUDA only, no OpenGL/DirectX" in _type(catalog, "tencent", name).notes
    rtx = [o for o in catalog.rows(["azure"]) if o.gpu_model == "RTX-PRO-6000-SE"]
    assert all("GRID v20 (R595)" in one.notes for one in rtx)


def test_trap_09_cuda_has_a_floor_and_a_ceiling_per_card(catalog: Catalog) -> None:
    k80 = catalog.gpus["K80"]
    assert (k80.cuda_toolkit_last, k80.driver_branch_last) == ("11.8", "R470")
    for gpu in catalog.gpus.values():
        if gpu.architecture in ("Maxwell", "Pascal", "Volta"):
            assert (gpu.cuda_toolkit_last, gpu.driver_branch_last) == ("12.9", "R580")
        if gpu.compute_capability in (10.0, 12.0):
            assert gpu.cuda_toolkit_min == "12.8"
        if gpu.compute_capability == 10.3:
            assert gpu.cuda_toolkit_min == "12.9"
        if gpu.generation >= 5:
            assert gpu.cuda_toolkit_last is None
        assert gpu.cuda_toolkit_min is not None


def test_trap_10_network_cards_are_never_added_up(catalog: Catalog) -> None:
    totals = {
        "g6e.48xlarge": (4, 400),
        "g6e.24xlarge": (2, 200),
        "p6-b200.48xlarge": (8, 3200),
        "p6-b300.48xlarge": (17, 6400),
        "p5.48xlarge": (32, 3200),
        "g7e.48xlarge": (4, 1600),
    }
    for name, (cards, gbps) in totals.items():
        one = _type(catalog, "aws", name)
        assert (one.network_cards, one.network_sustained_gbps) == (cards, gbps)
    for name in ("g4dn.xlarge", "g5.xlarge", "g6.xlarge", "g6e.xlarge"):
        assert _type(catalog, "aws", name).gpu_pcie_link_width == 8
    assert _type(catalog, "aws", "g7e.2xlarge").gpu_pcie_link_width == 16


def test_trap_11_efa_is_not_gpudirect(catalog: Catalog) -> None:
    efa = [one for one in catalog.rows(["aws"]) if one.interconnect == "efa"]
    direct = {one.family for one in efa if one.gpudirect_rdma}
    assert direct == {
        "p4d",
        "p4de",
        "p5",
        "p5e",
        "p5en",
        "p6-b200",
        "p6-b300",
        "p6e-gb200",
        "g7e",
    }
    assert {"g4dn", "g5", "g6", "g6e", "g7"} <= {one.family for one in efa} - direct
    # Send and receive only: EFA there has neither RDMA read nor write.
    assert {one.family for one in efa if one.rdma is False} == {"g4dn", "g5", "p3dn"}


def test_trap_12_a_spot_price_carries_its_date(catalog: Catalog) -> None:
    price = catalog.price("gcp", "a3-highgpu-8g", "us-central1", "spot")
    assert price is not None
    assert (round(price.usd_per_hour, 2), price.as_of) == (50.61, "2026-08-03")
    ages = {
        one.as_of
        for cloud, name, purchase in catalog.priced()
        if purchase == "spot"
        for one in catalog.prices(cloud, name, purchase).values()
    }
    assert ages == {"2025-11-30", "2026-04", "2026-08", "2026-08-03"}
    old = [
        one
        for _, name, purchase in catalog.priced()
        if purchase == "spot"
        for one in catalog.prices("aws", name, purchase).values()
        if one.as_of == "2025-11-30"
    ]
    assert old
    assert all("a year old" in one.note for one in old)


def test_trap_13_the_gpus_name_does_not_tell_an_arm_host(catalog: Catalog) -> None:
    arm = {(one.cloud, one.family) for one in catalog.types.values() if one.cpu_arch == "arm64"}
    assert arm == {
        ("aws", "g5g"),
        ("aws", "p6e-gb200"),
        ("gcp", "a4x"),
        ("gcp", "a4x-max"),
        ("azure", "ND_GB200_v6"),
        ("azure", "ND_GB300_v6"),
        ("alibaba", "ebmgn6ia"),
        ("alibaba", "gn7ia"),
        ("alibaba", "gn7r"),
    }
    hosts = {one.cpu_arch for one in catalog.rows(["alibaba"]) if one.gpu_model in ("T4", "A16")}
    assert hosts == {"x86_64", "arm64"}


def test_a_refresh_of_skus_with_a_dws_price_keeps_the_true_one(
    printed: Printed, tmp_path: Path
) -> None:
    def sku(description: str, nanos: int, units: int, unit: str = "h") -> Json:
        money = {"currencyCode": "USD", "units": str(units), "nanos": nanos}
        rate = {"startUsageAmount": 0, "unitPrice": money}
        expression = {"usageUnit": unit, "tieredRates": [rate]}
        return {
            "skuId": "A",
            "description": description,
            "serviceRegions": ["us-central1"],
            "pricingInfo": [{"pricingExpression": expression}],
        }

    skus = [
        sku("A3 Instance Core running in Americas", 29_000_000, 0),
        sku("A3 Instance Ram running in Americas", 2_500_000, 0, "GiBy.h"),
        sku("SSD backed Local Storage", 80_000_000, 0, "GiBy.mo"),
        sku("Nvidia H100 80GB GPU running in Americas", 796_550_569, 9),
        sku("Nvidia H100 80GB GPU attached to DWS Defined Duration VMs running in Americas", 0, 4),
    ]
    file = printed(json.dumps({"skus": skus}))
    report = refresh([file], tmp_path / "out")
    price = load(report.out).price("gcp", "a3-highgpu-8g", "us-central1", "on_demand")
    assert price is not None
    assert price.usd_per_hour > 8 * 9.79
