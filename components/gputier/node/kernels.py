"""The kernel that runs, the one that would start next, and whether the driver is there for both.

A reboot into a kernel without the module is how drivers vanish: an upgrade brought the kernel, and
the reboot that something else asked for started it (github.com/NVIDIA/nvidia-docker/issues/804).
"""

from __future__ import annotations

import re

from gputier.node.engine import Context

IMAGE = re.compile(r"^vmlinuz-(.+)$")
# grubby also lists the rescue image, and Debian keeps copies.
NOT_MEANT = re.compile(r"rescue|\.old$|\.bak$")


def running(ctx: Context) -> str:
    return (ctx.host.read("/proc/sys/kernel/osrelease") or "").strip()


def following(ctx: Context) -> str | None:
    """The kernel that the next boot starts, as far as can be told; None where it cannot."""
    done = ctx.run("grubby", "--default-kernel", limit=10.0)
    found = IMAGE.match(done.out.strip().rsplit("/", 1)[-1]) if done.ok else None
    if found:
        return found[1]
    for link in ("/boot/vmlinuz", "/vmlinuz"):
        found = IMAGE.match((ctx.host.link(link) or "").rsplit("/", 1)[-1])
        if found:
            return found[1]
    names = [match[1] for match in map(IMAGE.match, ctx.host.names("/boot")) if match]
    names = [name for name in names if not NOT_MEANT.search(name)]
    # What update-grub does without a default: the newest first.
    return max(names, key=_order) if names else None


def _order(name: str) -> tuple[tuple[int, ...], str]:
    return tuple(int(part) for part in re.findall(r"\d+", name)), name


def has_module(ctx: Context, kernel: str) -> bool | None:
    """Whether the nvidia module is installed for a kernel; None where that cannot be told."""
    done = ctx.run("modinfo", "-k", kernel, "-F", "filename", "nvidia", limit=10.0)
    if done.state != "exited":
        return None
    return done.ok and bool(done.out.strip())


def build(ctx: Context, kernel: str) -> str | None:
    """Have DKMS build what it knows for a kernel; what went wrong in words, None when nothing."""
    done = ctx.run("dkms", "autoinstall", "-k", kernel, limit=900.0)
    return None if done.ok else f"dkms autoinstall -k {kernel}: {done.how}: {done.says()}"


def trouble(ctx: Context) -> str | None:
    """Why a reboot would lose the driver, None when nothing is known against it."""
    now, after = running(ctx), following(ctx)
    if after is None or after == now or has_module(ctx, after) is not False:
        return None
    why = build(ctx, after)
    if why is None and has_module(ctx, after):
        return None
    return f"the next boot starts kernel {after}, which has no nvidia module ({why or 'not built'})"
