"""The distribution works as people install it: a wheel, and an editable checkout.

Both go into fresh virtual environments that hold the base dependencies and nothing else, linked
from the environment the tests run in. So no network is needed, and a module that reaches for a
development tool is found out.
"""

from __future__ import annotations

import fnmatch
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

SOURCES = {
    "components/gputier": "gputier",
    "templates": "gputier/templates",
    "policies/gputier_policies": "gputier_policies",
}
# One worker builds and installs for all of them (`make test` distributes by group).
pytestmark = pytest.mark.xdist_group("packaging")
COPIED = ("components", "templates", "policies", "pyproject.toml", "README.md", "LICENSE")
MEGABYTE = 10**6


@dataclass(frozen=True, slots=True)
class Environment:
    """A fresh virtual environment. `run` gives what a command of it prints."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def run(self, command: str, *arguments: str) -> str:
        return run(str(self.folder / "bin" / command), *arguments, cwd=self.folder)


def run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def closure(requirements: list[str]) -> Iterator[metadata.Distribution]:
    """The installed distributions that these requirements need, and what those need."""
    waiting, seen = [Requirement(text) for text in requirements], set[str]()
    while waiting:
        wanted = waiting.pop()
        if wanted.name in seen or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        seen.add(wanted.name)
        found = metadata.distribution(wanted.name)
        assert wanted.specifier.contains(found.version), f"{found.name} {found.version}: {wanted}"
        waiting += [Requirement(text) for text in found.requires or ()]
        yield found


def link_dependencies(requirements: list[str], folder: Path) -> None:
    """Make `folder` an import path that holds exactly these requirements."""
    folder.mkdir()
    for found in closure(requirements):
        for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            (folder / top).symlink_to(Path(str(found.locate_file(top))))


def fresh(folder: Path, dependencies: Path) -> Environment:
    venv.create(folder, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(f"{dependencies}\n", encoding="utf-8")
    return Environment(folder)


def install(environment: Environment, *what: str) -> None:
    offline = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation")
    pip = (sys.executable, "-m", "pip", "--python", str(environment.python))
    run(*pip, "install", *offline, *what, cwd=environment.folder)


@pytest.fixture(scope="module")
def project(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def checkout(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy to build from: a build in place would leave files that the next build ships."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in COPIED:
        source = root / name
        if source.is_dir():
            skip = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(source, copy / name, ignore=skip)
        else:
            shutil.copy2(source, copy / name)
    return copy


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    build = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(out))
    run(sys.executable, "-m", "pip", "wheel", *build, str(checkout), cwd=out)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def dependencies(project: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dependencies") / "base"
    link_dependencies([*project["project"]["dependencies"], "setuptools>=77"], folder)
    return folder


@pytest.fixture(scope="module")
def from_wheel(
    wheel: Path, dependencies: Path, tmp_path_factory: pytest.TempPathFactory
) -> Environment:
    environment = fresh(tmp_path_factory.mktemp("wheel") / "venv", dependencies)
    install(environment, str(wheel))
    return environment


@pytest.fixture(scope="module")
def editable(
    checkout: Path, dependencies: Path, tmp_path_factory: pytest.TempPathFactory
) -> Environment:
    environment = fresh(tmp_path_factory.mktemp("editable") / "venv", dependencies)
    install(environment, "--editable", str(checkout))
    return environment


def test_every_package_on_disk_is_in_the_distribution(root: Path, project: dict[str, Any]) -> None:
    """A folder that setuptools is not told of works in a checkout and is missing in a wheel."""
    on_disk = {
        ".".join((package.replace("/", "."), *path.parent.relative_to(root / source).parts))
        for source, package in SOURCES.items()
        for path in (root / source).rglob("__init__.py")
    }
    assert sorted(project["tool"]["setuptools"]["packages"]) == sorted(on_disk)


def test_templates_and_data_are_packages(root: Path) -> None:
    """Without `__init__.py` a wheel finds its data and an editable install does not."""
    for folder in (
        "templates",
        "components/gputier/catalog/data",
        "components/gputier/sizing/data",
    ):
        assert (root / folder / "__init__.py").is_file()


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_packages(checkout: Path, wheel: Path) -> None:
    expected = {
        f"{package}/{path.relative_to(checkout / source).as_posix()}"
        for source, package in SOURCES.items()
        for path in (checkout / source).rglob("*")
        # The editable install runs from the same copy, perhaps earlier.
        if path.is_file() and path.parent.name != "__pycache__"
    }
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == expected
    assert any(fnmatch.fnmatch(name, "gputier/catalog/data/*.csv") for name in names)


@pytest.mark.slow
def test_the_wheel_carries_the_licences(wheel: Path, project: dict[str, Any]) -> None:
    with zipfile.ZipFile(wheel) as archive:
        licences = {
            name.split("/licenses/")[1]: archive.read(name)
            for name in archive.namelist()
            if "/licenses/" in name
        }
        (meta,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        text = archive.read(meta).decode()
    assert sorted(licences) == sorted(project["project"]["license-files"])
    assert all(len(content) > 100 for content in licences.values()), "a licence file is empty"
    assert f"License-Expression: {project['project']['license']}\n" in text


@pytest.mark.slow
def test_the_wheel_is_small_and_runs_anywhere(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        installed = sum(entry.file_size for entry in archive.infolist())
    assert installed < 10 * MEGABYTE, f"{installed / MEGABYTE:.1f} MB installed"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["from_wheel", "editable"])
def test_an_installed_gputier_runs_and_finds_its_data(
    mode: str, project: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    environment: Environment = request.getfixturevalue(mode)
    version = project["project"]["version"]
    assert re.search(rf"\b{re.escape(version)}\b", environment.run("gputier", "--version"))
    code = (
        "import importlib.resources as r, gputier, gputier_policies\n"
        "from gputier import catalog\n"
        "print(len(catalog.load().types), gputier.__path__[0])\n"
        "print(r.files('gputier.templates').joinpath('__init__.py').is_file())"
    )
    counts, templates = environment.run("python", "-c", code).splitlines()
    types, place = counts.split(" ", 1)
    assert int(types) > 300
    assert templates == "True"
    inside = Path(place).is_relative_to(environment.folder)
    assert inside == (mode == "from_wheel"), f"gputier was imported from {place}"


@pytest.mark.slow
def test_an_edit_is_live_in_an_editable_install(checkout: Path, editable: Environment) -> None:
    probe = checkout / "templates" / "probe.txt.j2"
    module = checkout / "components" / "gputier" / "probe.py"
    probe.write_text("live template", encoding="utf-8")
    module.write_text("TEXT = 'live module'", encoding="utf-8")
    code = (
        "import importlib.resources as r, gputier.probe as p\n"
        "print(p.TEXT, r.files('gputier.templates').joinpath('probe.txt.j2').read_text())"
    )
    try:
        assert editable.run("python", "-c", code) == "live module live template\n"
    finally:
        probe.unlink()
        module.unlink()


@pytest.mark.slow
def test_the_base_install_holds_no_cloud_sdk(from_wheel: Environment) -> None:
    """The extras are extras: nothing of theirs may sneak into the base dependencies."""
    code = (
        "import importlib.util as u\n"
        "print([n for n in ('pulumi', 'pulumi_aws', 'boto3', 'pytest', 'moto', 'gpuhunt')"
        " if u.find_spec(n)])"
    )
    assert from_wheel.run("python", "-c", code) == "[]\n"
