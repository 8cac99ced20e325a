"""A command written in Go that tests need: built once from a module that pins it, then kept.

The build needs Go and reads Go's module proxy; the result is one static file under
$XDG_CACHE_HOME/gputier/engine, named by what went into it, that needs no network afterwards.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# Nothing of the machine that builds goes into the file, so that the same sources give the same one.
ENVIRONMENT = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -trimpath -buildvcs=false"}


class NoTool(Exception):
    """There is no command to test with; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Tool:
    """`package` of the module in `folder`, which pins `requirement`; `make` builds it."""

    name: str
    folder: Path
    package: str
    requirement: str
    make: str
    without: str  # what there is none of without it: `engine tests`
    tags: str = ""
    flags: str = "-s -w"  # for the linker; {version} is the release

    def version(self) -> str:
        """The release that go.mod pins, `3.274.1`."""
        text = (self.folder / "go.mod").read_text(encoding="utf-8")
        found = re.search(rf"{re.escape(self.requirement)} v([\d.]+)\b", text)
        assert found, f"{self.folder.name}/go.mod pins no release of {self.name}"
        return found[1]

    def cached(self) -> Path:
        """Where it is kept: a new version, module or way of building is a new place."""
        parts = [(self.folder / name).read_bytes() for name in ("go.mod", "go.sum")]
        parts += [text.encode() for text in (self.tags, *ENVIRONMENT.values(), platform.machine())]
        parts += [platform.system().encode()]
        key = hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        place = cache / "gputier" / "engine" / f"{self.name}-{self.version()}-{key}"
        return place / self.name

    def find(self) -> Path:
        """The built command. NoTool when nobody has built it here."""
        if (kept := self.cached()).is_file():
            return kept
        missing = f"no {self.name} {self.version()} has been built on this machine"
        raise NoTool(f"{missing}: `{self.make}` builds it")

    def build(self) -> Path:
        """The built command, built now if need be; two processes at once build it once."""
        kept = self.cached()
        if kept.is_file():
            return kept
        go = shutil.which("go")
        if not go:
            raise NoTool(
                f"{self.name} {self.version()} is built with Go, which is not on PATH: install Go,"
                f" then `{self.make}` builds it"
            )
        kept.parent.parent.mkdir(parents=True, exist_ok=True)
        with _alone(kept.parent.parent / "lock"):
            if not kept.is_file():
                self._compile(go, kept)
        return kept

    def _compile(self, go: str, kept: Path) -> None:
        """Into a folder of its own, which then takes the place: no half-written command is
        found."""
        with tempfile.TemporaryDirectory(dir=kept.parent.parent, prefix="building-") as name:
            made = Path(name) / kept.parent.name
            flags = self.flags.format(version=self.version())
            command = (go, "build", "-tags", self.tags, "-ldflags", flags)
            done = subprocess.run(
                (*command, "-o", str(made / self.name), self.package),
                cwd=self.folder,
                env={**os.environ, **ENVIRONMENT},
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                reason = done.stderr.strip()[-2000:]
                raise NoTool(f"building {self.name} {self.version()} failed:\n{reason}")
            made.rename(kept.parent)

    def main(self) -> int:
        """0 with a command; without one 1 in continuous integration, else 0 with the reason."""
        began = time.monotonic()
        if not self.cached().is_file() and shutil.which("go"):
            sys.stderr.write(f"building {self.name} {self.version()}, once (minutes)\n")
        try:
            place = self.build()
        except NoTool as reason:
            sys.stderr.write(f"no {self.without}: {reason}\n")
            return int(bool(os.environ.get("CI")))
        sys.stdout.write(f"{place} ({time.monotonic() - began:.1f} s)\n")
        return 0


@contextmanager
def _alone(file: Path) -> Generator[None]:
    with file.open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
