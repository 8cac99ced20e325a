"""What `gputier review` does."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from gputier.catalog import Catalog
from gputier.cli import console
from gputier.cli.inputs import json_text, load_catalog
from gputier.cli.review import ReviewArguments
from gputier.errors import ExitCode, InvalidInput, Problem
from gputier.lock import lock_path, read_lock
from gputier.plan.known import KnownNames
from gputier.review import words
from gputier.review.comment import comment, marker
from gputier.review.document import document
from gputier.review.page import page
from gputier.review.preview import Preview
from gputier.review.read import read
from gputier.review.review import Beside, Review, review
from gputier.review.text import text
from gputier.workload import read_stack
from gputier.workload.known import asking


def run(typed: ReviewArguments) -> int:
    """Review a preview; the exit code."""
    catalog = load_catalog(typed.catalog_directory)
    preview = _read(typed.preview)
    base = _read(typed.base) if typed.base else None
    beside = _declared(typed.stack, preview, base, catalog) if typed.stack else Beside(base)
    found = review(preview, catalog, beside)
    quiet = typed.threshold is not None and _quiet(found, typed.threshold)
    if quiet:
        console.note(f"nothing that warns, and less than the threshold: {words.headline(found)}")
    else:
        console.out(_shown(found, typed.format))
    if typed.post:
        told = not quiet and bool(found.changes or found.incomplete)
        _post(found, typed.post, create=told or typed.always)
    if found.incomplete:
        console.note(found.incomplete)
        return ExitCode.BAD_PREVIEW
    if typed.fail_over is not None and found.totals.delta > typed.fail_over:
        rise = words.difference(found.totals.delta)
        console.note(f"{rise} is over the limit of {words.money(typed.fail_over)}")
        return ExitCode.OVER_THRESHOLD
    return ExitCode.OK


def _read(name: str) -> Preview:
    if name == "-":
        return read(sys.stdin.buffer.read(), "standard input")
    try:
        data = Path(name).read_bytes()
    except OSError as error:
        hint = "`pulumi preview --json > preview.json` writes one"
        raise InvalidInput(Problem(name, f"{name}: {error.strerror}", hint)) from None
    return read(data, name)


def _declared(stack: str, preview: Preview, base: Preview | None, catalog: Catalog) -> Beside:
    """What a stack of ours has to say: its lock and its discounts."""
    with asking(KnownNames(catalog)):
        declared = read_stack(stack, Path.cwd())
    if preview.stack and preview.stack != declared.name:
        message = f"the preview is of the stack {preview.stack}, and not of {declared.name}"
        raise InvalidInput(Problem("--stack", message, "name the preview's own stack"))
    path = lock_path(declared)
    lock = read_lock(path, declared.name)
    if lock is None:
        hint = f"`gputier lock {declared.name}` writes it"
        console.note(f"{path.name} is not there, so nothing is held against it ({hint})")
    return Beside(base, lock, declared.discounts)


def _quiet(found: Review, threshold: float) -> bool:
    """Whether there is nothing that a person asked to be told of. What may cost more than anybody
    here can tell is no small difference."""
    if found.incomplete or words.warnings(found) or found.violations:
        return False
    if any(one.open for one in found.unpriced):
        return False
    return abs(found.totals.delta) < threshold or not found.changes


def _post(found: Review, platform: str, *, create: bool) -> None:
    """Post the comment; where a fork's token may not, say so and go on: the review is printed."""
    try:
        from gputier.review.calls import CannotPost
        from gputier.review.post import PLATFORMS, post
    except ModuleNotFoundError as error:
        message = f"posting needs {error.name}, which is not installed"
        raise InvalidInput(Problem("--post", message, "`pip install 'gputier[post]'`")) from None
    mark = marker(found.project, found.stack)
    try:
        there = PLATFORMS[platform](os.environ, None)
        address = post(there, comment(found), mark, create=create, say=console.note)
    except CannotPost as refused:
        if not refused.expected:
            raise
        (problem,) = refused.problems
        console.note(f"not posted: {problem.message} ({problem.hint})")
        return
    if address:
        console.note(f"posted: {address}")


def _shown(found: Review, format_: str) -> str:
    if format_ == "json":
        return json_text(document(found))
    if format_ == "text":
        return text(found, console.width())
    return {"markdown": comment, "html": page}[format_](found).rstrip("\n")
