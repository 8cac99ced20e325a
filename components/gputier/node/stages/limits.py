"""Limits: memory that a fabric pins, files that data loaders open, huge pages.

Files below /etc/security count for those who log in; what systemd starts has limits of its own.
"""

from __future__ import annotations

import re

from gputier.node.checks.machine import online
from gputier.node.stages import StageResult, Work, config, ok

LOGINS = "/etc/security/limits.d/99-gputier.conf"
LOGINS_TEXT = """\
* - memlock unlimited
* - nofile 1048576
root - memlock unlimited
root - nofile 1048576
"""
UNITS = "/etc/systemd/system.conf.d/99-gputier.conf"
UNITS_TEXT = "[Manager]\nDefaultLimitMEMLOCK=infinity\nDefaultLimitNOFILE=1048576\n"
SYSCTL = "/etc/sysctl.d/99-gputier-hugepages.conf"
PAGES = "/proc/sys/vm/nr_hugepages"
# What EFA's own boot script reserves: 110 MB for an endpoint, two endpoints a processor, and one
# page more (quoted in github.com/bottlerocket-os/bottlerocket-core-kit/pull/141). libfabric has its
# bounce buffers there, and is slower without. Only in pages of 2 MiB: where they are 512 MB, as on
# some arm64 systems, that would be most of the memory (awslabs/libfabric-ci-scripts/pull/158).
EFA_PAGES_PER_VCPU, EFA_PAGE_KIB = 110, 2048


def run(work: Work) -> StageResult:
    """The files, and the pages reserved."""
    words: list[str] = []
    changed = False
    if work.settings.fabric:
        changed = work.put(LOGINS, LOGINS_TEXT)
        if work.put(UNITS, UNITS_TEXT):
            changed = True
            # Nothing of the workload runs yet: a reload now takes no GPU from any container
            # (github.com/NVIDIA/nvidia-container-toolkit/issues/48).
            work.must("have systemd read its limits", "systemctl", "daemon-reexec", limit=30.0)
        words.append("memory may be locked without limit, 1048576 open files")
    asked = work.settings.count("hugepages")
    wanted = asked or _of_efa(work)
    if wanted:
        changed = work.put(SYSCTL, f"vm.nr_hugepages = {wanted}\n") or changed
        if _reserved(work) < wanted:
            work.must("reserve huge pages", "sysctl", "-q", "-w", f"vm.nr_hugepages={wanted}")
            changed = True
        have = _reserved(work)
        if asked and have < asked:
            return config(
                f"{have} of {asked} huge pages could be reserved",
                "declare fewer: the machine's memory does not hold them in one piece",
            )
        number = f"{wanted}" if have >= wanted else f"{have} of {wanted}"
        words.append(f"{number} huge pages of 2 MiB")
    return ok("; ".join(words), changed)


def _of_efa(work: Work) -> int:
    """Huge pages that EFA does best with, 0 when they are there already. Nobody declared them: too
    few refuse nobody."""
    size = re.search(r"^Hugepagesize:\s+(\d+) kB$", work.host.read("/proc/meminfo") or "", re.M)
    if work.settings.fabric != "efa" or size is None or int(size[1]) != EFA_PAGE_KIB:
        return 0
    vcpus, _ = online(work)
    pages = EFA_PAGES_PER_VCPU * vcpus + 1 if vcpus else 0
    return pages if _reserved(work) < pages else 0


def _reserved(work: Work) -> int:
    text = (work.host.read(PAGES) or "").strip()
    return int(text) if text.isdigit() else 0
