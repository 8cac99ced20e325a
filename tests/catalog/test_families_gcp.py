"""Google's machine families as facts, typed in again from Google's pages: a wrong row goes red.

Pages: [gpus] docs.cloud.google.com/compute/docs/gpus (2026-04-14); [ao] …/compute/docs/
accelerator-optimized-machines (2026-04-13); [ssd] …/compute/docs/disks/local-ssd (2026-04); [vm]
…/ai-hypercomputer/docs/create/create-vm (2026-04-06); [tier] cloud.google.com/compute/docs/
networking/configure-vm-with-high-bandwidth-configuration; [pd] the tables of Google's own gcpdiag
(GoogleCloudPlatform/gcpdiag@9f84bc0, disk_performance_benchmark).
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from gputier.catalog import Catalog
from gputier.catalog.build import ssd_counts
from gputier.catalog.disks import limits_of
from gputier.plan.rails import kinds

PD, HYPER = ("pd-standard", "pd-balanced", "pd-ssd"), ("hyperdisk-balanced",)


class Fact(NamedTuple):
    """`ssd`: disks that come with it, and numbers that may be added. `nics`: the kinds of its
    interfaces for all bandwidth. `boots`: kinds of volume that it boots from."""

    attached: bool
    ssd: tuple[int, tuple[int, ...]]
    nics: tuple[str, ...]
    mtu: str
    gbps: str
    boots: tuple[str, ...]
    bought: frozenset[str]


def bought(*words: str) -> frozenset[str]:
    return frozenset(words)


N1_SSDS = (1, 2, 3, 4, 5, 6, 7, 8, 16)  # [ssd]
SOLD = bought("STANDARD", "SPOT", "FLEX_START", "reservation")  # [ao]
HELD = bought("SPOT", "FLEX_START", "RESERVATION_BOUND", "future", "calendar")
ALL = HELD | {"STANDARD", "reservation"}
ROCE = ("GVNIC",) * 2 + ("MRDMA",) * 8  # [vm]
A3 = ("pd-balanced", "pd-ssd", "hyperdisk-balanced")  # [ao]
N1 = bought("STANDARD", "SPOT", "reservation")  # [gpus]

FACTS = {
    "n1+nvidia-tesla-t4x1": Fact(
        True, (0, N1_SSDS), ("GVNIC",), "", "up to 100 by GPU and vCPU count", PD, N1
    ),
    "n1+nvidia-tesla-v100x8": Fact(
        True, (0, (*N1_SSDS, 24)), ("GVNIC",), "", "up to 100 by GPU and vCPU count", PD, N1
    ),
    "n1+nvidia-tesla-p100x4": Fact(True, (0, (*N1_SSDS, 24)), ("GVNIC",), "", "32", PD, N1),
    "n1+nvidia-tesla-p4x1": Fact(True, (0, (*N1_SSDS, 24)), ("GVNIC",), "", "32", PD, N1),
    "g2-standard-4": Fact(False, (0, (1,)), ("GVNIC",), "", "10", PD[1:], SOLD),
    "g2-standard-96": Fact(False, (0, (8,)), ("GVNIC",), "", "100", PD[1:], SOLD),
    "g4-standard-6": Fact(False, (0, ()), ("GVNIC",), "", "20", HYPER, N1),
    "g4-standard-48": Fact(False, (0, (4,)), ("GVNIC",), "", "50", HYPER, N1),
    "g4-standard-384": Fact(False, (0, (32,)), ("GVNIC",) * 2, "", "400", HYPER, N1),
    "a2-highgpu-1g": Fact(False, (0, (1, 2, 4, 8)), ("GVNIC",), "", "24", PD, SOLD),
    "a2-megagpu-16g": Fact(False, (0, (8,)), ("GVNIC",), "", "100", PD, SOLD),
    "a2-ultragpu-8g": Fact(False, (8, ()), ("GVNIC",), "", "100", PD, SOLD),
    "a3-highgpu-1g": Fact(False, (2, ()), ("GVNIC",), "", "25", A3, bought("SPOT", "FLEX_START")),
    "a3-highgpu-8g": Fact(False, (16, ()), ("GVNIC",) * 5, "8244", "1000", A3, ALL),
    "a3-megagpu-8g": Fact(False, (16, ()), ("GVNIC",) * 9, "8244", "1800", A3, ALL),
    "a3-ultragpu-8g": Fact(False, (32, ()), ROCE, "8896", "3600", HYPER, HELD),
    "a4-highgpu-8g": Fact(False, (32, ()), ROCE, "8896", "3600", HYPER, HELD),
    "a4x-highgpu-4g": Fact(
        False, (4, ()), ROCE[:6], "8896", "2000", HYPER, bought("RESERVATION_BOUND")
    ),
}


@pytest.mark.parametrize("name", FACTS)
def test_a_family_is_as_googles_pages_say(name: str, catalog: Catalog) -> None:
    expected = FACTS[name]
    row = next(r for r in catalog.facts("gcp_machines") if r["machine_type"] == name)
    one = catalog.types["gcp", name]
    assert row["gpu_attach"].startswith("attached") == expected.attached
    assert (one.accelerator is not None) == expected.attached
    bundled = int(row["bundled_local_ssd_count"])
    assert (bundled, ssd_counts(row["optional_local_ssd_counts"])) == expected.ssd
    assert (one.local_nvme_count, one.attachable_ssd_counts) == expected.ssd
    assert tuple(kinds(row)) == expected.nics
    assert (row["mtu_recommended"], row["egress_max_gbps"]) == (expected.mtu, expected.gbps)
    assert one.boot_volumes == expected.boots
    assert {w.strip() for w in row["provisioning_models"].split(";")[0].split("|")} == (
        expected.bought
    )


def test_every_family_of_the_catalogue_is_in_the_table_above(catalog: Catalog) -> None:
    family = {r["machine_type"]: r["family"] for r in catalog.facts("gcp_machines")}
    # A3 Edge has no price and A4X Max is bare metal with an IPv6 fabric: both are said in the page.
    assert set(family.values()) - {family[name] for name in FACTS} == {"a3-edge", "a4x-max"}


def test_no_machine_with_gpus_has_tier_1(catalog: Catalog) -> None:
    """[tier] so nothing asks for it: `networkPerformanceConfig` stays unset. A row that says
    otherwise has to come with code that sets and prices it."""
    assert {r["egress_tier1_gbps"] for r in catalog.facts("gcp_machines")} == {"none"}


VOLUMES = {  # [pd]
    ("g2-standard-4", 0): {"pd-balanced": (240, 15_000), "pd-ssd": (240, 15_000)},
    ("g2-standard-16", 0): {"pd-balanced": (1200, 20_000), "pd-ssd": (1200, 25_000)},
    ("a2-highgpu-8g", 0): {"pd-balanced": (1200, 80_000), "pd-ssd": (1200, 100_000)},
    ("a3-megagpu-8g", 0): {"pd-balanced": (1200, 80_000), "pd-ssd": (1200, 80_000)},
    ("n1", 1): {"pd-balanced": (204, 15_000), "pd-ssd": (204, 15_000)},
    ("n1", 12): {"pd-balanced": (800, 15_000), "pd-ssd": (800, 15_000)},
    ("n1", 96): {"pd-balanced": (1200, 80_000), "pd-ssd": (1200, 100_000)},
    ("g4-standard-48", 0): {},
}


@pytest.mark.parametrize("of", VOLUMES, ids=str)
def test_what_a_machine_takes_of_volumes(of: tuple[str, int], catalog: Catalog) -> None:
    assert limits_of(catalog.disk_limits, *of) == VOLUMES[of]


def test_every_limit_is_of_a_kind_and_a_machine_that_there_are(catalog: Catalog) -> None:
    for limit in catalog.disk_limits:
        assert limit.kind in catalog.disk_kinds
        if limit.machine_type != "n1":
            assert limit.kind in catalog.types["gcp", limit.machine_type].boot_volumes
