"""GPU names as people write them; what a region's or zone's name says."""

from __future__ import annotations

import pytest

from gputier.catalog import CLOUDS, Catalog, is_commercial, region_of_zone


@pytest.mark.parametrize(
    ("text", "models"),
    [
        ("H100", ("H100-80GB", "H100-NVL-94GB", "H100-PCIE-80GB")),
        ("h100 80gb", ("H100-80GB",)),
        ("H100_80GB", ("H100-80GB",)),
        ("h100-pcie", ("H100-PCIE-80GB",)),
        ("NVIDIA H100 NVL", ("H100-NVL-94GB",)),
        ("A10", ("A10",)),
        ("A10G", ("A10G",)),
        ("a100", ("A100-40GB", "A100-80GB", "A100-PCIE-80GB")),
        ("H20", ("H20-141GB", "H20-96GB")),
        ("H200", ("H200-141GB", "H200-NVL-141GB")),
        ("T4", ("T4",)),
        ("Tesla T4", ("T4",)),
        ("nvidia-tesla-t4", ("T4",)),
        ("T4G", ("T4G",)),
        ("L40", ("L40",)),
        ("L40S", ("L40S",)),
        ("V100", ("V100-16GB", "V100-32GB", "V100-PCIE-16GB")),
        ("RTX PRO 6000", ("RTX-PRO-6000-SE",)),
        ("rtxpro6000", ("RTX-PRO-6000-SE",)),
        ("RTX 6000", ("RTX-6000-ADA",)),
        ("Quadro RTX 6000", ("QUADRO-RTX-6000",)),
        ("GeForce RTX 4090", ("RTX-4090",)),
        ("B200", ("B200",)),
        ("GB200", ("GB200",)),
        ("B300", ("B300",)),
        ("H10", ()),
        ("A1", ()),
        ("MI300X", ()),
        ("", ()),
        ("  ", ()),
        ("NVIDIA ", ()),
    ],
)
def test_a_name_means_its_variants_and_nothing_else(
    catalog: Catalog, text: str, models: tuple[str, ...]
) -> None:
    assert catalog.match_gpus(text) == models


def test_every_model_is_found_by_its_own_name_alone(catalog: Catalog) -> None:
    for model in catalog.gpus:
        assert catalog.match_gpus(model) == (model,)
        assert catalog.match_gpus(model.lower().replace("-", " ")) == (model,)


@pytest.mark.parametrize(
    ("cloud", "region", "commercial"),
    [
        ("aws", "us-east-1", True),
        ("aws", "us-gov-west-1", False),
        ("aws", "cn-north-1", False),
        ("aws", "cn-northwest-1", False),
        ("aws", "us-iso-east-1", False),
        ("aws", "eusc-de-east-1", False),
        ("gcp", "us-central1", True),
        ("azure", "eastus", True),
        ("azure", "usgovvirginia", False),
        ("azure", "chinaeast2", False),
        ("alibaba", "cn-hangzhou", True),
        ("alibaba", "cn-shanghai-finance-1", False),
        ("tencent", "ap-beijing", True),
    ],
)
def test_a_region_is_commercial_or_not(cloud: str, region: str, commercial: bool) -> None:
    assert is_commercial(cloud, region) is commercial


@pytest.mark.parametrize(
    ("cloud", "zone", "region"),
    [
        ("aws", "use1-az4", "us-east-1"),
        ("aws", "us-east-1a", "us-east-1"),
        ("aws", "usgw1-az2", "us-gov-west-1"),
        ("aws", "us-gov-west-1b", "us-gov-west-1"),
        ("aws", "apse2-az1", "ap-southeast-2"),
        ("aws", "apne1-az4", "ap-northeast-1"),
        ("aws", "mes1-az2", "me-south-1"),
        ("aws", "use1-atl2-az1", "us-east-1"),
        ("aws", "us-east-1-atl-2a", "us-east-1"),
        ("aws", "us-east-1", None),
        ("aws", "use1-az", None),
        ("gcp", "us-central1-a", "us-central1"),
        ("gcp", "europe-west10-b", "europe-west10"),
        ("gcp", "us-central1", None),
        ("tencent", "ap-beijing-3", "ap-beijing"),
        ("alibaba", "cn-hangzhou-h", "cn-hangzhou"),
        ("alibaba", "ap-southeast-1a", "ap-southeast-1"),
        ("azure", "eastus2-1", "eastus2"),
        ("hetzner", "fsn1-dc14", None),
    ],
)
def test_a_zone_names_its_region(cloud: str, zone: str, region: str | None) -> None:
    assert region_of_zone(cloud, zone) == region


def test_every_offered_zone_names_the_region_it_is_listed_in(catalog: Catalog) -> None:
    for cloud in CLOUDS:
        for region in catalog.regions(cloud):
            for zone in catalog.region_zones(cloud, region):
                assert region_of_zone(cloud, zone) == region
