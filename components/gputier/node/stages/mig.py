"""The MIG layout: mode on, the planned instances made, and asserted afterwards.

"Applied successfully" is not enough: under a hypervisor the reset may silently not have happened
(github.com/NVIDIA/mig-parted/issues/9), and a node whose layout is not there computes on the CPU
(github.com/Azure/AgentBaker/issues/2508).
"""

from __future__ import annotations

from gputier.node import smi
from gputier.node.result import REPLACE
from gputier.node.stages import Halt, StageResult, Work, config, ok, reboot

# Who holds a GPU while its mode should change: "In use by another client" with no process to be
# seen is one of these, or nvidia_drm (github.com/NVIDIA/mig-parted/issues/181).
HOLDERS = ("nvidia-dcgm", "dcgm-exporter", "nvidia-dcgm-exporter", "nvidia-persistenced")


def run(work: Work) -> StageResult:
    """Nothing where the layout is there; else make it, with one reboot at most."""
    profile = work.settings.text("mig.profile")
    # The plan says how many fit beside what else the machine must be, in the expectation.
    wanted = work.settings.count("mig.count") or work.expect.count("gpu.mig.count") or 1
    if profile is None:
        return config("a number of MIG instances without a profile", "name the profile")
    if _missing(work, profile, wanted) is None:
        return ok(f"{wanted} × {profile} on every GPU")
    stopped = _free(work)
    try:
        _mode_on(work)
        _make(work, profile, wanted)
    finally:
        for name in stopped:
            work.run("systemctl", "start", name, limit=60.0)
    work.memory.clear()
    missing = _missing(work, profile, wanted)
    if missing:
        return config(f"made, and yet {missing}", "see whether the card has this profile")
    return ok(f"{wanted} × {profile} on every GPU", changed=True)


def modes(work: Work) -> dict[int, tuple[bool, bool]]:
    """Current and pending mode by GPU. Raises Garbled; Halt where the card has none."""
    rows = smi.query(work, ("index", "mig.mode.current", "mig.mode.pending"))
    found: dict[int, tuple[bool, bool]] = {}
    for row in rows:
        now = smi.yes(row.get("mig.mode.current"))
        if now is None:
            raise Halt(
                config(f"GPU {row['index']} has no MIG", "the plan divides a card that has none")
            )
        later = smi.yes(row.get("mig.mode.pending"))
        found[int(row["index"])] = (now, now if later is None else later)
    return found


def _missing(work: Work, profile: str, wanted: int) -> str | None:
    """What is not as planned, None when all is."""
    off = [index for index, (now, _) in modes(work).items() if not now]
    if off:
        return f"MIG is off on GPU {', '.join(map(str, off))}"
    for gpu in smi.gpus(work):
        have = [name for name, _ in gpu.mig]
        if have != [profile] * wanted:
            return f"GPU {gpu.number} has {', '.join(have) or 'no instance'}"
    return None


def _free(work: Work) -> list[str]:
    """Stop who holds the GPUs; those that ran, to be started again."""
    if all(now for now, _ in modes(work).values()):
        return []
    running = [name for name in HOLDERS if work.run("systemctl", "is-active", "--quiet", name).ok]
    for name in running:
        work.run("systemctl", "stop", name, limit=60.0)
    work.run("modprobe", "-r", "nvidia_drm", limit=30.0)
    return running


def _mode_on(work: Work) -> None:
    """Mode on for each GPU. Raises Halt: reboot where it waits for a reset."""
    for index, (now, _) in modes(work).items():
        if not now:
            work.must(f"MIG on, GPU {index}", smi.SMI, "-i", str(index), "-mig", "1", limit=60.0)
    work.memory.clear()
    waiting = [index for index, (now, _) in modes(work).items() if not now]
    if waiting:
        shown = ", ".join(map(str, waiting))
        raise Halt(
            reboot(
                f"the MIG mode of GPU {shown} waits for a reset",
                "reboot once: the MIG mode waits for a reset",
                then=REPLACE,
            )
        )


def _make(work: Work, profile: str, wanted: int) -> None:
    layout = ",".join([profile] * wanted)
    for gpu in smi.gpus(work):
        have = [name for name, _ in gpu.mig]
        if have == [profile] * wanted:
            continue
        which = ("-i", str(gpu.number))
        if have:
            work.run(smi.SMI, "mig", *which, "-dci", limit=60.0)
            work.must(f"old instances, GPU {gpu.number}", smi.SMI, "mig", *which, "-dgi")
        work.must(
            f"{wanted} × {profile}, GPU {gpu.number}",
            *(smi.SMI, "mig", *which, "-cgi", layout, "-C"),
            remedy="see nvidia-smi mig -lgip for the profiles that the card has",
        )
