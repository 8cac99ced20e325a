"""Every check holds for every packaged row, and every check finds a row broken on purpose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from gputier.catalog import Catalog, integrity, load
from gputier.errors import InvalidInput

Overlay = Callable[..., Path]


@pytest.mark.parametrize("check", integrity.CHECKS, ids=lambda check: check.__name__)
def test_every_packaged_row_passes(check: integrity.Check, catalog: Catalog) -> None:
    assert list(check(catalog)) == []


G5, P5 = {"instance_type": "g5.xlarge"}, {"instance_type": "p5.48xlarge"}
SLICE = {"instance_type": "g6f.xlarge"}
N1 = {"instance_type": "n1+nvidia-tesla-t4x1"}
A2 = {"instance_type": "a2-highgpu-1g"}
PRICE = {"provider": "aws", "region": "us-east-1", "instance_type": "g5.xlarge"}
FULL, SPOT = {**PRICE, "purchase": "on_demand"}, {**PRICE, "purchase": "spot"}
TORCH = {"framework": "pytorch", "version": "2.12", "build": "cu130", "cpu_arch": "x86_64"}
VOLTA = {"gpu_model": "V100-16GB"}
DLAMI = "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04"
IMAGE = {"cloud": "aws", "name": f"{DLAMI}/latest/ami-id"}
COMMITTED = {**PRICE, "purchase": "reserved_1y"}

BROKEN: list[tuple[integrity.Check, str, Mapping[str, str], Mapping[str, str], str]] = [
    (c, table, where, change, says)
    for c, breaks in {
        integrity.type_figures_are_within_range: [
            ("aws", G5, {"vcpus": "2000"}, "vcpus is 2000"),
            ("aws", G5, {"memory_gib": "16384"}, "memory_gib is 16384"),
            ("aws", G5, {"network_gbps": "100000"}, "network_burst_gbps"),
            ("aws", G5, {"network_baseline_gbps": "50"}, "sustained network exceeds its burst"),
            ("aws_ebs", G5, {"baseline_throughput_mb_s": "9000"}, "volume speed exceeds"),
            ("aws_interfaces", G5, {"ipv4_per_interface": "0"}, "ipv4_per_interface is 0"),
        ],
        integrity.wheels_are_sane: [
            ("wheels", TORCH, {"cuda": "14.0"}, "which driver CUDA 14 needs"),
            ("wheels", TORCH, {"cuda": "12.8"}, "CUDA is 12.8, and the build says 13.0"),
            ("wheels", TORCH, {"index_url": "http://w"}, "no https address"),
            (
                "wheels",
                {**TORCH, "build": "cu126"},
                {"default": "true"},
                "2 builds are the default",
            ),
        ],
        integrity.drivers_cover_every_card: [
            ("gpu_drivers", {"gpu_model": "B200"}, {"module": "either"}, "Blackwell takes open"),
            ("gpu_drivers", VOLTA, {"module": "open"}, "Volta takes proprietary"),
            ("gpu_drivers", VOLTA, {"driver_min": "590"}, "after its last branch 580"),
            (
                "gpus",
                {"gpu_model": "V100-16GB"},
                {"driver_branch_last": "R581"},
                "no row of its own",
            ),
        ],
        integrity.branches_and_cuda_agree: [
            ("driver_branches", {"branch": "580"}, {"newest": "590.1"}, "of another branch"),
            ("driver_branches", {"branch": "580"}, {"install": "570.1"}, "of another branch"),
            ("driver_branches", {"branch": "580"}, {"install": "580"}, "no exact version"),
            ("driver_branches", {"branch": "580"}, {"install": "580.999"}, "newer than the newest"),
            ("driver_branches", {"branch": "570"}, {"cuda": "13.0"}, "CUDA 13.0 needs 580"),
        ],
        integrity.images_are_for_known_machines: [
            ("images", IMAGE, {"machines": "g6|h7"}, "`h7` is no machine of aws on x86_64"),
            ("images", IMAGE, {"machines": "g5g"}, "`g5g` is no machine of aws on x86_64"),
            ("images", IMAGE, {"machines": ""}, "go together"),
        ],
        integrity.type_words_are_known: [
            ("aws", G5, {"lifecycle": "sunset"}, "lifecycle is `sunset`"),
            ("aws", G5, {"interconnect": "myrinet"}, "interconnect is `myrinet`"),
            ("aws", G5, {"cpu_arch": "sparc"}, "cpu_arch is `sparc`"),
            ("aws", G5, {"source": ""}, "source is empty"),
            ("aws", G5, {"as_of": "yesterday"}, "no date"),
            ("aws", G5, {"unverified": "vcpu"}, "names no column: vcpu"),
        ],
        integrity.gpu_memory_is_never_above_nominal: [
            ("aws", G5, {"gpu_memory_gib": "48"}, "more than a A10G has"),
            ("aws", G5, {"gpu_memory_gib": "16"}, "less than a whole A10G"),
            ("aws", G5, {"gpu_memory_visible_mib": "91552"}, "visible memory"),
        ],
        integrity.slices_are_never_whole_gpus: [
            ("aws", SLICE, {"gpu_count": "0.5"}, "0.5 of a GPU with 0.12 of its memory"),
            ("aws", SLICE, {"gpu_devices": "2"}, "a slice is one device"),
            ("aws", P5, {"gpu_devices": "1"}, "8 whole GPUs as 1 devices"),
        ],
        integrity.arm_hosts_are_exactly_the_known_ones: [
            ("aws", G5, {"cpu_arch": "aarch64"}, "cpu_arch is arm64"),
            ("aws", {"instance_type": "g5g.xlarge"}, {"cpu_arch": "x86_64"}, "x86_64"),
        ],
        integrity.nvlink_only_where_the_gpu_has_it: [
            ("aws", G5, {"nvlink": "true", "nvlink_gb_s_per_gpu": "600"}, "has less"),
            ("aws", P5, {"nvlink_gb_s_per_gpu": "1800"}, "has less"),
            ("aws", P5, {"nvlink_domain_gpus": "1"}, "fewer than 2 GPUs"),
            ("aws", P5, {"nvlink": "false"}, "no NVLink, yet"),
        ],
        integrity.fabric_facts_agree: [
            ("aws", G5, {"interconnect": "efa"}, "interconnect efa with 0 EFA interfaces"),
            ("aws", G5, {"rdma": "true"}, "RDMA without a fabric"),
            ("aws", P5, {"rdma": "false"}, "GPUDirect RDMA without RDMA"),
            ("gcp", A2, {"interconnect": "efa"}, "EFA exists on AWS only"),
        ],
        integrity.attached_gpus_are_composable: [
            ("gcp", N1, {"vcpus": "8"}, "only an attached GPU"),
            ("gcp", N1, {"vcpus": "48-1"}, "do not read"),
            ("gcp", N1, {"memory_gib": "700-900"}, "no N1 machine"),
            ("aws", G5, {"vcpus": ""}, "no vCPU or memory figure"),
        ],
        integrity.gpu_figures_agree: [
            ("gpus", {"gpu_model": "L4"}, {"fp8_tensor_tflops_dense": "485"}, "twice FP16"),
            ("gpus", {"gpu_model": "T4"}, {"bf16_tensor_tflops_dense": "65"}, "BF16 needs"),
            ("gpus", {"gpu_model": "A10"}, {"fp8_tensor_tflops_dense": "250"}, "FP8 needs"),
            ("gpus", {"gpu_model": "L4"}, {"mig_supported": "true"}, "MIG flag"),
            ("gpus", {"gpu_model": "L4"}, {"ecc": "false"}, "without ECC"),
            ("gpus", {"gpu_model": "L4"}, {"usable_gib": "25"}, "usable memory"),
            ("gpus", {"gpu_model": "L4"}, {"usable_source": ""}, "needs a source"),
            ("gpus", {"gpu_model": "L4"}, {"marketed_gb": "48"}, "marketed as 48"),
        ],
        integrity.prices_are_for_known_things: [
            ("prices", FULL, {"instance_type": "g5.2xl"}, "no such type"),
            ("prices", FULL, {"as_of": "2026"}, "no region, date or source"),
            ("prices", FULL, {"source": ""}, "no region, date or source"),
        ],
        integrity.prices_are_sane: [
            ("prices", FULL, {"usd_per_hour": "1006"}, "is no price"),
            ("prices", FULL, {"usd_per_hour": "0.001"}, "is no price"),
            ("prices", SPOT, {"usd_per_hour": "1.0061"}, "spot is above on demand"),
            ("prices", COMMITTED, {"usd_per_hour": "1.1"}, "reserved_1y is above on demand"),
        ],
        integrity.offerings_are_for_known_things: [
            (
                "offerings",
                {"instance_type": "g5.xlarge", "zone": "use1-az4"},
                {"region": "us-east-2"},
                "is not in us-east-2",
            ),
            (
                "offerings",
                {"instance_type": "g5.xlarge", "zone": "use1-az4"},
                {"instance_type": "g5.9xlarge"},
                "no such type",
            ),
        ],
        integrity.advice_items_and_hosts_are_sane: [
            (
                "spot_advisor_aws",
                {"instance_type": "g5.xlarge", "region": "us-east-1"},
                {"savings_over_on_demand_pct": "140"},
                "saves 140 %",
            ),
            (
                "spot_advisor_aws",
                {"instance_type": "g5.xlarge", "region": "us-east-1"},
                {"instance_type": "t3.micro"},
                "no such type",
            ),
            ("items", {"item": "gp3-storage"}, {"usd": "-1"}, "a negative price"),
            ("items", {"item": "gp3-storage"}, {"status": "guessed"}, "no unit or status"),
            ("gcp_hosts", {"name": "n1-standard-4"}, {"memory_gib": "16"}, "16 GiB for 4 vCPU"),
        ],
    }.items()
    for table, where, change, says in breaks
]


@pytest.mark.parametrize(
    ("check", "table", "where", "change", "says"),
    BROKEN,
    ids=[f"{c.__name__}-{says}" for c, _, _, _, says in BROKEN],
)
def test_a_broken_row_is_found_by_its_check(
    overlay: Overlay,
    check: integrity.Check,
    table: str,
    where: Mapping[str, str],
    change: Mapping[str, str],
    says: str,
) -> None:
    found = integrity.problems(load(overlay(table, where, **change)), [check])
    assert any(says in one for one in found), found


def test_every_check_but_the_one_for_duplicates_has_a_broken_row() -> None:
    broken = {check for check, _, _, _, _ in BROKEN}
    assert set(integrity.CHECKS) - broken == {integrity.keys_are_unique}


def test_a_duplicate_key_is_found(overlay: Overlay) -> None:
    place = overlay("aws", G5)
    file = place / "aws.csv"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines, lines[-1]]))
    found = integrity.problems(load(place), [integrity.keys_are_unique])
    assert found == ("aws.csv: g5.xlarge is there 2 times",)


@pytest.mark.parametrize(
    ("table", "where", "change", "says"),
    [
        ("prices", FULL, {"usd_per_hour": "0"}, "a price is more than 0"),
        ("prices", FULL, {"usd_per_hour": "nan"}, "a price is more than 0"),
        ("prices", FULL, {"usd_per_hour": "cheap"}, "`cheap`, which is no number"),
        ("prices", FULL, {"provider": "awss"}, "provider is `awss`"),
        ("prices", FULL, {"purchase": "rent"}, "purchase is `rent`"),
        ("prices", FULL, {"as_of": "2026-13-45"}, "as_of is `2026-13-45`: month must be"),
        ("aws", G5, {"gpu_model": "A10H"}, "gpu_model `A10H` is not in gpus.csv"),
        ("aws", G5, {"gpu_count": ""}, "gpu_count is empty"),
        ("aws", G5, {"nvlink": "yes"}, "nvlink is `yes`, not true, false or empty"),
        ("aws", G5, {"network_cards": "1.5"}, "`1.5`, which is no whole number"),
        ("gcp", N1, {"vcpus": "1-many"}, "neither a number nor a range"),
        ("gcp", N1, {"instance_type": "n1+nvidia-tesla-t4"}, "n1+ACCELERATORxCOUNT"),
        ("gpus", {"gpu_model": "L4"}, {"architecture": "Adda"}, "architecture `Adda`"),
    ],
)
def test_a_cell_that_cannot_be_read_is_refused_with_its_file_and_line(
    overlay: Overlay,
    table: str,
    where: Mapping[str, str],
    change: Mapping[str, str],
    says: str,
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        load(overlay(table, where, **change))
    (problem,) = refusal.value.problems
    assert says in problem.message
    assert problem.message.startswith("line 2:")
    assert problem.path.endswith(f"{table}.csv")
