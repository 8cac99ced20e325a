"""What gcloud prints of machine and accelerator types, through the refresh code.

Synthesised after compute.v1's documented shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gputier.catalog import Catalog, load
from gputier.catalog.refresh import refresh

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
