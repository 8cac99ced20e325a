"""`make` on a machine that lacks something says what, and what to do about it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

MAKE = shutil.which("make")
pytestmark = pytest.mark.skipif(MAKE is None, reason="make is not installed")
TOOLS = ("awk", "cat", "sh", "touch")


@dataclass(frozen=True, slots=True)
class Desk:
    """A checkout in a folder with a space in its name, and the only folder on PATH."""

    checkout: Path
    path: Path

    def command(self, name: str, script: str) -> Path:
        file = self.path / name
        file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        file.chmod(0o755)
        return file

    def make(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "PYTHON"))}
        return subprocess.run(
            [str(MAKE), *arguments],
            cwd=self.checkout,
            env={**clean, "PATH": str(self.path), **environment},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def desk(root: Path, tmp_path: Path) -> Desk:
    desk = Desk(tmp_path / "my checkout", tmp_path / "my tools")
    desk.checkout.mkdir()
    desk.path.mkdir()
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy2(root / name, desk.checkout / name)
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found
        (desk.path / tool).symlink_to(found)
    return desk


# Stands in for an interpreter of that version: questions about the version are put to the real one
# under a false version, `import venv` fails where `ensurepip` is split off, and `-m venv` and
# `-m pip` only write down that they were asked.
def python(version: str, *, has_venv: bool = True) -> str:
    info = tuple(map(int, version.split(".")))
    return f"""case "$*" in
  *version_info*) exec "{sys.executable}" -c "import sys; sys.version_info = {info}; $2";;
  *ensurepip*) exit {int(not has_venv)};;
  *base_prefix*) echo "prefix {version}";;
  "-m venv --clear .venv") /bin/mkdir -p .venv/bin; /bin/cp "$0" .venv/bin/python;
    echo "venv {version}" >> made;;
  "-m pip"*) echo "pip $*" >> made;;
esac"""


def made(desk: Desk) -> list[str]:
    file = desk.checkout / "made"
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def test_help_is_the_default_and_needs_no_python(desk: Desk) -> None:
    done = desk.make()
    assert done.returncode == 0, done.stderr
    assert "make demo " in done.stdout
    assert "make preview " in done.stdout
    assert "make test " in done.stdout


def test_no_python_at_all(desk: Desk) -> None:
    done = desk.make("demo")
    assert done.returncode != 0
    assert "error: `python3` was not found; gputier needs Python 3.11 or newer" in done.stderr
    assert "hint: install one, or name it: make demo PYTHON=/path/to/python3" in done.stderr


def test_an_old_python_beside_a_newer_one(desk: Desk) -> None:
    desk.command("python3", python("3.9.2"))
    desk.command("python3.12", python("3.12.1"))
    done = desk.make("test")
    assert done.returncode != 0
    place = desk.path / "python3"
    assert f"gputier needs Python 3.11 or newer; `python3` is 3.9.2 ({place})" in done.stderr
    assert "hint: make test PYTHON=python3.12" in done.stderr
    assert made(desk) == []


@pytest.mark.parametrize(("version", "taken"), [("3.10.13", False), ("3.11.0", True)])
def test_the_oldest_python_is_the_packages_own(
    desk: Desk, root: Path, version: str, taken: bool
) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["requires-python"] == ">=3.11"
    desk.command("python3", python(version))
    assert (desk.make(".venv/.base").returncode == 0) == taken


def test_a_python_that_does_not_run_is_neither_used_nor_recommended(desk: Desk) -> None:
    desk.command("python3", "exit 127")
    desk.command("python3.13", "exit 127")
    done = desk.make("demo")
    assert done.returncode != 0
    assert "does not run; gputier needs Python 3.11 or newer" in done.stderr
    assert "PYTHON=python3.13" not in done.stderr


def test_a_python_without_venv(desk: Desk) -> None:
    desk.command("python3", python("3.11.2", has_venv=False))
    done = desk.make("demo")
    assert done.returncode != 0
    assert "lacks the modules venv and ensurepip" in done.stderr
    assert "apt install python3.11-venv" in done.stderr
    assert made(desk) == []


def test_the_base_is_installed_once_and_without_development_tools(desk: Desk) -> None:
    desk.command("python3", python("3.11.2"))
    first = desk.make(".venv/.base")
    assert first.returncode == 0, first.stderr
    expected = [
        "venv 3.11.2",
        "pip -m pip --quiet --disable-pip-version-check install --editable .",
    ]
    assert made(desk) == expected
    assert desk.make(".venv/.base").returncode == 0
    assert made(desk) == expected, "nothing had changed"


def test_development_tools_bring_the_base_along(desk: Desk) -> None:
    desk.command("python3", python("3.11.2"))
    assert desk.make(".venv/.dev").returncode == 0
    before = made(desk)
    assert before[-1].endswith("install --editable .[dev]")
    assert desk.make(".venv/.base").returncode == 0
    assert made(desk) == before


def test_the_demo_plans_with_the_base_alone_before_it_installs_what_deploying_needs(
    desk: Desk,
) -> None:
    """So it proves on every fresh checkout that planning needs no Pulumi."""
    desk.command("python3", python("3.11.2"))
    desk.make(".venv/.base")
    command = desk.checkout / ".venv/bin/gputier"
    command.write_text('#!/bin/sh\necho "gputier $*" >> made\n', encoding="utf-8")
    command.chmod(0o755)
    done = desk.make("demo")
    assert done.returncode == 0, done.stderr
    lines = made(desk)
    assert lines[1].endswith("install --editable .")
    assert lines[2:4] == ["gputier plan dev", "gputier lock dev --check"]
    assert lines[-1].endswith("install --editable .[aws]")
    assert desk.make("preview").returncode == 0
    assert made(desk) == lines, "it is installed once"


def test_development_tools_bring_what_a_preview_needs(desk: Desk) -> None:
    desk.command("python3", python("3.11.2"))
    earlier = (desk.checkout / "pyproject.toml").stat().st_mtime - 10
    os.utime(desk.checkout / "pyproject.toml", (earlier, earlier))
    assert desk.make(".venv/.dev").returncode == 0
    before = made(desk)
    assert desk.make(".venv/.aws").returncode == 0
    assert made(desk) == before


def test_a_changed_pyproject_is_installed_again_into_the_same_environment(desk: Desk) -> None:
    desk.command("python3", python("3.11.2"))
    desk.make(".venv/.base")
    newer = (desk.checkout / ".venv/.base").stat().st_mtime + 10
    os.utime(desk.checkout / "pyproject.toml", (newer, newer))
    desk.make(".venv/.base")
    assert [line.split()[0] for line in made(desk)] == ["venv", "pip", "pip"]


def test_a_copied_checkout_gets_an_environment_of_its_own(desk: Desk, tmp_path: Path) -> None:
    """Scripts and the editable install carry the old place's path."""
    desk.command("python3", python("3.11.2"))
    desk.make(".venv/.base")
    shutil.copytree(desk.checkout, tmp_path / "copy")
    copy = Desk(tmp_path / "copy", desk.path)
    assert copy.make(".venv/.base").returncode == 0
    assert [line.split()[0] for line in made(copy)] == ["venv", "pip", "venv", "pip"]


def test_a_broken_environment_is_made_again(desk: Desk) -> None:
    desk.command("python3", python("3.11.2"))
    desk.make(".venv/.base")
    (desk.checkout / ".venv/bin/python").unlink()
    assert desk.make(".venv/.base").returncode == 0
    assert [line.split()[0] for line in made(desk)] == ["venv", "pip", "venv", "pip"]


@pytest.mark.parametrize("by", ["argument", "environment"])
def test_another_python_is_taken_when_asked_for_and_kept_afterwards(desk: Desk, by: str) -> None:
    desk.command("python3", python("3.11.2"))
    desk.command("python3.12", python("3.12.1"))
    desk.make(".venv/.base")
    if by == "argument":
        asked = desk.make(".venv/.base", "PYTHON=python3.12")
    else:
        asked = desk.make(".venv/.base", PYTHON="python3.12")
    assert asked.returncode == 0, asked.stderr
    desk.make(".venv/.base")
    assert [line for line in made(desk) if "venv" in line] == ["venv 3.11.2", "venv 3.12.1"]


def test_the_running_python_passes_every_check(desk: Desk) -> None:
    """The checks hold for a real interpreter too, up to creating the environment."""
    done = desk.make("-n", ".venv/.python", f"PYTHON={sys.executable}")
    assert done.returncode == 0, done.stderr
    recipe = done.stdout.replace("--clear .venv", "--without-pip .venv")
    real = subprocess.run(
        ["/bin/sh", "-c", recipe], cwd=desk.checkout, capture_output=True, text=True, check=False
    )
    assert real.returncode == 0, real.stderr
    place = (desk.checkout / ".venv/.python").read_text(encoding="utf-8").strip()
    assert place == str(desk.checkout.resolve())
