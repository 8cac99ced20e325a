"""The CUDA kernel through ctypes, on a stand-in libcuda that is compiled here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gputier.node import kernel

HERE = Path(__file__).parent
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if COMPILER is None:
        pytest.skip("no C compiler to build the stand-in libcuda with")
    folder = tmp_path_factory.mktemp("cuda")
    out = folder / "usr/lib/x86_64-linux-gnu/libcuda.so.1"
    out.parent.mkdir(parents=True)
    subprocess.run(
        [
            COMPILER,
            "-shared",
            "-fPIC",
            "-O1",
            "-Wall",
            "-Werror",
            "-o",
            str(out),
            str(HERE / "libcuda.c"),
        ],
        check=True,
    )
    return folder


def started(root: Path, **environ: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "gputier.node", "kernel"],
        env={**os.environ, "GPUTIER_SYSROOT": str(root), **environ},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return dict(json.loads(done.stdout))


def test_the_kernel_runs_on_every_gpu(library: Path) -> None:
    found = started(library, FAKE_COUNT="4")
    assert found["error"] is None
    assert [(one["index"], one["ok"], one["name"]) for one in found["devices"]] == [
        (i, True, "Stand-in") for i in range(4)
    ]


def test_a_library_on_ld_library_path_is_found_first(library: Path, tmp_path: Path) -> None:
    folder = library / "usr/lib/x86_64-linux-gnu"
    assert started(tmp_path, LD_LIBRARY_PATH=str(folder))["library"].startswith(str(folder))


def test_a_fabric_that_is_not_up_is_named(library: Path) -> None:
    found = started(library, FAKE_INIT="802")
    assert found["code"] == 802
    assert "CUDA_ERROR_SYSTEM_NOT_READY" in found["error"]


def test_one_bad_gpu_does_not_hide_the_others(library: Path) -> None:
    found = started(library, FAKE_COUNT="3", FAKE_BAD_DEVICE="1")
    assert [one["ok"] for one in found["devices"]] == [True, False, True]
    assert found["devices"][1]["code"] == 999


def test_a_gpu_that_only_pretends_is_found(library: Path) -> None:
    """The launch succeeds and nothing was computed: zeros are not the result."""
    found = started(library, FAKE_LAZY_DEVICE="0")
    assert not found["devices"][0]["ok"]
    assert "wrong result" in found["devices"][0]["error"]


def test_no_library_is_said_and_this_machines_own_is_not_used(tmp_path: Path) -> None:
    found = started(tmp_path)
    assert found["library"] is None
    assert found["error"]


def test_the_ptx_is_old_enough_for_every_card() -> None:
    assert b".version 6.0" in kernel.PTX
    assert b".target sm_50" in kernel.PTX
