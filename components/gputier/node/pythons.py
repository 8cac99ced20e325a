"""The python that has the framework: the image's where it is right, else one of our own."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from gputier.node import versions
from gputier.node.checks.software import OURS, PYTHONS
from gputier.node.stages import Work

FOLDER = OURS.rsplit("/bin/", 1)[0]
MARK = "gputier-python:"
# Asked without importing: a framework takes 10 to 40 s to load, its version milliseconds.
LOOK = (
    "import json, sys\n"
    "from importlib import metadata\n"
    "found = {'python': list(sys.version_info[:2])}\n"
    "try:\n"
    "    found['version'] = metadata.version(sys.argv[1])\n"
    "except metadata.PackageNotFoundError:\n"
    "    pass\n"
    f"print({MARK!r} + json.dumps(found))\n"
)
# Imported, so that a missing library shows; each tells its CUDA in a way of its own.
LOAD = {
    "torch": "import torch as m; cuda = m.version.cuda",
    "tensorflow": "import tensorflow as m; from tensorflow import sysconfig as s; "
    "cuda = s.get_build_info().get('cuda_version')",
    "jax": "import jax as m; from importlib import metadata as d; "
    "cuda = next((n[8:10] for n in ('jax-cuda13-plugin', 'jax-cuda12-plugin') "
    "if any(x.metadata['Name'] == n for x in d.distributions())), None)",
}
SHOW = f"\nimport json\nprint({MARK!r} + json.dumps({{'version': m.__version__, 'cuda': cuda}}))\n"


class Found(NamedTuple):
    """A python, and what of the framework it has; `trouble` says why it will not do."""

    python: str
    version: str = ""
    cuda: str = ""
    trouble: str = ""

    @property
    def folder(self) -> str:
        return self.python.rsplit("/", 1)[0] if "/" in self.python else ""


def places(work: Work) -> tuple[str, ...]:
    """Where to look, the plan's own first."""
    own = work.settings.text("framework.python")
    return tuple(dict.fromkeys(filter(None, (own, OURS, *PYTHONS, "python3"))))


def find(work: Work) -> Found | None:
    """The first python with the planned version, by what is installed; it is not imported."""
    name, wanted = framework(work), work.settings.text("framework.version")
    for python in places(work):
        if python.startswith("/") and not work.host.exists(python):
            continue
        have = look(work, python, name)
        if have is None or not have.version:
            continue
        if wanted is None or versions.same(have.version, wanted):
            return have
    return None


def framework(work: Work) -> str:
    return work.settings.text("framework.name") or "torch"


def look(work: Work, python: str, name: str) -> Found | None:
    """What this python has of the framework; None when there is no such python."""
    done = work.run(python, "-c", LOOK, name, limit=30.0)
    data = answer(done.out)
    if data is None:
        return None
    return Found(python, str(data.get("version") or ""))


def load(work: Work, python: str) -> Found:
    """The framework imported for once: its version and CUDA, and what is wrong with them."""
    name = framework(work)
    done = work.run(python, "-c", LOAD[name] + SHOW, limit=180.0)
    data = answer(done.out)
    if data is None:
        said = done.says() if done.state != "timeout" else done.how
        return Found(python, trouble=f"import {name} with {python}: {said}")
    have = Found(python, str(data.get("version") or ""), str(data.get("cuda") or ""))
    return have._replace(trouble=_wrong(work, name, have))


def _wrong(work: Work, name: str, have: Found) -> str:
    wanted, cuda = (work.settings.text(f"framework.{key}") for key in ("version", "cuda"))
    if wanted and not versions.same(have.version, wanted):
        return f"{have.python} has {name} {have.version} instead of {wanted}"
    if cuda and not have.cuda:
        return f"{have.python} has {name} {have.version} built without CUDA"
    # jax tells no more than the major number.
    parts = 1 if name == "jax" else 2
    short = ".".join((cuda or "").split(".")[:parts])
    if cuda and not versions.same(have.cuda, short):
        return f"{have.python} has {name} for CUDA {have.cuda} instead of {cuda}"
    return ""


def answer(text: str) -> dict[str, object] | None:
    """The JSON behind the mark in the last line that has it."""
    for line in reversed(text.splitlines()):
        found = re.match(rf"^{re.escape(MARK)}(\{{.*\}})$", line)
        if found:
            data: dict[str, object] = json.loads(found[1])
            return data
    return None
