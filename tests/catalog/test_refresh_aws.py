"""What the AWS command line prints, through the refresh code.

The shapes are real: the types and offerings are moto's recorded dumps; the prices and spot prices
are synthesised after the Price List's and botocore's documented shapes.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from gputier.catalog import Catalog, load
from gputier.catalog.refresh import refresh
from gputier.catalog.refresh_aws import types
from gputier.catalog.refresh_harvest import Harvest
from gputier.catalog.refresh_io import read_document
from gputier.errors import InvalidInput

Json = dict[str, Any]
Described = Mapping[str, Json]
Printed = Callable[[object], Path]
Rows = Callable[[str], list[dict[str, str]]]

# Everything that DescribeInstanceTypes says and aws.csv holds.
COLUMNS = (
    "gpu_model",
    "gpu_count",
    "gpu_devices",
    "gpu_memory_gib",
    "gpu_memory_visible_mib",
    "vcpus",
    "memory_gib",
    "cpu_arch",
    "local_nvme_count",
    "local_nvme_gib_total",
    "network_baseline_gbps",
    "network_gbps",
    "network_cards",
    "network_interfaces_max",
    "interconnect",
    "interconnect_gbps",
    "bare_metal",
    "on_demand_support",
    "spot_support",
    "other_purchase",
    "lifecycle",
)
EBS_COLUMNS = (
    "baseline_bandwidth_mbps",
    "maximum_bandwidth_mbps",
    "baseline_throughput_mb_s",
    "maximum_throughput_mb_s",
    "baseline_iops",
    "maximum_iops",
    "max_ebs_attachments",
    "attachment_limit_type",
)
# (type, column) → why the dump and the packaged row differ. None does.
DIFFERENCES: dict[tuple[str, str], str] = {}


class Blank(Harvest):
    """A harvest to which every type is new, so that no column comes from the packaged rows."""

    def base_row(self, table: str, *key: str) -> dict[str, str] | None:
        del table, key
        return None


def renamed(record: Json, name: str) -> Json:
    return copy.deepcopy(record) | {"InstanceType": name}


def _same(a: str, b: str) -> bool:
    try:
        return float(a) == float(b)
    except ValueError:
        return a == b


@pytest.fixture(scope="module")
def blank(
    described: Described, catalog: Catalog, tmp_path_factory: pytest.TempPathFactory
) -> Harvest:
    path = tmp_path_factory.mktemp("moto") / "types.json"
    path.write_text(json.dumps({"InstanceTypes": list(described.values())}))
    harvest = Blank(catalog)
    types(read_document(path), harvest)
    return harvest


def test_the_recorded_dump_gives_every_column_of_every_type_back(
    blank: Harvest, rows: Rows, described: Described
) -> None:
    found = {row["instance_type"]: row for row in blank.added("aws")}
    packaged = {row["instance_type"]: row for row in rows("aws")}
    assert set(found) == set(packaged) & set(described)
    assert len(found) == 65
    differences = {
        (name, column): (row[column], packaged[name][column])
        for name, row in found.items()
        for column in COLUMNS
        if not _same(row[column], packaged[name][column])
    }
    assert differences.keys() == DIFFERENCES.keys(), differences
    missing = set(packaged) - set(found)
    assert {packaged[name]["lifecycle"] for name in missing - {"p6e-gb200.36xlarge"}} == {"retired"}


def test_the_recorded_dump_gives_the_volume_and_interface_limits_back(
    blank: Harvest, rows: Rows
) -> None:
    for table, columns in (
        ("aws_ebs", EBS_COLUMNS),
        ("aws_interfaces", ("ipv4_per_interface", "ipv6_per_interface", "efa_interfaces_max")),
    ):
        packaged = {row["instance_type"]: row for row in rows(table)}
        found = list(blank.added(table))
        assert len(found) == 65
        for row in found:
            for column in columns:
                name = row["instance_type"]
                assert _same(row[column], packaged[name][column]), (name, column)


def test_a_refreshed_row_keeps_what_no_api_says(
    described: Described, printed: Printed, tmp_path: Path, catalog: Catalog
) -> None:
    out = tmp_path / "out"
    report = refresh([printed({"InstanceTypes": [described["p5.48xlarge"]]})], out)
    before, after = (one.types["aws", "p5.48xlarge"] for one in (catalog, load(out)))
    same = before._replace(source=after.source, as_of=after.as_of)
    assert after == same
    assert (after.nvlink_gb_s_per_gpu, after.cpu_platform) == (900, before.cpu_platform)
    assert after.as_of == "2025-12-01"
    assert (report.new_types, report.refused) == ((), ())
    assert report.catalog_id == load(out).id != catalog.id


def test_a_new_type_is_added_with_what_is_known_and_no_more(
    described: Described, printed: Printed, tmp_path: Path
) -> None:
    new = renamed(described["g6e.12xlarge"], "g6e.32xlarge")
    report = refresh([printed({"InstanceTypes": [new]})], tmp_path / "out")
    one = load(tmp_path / "out").types["aws", "g6e.32xlarge"]
    assert report.new_types == ("aws g6e.32xlarge",)
    assert (one.gpu_model, one.gpu_count, one.vcpus) == ("L40S", 4, 48)
    assert (one.interconnect, one.efa_interfaces_max, one.rdma) == ("efa", 1, None)
    assert one.nvlink is False


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"GpuInfo": {"Gpus": []}}, "listed without a GPU"),
        (
            {
                "GpuInfo": {
                    "Gpus": [
                        {
                            "Count": 0,
                            "Manufacturer": "NVIDIA",
                            "Name": "H100",
                            "MemoryInfo": {"SizeInMiB": 81920},
                        }
                    ]
                }
            },
            "a GPU family with 0 GPUs",
        ),
    ],
)
def test_a_gpu_family_without_gpus_is_refused_and_the_old_row_stays(
    described: Described, printed: Printed, tmp_path: Path, change: Json, says: str
) -> None:
    wrong = described["p5.4xlarge"] | change
    file = printed({"InstanceTypes": [wrong, described["p5.48xlarge"]]})
    report = refresh([file], tmp_path / "out")
    (refused,) = report.refused
    assert refused.startswith("aws p5.4xlarge: ")
    assert says in refused
    assert load(tmp_path / "out").types["aws", "p5.4xlarge"].gpu_count == 1


def test_slices_are_the_logical_count_times_the_partition(blank: Harvest) -> None:
    found = {row["instance_type"]: row for row in blank.added("aws")}
    shares = {
        name: (row["gpu_count"], row["gpu_devices"], row["gpu_memory_gib"])
        for name, row in found.items()
        if row["family"] in ("g6f", "gr6f")
    }
    assert shares == {
        "g6f.large": ("0.125", "1", "3"),
        "g6f.xlarge": ("0.125", "1", "3"),
        "g6f.2xlarge": ("0.25", "1", "6"),
        "g6f.4xlarge": ("0.5", "1", "12"),
        "gr6f.4xlarge": ("0.5", "1", "12"),
    }


def test_a_gpu_that_nobody_knows_is_listed_and_never_crashes(
    described: Described, printed: Printed, tmp_path: Path
) -> None:
    new = renamed(described["p5.48xlarge"], "p9.48xlarge")
    new["GpuInfo"]["Gpus"][0]["Name"] = "R300"
    amd = renamed(described["g5.xlarge"], "g4ad.xlarge")
    amd["GpuInfo"]["Gpus"][0]["Manufacturer"] = "AMD"
    members = [new, amd, described["inf2.xlarge"], described["g5.xlarge"]]
    report = refresh([printed({"InstanceTypes": members})], tmp_path / "out")
    assert report.unknown == ("aws p9.48xlarge: R300 with 81920 MiB",)
    assert report.ignored == {
        "instance types with GPUs of AMD": 1,
        "instance types without a GPU": 1,
    }
    assert report.written == {"aws": 1, "aws_ebs": 1, "aws_interfaces": 1}
    text = "\n".join(report.lines())
    assert "a row of gpus.csv beside these files would add them" in text
    assert "1 instance types with GPUs of AMD" in text


def test_a_files_gpus_csv_beside_it_makes_a_new_gpu_known(
    described: Described, printed: Printed, rows: Rows, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    h100 = next(row for row in rows("gpus") if row["gpu_model"] == "H100-80GB")
    new_gpu = {**h100, "gpu_model": "R300", "display_name": "NVIDIA R300"}
    lines = [",".join(new_gpu), ",".join(f'"{cell}"' for cell in new_gpu.values())]
    (out / "gpus.csv").write_text("\n".join(lines) + "\n")
    new = renamed(described["p5.48xlarge"], "p9.48xlarge")
    new["GpuInfo"]["Gpus"][0]["Name"] = "R300"
    report = refresh([printed({"InstanceTypes": [new]})], out)
    assert report.unknown == ()
    assert load(out).types["aws", "p9.48xlarge"].gpu_model == "R300"


def test_offerings_of_a_whole_region_give_the_packaged_zones_back(
    moto: Callable[[str], Any], printed: Printed, tmp_path: Path, catalog: Catalog
) -> None:
    files = [
        printed(
            {"InstanceTypeOfferings": moto(f"instance_type_offerings/availability-zone-id/{r}")}
        )
        for r in ("us-east-1", "us-west-2", "eu-central-1")
    ]
    refresh(files, tmp_path / "out")
    other = load(tmp_path / "out")
    for cloud, name in catalog.types:
        assert dict(other.zones(cloud, name)) == dict(catalog.zones(cloud, name)), name


def test_a_whole_listing_takes_a_withdrawn_type_out_of_its_region(
    moto: Callable[[str], Any], printed: Printed, tmp_path: Path, catalog: Catalog
) -> None:
    every = moto("instance_type_offerings/availability-zone-id/us-east-1")
    fewer = [one for one in every if one["InstanceType"] != "p4d.24xlarge"]
    report = refresh([printed({"InstanceTypeOfferings": fewer})], tmp_path / "out")
    lost = ", ".join(catalog.zones("aws", "p4d.24xlarge")["us-east-1"])
    assert report.gone == (f"aws p4d.24xlarge: no longer in {lost}",)
    assert "no longer offered:" in report.lines()
    zones = load(tmp_path / "out").zones("aws", "p4d.24xlarge")
    assert "us-east-1" in catalog.zones("aws", "p4d.24xlarge")
    assert "us-east-1" not in zones
    assert zones["us-west-2"] == catalog.zones("aws", "p4d.24xlarge")["us-west-2"]


def test_a_listing_filtered_to_one_type_says_nothing_of_the_others(
    printed: Printed, tmp_path: Path, catalog: Catalog
) -> None:
    one = {
        "InstanceType": "p5.48xlarge",
        "LocationType": "availability-zone-id",
        "Location": "use1-az6",
    }
    refresh([printed({"InstanceTypeOfferings": [one]})], tmp_path / "out")
    other = load(tmp_path / "out")
    assert other.zones("aws", "p4d.24xlarge") == catalog.zones("aws", "p4d.24xlarge")
    before = catalog.zones("aws", "p5.48xlarge")["us-east-1"]
    assert set(other.zones("aws", "p5.48xlarge")["us-east-1"]) == {*before, "use1-az6"}


@pytest.mark.parametrize("location", ["us-east-1a", "us-east-1"])
def test_offerings_by_zone_name_or_region_are_refused_with_the_way_out(
    printed: Printed, tmp_path: Path, location: str
) -> None:
    file = printed({"InstanceTypeOfferings": [{"InstanceType": "g5.xlarge", "Location": location}]})
    with pytest.raises(InvalidInput, match="--location-type availability-zone-id"):
        refresh([file], tmp_path / "out")


def test_a_memory_figure_that_is_the_total_of_all_gpus_is_divided(
    described: Described, printed: Printed, tmp_path: Path
) -> None:
    total = copy.deepcopy(described["g6e.12xlarge"])
    total["GpuInfo"]["Gpus"][0]["MemoryInfo"]["SizeInMiB"] *= 4
    refresh([printed({"InstanceTypes": [total]})], tmp_path / "out")
    one = load(tmp_path / "out").types["aws", "g6e.12xlarge"]
    assert (one.gpu_memory_gib, one.gpu_memory_visible_mib, one.usable_gib) == (48, 45776, 44.7)
