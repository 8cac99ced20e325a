"""gputier as people install it, with what a project's workflows call beside it.

`Installed` is a virtual environment that holds the wheel and `ruff`. A runner's own PATH has only
`python` and `pulumi`: that python makes no environment and installs nothing, because both are
there; what it was asked to install is kept in `asked`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.test_packaging import COPIED, fresh, install, link_dependencies, run

PYTHON = """#!/bin/sh
case "$2" in
  venv) exec ln -sfn "{folder}" "$3" ;;
  pip) shift 2; echo "$@" >> "{folder}/asked"; exit 0 ;;
esac
exec "{folder}/bin/python3" "$@"
"""


@dataclass(frozen=True, slots=True)
class Installed:
    folder: Path

    @property
    def site(self) -> Path:
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found

    @property
    def asked(self) -> list[str]:
        """What `pip` was asked for, a line for each time."""
        file = self.folder / "asked"
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []

    def gputier(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.folder / "bin" / "gputier"), *arguments],
            cwd=cwd,
            env={**self.environment({}), "COLUMNS": "100"},
            capture_output=True,
            text=True,
            check=False,
        )

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """Of the caller's environment only what a runner has too."""
        kept = {k: v for k, v in os.environ.items() if k in ("HOME", "LANG", "TMPDIR")}
        return {**kept, **more, "PATH": self.path, "PYTHONDONTWRITEBYTECODE": "1"}

    @property
    def runner(self) -> Path:
        """Where a runner's own commands are."""
        return self.folder.parent / "runner"

    @property
    def path(self) -> str:
        return f"{self.runner}:/usr/bin:/bin"


def build_wheel(root: Path, folder: Path) -> Path:
    """The wheel of a copy: a build in place would leave files that the next build ships."""
    copy = folder / "checkout"
    copy.mkdir()
    skip = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in COPIED:
        if (root / name).is_dir():
            shutil.copytree(root / name, copy / name, ignore=skip)
        else:
            shutil.copy2(root / name, copy / name)
    build = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", ".")
    run(sys.executable, "-m", "pip", "wheel", *build, str(copy), cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


def installed(wheel: Path, requirements: list[str], folder: Path) -> Installed:
    """The wheel in an environment of its own, with these requirements and nothing else."""
    link_dependencies(requirements, folder / "dependencies")
    environment = fresh(folder / "venv", folder / "dependencies")
    install(environment, str(wheel))
    found = Installed(folder / "venv")
    python = found.folder / "bin" / "python"
    python.unlink()
    python.write_text(PYTHON.format(folder=found.folder), encoding="utf-8")
    python.chmod(0o755)
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent))
    assert ruff
    (found.folder / "bin" / "ruff").symlink_to(ruff)
    found.runner.mkdir()
    for name in ("python", "python3"):
        (found.runner / name).symlink_to(python)
    return found


def add_pulumi(found: Installed, command: Path) -> None:
    link = found.runner / "pulumi"
    if not link.exists():
        link.symlink_to(command)
