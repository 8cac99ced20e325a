"""PyTorch, TensorFlow or JAX in the version and for the CUDA that the plan chose by the driver.

The image's own build is used where it is that one. Else it is installed into an environment beside
it, from the index that the plan names: a bare `pip install torch` takes the newest CUDA, which an
older driver cannot run (github.com/pytorch/pytorch/issues/162531).
"""

from __future__ import annotations

import re
import urllib.parse

from gputier.node import distro, having, proxies, pythons
from gputier.node.pythons import FOLDER, OURS, Found
from gputier.node.stages import Halt, StageResult, Work, config, ok

# The oldest python that wheels of today are built for (pytorch/test-infra, 2026-08).
OLDEST = (3, 10)
CANDIDATES = ("python3.13", "python3.12", "python3.11", "python3.10", "python3")
# Amazon Linux 2023 and Rocky 9 have 3.9 by that name, and newer ones beside it.
DNF_PYTHON = "python3.12"
PYPI = "https://pypi.org/simple"
REMEDY = "see that the version, its CUDA and the index of `software.framework` belong together"


def run(work: Work) -> StageResult:
    """A python that imports the planned build; made only where none does."""
    wrong: list[str] = []
    here = pythons.find(work)
    if here:
        found = pythons.load(work, here.python)
        if not found.trouble:
            return ok(_words(work, found))
        wrong.append(found.trouble)
    python = _environment(work)
    _install(work, python)
    found = pythons.load(work, python)
    if found.trouble:
        return config("; ".join([found.trouble, *wrong]), REMEDY)
    return ok(_words(work, found), True)


def _words(work: Work, found: Found) -> str:
    return f"{pythons.framework(work)} {found.version}, CUDA {found.cuda or '?'}, {found.python}"


def _environment(work: Work) -> str:
    """The python that gets it: the plan's own, else that of our environment. Raises Halt."""
    own = work.settings.text("framework.python")
    if own and work.host.exists(own):
        return own
    if _age(work, OURS) >= OLDEST and work.run(OURS, "-m", "pip", "--version", limit=30.0).ok:
        return OURS
    base = _base(work)
    if distro.family(work) == distro.APT:
        # Debian and Ubuntu leave `venv` out of python's own package.
        name = "python3" if base == "python3" else base
        having.packages(work, (f"{name}-venv",), "python environments")
    argv = (base, "-m", "venv", "--clear", FOLDER)
    work.must(f"make {FOLDER}", *argv, limit=120.0)
    return OURS


def _base(work: Work) -> str:
    """A python that wheels are built for. Raises Halt (config)."""
    for name in CANDIDATES:
        if work.host.which(name) and _age(work, name) >= OLDEST:
            return name
    if distro.family(work) == distro.DNF:
        having.command(work, DNF_PYTHON, DNF_PYTHON)
        return DNF_PYTHON
    wanted = ".".join(map(str, OLDEST))
    raise Halt(config(f"no python of {wanted} or newer in the image", "use a newer image"))


def _age(work: Work, python: str) -> tuple[int, int]:
    done = work.run(python, "-c", "import sys; print(*sys.version_info[:2])", limit=20.0)
    found = re.match(r"^(\d+) (\d+)\s*$", done.out)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _install(work: Work, python: str) -> None:
    argv = (
        python, "-m", "pip", "install", "--no-input", "--disable-pip-version-check",
        "--no-cache-dir", "--progress-bar", "off", "--retries", "5", *_source(work),
        *_wanted(work),
    )  # fmt: skip
    done = work.run(*argv, limit=max(1.0, work.left() - 60.0), env=_env(work))
    if done.ok:
        return
    if "No space left on device" in done.text:
        remedy = "give the root volume more room, or use an image that has the framework"
        raise Halt(config(f"no room for {' '.join(_wanted(work))}: {having.last(done)}", remedy))
    raise Halt(having.failed(f"{' '.join(_wanted(work))} was not installed", done, REMEDY))


def _wanted(work: Work) -> tuple[str, ...]:
    """What pip is asked for; CUDA comes in wheels that the framework names itself."""
    name, version = pythons.framework(work), work.settings.text("framework.version")
    cuda = work.settings.text("framework.cuda") or "12"
    extra = {"tensorflow": "[and-cuda]", "jax": f"[cuda{cuda.split('.')[0]}]"}.get(name, "")
    exact = f"{name}{extra}" + (f"=={version}" if version else "")
    # torch works without numpy, and half of what is written for it does not.
    return (exact, "numpy") if name == "torch" else (exact,)


def _source(work: Work) -> tuple[str, ...]:
    """The plan's index, and PyPI or its mirror for what is not in it."""
    index = work.settings.text("framework.index")
    general = work.settings.text("mirrors.pip") or PYPI
    address = urllib.parse.urlsplit(general)
    trusted = ("--trusted-host", address.netloc) if address.scheme == "http" else ()
    if index is None:
        return ("--index-url", general, *trusted)
    return ("--index-url", index, "--extra-index-url", general, *trusted)


def _env(work: Work) -> dict[str, str]:
    # pip.conf of the image may name another index: what is wanted is all on the command line.
    return {**proxies.variables(work.settings), "PIP_CONFIG_FILE": "/dev/null"}
