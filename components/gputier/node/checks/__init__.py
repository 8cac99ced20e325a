"""Every check, in the order of a first boot: cheap and decisive first.

The log before any tool (a hung GPU hangs them all), the bus before the driver, the driver before
what it shows, health before fabric, fabric before disks and software, load last, the log again.
"""

from __future__ import annotations

from gputier.node.checks import (
    dcgm,
    driver,
    gpus,
    kernel,
    links,
    load,
    machine,
    memory,
    network,
    scratch,
    software,
    thermal,
)
from gputier.node.engine import Check

ALL: tuple[Check, ...] = (
    *kernel.CHECKS_FIRST,
    *gpus.CHECKS_BUS,
    *driver.CHECKS_MODULE,
    *gpus.CHECKS_GPU,
    *kernel.CHECKS_HEALTH,
    *memory.CHECKS,
    *thermal.CHECKS,
    *links.CHECKS,
    *network.CHECKS,
    *(check for check in scratch.CHECKS if check.depth == "quick"),
    *(check for check in machine.CHECKS if check.stage == "host"),
    *dcgm.CHECKS_QUICK,
    *software.CHECKS,
    *(check for check in machine.CHECKS if check.stage != "host"),
    *load.CHECKS,
    *(check for check in scratch.CHECKS if check.depth != "quick"),
    *dcgm.CHECKS_LOAD,
    *kernel.CHECKS_LAST,
)
