"""The real `pulumi` command: built once from the module that cli/go.mod pins, then kept.

`python -m tests.engine.pulumi_cli` builds it where it is not there yet and prints where it is. The
build needs Go, reads Go's module proxy and takes minutes; the result is one static file under
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
from pathlib import Path

MODULE = Path(__file__).resolve().parent / "cli"
COMMAND = "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
TAGS = "osusergo,grpcnotrace"
# Nothing of the machine that builds goes into the file, so that the same sources give the same one.
ENVIRONMENT = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -trimpath -buildvcs=false"}
RETRY = "`make pulumi` builds it"


class NoPulumi(Exception):
    """There is no command to test with; the text says why and what to do."""


def version() -> str:
    """The release that go.mod pins, `3.274.1`."""
    text = (MODULE / "go.mod").read_text(encoding="utf-8")
    found = re.search(r"github\.com/pulumi/pulumi/pkg/v3 v([\d.]+)\b", text)
    assert found, "cli/go.mod pins no release of the command"
    return found[1]


def cached() -> Path:
    """Where the built command is kept: a new version, module or way of building is a new place."""
    parts = [(MODULE / name).read_bytes() for name in ("go.mod", "go.sum")]
    parts += [text.encode() for text in (TAGS, *ENVIRONMENT.values(), platform.machine())]
    parts += [platform.system().encode()]
    key = hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "gputier" / "engine" / f"pulumi-{version()}-{key}" / "pulumi"


def find() -> Path:
    """The built command. NoPulumi when nobody has built it here."""
    if (kept := cached()).is_file():
        return kept
    raise NoPulumi(f"no pulumi {version()} has been built on this machine: {RETRY}")


def build() -> Path:
    """The built command, built now if need be; two processes at once build it once."""
    kept = cached()
    if kept.is_file():
        return kept
    go = shutil.which("go")
    if not go:
        raise NoPulumi(
            f"pulumi {version()} is built with Go, which is not on PATH: install Go, then {RETRY}"
        )
    kept.parent.parent.mkdir(parents=True, exist_ok=True)
    with _alone(kept.parent.parent / "lock"):
        if not kept.is_file():
            _compile(go, kept)
    return kept


def _compile(go: str, kept: Path) -> None:
    """Into a folder of its own, which then takes the place: no half-written command is found."""
    with tempfile.TemporaryDirectory(dir=kept.parent.parent, prefix="building-") as name:
        made = Path(name) / kept.parent.name
        flags = f"-s -w -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version={version()}"
        command = (go, "build", "-tags", TAGS, "-ldflags", flags, "-o", str(made / "pulumi"))
        done = subprocess.run(
            (*command, COMMAND),
            cwd=MODULE,
            env={**os.environ, **ENVIRONMENT},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise NoPulumi(f"building pulumi {version()} failed:\n{done.stderr.strip()[-2000:]}")
        made.rename(kept.parent)


@contextmanager
def _alone(file: Path) -> Generator[None]:
    with file.open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    """0 with a command; without one 1 in continuous integration, else 0 with the reason."""
    began = time.monotonic()
    if not cached().is_file() and shutil.which("go"):
        sys.stderr.write(f"building pulumi {version()}, once (minutes)\n")
    try:
        place = build()
    except NoPulumi as reason:
        sys.stderr.write(f"no engine tests: {reason}\n")
        return int(bool(os.environ.get("CI")))
    sys.stdout.write(f"{place} ({time.monotonic() - began:.1f} s)\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
