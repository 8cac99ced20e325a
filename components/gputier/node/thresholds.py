"""Every floor that a check holds a measurement against: value, unit, source, date, derating.

A floor without a source gates nothing: there is no row, and the check says `unsupported`. The
plausibility test (tests/node/test_thresholds.py) wants floor / nominal within 0.3 and 1.0, which
would have caught the unit slips that public tables ship with (DCGM 4.6's H200 floor is 2,333 MB/s
beside neighbours of 1,900,000).
"""

# ruff: noqa: E501 (one row of the table, one line)
from __future__ import annotations

from typing import NamedTuple

AZNHC = "https://github.com/Azure/azurehpc-health-checks conf/"
AZNHC_README = "https://github.com/Azure/azurehpc-health-checks README.md"
DCGM_SKUS = "https://github.com/NVIDIA/DCGM nvvs/diag-skus.yaml.in"
CHS = "https://github.com/GoogleCloudPlatform/cluster-health-scanner"

ALL_REDUCE, PAIRS, HOST_COPY, PEER_COPY, MEMORY, FABRIC, LOOPBACK, DISK = (
    "all-reduce",
    "all-reduce-pairs",
    "host-bandwidth",
    "peer-bandwidth",
    "memory-bandwidth",
    "rdma-loopback",
    "efa-loopback",
    "scratch-speed",
)


class Floor(NamedTuple):
    """`value` is the least that passes, `nominal` the figure it is derived from or sold as.

    `key` is a card of `cards.CARDS`, a machine family, or `*`. `derating`: how value came to be.
    """

    measure: str
    key: str
    value: float
    nominal: float
    unit: str
    source: str
    date: str
    derating: str


CONF = "their conf file's floor as it stands"
SEVENTY_FIVE = "0.75 × measured with dcgmproftester -t 1005 (the factor of the same file)"

# fmt: off
FLOORS = (
    Floor(ALL_REDUCE, "A100-40GB", 228, 300, "GB/s", AZNHC + "nd96asr_v4.conf", "2026-05-01", CONF + ", 8 GPUs, 8 GiB messages"),
    Floor(ALL_REDUCE, "A100-80GB", 228, 300, "GB/s", AZNHC + "nd96amsr_a100_v4.conf", "2026-05-01", CONF + ", 8 GPUs, 8 GiB messages"),
    Floor(ALL_REDUCE, "V100-32GB", 110, 150, "GB/s", AZNHC + "nd40rs_v2.conf", "2026-05-01", CONF + ", 8 GPUs"),
    Floor(ALL_REDUCE, "H100-80GB", 460, 478, "GB/s", AZNHC + "nd96isr_h100_v5.conf", "2026-05-01", CONF + ", 8 GPUs with NVLS, 16 GiB messages"),
    Floor(ALL_REDUCE, "H200-141GB", 431, 478, "GB/s", AZNHC + "nd96isr_h200_v5.conf", "2026-05-01", CONF + " (the README's 480 is higher), 16 GiB messages"),
    Floor(ALL_REDUCE, "H100-NVL-94GB", 208, 300, "GB/s", AZNHC + "nc80adis_h100_v5.conf", "2026-05-01", CONF + ", 2 GPUs"),
    Floor(PAIRS, "a3-highgpu", 60, 100, "GB/s", CHS, "2025-10-31", "their floor, 2 to 8 GiB messages"),
    Floor(PAIRS, "a3-megagpu", 150, 200, "GB/s", CHS, "2025-10-31", "their floor, 2 to 8 GiB messages"),
    Floor(PAIRS, "a3-ultragpu", 250, 400, "GB/s", CHS, "2025-10-31", "their floor, 2 to 8 GiB messages"),
    Floor(PAIRS, "a4-highgpu", 250, 400, "GB/s", CHS, "2025-10-31", "their floor, 2 to 8 GiB messages"),
    Floor(PAIRS, "a4x-highgpu", 160, 200, "GB/s", CHS, "2025-10-31", "their floor, 2 to 8 GiB messages"),
    Floor(HOST_COPY, "A100-40GB", 21, 31.5, "GB/s", AZNHC + "nd96asr_v4.conf", "2026-05-01", CONF),
    Floor(HOST_COPY, "A100-80GB", 21, 31.5, "GB/s", AZNHC + "nd96amsr_a100_v4.conf", "2026-05-01", CONF),
    Floor(HOST_COPY, "A100-PCIE-80GB", 21, 31.5, "GB/s", AZNHC + "nc24ads_a100_v4.conf", "2026-05-01", CONF),
    Floor(HOST_COPY, "V100-32GB", 9, 15.75, "GB/s", AZNHC + "nd40rs_v2.conf", "2026-05-01", CONF),
    Floor(HOST_COPY, "H100-80GB", 48, 63, "GB/s", AZNHC + "nd96isr_h100_v5.conf", "2026-05-01", CONF),
    Floor(HOST_COPY, "H100-NVL-94GB", 48, 63, "GB/s", AZNHC + "nc80adis_h100_v5.conf", "2026-05-01", CONF),
    Floor(HOST_COPY, "H200-141GB", 48, 63, "GB/s", AZNHC + "nd96isr_h200_v5.conf", "2026-05-01", CONF),
    Floor(PEER_COPY, "A100-40GB", 235, 300, "GB/s", AZNHC + "nd96asr_v4.conf", "2026-05-01", CONF + ", each pair"),
    Floor(PEER_COPY, "A100-80GB", 235, 300, "GB/s", AZNHC + "nd96amsr_a100_v4.conf", "2026-05-01", CONF + ", each pair"),
    Floor(PEER_COPY, "H100-80GB", 335, 478, "GB/s", AZNHC + "nd96isr_h100_v5.conf", "2026-05-01", CONF + ", each pair"),
    Floor(PEER_COPY, "H100-NVL-94GB", 335, 478, "GB/s", AZNHC + "nc80adis_h100_v5.conf", "2026-05-01", CONF + ", each pair"),
    Floor(PEER_COPY, "H200-141GB", 335, 478, "GB/s", AZNHC + "nd96isr_h200_v5.conf", "2026-05-01", CONF + ", each pair"),
    Floor(MEMORY, "T4", 183, 244, "GB/s", DCGM_SKUS, "2026-07-06", SEVENTY_FIVE),
    Floor(MEMORY, "A10G", 362.7, 484, "GB/s", DCGM_SKUS, "2026-07-06", SEVENTY_FIVE),
    Floor(MEMORY, "L4", 198.5, 265, "GB/s", DCGM_SKUS, "2026-07-06", SEVENTY_FIVE),
    Floor(MEMORY, "L40S", 525, 700, "GB/s", DCGM_SKUS, "2026-07-06", SEVENTY_FIVE),
    Floor(MEMORY, "A100-80GB", 1173, 1564, "GB/s", DCGM_SKUS, "2026-07-06", SEVENTY_FIVE),
    Floor(MEMORY, "H100-80GB", 1905, 2540, "GB/s", DCGM_SKUS, "2026-07-06", SEVENTY_FIVE),
    Floor(MEMORY, "H200-141GB", 2332.5, 3110, "GB/s", DCGM_SKUS, "2026-07-06", SEVENTY_FIVE + "; the file ships 2,333 MB/s, a unit slip"),
    Floor(MEMORY, "B200", 4072.5, 5430, "GB/s", DCGM_SKUS, "2026-07-06", SEVENTY_FIVE),
    Floor(MEMORY, "B300", 4623.4, 6164, "GB/s", DCGM_SKUS, "2026-07-06", SEVENTY_FIVE),
    Floor(MEMORY, "GB300", 4522.5, 6030, "GB/s", DCGM_SKUS, "2026-07-06", SEVENTY_FIVE),
    Floor(FABRIC, "200", 180, 200, "Gbit/s", AZNHC + "nd96asr_v4.conf", "2026-05-01", CONF + ", ib_write_bw, host to itself"),
    Floor(FABRIC, "400", 360, 400, "Gbit/s", AZNHC + "nd96isr_h200_v5.conf", "2026-05-01", CONF + " (the H100 file has 380)"),
    Floor(LOOPBACK, "*", 20, 50, "Gbit/s", "https://github.com/awslabs/awsome-distributed-ai health checks, check 6", "2026-07-23", "their floor per device"),
    Floor(DISK, "*", 500, 1000, "MB/s", "gputier's mid tier: 500 MB/s sequential per machine", "2026-11-30", "0.5 × what one local NVMe disk of these machines reads at least"),
)

# Counters above which a card is worth watching; none of them gives a machine back.
SRAM_CORRECTABLE = Floor("ecc-sram-correctable", "*", 10_000, 10_000, "errors", AZNHC_README, "2026-05-01", "as it stands")
DRAM_CORRECTABLE = Floor("ecc-dram-correctable", "*", 20_000_000, 20_000_000, "errors", AZNHC_README, "2026-05-01", "as it stands")
REMAPPED_ROWS = Floor("row-remap-uncorrectable", "*", 512, 512, "rows", AZNHC_README, "2026-05-01", "as it stands; their own check of it reads a column that is not there")
RETIRED_PAGES = Floor("retired-pages", "*", 60, 64, "pages", "https://docs.nvidia.com/deploy/dynamic-page-retirement/ (RMA criterion 60, table of 64)", "2026-08", "as it stands")
LINK_FLAPS = Floor("link-flaps", "*", 5, 5, "a day", AZNHC_README, "2026-05-01", "as it stands")
MEMLOCK_GIB = Floor("memlock", "*", 16, 16, "GiB", "https://github.com/awslabs/awsome-distributed-ai health checks, check 2", "2026-07-23", "as it stands")
# fmt: on

# Relative room around a figure that a tool prints.
MEMORY_ROOM = 0.02
# Providers name a slice by decimal GB, the driver shows the profile's binary size.
SLICE_ROOM = 0.10
LINK_ROOM = 0.08
HOST_MEMORY_ROOM = 0.10
DISK_ROOM = 0.05


def floor(measure: str, key: str | None) -> Floor | None:
    """The row of a measure for a card or family, else the row for all, else None."""
    rows = {row.key: row for row in FLOORS if row.measure == measure}
    return rows.get(key or "", rows.get("*"))


def family_floor(measure: str, instance_type: str | None) -> Floor | None:
    """The row whose key the instance type's name starts with."""
    rows = [row for row in FLOORS if row.measure == measure]
    return next((row for row in rows if (instance_type or "").startswith(row.key + "-")), None)
