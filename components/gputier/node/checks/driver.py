"""The kernel module, its flavour and branch, and whether nvidia-smi answers at all.

What is wrong here is mostly our own fault (the image), and explains most of what fails behind it.
"""

from __future__ import annotations

import re

from gputier.node import cards, klog, pci, smi, tools, versions
from gputier.node.cards import Card
from gputier.node.engine import Check, Context
from gputier.node.expect import Expectation
from gputier.node.host import Done
from gputier.node.result import (
    CONFIG,
    INCONCLUSIVE,
    REBOOT,
    REPLACE,
    Finding,
    Garbled,
    healthy,
    inconclusive,
    unsupported,
    warning,
)

VERSION_FILE = "/proc/driver/nvidia/version"
IMAGE = "use an image whose driver fits this card: our own set-up, not the machine"
HALF_DONE = "reboot: a driver upgrade is half done; then hold its packages"
CAUSES = ("kernel-module", "module-flavour", "driver-branch")


def card_of(ctx: Context) -> Card | None:
    """The card of the plan, else the one whose device id is on the bus."""
    if ctx.card:
        return ctx.card
    return next((card for card in map(_card, pci.bus(ctx).gpus) if card), None)


def _card(device: pci.Device) -> Card | None:
    return cards.by_id(device.device)


def module_text(ctx: Context) -> str:
    """/proc/driver/nvidia/version, empty without the module."""
    return ctx.once("module", lambda: ctx.host.read(VERSION_FILE) or "")


def module_version(ctx: Context) -> str | None:
    """The version of the loaded module, None when the kernel does not tell."""
    found = re.search(r"Module(?: for \S+)?\s+(\d+\.\d+(?:\.\d+)?)", module_text(ctx))
    return (
        found[1] if found else (ctx.host.read("/sys/module/nvidia/version") or "").strip() or None
    )


def smi_version(ctx: Context) -> str | None:
    """The version that nvidia-smi's library reports, None when it does not. Raises Garbled."""
    rows = smi.query(ctx, ("driver_version",))
    text = rows[0]["driver_version"] if rows else ""
    if rows and not re.match(r"^\d+\.\d+", text):
        raise Garbled(f"nvidia-smi printed {text!r} where a driver version belongs")
    return text or None


def version(ctx: Context) -> str | None:
    """The driver's version by whichever means answers; an unloaded module's last."""
    loaded = module_version(ctx)
    if loaded:
        return loaded
    if ctx.outcome("driver") in (None, "healthy", "warning"):
        try:
            found = smi_version(ctx)
        except Garbled:
            found = None
        if found:
            return found
    done = ctx.run("modinfo", "-F", "version", "nvidia", limit=5.0)
    text = done.out.strip()
    return text if done.ok and re.match(r"^\d+\.\d+", text) else None


def kernel_module(ctx: Context) -> Finding:
    """The nvidia module is loaded, nouveau is not, and the log names nothing that forbids it."""
    expected = "module nvidia loaded"
    gpus = pci.bus(ctx).gpus
    modules = ctx.host.read("/proc/modules") or ""
    if any(gpu.driver == "nouveau" for gpu in gpus) or re.search(r"^nouveau\s", modules, re.M):
        words = "nouveau has the GPU (lspci -k, /proc/modules)"
        return Finding(CONFIG, words, expected, "blacklist nouveau and rebuild the initramfs")
    loaded = (
        bool(module_text(ctx))
        or ctx.host.exists("/sys/module/nvidia")
        or bool(re.search(r"^nvidia\s", modules, re.M))
        or any(gpu.driver == "nvidia" for gpu in gpus)
    )
    for sign, line in klog.signs(klog.kernel(ctx).text or ""):
        # A module that is there was not refused: the line is about another one.
        if not (loaded and sign.about_loading):
            return Finding(CONFIG, f"{sign.cause}: {line}", expected, sign.remedy, sign.source)
    if loaded:
        return healthy("loaded", expected)
    if not modules and _reaches_driver(smi.listed(ctx)):
        return healthy("nvidia-smi reaches the driver", expected)
    return Finding(CONFIG, _why_not_loaded(ctx), expected)


def _reaches_driver(done: Done) -> bool:
    """Whether nvidia-smi got as far as the driver, whatever it says of the GPUs then."""
    apart = "couldn't communicate" in done.text.lower() or done.rc in tools.SMI_NO_DRIVER
    return done.state == "exited" and not apart


def _why_not_loaded(ctx: Context) -> str:
    boot = ctx.run("mokutil", "--sb-state", limit=5.0)
    if "secureboot enabled" in boot.text.lower():
        return f"module nvidia is not loaded, and {boot.says()}"
    info = ctx.run("modinfo", "nvidia", limit=5.0)
    if info.state == "missing":
        return "module nvidia is not loaded; without modinfo nothing more is known"
    if not info.ok:
        return f"module nvidia is not installed for this kernel: {info.says()}"
    return "module nvidia is installed but not loaded"


def flavour(ctx: Context) -> Finding:
    """Blackwell has only the open module, Volta only the proprietary one."""
    card = card_of(ctx)
    if card is None:
        return unsupported("the table of cards does not know this model")
    expected = {"any": "either flavour"}.get(card.module, f"the {card.module} module")
    text = module_text(ctx)
    if text:
        is_open = "Open Kernel Module" in text
        evidence = text.splitlines()[0].strip()
    else:
        done = ctx.run("modinfo", "-F", "license", "nvidia", limit=5.0)
        if not done.ok:
            return warning(f"the flavour is not known: no {VERSION_FILE}, {done.says()}", expected)
        is_open, evidence = "GPL" in done.out, f"licence {done.out.strip()}"
    has = "open" if is_open else "proprietary"
    if card.module not in ("any", has):
        return Finding(CONFIG, f"{card.name} with the {has} module: {evidence}", expected)
    return healthy(f"{has} module", expected)


def branch(ctx: Context) -> Finding:
    """A branch too old does not know the card yet; one too new has forgotten it. A branch outside
    the plan's range explains as much."""
    card, text = card_of(ctx), version(ctx)
    planned_one = _other_branch(ctx, text)
    if card is None:
        return planned_one or unsupported("the table of cards does not know this model")
    expected = f"branch {card.first_branch} or newer"
    if card.last_branch:
        expected = f"branch {card.first_branch} to {card.last_branch}"
    found = versions.parse(text)
    if text is None or found is None:
        return warning("the driver's version is not known", expected)
    if found.major < card.first_branch:
        return Finding(CONFIG, f"driver {text} is too old for {card.name}", expected)
    if card.last_branch and found.major > card.last_branch:
        return Finding(CONFIG, f"driver {text} no longer knows {card.name}", expected)
    return planned_one or healthy(f"driver {text}", expected)


def _other_branch(ctx: Context, text: str | None) -> Finding | None:
    has = versions.parse(text)
    floor, ceiling = (versions.parse(ctx.expect.text(f"driver.{end}")) for end in ("min", "max"))
    if has and floor and has.major < floor.major:
        words = f"driver {text} is of an older branch than the plan's"
        return Finding(CONFIG, words, f"branch {floor.major} or newer", source="the plan")
    if has and ceiling and has.major > ceiling.major:
        words = f"driver {text} is of a newer branch than the plan's"
        return Finding(CONFIG, words, f"branch {ceiling.major} or older", source="the plan")
    return None


# What nvidia-smi says where its exit status says little: text → outcome, remedy.
SAYINGS = (
    ("driver/library version mismatch", REBOOT, HALF_DONE),
    ("gpu is lost", REPLACE, None),
    ("fallen off the bus", REPLACE, None),
    ("inforom is corrupt", REPLACE, None),
    ("unable to determine the device handle", REPLACE, None),
    ("insufficient permissions", INCONCLUSIVE, "run the validator as root"),
    ("couldn't communicate with the nvidia driver", CONFIG, None),
    ("no devices were found", REPLACE, None),
)  # fmt: skip


def driver(ctx: Context) -> Finding:
    """nvidia-smi -L ends well and names GPUs; its exit status and words say why not."""
    done = smi.listed(ctx)
    expected = "nvidia-smi -L ends with 0 and lists GPUs"
    if done.state == "missing":
        return Finding(CONFIG, "nvidia-smi is not installed", expected)
    if done.state == "timeout":
        remedy = "reboot once: the GPU's firmware hangs; the second time the machine is replaced"
        return Finding(REBOOT, f"nvidia-smi -L: {done.how}", expected, remedy)
    if done.state != "exited":
        return inconclusive(f"nvidia-smi: {done.says()}", expected)
    said = done.text.lower()
    for words, outcome, remedy in SAYINGS:
        if words in said:
            return Finding(outcome, f"nvidia-smi: {done.says()}", expected, remedy)
    if done.rc != 0:
        return _by_status(done, expected)
    count = len(smi.gpus(ctx))
    return healthy(f"{count} GPUs answer", expected, short=f"driver {version(ctx) or ''}".strip())


# Without any of them it is another language, or not nvidia-smi that speaks.
OWN_WORDS = re.compile(r"nvidia|nvml|\bgpu|\berror\b|\bfailed\b|\bunable\b", re.IGNORECASE)


def _by_status(done: Done, expected: str) -> Finding:
    row = tools.SMI_STATUS.get(done.rc if done.rc is not None else -1)
    if row is None:
        words = f"nvidia-smi ended with the unknown status {done.rc}: {done.says()}"
        if done.text.strip() and not OWN_WORDS.search(done.text):
            return inconclusive(words, expected)
        return Finding(REBOOT, words, expected)
    words = f"nvidia-smi ended with {row.rc} ({row.meaning}): {done.says()}"
    return Finding(row.outcome, words, expected)


def match(ctx: Context) -> Finding:
    """Module and library are of one version, or an upgrade is half done."""
    module, library = module_version(ctx), smi_version(ctx)
    if library is None:
        return inconclusive("nvidia-smi does not tell its driver version")
    if module is None:
        return warning(f"the kernel does not tell the module's version; library {library}")
    expected = f"both {library}"
    if module != library:
        return Finding(REBOOT, f"module {module}, library {library}", expected)
    return healthy(f"module and library {module}", expected)


def planned(ctx: Context) -> Finding:
    """The driver is within the plan's floor and ceiling, and new enough for its CUDA."""
    text = version(ctx)
    floor, ceiling = ctx.expect.text("driver.min"), ctx.expect.text("driver.max")
    expected = " ".join(filter(None, (floor and f"≥ {floor}", ceiling and f"≤ {ceiling}")))
    if text is None:
        return inconclusive("the driver's version is not known", expected)
    if floor and not versions.at_least(text, floor):
        return Finding(CONFIG, f"driver {text} is older than {floor}", expected)
    if ceiling and not versions.at_most(text, ceiling):
        return Finding(CONFIG, f"driver {text} is newer than {ceiling}", expected)
    return healthy(f"driver {text}", expected)


def cuda(ctx: Context) -> Finding:
    """The CUDA version that the driver offers (nvidia-smi's banner), against what is planned."""
    wanted = cuda_wanted(ctx.expect) or "0"
    floor = ctx.expect.text("cuda.min")
    expected = f"CUDA {floor or wanted}"
    banner = ctx.once("smi banner", lambda: smi.ask(ctx))
    found = re.search(r"CUDA (?:UMD )?Version\s*:\s*(\d+\.\d+)", banner.out)
    if found and floor and not versions.at_least(found[1], versions.release(floor)):
        return Finding(CONFIG, f"the driver offers CUDA {found[1]}", expected + " or newer")
    text, row = version(ctx), versions.branch_for(floor or wanted)
    if row and text and not versions.at_least(text, str(row.branch)):
        words = f"driver {text}: CUDA {row.major} needs branch {row.branch}"
        return Finding(CONFIG, words, expected, source=row.source)
    if found:
        return healthy(f"the driver offers CUDA {found[1]}", expected)
    if row and text:
        return healthy(f"driver {text} runs CUDA {row.major} (branch {row.branch} on)", expected)
    return inconclusive(f"no CUDA version in: {banner.says()}", expected)


def cuda_wanted(expect: Expectation) -> str | None:
    """The CUDA version of the framework: said, named by its index, or in its local part."""
    local = versions.parse(expect.text("framework.version"))
    return (
        expect.text("framework.cuda")
        or versions.cuda_of_index(expect.text("framework.index"))
        or versions.cuda_of_index(local.local if local else None)
    )


def _no_version(expect: Expectation) -> str | None:
    asked = expect.has("driver.min") or expect.has("driver.max")
    return None if asked else "the plan names no driver version"


def _no_cuda(expect: Expectation) -> str | None:
    asked = expect.has("cuda.min") or cuda_wanted(expect)
    return None if asked else "the plan names no CUDA version"


MODULE_SOURCE = (
    "NVIDIA driver README, open kernel modules; github.com/skypilot-org/skypilot/issues/9639"
)
CHECKS_MODULE = (
    Check("kernel-module", "kernel module", kernel_module, "driver",
          {CONFIG: "install the driver for this kernel in the image, and hold the kernel"},
          "github.com/GoogleCloudPlatform/compute-gpu-installation issues 10, 25"),
    Check("module-flavour", "module flavour", flavour, "driver", {CONFIG: IMAGE},
          MODULE_SOURCE, needs=("kernel-module",)),
    Check("driver-branch", "driver branch", branch, "driver", {CONFIG: IMAGE},
          "NVIDIA data-center driver release notes (2026-08)", needs=("kernel-module",)),
    Check("driver", "driver", driver, "driver",
          {REBOOT: "reboot once; the second time the machine is replaced",
           REPLACE: "this host is bad: give the machine back",
           CONFIG: "install the driver with nvidia-smi in the image",
           INCONCLUSIVE: "see what nvidia-smi says and run the check again"},
          tools.SMI_SOURCE, seconds=30.0, needs=("kernel-module",), explained_by=CAUSES),
    Check("driver-match", "module = library", match, "driver",
          {REBOOT: HALF_DONE},
          "github.com/lyulyul/shine-cluster/issues/30", needs=("driver",)),
    Check("driver-version", "planned driver", planned, "driver",
          {CONFIG: "use an image with a driver within the plan's range"},
          "the plan", needs=("kernel-module",), applies=_no_version),
    Check("cuda-version", "driver's CUDA", cuda, "driver",
          {CONFIG: "use an image with a newer driver"},
          versions.COMPATIBILITY, needs=("driver",), applies=_no_cuda),
)  # fmt: skip
