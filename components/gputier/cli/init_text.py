"""What `gputier init` says: what it wrote, what it kept and why, and what comes next."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import gputier
from gputier.cli import console
from gputier.cli.init import InitArguments
from gputier.cli.init_files import Choices
from gputier.cli.init_locks import Locked
from gputier.cli.money import per_month
from gputier.cli.text import Column, plural, table, wrap

#: What a project needs of a file that was there before.
NEEDED = {
    "Pulumi.yaml": "it needs `main: stacks` and `stackConfigDir: stacks`",
    ".gitignore": "it should leave out .venv, __pycache__, preview.json, export.json and plan.json",
    "requirements.txt": "it needs `gputier{extras}=={version}`",
    "stacks/__main__.py": "it needs `from gputier.program import main` and `main()`",
    ".gitlab-ci.yml": "it needs `include: [{{local: .gitlab/gpu.yml}}]`",
}
PIN = "gputier lock prod --images"
#: What comes next, and what for.
COMMANDS = (
    ("python3 -m venv .venv && .venv/bin/python -m pip install -r requirements.txt", ""),
    ("gputier plan dev", "which machine, why, and what it costs"),
    ("pulumi login", "where the state lives: a bucket of yours, or Pulumi Cloud"),
    ("pulumi stack init dev", ""),
    ("gputier doctor dev", "quotas, offerings, images and rights, asked of the account"),
    ("pulumi preview --stack dev", "what would be made"),
    ("pulumi up --stack dev", "it is made"),
    (PIN, "asks AWS: production boots an image that does not move"),
)
TO_GOOGLE = (
    "The example's machines are on AWS. `gcp:project`, `clouds: [gcp]`, `regions` and"
    " `budget.billing_account` in a stack's file put them on Google Cloud. The workflows sign in to"
    " both, and the policies and the review read both."
)


class Outcome(Protocol):
    """What became of the files, by path."""

    @property
    def new(self) -> Sequence[str]: ...
    @property
    def kept(self) -> Sequence[str]: ...


def screen(
    choices: Choices, typed: InitArguments, found: Outcome, locked: Mapping[str, Locked]
) -> list[str]:
    """The whole of it."""
    lines = [_head(choices, typed, found)]
    if typed.dry_run:
        return [*lines, *(f"  {path}" for path in found.new), *_kept(choices, found)]
    if found.new:
        lines += _machines(locked)
    lines += _kept(choices, found)
    return [*lines, "", *_next(choices, typed)]


def _head(choices: Choices, typed: InitArguments, found: Outcome) -> str:
    if not found.new:
        return f"{choices.name}: nothing to write, every file is there"
    verb = "would be written" if typed.dry_run else "written"
    return f"{choices.name}: {plural(len(found.new), 'file')} {verb} to {typed.folder}"


def _machines(locked: Mapping[str, Locked]) -> Iterator[str]:
    """What each environment would run on, from its new lock."""
    rows = [
        [stack, one.entry.instance_type, one.entry.region, per_month(one.entry.usd_per_month)]
        for stack, one in locked.items()
    ]
    yield from table(
        (Column(), Column(), Column(), Column(right=True)), rows, console.width(), "  "
    )


def _kept(choices: Choices, found: Outcome) -> Iterator[str]:
    """Files that were there and differ, each with what the project needs of it."""
    if not found.kept:
        return
    yield ""
    yield "kept, because they were there before and differ"
    rows = [[path, _needs(choices, path)] for path in found.kept]
    yield from table((Column(), Column(wraps=True)), rows, console.width(), "  ")
    hint = "`gputier init FOLDER` with a new folder writes all of them, to compare"
    yield from wrap(hint, console.width())


def _needs(choices: Choices, path: str) -> str:
    if path.startswith("stacks/Pulumi."):
        return f"`gputier lock {path.split('.')[1]}` writes its lock"
    return NEEDED.get(path, "").format(extras=choices.extras, version=gputier.__version__)


def _next(choices: Choices, typed: InitArguments) -> Iterator[str]:
    """The first half hour, as commands; README.md of the project has the same with more words."""
    yield "next"
    if typed.folder != ".":
        yield f"  cd {shlex.quote(typed.folder)}"
    lines = [(line, text) for line, text in COMMANDS if not (typed.images and line == PIN)]
    yield from (f"  {line:<28}{f'# {text}' if text else ''}".rstrip() for line, text in lines)
    yield f"README.md goes on from here{', and to the workflows' if choices.forges else ''}"
    for cloud in choices.clouds:
        if cloud == "gcp":
            yield from wrap(TO_GOOGLE, console.width())
