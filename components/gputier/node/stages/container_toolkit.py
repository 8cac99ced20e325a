"""Containers with GPUs: docker, NVIDIA's toolkit, and what keeps a container from losing its GPUs.

A reload of systemd takes the devices of running containers away where /dev/char has no links to
them (github.com/NVIDIA/nvidia-container-toolkit/issues/48). The links are made here, at every boot,
and nothing reloads systemd once the workload runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from gputier.node import distro, fetched, having, plain, units
from gputier.node.stages import Halt, StageResult, Work, config, ok

CTK, PACKAGE = "nvidia-ctk", "nvidia-container-toolkit"
SITE = "https://nvidia.github.io/libnvidia-container"
KEY, APT_SOURCE = (
    "/etc/apt/keyrings/nvidia-container-toolkit.asc",
    "/etc/apt/sources.list.d/nvidia-container-toolkit.list",
)
APT_TEXT = f"deb [signed-by={KEY}] {SITE}/stable/deb/$(ARCH) /\n"
DNF_SOURCE = "/etc/yum.repos.d/nvidia-container-toolkit.repo"
DNF_TEXT = f"""\
[nvidia-container-toolkit]
name=nvidia-container-toolkit
baseurl={SITE}/stable/rpm/$basearch
repo_gpgcheck=1
gpgcheck=0
enabled=1
gpgkey={SITE}/gpgkey
sslverify=1
"""
RULE = "/etc/udev/rules.d/71-nvidia-dev-char.rules"
# For devices that come later, such as MIG instances (nvidia-docker issue 1671).
RULE_TEXT = (
    'ACTION=="add", DEVPATH=="/bus/pci/drivers/nvidia", '
    'RUN+="/usr/bin/nvidia-ctk system create-dev-char-symlinks --create-all"\n'
)
# From 1.18 on the toolkit's own unit writes the description of the devices, at every boot.
REFRESH, CDI = "nvidia-cdi-refresh.service", "/var/run/cdi/nvidia.yaml"
DOCKER_JSON = "/etc/docker/daemon.json"


def run(work: Work) -> StageResult:
    """Docker runs containers with GPUs, and goes on doing so."""
    changed = _docker(work)
    changed = _toolkit(work) or changed
    changed = _links(work) or changed
    changed = _described(work) or changed
    changed = _runtime(work) or changed
    version = re.search(r"version (\S+)", work.run(CTK, "--version", limit=10.0).out)
    return ok(f"docker with NVIDIA's toolkit {version[1] if version else ''}".strip(), changed)


def _docker(work: Work) -> bool:
    changed = False
    if work.host.which("docker") is None:
        name = "docker.io" if distro.family(work) == distro.APT else "docker"
        changed = having.command(work, "docker", name)
    changed = units.enable(work, "docker.service") or changed
    return units.start(work, "docker.service") or changed


def _toolkit(work: Work) -> bool:
    """From the image, its repositories, else NVIDIA's own."""
    if work.host.which(CTK):
        return False
    if not distro.candidates(work, PACKAGE):
        if distro.family(work) == distro.APT:
            fetched.download(work, f"{SITE}/gpgkey", KEY, limit=60.0)
            work.put(APT_SOURCE, APT_TEXT)
        else:
            work.put(DNF_SOURCE, DNF_TEXT)
    return having.command(work, CTK, PACKAGE)


def _links(work: Work) -> bool:
    """Links in /dev/char to every device of the driver, now and when one is added."""
    changed = work.put(RULE, RULE_TEXT)
    if changed:
        work.run("udevadm", "control", "--reload", limit=10.0)
    there = set(work.host.names("/dev/char"))
    if there and set(_numbers(work)) <= there:
        return changed
    done = work.run(CTK, "system", "create-dev-char-symlinks", "--create-all", limit=60.0)
    if not done.ok:
        work.warnings.append(
            "no links in /dev/char (the toolkit has them from 1.12 on): a `systemctl "
            f"daemon-reload` takes GPUs from running containers: {done.says()}"
        )
    return True


def _numbers(work: Work) -> Iterator[str]:
    """Major and minor numbers of what a container gets: GPUs, control device, unified memory."""
    rows = (line.split() for line in (work.host.read("/proc/devices") or "").splitlines())
    majors = {row[1]: row[0] for row in rows if len(row) == 2 and row[0].isdigit()}
    gpus = [n[6:] for n in work.host.names("/dev") if re.match(r"^nvidia\d+$", n)]
    frontend = majors.get("nvidia-frontend") or majors.get("nvidia") or "195"
    yield from (f"{frontend}:{number}" for number in (*gpus, "255"))
    if "nvidia-uvm" in majors:
        yield f"{majors['nvidia-uvm']}:0"


def _described(work: Work) -> bool:
    """The description (CDI) of the devices as they are in this boot: numbers and MIG change."""
    text = work.host.read(CDI) or ""
    divided = not work.settings.has("mig") or re.search(r'name: "?\d+:\d+', text)
    if text and divided:
        return False
    shown = work.run("systemctl", "show", "-p", "LoadState", REFRESH, limit=10.0)
    if "LoadState=loaded" in shown.out:
        work.must("describe the devices", "systemctl", "restart", REFRESH, limit=60.0)
    else:
        work.must("describe the devices", CTK, "cdi", "generate", f"--output={CDI}", limit=60.0)
    return True


def _runtime(work: Work) -> bool:
    """NVIDIA's runtime among docker's; docker reads that only when it starts."""
    if "nvidia" in _runtimes(work):
        return False
    work.must("tell docker", CTK, "runtime", "configure", "--runtime=docker", limit=30.0)
    work.must("start docker again", "systemctl", "restart", "docker.service", limit=90.0)
    if "nvidia" not in _runtimes(work):
        raise Halt(config(f"docker does not know NVIDIA's runtime; see {DOCKER_JSON}"))
    return True


def _runtimes(work: Work) -> dict[str, object]:
    done = work.run("docker", "info", "--format", "{{json .Runtimes}}", limit=60.0)
    if not done.ok:
        raise Halt(config(f"docker does not answer: {done.how}: {done.says()}",
                          "see journalctl -u docker"))  # fmt: skip
    try:
        return plain.mapping(json.loads(done.out)) or {}
    except ValueError:
        return {}
