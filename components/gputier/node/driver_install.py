"""Installing the driver: one exact version of every part, built for the kernel that runs, and held.

Never by a pattern: `580*` once brought a Fabric Manager of branch 590 to a driver of branch 580
(github.com/NVIDIA/gpu-driver-container/issues/735). The distribution's archive drops a version as
soon as there is a newer one, so what it no longer has comes from NVIDIA's repository.
"""

from __future__ import annotations

import re

from gputier.node import distro, kernels, nvidia_repository
from gputier.node.checks import driver as checks
from gputier.node.settings import OPEN, PROPRIETARY
from gputier.node.stages import Halt, Work, config, packages, reboot

OTHER_IMAGE = "use an image with the planned driver, or lock the stack again"
BLACKLIST = "/etc/modprobe.d/gputier-nouveau.conf"
BLACKLIST_TEXT = "blacklist nouveau\noptions nouveau modeset=0\n"
# A package of NVIDIA's asks for its parts in its own version or a newer one, and apt takes the
# newest branch that the repository has. The pin has to be there before apt decides; NVIDIA's own
# packages nvidia-driver-pinning-VERSION hold the same. Above 1000 apt also goes back to it.
PIN = "/etc/apt/preferences.d/gputier-driver"
PIN_TEXT = """Package: *nvidia* cuda-drivers*
Pin: version {0}-*
Pin-Priority: 1001
"""
MODULES = ("nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia")

# Sets of packages by package manager and flavour; `{0}` is the branch. The first set counts of
# which every package is offered in the planned version.
DRIVERS: dict[tuple[str, str], tuple[tuple[str, ...], ...]] = {
    (distro.APT, OPEN): (
        ("nvidia-driver-{0}-server-open",),
        ("nvidia-driver-{0}-open",),
        ("nvidia-open-{0}",),
        ("nvidia-open",),
    ),
    (distro.APT, PROPRIETARY): (
        ("nvidia-driver-{0}-server",),
        ("nvidia-driver-{0}",),
        ("cuda-drivers-{0}",),
        ("cuda-drivers",),
    ),
    (distro.DNF, OPEN): (
        ("nvidia-open",),
        ("nvidia-driver", "nvidia-driver-cuda", "kmod-nvidia-open-dkms"),
    ),
    (distro.DNF, PROPRIETARY): (
        ("cuda-drivers",),
        ("nvidia-driver", "nvidia-driver-cuda", "kmod-nvidia-latest-dkms"),
        ("nvidia-driver", "nvidia-driver-cuda", "kmod-nvidia-dkms"),
    ),
}
# The names lost their branch, and one its second hyphen, with branch 580
# (github.com/awslabs/amazon-eks-ami, 2026-07).
FABRIC_MANAGERS = (("nvidia-fabricmanager-{0}",), ("nvidia-fabricmanager",),
                   ("nvidia-fabric-manager",))  # fmt: skip
IMEXES = (("nvidia-imex-{0}",), ("nvidia-imex",))
PERSISTENCEDS = (("nvidia-persistenced",),)


def install(work: Work) -> bool:
    """Have the planned driver installed and its module loaded; whether anything was done.

    Raises Halt: config where it cannot be, reboot where the old module stays loaded.
    """
    planned = work.settings.text("driver.version") or ""
    flavour = chosen_flavour(work)
    _no_nouveau(work)
    changed = False
    if not _installed(work, planned, flavour):
        _may_build(work)
        _packages(work, planned, flavour)
        packages.hold(work)
        changed = True
    kernel = kernels.running(work)
    if kernels.has_module(work, kernel) is False:
        why = kernels.build(work, kernel)
        if why or not kernels.has_module(work, kernel):
            words = f"the driver has no module for kernel {kernel}: {why or 'nothing was built'}"
            raise Halt(config(words, "use an image whose kernel the driver can be built for"))
        changed = True
    return _loaded(work, planned) or changed


def chosen_flavour(work: Work) -> str:
    """Open or proprietary: the settings' word, else by the card. Raises Halt where they differ."""
    wanted, card = work.settings.text("driver.module"), checks.card_of(work)
    only = card.module if card and card.module in (OPEN, PROPRIETARY) else None
    if card and wanted and only and wanted != only:
        raise Halt(
            config(
                f"{card.name} works with the {only} module, and the plan has {wanted}",
                "lock the stack again: open is Blackwell's only module, and none for Volta",
            )
        )
    if wanted or only:
        return wanted or only or OPEN
    # Turing and the smaller Ampere cards are run without GSP firmware by those who have many of
    # them (github.com/awslabs/amazon-eks-ami nvidia-kmod-load.sh), and open needs it.
    return PROPRIETARY if card and card.capability < 8.9 and not card.hbm else OPEN


def _installed(work: Work, planned: str, flavour: str) -> bool:
    """Whether a set of packages is there in the planned version, with what goes with it."""
    return all(
        any(
            all(distro.upstream(have.get(name, "")) == planned for name in names)
            for names in _sets(work, sets)
            for have in [distro.installed(work, *names)]
        )
        for sets in _wanted(work, flavour)
    )


def _wanted(work: Work, flavour: str) -> list[tuple[tuple[str, ...], ...]]:
    found = [DRIVERS[distro.family(work), flavour]]
    if work.settings.flag("driver.fabric_manager"):
        found.append(FABRIC_MANAGERS)
    if work.settings.flag("driver.imex"):
        found.append(IMEXES)
    return found


def _sets(work: Work, sets: tuple[tuple[str, ...], ...]) -> list[tuple[str, ...]]:
    branch = (work.settings.text("driver.version") or "").split(".")[0]
    return [tuple(name.format(branch) for name in names) for names in sets]


def _no_nouveau(work: Work) -> None:
    """Nouveau must let the card go: it would take it again at each boot. Raises Halt."""
    work.put(BLACKLIST, BLACKLIST_TEXT)
    if not _has(work, "nouveau"):
        return
    work.run("modprobe", "-r", "nouveau", limit=30.0)
    work.memory.clear()
    if not _has(work, "nouveau"):
        return
    if distro.family(work) == distro.APT:
        work.must("leave nouveau out of the early boot", "update-initramfs", "-u", limit=300.0)
    else:
        work.must("leave nouveau out of the early boot", "dracut", "--force", limit=300.0)
    raise Halt(
        reboot(
            "nouveau has the GPU and stays until a reboot",
            "blacklist nouveau in the image",
            then="config",
        )
    )


def _has(work: Work, module: str) -> bool:
    return bool(re.search(rf"^{module}\s", work.host.read("/proc/modules") or "", re.M))


def _may_build(work: Work) -> None:
    """A module that is built here is signed by nobody the firmware trusts. Raises Halt."""
    state = work.run("mokutil", "--sb-state", limit=5.0)
    if "secureboot enabled" in state.text.lower():
        raise Halt(
            config(
                f"Secure Boot would reject a module that is built here ({state.says()})",
                "switch Secure Boot off for the machine, or use an image with a signed driver",
            )
        )


def _packages(work: Work, planned: str, flavour: str) -> None:
    names = list(_headers(work))
    if distro.family(work) == distro.APT:
        work.put(PIN, PIN_TEXT.format(planned))
    distro.refresh(work)
    added = False
    for sets in [*_wanted(work, flavour), PERSISTENCEDS]:
        found = _offered(work, sets, planned)
        if found is None and not added and sets is not PERSISTENCEDS:
            nvidia_repository.add(work, planned.split(".")[0], flavour == OPEN)
            distro.refresh(work)
            added, found = True, _offered(work, sets, planned)
        if found is None and sets is not PERSISTENCEDS:
            shown = ", ".join(" + ".join(names) for names in _sets(work, sets))
            words = f"no repository offers version {planned} of any of: {shown}"
            raise Halt(config(words, "lock a driver version that NVIDIA's repository has"))
        names += found or ()
    distro.install(work, *names, held=True, limit=work.left())


def _offered(work: Work, sets: tuple[tuple[str, ...], ...], planned: str) -> list[str] | None:
    """The first set that is offered whole in the planned version, pinned to it."""
    join = "=" if distro.family(work) == distro.APT else "-"
    for names in _sets(work, sets):
        pinned: list[str] = []
        for name in names:
            exact = [v for v in distro.candidates(work, name) if distro.upstream(v) == planned]
            pinned += [f"{name}{join}{version}" for version in exact[:1]]
        if len(pinned) == len(names):
            return pinned
    return None


def _headers(work: Work) -> tuple[str, ...]:
    """What a module for the running kernel is built against; nothing where it is there."""
    kernel = kernels.running(work)
    if work.host.exists(f"/lib/modules/{kernel}/build/Makefile"):
        return ()
    if distro.family(work) == distro.APT:
        return ("dkms", f"linux-headers-{kernel}")
    done = work.run("rpm", "-qf", "--qf", "%{NAME}\\n", f"/boot/vmlinuz-{kernel}", limit=20.0)
    base = (done.out.strip().splitlines() or ["kernel"])[0].replace("-core", "")
    return ("dkms", f"{base if done.ok else 'kernel'}-devel-{kernel}")


def _loaded(work: Work, planned: str) -> bool:
    """Have the installed module loaded, not one of before; whether that had to be done."""
    work.memory.clear()
    loaded = checks.module_version(work)
    if loaded == planned:
        return False
    if loaded is not None:
        for module in MODULES:
            work.run("modprobe", "-r", module, limit=30.0)
        if _has(work, "nvidia"):
            words = f"module {loaded} is loaded and in use, {planned} is installed"
            raise Halt(reboot(words, "reboot: the new driver's module is loaded then", "config"))
    for module in ("nvidia", "nvidia_uvm"):
        work.run("modprobe", module, limit=60.0)
    work.memory.clear()
    return True
