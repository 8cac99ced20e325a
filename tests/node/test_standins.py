"""The zipapp on a folder of stand-in commands and a root of files, as users rehearse with it."""

# ruff: noqa: E501 (tables of cases, one row a line)
from __future__ import annotations

import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
import textwrap
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.node.machines import Machine
from tests.node.standins import environment, lay_out

from gputier.node import build, cli, expect, recording
from gputier.node.verbs.common import judge

Laid = tuple[Path, Path, Path]
OLDEST = next(
    (str(p) for p in sorted(Path.home().glob(".pyenv/versions/3.8*/bin/python3.8"))),
    shutil.which("python3.8"),
)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("bundle") / "gputier-node.pyz"
    build.build(out)
    return out


def laid_out(machine: Machine, place: Path) -> Laid:
    """Commands, root, expectation of a machine."""
    text = json.dumps(machine.expectation())
    recorder = recording.Recorder(machine)
    judge(recorder, expect.read(text), "quick", keep=False)
    kept = recorder.recording(recording.Origin("synthesised"), machine.kind.name)
    commands, root = lay_out(kept, place / "machine")
    wanted = place / "expect.json"
    wanted.write_text(text, encoding="utf-8")
    return commands, root, wanted


def call(bundle: Path, laid: Laid, *verb: str, python: str = sys.executable, **extra: str) -> Any:
    commands, root, wanted = laid
    return subprocess.run(
        [python, str(bundle), *verb, "--expect", str(wanted)],
        env={**environment(commands, root), **extra},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a_healthy_machine_of_eight_gpus_is_healthy_in_little_time(
    bundle: Path, tmp_path: Path
) -> None:
    laid = laid_out(Machine("p5.48xlarge"), tmp_path)
    started = time.monotonic()
    done = call(bundle, laid, "check", "--json")
    found = json.loads(done.stdout)
    bad = [(c["name"], c["evidence"]) for c in found["checks"] if c["outcome"] != "healthy"]
    assert [name for name, _ in bad] == ["retired-pages"], bad
    assert (done.returncode, found["outcome"], found["schema"]) == (0, "healthy", "gputier/node/1")
    assert time.monotonic() - started < 60


@pytest.mark.skipif(OLDEST is None, reason="no Python 3.8 on this machine")
def test_the_oldest_python_runs_it_too(bundle: Path, tmp_path: Path) -> None:
    laid = laid_out(Machine("p5.48xlarge"), tmp_path)
    done = call(bundle, laid, "check", python=str(OLDEST))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("gputier-node: HEALTHY   p5.48xlarge")


FAULTS: dict[str, tuple[int, Callable[[Machine], object]]] = {
    "replace": (20, lambda m: setattr(m.gpus[7], "visible", False)),
    "reboot": (10, lambda m: m.gpus[2].fields.update({"remapped_rows.pending": "Yes"})),
    "config": (30, lambda m: m.absent.add("nvcc")),
    "inconclusive": (40, lambda m: m.says("nvidia-smi nvlink -s", 0, "geht nicht")),
}


@pytest.mark.parametrize(("rc", "change"), FAULTS.values(), ids=FAULTS)
def test_the_exit_status_is_the_outcomes(
    bundle: Path, tmp_path: Path, rc: int, change: Callable[[Machine], object]
) -> None:
    machine = Machine("p5.48xlarge")
    change(machine)
    done = call(bundle, laid_out(machine, tmp_path), "check", "--json")
    assert done.returncode == rc, done.stdout + done.stderr


def test_a_reboot_is_counted_below_the_root(bundle: Path, tmp_path: Path) -> None:
    machine = Machine("p5.48xlarge")
    machine.gpus[2].fields["remapped_rows.pending"] = "Yes"
    laid = laid_out(machine, tmp_path)
    assert call(bundle, laid, "check").returncode == 10
    boot = laid[1] / "proc/sys/kernel/random/boot_id"
    boot.write_text("another\n", encoding="utf-8")
    assert call(bundle, laid, "check").returncode == 20
    assert (laid[1] / "var/lib/gputier/boots.json").is_file()


def test_a_tool_that_hangs_is_killed_and_named(bundle: Path, tmp_path: Path) -> None:
    laid = laid_out(Machine("p5.48xlarge"), tmp_path)
    commands, _, wanted = laid
    (commands / "nvidia-smi").write_text(
        "#!/bin/sh\ntrap '' TERM INT HUP\n/bin/sleep 1000 &\n/bin/sleep 1000\n", encoding="utf-8"
    )
    plan = json.loads(wanted.read_text(encoding="utf-8"))
    plan["limits"] = {"checks": {"driver": 1}}
    wanted.write_text(json.dumps(plan), encoding="utf-8")
    started = time.monotonic()
    done = call(bundle, laid, "check", "--json")
    assert time.monotonic() - started < 20
    assert (done.returncode, json.loads(done.stdout)["causes"]) == (10, ["driver"])


FAKE_TORCH = """
    __version__ = "2.9.0+cu130"
    class version: cuda = "13.0"
    class Tensor:
        def __matmul__(self, other): return self
        def __mul__(self, other): return self
        def __add__(self, other): return self
        def cpu(self): return self
    def ones(*shape, device=None): return Tensor()
    def zeros(*shape, device=None): return Tensor()
    def equal(a, b): return True
    class cuda:
        is_available = staticmethod(lambda: {available})
        device_count = staticmethod(lambda: {count})
        synchronize = staticmethod(lambda *a: None)
        get_device_name = staticmethod(lambda i: "x")
        get_device_capability = staticmethod(lambda i: (9, 0))
        get_arch_list = staticmethod(lambda: ["sm_90"])
"""


@pytest.mark.parametrize(
    ("available", "count", "rc"), [(True, 8, 0), (False, 0, 30), (True, 7, 30)]
)
def test_a_torch_on_pythonpath_is_asked_by_the_python_on_path(
    bundle: Path, tmp_path: Path, available: bool, count: int, rc: int
) -> None:
    """The probe itself runs here, against a small torch of our own."""
    laid = laid_out(Machine("p5.48xlarge"), tmp_path)
    (laid[0] / "python3").unlink()
    (laid[0] / "python3").symlink_to(sys.executable)
    modules = tmp_path / "modules"
    modules.mkdir()
    text = textwrap.dedent(FAKE_TORCH.format(available=available, count=count))
    (modules / "torch.py").write_text(text, encoding="utf-8")
    done = call(bundle, laid, "check", "--json", PYTHONPATH=str(modules))
    found = {c["name"]: c for c in json.loads(done.stdout)["checks"]}
    assert done.returncode == rc, found["framework"]
    if not rc:
        assert "python3" in found["cuda-kernel"]["evidence"]


@pytest.mark.parametrize("name", ["torch", "tensorflow", "jax"])
def test_a_framework_that_is_not_there_is_said_so_by_its_probe(name: str, root: Path) -> None:
    probe = root / f"components/gputier/node/probes/{name}.txt"
    done = subprocess.run(
        [sys.executable, "-S", "-c", probe.read_text(encoding="utf-8")],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert f"No module named '{name}'" in done.stdout


def test_a_framework_that_calculates_wrongly_is_found(tmp_path: Path, root: Path) -> None:
    text = FAKE_TORCH.format(available=True, count=1).replace("return True", "return False")
    (tmp_path / "torch.py").write_text(textwrap.dedent(text), encoding="utf-8")
    probe = (root / "components/gputier/node/probes/torch.txt").read_text(encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", probe], env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert '"ok": false' in done.stdout
    assert "wrong result" in done.stdout


def test_every_file_is_in_the_language_of_python_3_8(root: Path) -> None:
    folder = root / "components/gputier/node"
    for path in (*folder.rglob("*.py"), *folder.glob("probes/*.txt")):
        ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=(3, 8))


# --- the bundle itself ---------------------------------------------------------------------------


def test_the_bundle_is_the_same_byte_for_byte(tmp_path: Path, bundle: Path) -> None:
    one = build.build(tmp_path / "one.pyz")
    copy = tmp_path / "copy"
    shutil.copytree(Path(build.__file__).parent, copy / "node")
    os.utime(copy / "node/cli.py", (1, 1))
    two = build.build(tmp_path / "two.pyz")
    assert one == two == hashlib.sha256(bundle.read_bytes()).hexdigest()
    assert bundle.read_bytes().startswith(b"#!/usr/bin/env python3\n")
    assert os.access(bundle, os.X_OK)


def test_the_bundle_holds_our_files_only_with_fixed_times(bundle: Path, root: Path) -> None:
    with zipfile.ZipFile(bundle) as archive:
        entries = archive.infolist()
    names = [entry.filename for entry in entries]
    assert names == sorted(names)
    assert {entry.date_time for entry in entries} == {build.MOMENT}
    assert all(n == "__main__.py" or n.startswith("gputier/") for n in names)
    ours = {p.name for p in (root / "components/gputier/node").rglob("*.py")}
    assert ours - {Path(name).name for name in names} == {"build.py"}


def test_the_bundle_starts_without_the_package_and_imports_the_standard_library_only(
    bundle: Path,
) -> None:
    code = (
        "import sys, importlib; sys.path.insert(0, sys.argv[1]);"
        "from gputier.node.verbs import check, watch, boot, stage, timeline_verb, gate, serve;"
        "tops = {m.partition('.')[0] for m in sys.modules};"
        "print(sorted(t for t in tops if not t.startswith('_') and"
        " t not in sys.stdlib_module_names and t != 'gputier'))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(bundle)],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.strip() == "[]"


def test_starting_loads_only_what_a_verb_needs(bundle: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from gputier.node.cli import main;"
        "main(['--version']); print(sorted(m for m in sys.modules if m.startswith('gputier.node')))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(bundle)],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "['gputier.node', 'gputier.node.cli']"


def test_an_unknown_verb_is_refused_and_help_lists_them(bundle: Path) -> None:
    bad = subprocess.run([sys.executable, str(bundle), "dance"], capture_output=True, text=True, check=False)  # fmt: skip
    assert bad.returncode == 2
    good = subprocess.run([sys.executable, str(bundle), "--help"], capture_output=True, text=True, check=True)  # fmt: skip
    for verb in sorted({*cli.VERBS} - {"kernel"}):
        assert f"  {verb} " in good.stdout
