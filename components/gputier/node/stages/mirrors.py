"""Private mirrors: of the distribution's packages, of PyPI, of container images."""

from __future__ import annotations

import json
import re
import urllib.parse
from typing import Any

from gputier.node import distro, having, ini, plain
from gputier.node.stages import Halt, StageResult, Work, config, ok

# What the image said before, so that another mirror later starts from there and not from the last.
ORIGINALS = "/var/lib/gputier/originals"
APT_FOLDER, APT_LIST = "/etc/apt/sources.list.d", "/etc/apt/sources.list"
# The archives of Ubuntu and Debian, with the clouds' own copies of them.
ARCHIVES = re.compile(
    r"https?://(?:[\w-]+\.)*(?:ubuntu\.com/ubuntu(?:-ports)?|debian\.org/debian)/?(?=\s|$)", re.M
)
PIP, DOCKER = "/etc/pip.conf", "/etc/docker/daemon.json"


def run(work: Work) -> StageResult:
    """Those that the plan names, asked once where they changed."""
    done: list[str] = []
    changed = False
    for kind, make in (("apt", _apt), ("pip", _pip), ("container", _container)):
        address = work.settings.text(f"mirrors.{kind}")
        if address:
            changed = make(work, address.rstrip("/")) or changed
            done.append(f"{kind} from {urllib.parse.urlsplit(address).netloc.rsplit('@', 1)[-1]}")
    return ok(", ".join(done), changed)


def _apt(work: Work, mirror: str) -> bool:
    if distro.family(work) != distro.APT:
        remedy = "take `mirrors.apt` out, or use an image of Ubuntu or Debian"
        raise Halt(config("a mirror for apt is declared, but the image has dnf", remedy))
    names = [name for name in work.host.names(APT_FOLDER) if name.endswith((".list", ".sources"))]
    changed = False
    for path in (APT_LIST, *(f"{APT_FOLDER}/{name}" for name in names)):
        content = work.host.read(path)
        if content is None:
            continue
        kept = f"{ORIGINALS}{path}"
        original = work.host.read(kept)
        if original is None:
            if not ARCHIVES.search(content):
                continue
            original = content
            work.put(kept, original)
        changed = work.put(path, ARCHIVES.sub(mirror + "/", original)) or changed
    if changed:
        done = work.run("apt-get", "-q", "update", limit=max(1.0, work.left()), env=distro.QUIET)
        if not done.ok or re.search(r"^(?:W|E): Failed to fetch", done.text, re.M):
            raise Halt(having.failed(f"the mirror {mirror} does not answer", done))
    return changed


def _pip(work: Work, mirror: str) -> bool:
    content = ini.with_key(work.host.read(PIP) or "", "global", "index-url", mirror)
    address = urllib.parse.urlsplit(mirror)
    if address.scheme == "http":
        # pip takes nothing over plain http from a host that it was not told to trust.
        content = ini.with_key(content, "global", "trusted-host", address.netloc)
    return work.put(PIP, content)


def _container(work: Work, mirror: str) -> bool:
    """Docker asks a mirror for images of Docker Hub; other registries are named in the image."""
    data = daemon(work)
    if data.get("registry-mirrors") == [mirror]:
        return False
    work.put(DOCKER, json.dumps({**data, "registry-mirrors": [mirror]}, indent=1) + "\n")
    if work.host.which("docker"):
        work.must("tell docker", "systemctl", "try-reload-or-restart", "docker", limit=30.0)
    return True


def daemon(work: Work) -> dict[str, Any]:
    """Docker's own configuration. Raises Halt (config) when it cannot be read."""
    content = work.host.read(DOCKER)
    try:
        data = plain.mapping(json.loads(content)) if content and content.strip() else {}
    except ValueError:
        data = None
    if data is None:
        raise Halt(config(f"{DOCKER} is not a JSON object", "mend that file in the image"))
    return data
