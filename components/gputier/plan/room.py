"""Room in user data: what a workload's own text may take of what the cloud lets a machine be given.

`boot` writes user data and measures every byte of it; that is too late for a plan, which may not
know of `boot`. So the text is measured here as it is written there, and `ROOM` is what the rest
leaves at worst: tests/boot/test_room.py holds both to what is rendered.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from gputier.errors import Problem
from gputier.plan.boot import BootPlan

#: Bytes for software, by cloud: of the 12,288 that stage 0 may have on AWS (boot/stage0.py), what
#: the largest machine with the longest names of project, stack and workload leaves. Google's 256
#: KiB hold whatever a workload may declare.
ROOM: Mapping[str, int] = {"aws": 1_700}
#: A framework makes bounds of the driver longer in the expectation: `525` becomes `525.60.13`.
BOUNDS_BYTES = 32


def room_problems(boot: BootPlan, cloud: str) -> Iterator[Problem]:
    """Software that does not fit into the user data of the chosen machine's cloud."""
    room = ROOM.get(cloud)
    parts = software_bytes(boot)
    size = sum(parts.values())
    if room is None or size <= room:
        return
    by = ", ".join(f"{name} {count:,}" for name, count in sorted(parts.items(), key=_largest))
    yield Problem(
        "software",
        f"{size:,} bytes of software, and user data of {cloud} has room for {room:,}: {by}",
        "put scripts and settings into the container or a machine image, fetch them from storage in"
        " `software.run`, or take `clouds: [gcp]`",
    )


def software_bytes(boot: BootPlan) -> Mapping[str, int]:
    """Bytes by key of the settings, as `boot` writes them: JSON without spaces, a line per key."""
    found: dict[str, object] = {
        "run": boot.run,
        "before_stop": boot.before_stop,
        "packages": boot.packages,
        "ssh_keys": boot.ssh_keys,
        "mpi": boot.mpi if boot.mpi != "none" else None,
        "proxy": _proxy(boot),
        "mirrors": _mirrors(boot),
        "container": _container(boot),
    }
    sizes = {key: _size(key, value) for key, value in found.items() if value}
    if boot.container:
        sizes["container"] += _size("container_toolkit", True)
    if boot.framework:
        one = boot.framework
        text = {"name": one.name, "version": one.version, "cuda": one.cuda, "index": one.index_url}
        # The expectation says it too: it is checked against what is installed.
        sizes["framework"] = 2 * _size("framework", text) + BOUNDS_BYTES
    return sizes


def _size(key: str, value: object) -> int:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return len(f"{json.dumps(key)}:{text},\n")


def _proxy(boot: BootPlan) -> Mapping[str, object] | None:
    proxy = boot.proxy
    if proxy is None:
        return None
    return {"http": proxy.http, "https": proxy.https, "no_proxy": ",".join(proxy.no_proxy)}


def _mirrors(boot: BootPlan) -> Mapping[str, object] | None:
    mirrors = boot.mirrors
    if mirrors is None:
        return None
    container = f"https://{mirrors.container}" if mirrors.container else None
    return {"apt": mirrors.apt, "pip": mirrors.pip, "container": container}


def _container(boot: BootPlan) -> Mapping[str, object] | None:
    given = boot.container
    if given is None:
        return None
    return {
        "image": given.image, "args": given.args, "env": dict(given.env), "ports": given.ports,
    }  # fmt: skip


def _largest(part: tuple[str, int]) -> int:
    return -part[1]
