"""NVIDIA's own package repository, which keeps every version of a driver.

https://developer.download.nvidia.com/compute/cuda/repos/ has a folder per distribution and
architecture (2026-11).
"""

from __future__ import annotations

import re

from gputier.node import distro
from gputier.node.stages import Halt, Work, config

BASE = "https://developer.download.nvidia.com/compute/cuda/repos"
KEYRING = "cuda-keyring_1.1-1_all.deb"
KEYRING_PACKAGE = "cuda-keyring"
DNF_FILE = "/etc/yum.repos.d/gputier-nvidia.repo"
KEY = "D42D0685.pub"
# ID of /etc/os-release → folder, by its whole version without the dot or by its first part.
FOLDERS = {"ubuntu": "ubuntu{whole}", "debian": "debian{major}", "amzn": "amzn{major}",
           "rhel": "rhel{major}", "rocky": "rhel{major}", "almalinux": "rhel{major}",
           "centos": "rhel{major}"}  # fmt: skip
ARCHITECTURES = {"x86_64": "x86_64", "aarch64": "sbsa"}


def folder(work: Work) -> str:
    """The repository's address for this machine. Raises Halt (config) where there is none."""
    found = dict(
        re.findall(r'^(\w+)="?([^"\n]*)"?$', work.host.read("/etc/os-release") or "", re.M)
    )
    system, version = found.get("ID", ""), found.get("VERSION_ID", "")
    machine = work.run("uname", "-m", limit=5.0).out.strip()
    if system not in FOLDERS or not version or machine not in ARCHITECTURES:
        words = f"NVIDIA has no repository for {system or 'this system'} {version} on {machine}"
        raise Halt(config(words, "use an image with the driver in it"))
    place = FOLDERS[system].format(whole=version.replace(".", ""), major=version.split(".")[0])
    return f"{BASE}/{place}/{ARCHITECTURES[machine]}"


def add(work: Work, branch: str, is_open: bool) -> None:
    """Have the repository among the package manager's. Raises Halt."""
    address = folder(work)
    if distro.family(work) == distro.APT:
        if distro.installed(work, KEYRING_PACKAGE):
            return
        file = f"/var/cache/apt/{KEYRING}"
        fetch = ("curl", "-fsSL", "--retry", "5", "--max-time", "120", "-o", file)
        work.must("fetch the repository's key", *fetch, f"{address}/{KEYRING}", limit=300.0)
        distro.wait(work)
        work.must("add the repository", "dpkg", "-i", file, env=distro.QUIET)
        return
    work.put(
        DNF_FILE,
        f"[gputier-nvidia]\nname=NVIDIA\nbaseurl={address}\nenabled=1\ngpgcheck=1\n"
        f"gpgkey={address}/{KEY}\n",
    )
    # A module stream of another branch would hide the planned one's packages.
    work.run("dnf", "-y", "-q", "module", "reset", "nvidia-driver", limit=120.0)
    stream = f"nvidia-driver:{branch}-{'open' if is_open else 'dkms'}"
    done = work.run("dnf", "-y", "-q", "module", "enable", stream, limit=120.0)
    if not done.ok:
        work.warnings.append(f"dnf module enable {stream}: {done.says()}")
