"""Workflow files as their runners read them: jobs, and each step's own shell script.

An expression is looked up in a table, so that one which nobody thought of is an error.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import yaml

EXPRESSION = re.compile(r"\$\{\{ *(.+?) *\}\}")
Document = dict[str, Any]


class Loader(yaml.SafeLoader):
    """YAML with GitLab's `!reference`, and `on` as the word that it is to GitHub."""


def _reference(loader: yaml.SafeLoader, node: yaml.Node) -> tuple[str, ...]:
    assert isinstance(node, yaml.SequenceNode)
    return tuple(cast("list[str]", loader.construct_sequence(node)))


Loader.add_constructor("!reference", _reference)  # pyright: ignore[reportUnknownMemberType]
Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:bool"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read(file: Path) -> Document:
    """A workflow file. `true` and `false` are words here, as nothing depends on them."""
    return yaml.load(file.read_text(encoding="utf-8"), Loader)  # noqa: S506 (a SafeLoader)


def filled(text: str, known: Mapping[str, str]) -> str:
    """The text with every expression's value. KeyError for one that the table lacks."""
    return EXPRESSION.sub(lambda found: known[found[1]], text)


class Ran(NamedTuple):
    """One script, as it ended, and the run's summary."""

    name: str
    code: int
    out: str
    summary: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.code}\n{self.out}"


def shell(script: str, folder: Path, environment: Mapping[str, str], name: str = "") -> Ran:
    """As both runners do: the script in a file, bash, and the first failure ends it."""
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=300,
        check=False,
    )
    return Ran(name, done.returncode, done.stdout)


def steps(job: Document) -> list[Document]:
    found: list[Document] = job.get("steps", [])
    return found


def environment(job: Document, step: Document, known: Mapping[str, str]) -> dict[str, str]:
    """What a step's script sees of its own and of its job's `env`."""
    given: Document = {**job.get("env", {}), **step.get("env", {})}
    return {name: filled(str(value), known) for name, value in given.items()}


def combined(jobs: Document, name: str) -> Document:
    """A job of GitLab's with what it extends: maps are merged, anything else is taken over."""
    job: Document = dict(jobs[name])
    parent = job.pop("extends", None)
    if parent is None:
        return job
    found = combined(jobs, parent)
    for key, value in job.items():
        merges = isinstance(value, dict) and isinstance(found.get(key), dict)
        found[key] = {**found[key], **value} if merges else value
    return found


def lines(jobs: Document, job: Document) -> list[str]:
    """Everything that GitLab's runner puts into one shell for a job."""
    found: list[str] = []
    for part in ("before_script", "script"):
        for line in job.get(part, []):
            if isinstance(line, tuple):
                where, what = cast("tuple[str, str]", line)
                found += jobs[where][what]
            else:
                found.append(line)
    return found
