"""CUDA and the framework: a kernel really runs on every GPU, never silently on the CPU."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from gputier.node import kernel, smi, versions
from gputier.node.checks.driver import CAUSES, cuda_wanted
from gputier.node.engine import Check, Context
from gputier.node.expect import Expectation
from gputier.node.host import PROBE, SELF, Done
from gputier.node.result import (
    CONFIG,
    INCONCLUSIVE,
    REBOOT,
    REPLACE,
    WARNING,
    Finding,
    Garbled,
    healthy,
    inconclusive,
    only,
    warning,
    worst,
)

MARK = "gputier-probe:"
# What the stage `framework` makes where the image has another version, or none.
OURS = "/opt/gputier/venv/bin/python3"
# Where images keep the python that has the framework.
PYTHONS = (
    "/opt/pytorch/bin/python3",
    "/opt/pytorch/bin/python",
    "/opt/tensorflow/bin/python3",
    "/opt/conda/bin/python3",
    "/opt/venv/bin/python3",
    "/usr/bin/python3",
)
# What a CUDA error says of its cause; words of frameworks, codes of the driver API.
ERRORS = (
    (r"^(?:AttributeError|TypeError|NotImplementedError)\b", INCONCLUSIVE, "a call is missing"),
    (r"\b802\b|not yet initialized", REBOOT, "the NVSwitch fabric is not up: nvidia-fabricmanager"),
    (r"\b803\b|driver mismatch|version mismatch", REBOOT, "a driver upgrade is half done"),
    (r"wrong result", REPLACE, "the GPU calculates wrongly"),
    (r"\b214\b|uncorrectable|\bECC\b", REBOOT, "bad GPU memory"),
    (r"no kernel image|\b209\b", CONFIG, "the build does not know this card's architecture"),
    (r"out of memory|\b2 CUDA_ERROR_OUT", CONFIG, "another process holds the memory"),
    (r"driver.*(?:too old|insufficient)|\b35\b|\b804\b|\b222\b", CONFIG, "the driver is too old"),
    (r"\b46 |all CUDA-capable devices are busy|exclusive", CONFIG, "another process has the GPU"),
)
REMEDIES = {
    REPLACE: "this host is bad: give the machine back",
    REBOOT: "reboot once; the second time the machine is replaced",
    CONFIG: "fix the image: the framework's build, the driver and the toolkit have to fit",
    INCONCLUSIVE: "see what the program says and run the check again",
}
PYTORCH = "https://download.pytorch.org/whl/; github.com/pytorch/pytorch/issues/162531"


def judged(text: str) -> tuple[str, str]:
    """The outcome and the cause that an error's words ask for; unknown words are a reboot."""
    for pattern, outcome, cause in ERRORS:
        if re.search(pattern, text, re.IGNORECASE):
            return outcome, cause
    return REBOOT, "CUDA does not work on this GPU"


def probe(ctx: Context) -> tuple[Done, dict[str, Any] | None, str]:
    """The framework's own answer: the plan's python, ours, python3 on PATH, the image's places.

    The first that can import it counts; else the last that answered.
    """
    return ctx.once("probe", lambda: _probe(ctx))


def _probe(ctx: Context) -> tuple[Done, dict[str, Any] | None, str]:
    name = ctx.expect.text("framework.name") or "torch"
    own = ctx.expect.text("framework.python")
    last: tuple[Done, dict[str, Any] | None, str] | None = None
    for python in filter(None, (own, OURS, "python3", *PYTHONS)):
        done = ctx.run(python, "-c", PROBE + name, limit=120.0)
        if done.state == "missing":
            continue
        found = answer(done)
        tried = (done, found, python)
        if found and "import_error" not in found:
            return tried
        if last is None or done.state == "timeout":
            last = tried
    return last or (Done(("python3",), None, "", "", 0.0, "missing"), None, "python3")


def answer(done: Done) -> dict[str, Any] | None:
    """The JSON after the mark, None when there is none."""
    for line in reversed(done.out.splitlines()):
        if line.startswith(MARK):
            try:
                found: dict[str, Any] = json.loads(line[len(MARK) :])
            except ValueError:
                return None
            return found
    return None


def framework(ctx: Context) -> Finding:
    """The planned build of the framework sees every GPU. `is_available() == False` is a failure."""
    name = ctx.expect.text("framework.name") or "torch"
    done, found, python = probe(ctx)
    expected = _expected(ctx.expect, name)
    if done.state == "missing":
        return Finding(CONFIG, f"no python with {name} on this machine", expected)
    if done.state == "timeout":
        return inconclusive(f"import {name} with {python}: {done.how}", expected)
    if found is None:
        return inconclusive(f"{python} printed no answer: {done.says()}", expected)
    if "import_error" in found:
        return Finding(CONFIG, f"{python}: {found['import_error']}", expected)
    wrong = _wrong_build(ctx.expect, name, found)
    if wrong:
        return Finding(CONFIG, wrong, expected)
    words = f"{name} {found.get('version')}, CUDA {found.get('cuda')}, {python}"
    if not found.get("available"):
        return _on_cpu(name, found, words, expected)
    visible, seen = visible_gpus(ctx), int(found.get("count", 0))
    if seen < visible:
        return Finding(CONFIG, f"{words}: sees {seen} of {visible} GPUs", expected)
    return healthy(f"{words}: {seen} GPUs", expected, short=f"{name} {found.get('version')}")


def _expected(expect: Expectation, name: str) -> str:
    parts = [name, expect.text("framework.version") or ""]
    wanted = cuda_wanted(expect)
    return " ".join(filter(None, parts)) + (f", CUDA {wanted}" if wanted else "") + ", on GPU"


def _wrong_build(expect: Expectation, name: str, found: Mapping[str, Any]) -> str | None:
    have, built = str(found.get("version") or ""), found.get("cuda")
    version, wanted = expect.text("framework.version"), cuda_wanted(expect)
    if version and not versions.same(have, version):
        return f"{name} {have} instead of {version}"
    if name == "torch" and not built:
        return f"{name} {have} is built without CUDA: it would run on the CPU"
    if (
        wanted
        and built
        and not versions.same(versions.release(str(built)), versions.release(wanted))
    ):
        index = expect.text("framework.index")
        where = f"; the plan's index is {index}" if index else ""
        return f"{name} {have} is built for CUDA {built} instead of {wanted}{where}"
    return None


def _on_cpu(name: str, found: Mapping[str, Any], words: str, expected: str) -> Finding:
    said = str(found.get("error") or f"{name} sees no GPU")
    outcome, cause = judged(said) if found.get("error") else (CONFIG, "it would run on the CPU")
    if outcome == REBOOT and not re.search(ERRORS[1][0] + "|" + ERRORS[2][0], said):
        outcome, cause = CONFIG, "it would run on the CPU"
    return Finding(outcome, f"{words}: no GPU available ({cause}): {said[:200]}", expected)


def visible_gpus(ctx: Context) -> int:
    """How many devices CUDA shows: with MIG on it shows one instance, whatever there is."""
    gpus = smi.gpus(ctx)
    return 1 if any(gpu.mig for gpu in gpus) else len(gpus)


def cuda_kernel(ctx: Context) -> Finding:
    """One context and one kernel per GPU: through torch where the plan has it, else libcuda."""
    expected = f"a kernel on each of {visible_gpus(ctx)} GPUs"
    name = ctx.expect.text("framework.name")
    if name:
        _, found, python = probe(ctx)
        devices: list[Any] = (found or {}).get("devices") or []
        # A framework that sees fewer GPUs is judged for it; whether they work, libcuda tells.
        if devices and (len(devices) >= visible_gpus(ctx) or not all(d["ok"] for d in devices)):
            return _per_gpu(ctx, devices, f"{name} with {python}", expected)
    done = ctx.run(SELF, "kernel", limit=60.0)
    try:
        own: dict[str, Any] = json.loads(done.out)
    except ValueError:
        if done.state == "timeout":
            return Finding(REBOOT, f"a CUDA kernel through libcuda: {done.how}", expected)
        raise Garbled(f"the kernel's process: {done.how}: {done.says()}") from None
    required = "cuda-kernel" in ctx.expect.texts("require")
    if own["library"] is None and kernel.NOT_BELOW in str(own["error"]) and not required:
        # A folder that stands in for a machine has no GPU to run on: not run is not broken.
        return warning(f"no kernel was run: {own['error']}", expected)
    if own["library"] is None:
        return Finding(CONFIG, f"no libcuda: {own['error']}", expected)
    if own["error"]:
        outcome, cause = judged(own["error"])
        return Finding(outcome, f"{own['error']} ({cause})", expected)
    return _per_gpu(ctx, own["devices"], "libcuda", expected)


def _per_gpu(ctx: Context, devices: list[Any], means: str, expected: str) -> Finding:
    visible = visible_gpus(ctx)
    findings: list[Finding] = []
    for device in devices:
        if device["ok"]:
            continue
        said = str(device.get("error") or "no result")
        outcome, cause = judged(said)
        words = f"GPU {device['index']}: {said[:200]} ({cause}; {means})"
        findings.append(Finding(outcome, words, expected))
    if findings:
        return worst(findings)
    if len(devices) < visible:
        return Finding(REBOOT, f"CUDA shows {len(devices)} of {visible} GPUs ({means})", expected)
    words = f"ran on {len(devices)} GPUs ({means})"
    return healthy(words, expected, short=f"cuda kernel on {len(devices)} GPUs")


def nvcc(ctx: Context) -> Finding:
    """`nvcc -V`: the toolkit's CUDA is the framework's, and not below the plan's floor."""
    wanted, floor = cuda_wanted(ctx.expect), ctx.expect.text("cuda.min")
    expected = f"CUDA {wanted or floor}"
    done = ctx.run("nvcc", "-V", limit=15.0)
    if done.state == "missing":
        if not ctx.expect.has("framework.name") and "nvcc" not in ctx.expect.texts("require"):
            return warning("nvcc is not installed", expected)
        return Finding(CONFIG, "nvcc is not installed", expected, "install the CUDA toolkit")
    found = re.search(r"release (\d+\.\d+)", done.out)
    if not done.ok or found is None:
        return inconclusive(f"nvcc -V: {done.how}: {done.says()}", expected)
    have, target = versions.parse(found[1]), versions.parse(wanted)
    words = f"toolkit CUDA {found[1]}"
    if have and target and have.major != target.major:
        return Finding(CONFIG, f"{words}, the framework's is {wanted}", expected)
    if floor and not versions.at_least(found[1], versions.release(floor)):
        return Finding(CONFIG, f"{words} is older than {floor}", expected)
    return healthy(words, expected, short=f"nvcc {found[1]}")


def _no_toolkit(expect: Expectation) -> str | None:
    asked = cuda_wanted(expect) or expect.has("cuda.min")
    return None if asked else "the plan names no CUDA version"


def _no_framework(expect: Expectation) -> str | None:
    return None if expect.has("framework.name") else "the plan names no framework"


CHECKS = (
    Check("nvcc", "CUDA toolkit", nvcc, "software",
          {CONFIG: "use an image with the toolkit of the framework's CUDA",
           WARNING: "nothing can be compiled on this machine",
           INCONCLUSIVE: "see what nvcc -V says"},
          "the plan; github.com/GoogleCloudPlatform/compute-gpu-installation", applies=_no_toolkit,
          tools=("nvcc",)),
    Check("framework", "framework", framework, "software",
          only(REMEDIES, REBOOT, CONFIG, INCONCLUSIVE), PYTORCH, seconds=150.0,
          needs=("driver",), explained_by=(*CAUSES, "fabric-manager"), applies=_no_framework),
    Check("cuda-kernel", "CUDA kernel", cuda_kernel, "software", REMEDIES,
          "github.com/NVIDIA/gpu-operator cuda validation; CUDA driver API error codes",
          seconds=150.0, needs=("driver",), explained_by=(*CAUSES, "fabric-manager")),
)  # fmt: skip
