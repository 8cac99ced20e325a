"""What other programs' exit statuses and error codes mean, as tables."""

from __future__ import annotations

from typing import NamedTuple

from gputier.node.result import (
    CONFIG,
    HEALTHY,
    INCONCLUSIVE,
    REBOOT,
    REPLACE,
    WARNING,
)

SMI_SOURCE = (
    "nvidia-smi manual, return values; github.com/Azure/azurehpc-health-checks csc_nvidia_smi.nhc"
)
DCGM_SOURCE = (
    "github.com/NVIDIA/DCGM 4.6.0 dcgmlib/dcgm_errors.h and src/dcgm_errors.c (2026-07-06)"
)


class Status(NamedTuple):
    """What an exit status says and asks for."""

    rc: int
    meaning: str
    outcome: str


#: The driver is not loaded, or its library is not installed.
SMI_NO_DRIVER = (9, 12)
SMI_STATUS = {
    row.rc: row
    for row in (
        Status(2, "an argument is not valid for this driver", INCONCLUSIVE),
        Status(3, "the operation is not supported here", INCONCLUSIVE),
        Status(4, "no permission", INCONCLUSIVE),
        Status(6, "no device was found", REPLACE),
        Status(8, "an external power cable is not attached", REPLACE),
        Status(9, "the NVIDIA driver is not loaded", CONFIG),
        Status(10, "the kernel saw an interrupt problem with a GPU", REPLACE),
        Status(12, "the NVML library is not installed", CONFIG),
        Status(13, "the NVML library is too old for this call", CONFIG),
        Status(14, "the infoROM is corrupt", REPLACE),
        Status(15, "a GPU has fallen off the bus", REPLACE),
    )
}

# `dcgmi diag`: the low 8 bits of its return code. Only 0, 205 and 226 are verdicts.
DCGM_STATUS = {
    row.rc: row
    for row in (
        Status(0, "passed what it tests", HEALTHY),
        Status(205, "an error that isolates a GPU", REPLACE),
        Status(226, "another error; the JSON names it", INCONCLUSIVE),
        Status(217, "another diagnostic is running", INCONCLUSIVE),
        Status(204, "the diagnostic's program (nvvs) is missing", INCONCLUSIVE),
        Status(203, "the diagnostic was killed", INCONCLUSIVE),
        Status(198, "no such test", INCONCLUSIVE),
        Status(124, "out of time", INCONCLUSIVE),
    )
}
DCGM_VERDICTS = (0, 205, 226)

# NONE, MONITOR, ISOLATE, UNKNOWN, TRIAGE, CONFIG, RESET. Triage is a reboot, then a replacement.
SEVERITY = {
    0: HEALTHY,
    1: WARNING,
    2: REPLACE,
    3: INCONCLUSIVE,
    4: REBOOT,
    5: CONFIG,
    6: REBOOT,
}


class Override(NamedTuple):
    """Where the severity that DCGM ships is not what we do, and why."""

    error: int
    name: str
    outcome: str
    why: str


OVERRIDES = {
    row.error: row
    for row in (
        Override(80, "ROW_REMAP_FAILURE", REPLACE, "an RMA criterion; older DCGM says reset"),
        Override(
            108, "CUDA_FM_NOT_INITIALIZED", REBOOT, "older DCGM says monitor; CUDA cannot start"
        ),
        Override(47, "ABORTED", INCONCLUSIVE, "it did not run to its end"),
        Override(48, "TEST_DISABLED", HEALTHY, "nothing was tested, so nothing failed"),
        Override(56, "MEMORY_ALLOC", INCONCLUSIVE, "the memory was not tested, whatever it says"),
        Override(73, "MEMORY_ALLOC_HOST", INCONCLUSIVE, "the host had no memory for the test"),
        Override(60, "ECC_UNSUPPORTED", HEALTHY, "the card has no ECC; our own check knows"),
        Override(78, "L1TAG_UNSUPPORTED", HEALTHY, "the card does not have the test"),
        Override(68, "CONCURRENT_GPUS", HEALTHY, "one GPU alone cannot run the test"),
        Override(90, "EUD_NON_ROOT_USER", HEALTHY, "the extended test wants root; it is extra"),
    )
}
# Judged by our own check of the link instead: DCGM knows the card, not the instance type.
DCGM_PCIE = (45, 46)
# Only in the memory it could not get lies the verdict: DCGM says Pass all the same (issue 284).
DCGM_UNTESTED = (56, 73)
