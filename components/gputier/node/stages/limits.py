"""Limits: memory that a fabric pins, files that data loaders open, huge pages.

Files below /etc/security count for those who log in; what systemd starts has limits of its own.
"""

from __future__ import annotations

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
    wanted = work.settings.count("hugepages")
    if wanted:
        changed = work.put(SYSCTL, f"vm.nr_hugepages = {wanted}\n") or changed
        if _reserved(work) < wanted:
            work.must("reserve huge pages", "sysctl", "-q", "-w", f"vm.nr_hugepages={wanted}")
            changed = True
        have = _reserved(work)
        if have < wanted:
            return config(
                f"{have} of {wanted} huge pages could be reserved",
                "declare fewer: the machine's memory does not hold them in one piece",
            )
        words.append(f"{wanted} huge pages of 2 MiB")
    return ok("; ".join(words), changed)


def _reserved(work: Work) -> int:
    text = (work.host.read(PAGES) or "").strip()
    return int(text) if text.isdigit() else 0
