"""The machine image: a small Debian with systemd and cloud-init, built once and kept by content.

One tree serves both tiers: as a folder below an overlay for a container, as an ext4 file with its
kernel beside it for a virtual machine (direct boot: no boot loader, an initrd of one program).
What GPU machine it pretends to be comes on top of it at each start (`overlay`), so that a changed
stand-in does not cost a build.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from tests.rehearsal.needs import (
    KEYRING,
    NAMESPACES,
    PATH,
    CannotRehearse,
    alone,
    cache_folder,
    say,
)

#: Nearest in cloud-init to what Ubuntu's LTS releases ship by update, and quick to build.
SUITE = "trixie"
BUILDER = Path(__file__).parent / "build-image.sh"
INITRD = Path(__file__).parent / "initrd.sh"
BUILD_SECONDS = 900
KEEP_DAYS = 30


@dataclass(frozen=True, slots=True)
class Image:
    """A built image."""

    folder: Path

    @property
    def tree(self) -> Path:
        return self.folder / "root"

    @property
    def disk(self) -> Path:
        return self.folder / "root.ext4"

    @property
    def kernel(self) -> Path:
        return self.folder / "vmlinuz"

    @property
    def initrd(self) -> Path:
        return self.folder / "initrd.cpio"

    @property
    def versions(self) -> dict[str, str]:
        rows = (self.folder / "versions.txt").read_text(encoding="utf-8").splitlines()
        return dict(row.split(None, 1) for row in rows if " " in row or "\t" in row)


def key() -> str:
    """What an image depends on: its suite, and the text of what builds it. Never the date."""
    digest = hashlib.sha256(SUITE.encode())
    for file in (BUILDER, INITRD):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def built() -> Image:
    """The image, built now if this machine has none. Raises `CannotRehearse`."""
    place = cache_folder()
    folder = place / f"{SUITE}-{key()}"
    with alone(place, "image"):
        if not (folder / "versions.txt").exists():
            forget_old(place)
            _build(place, folder)
        os.utime(folder)
    return Image(folder)


def _build(place: Path, folder: Path) -> None:
    work = place / f"building-{os.getpid()}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    log = place / "build.log"
    say(f"building the {SUITE} image (a minute; log: {log})")
    started = time.monotonic()
    try:
        with log.open("wb") as sink:
            done = subprocess.run(
                [*NAMESPACES, "bash", str(BUILDER), SUITE, str(work), str(KEYRING), str(INITRD)],
                env={"PATH": PATH, "HOME": "/", "LC_ALL": "C", **_proxies()},
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                timeout=BUILD_SECONDS,
                check=False,
            )
        if done.returncode:
            tail = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-5:]
            raise CannotRehearse(f"the image cannot be built here: {' / '.join(tail)}")
        shutil.rmtree(folder, ignore_errors=True)
        work.rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    say(f"built the {SUITE} image: {time.monotonic() - started:.0f} s")


def _proxies() -> dict[str, str]:
    """Only what leads to the packages; nothing else of the caller's environment goes in."""
    return {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}


def forget_old(place: Path) -> None:
    """Images of other versions go when nobody used them for a while; broken builds at once."""
    for entry in place.iterdir():
        stale = entry.name.startswith("building-") or (
            entry.name.startswith(f"{SUITE}-")
            and time.time() - entry.stat().st_mtime > KEEP_DAYS * 86400
        )
        if stale and entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
