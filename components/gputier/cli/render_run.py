"""What `gputier render` does."""

from __future__ import annotations

from pathlib import Path

from gputier.boot import Bundle, Rendered, Stack, fetcher, render
from gputier.boot.deadlines import document, table
from gputier.cli import console
from gputier.cli.inputs import json_text, load_catalog
from gputier.cli.render import RenderArguments
from gputier.errors import ExitCode, InvalidInput, Problem, StaleLock
from gputier.lock import Lock, lock_command, lock_path, read_lock, unknown_names
from gputier.lock.locked import locked_plan
from gputier.node.build import content
from gputier.plan.known import KnownNames
from gputier.workload import Declaration, resolve
from gputier.workload.known import asking
from gputier.workload.project import require

SCHEMA = "gputier/render/1"


def run(typed: RenderArguments) -> int:
    """Render one workload of a stack; the exit code."""
    catalog = load_catalog(typed.catalog_directory)
    with asking(KnownNames(catalog)):
        (declaration,) = resolve(typed.target, Path.cwd())
    problems = unknown_names([typed.workload], declaration)
    if problems:
        raise InvalidInput(problems)
    lock = _lock(declaration)
    entry = lock.entries.get(typed.workload)
    plan = locked_plan(lock, declaration, typed.workload, catalog)
    if entry is None:
        raise ValueError(f"{typed.workload} has a plan and no entry")
    found = render(
        plan,
        catalog,
        Stack(require(Path(declaration.folder)).name, declaration.name),
        Bundle(entry.bundle, entry.bundle_version),
        content() if typed.inline else None,
    )
    if typed.as_json:
        console.out(json_text(_document(declaration, typed.workload, entry.cloud, found)))
    else:
        console.out(_part(typed.part, entry.cloud, found))
        if typed.part == "stage0":
            console.err("\n".join(_summary(found)))
    return ExitCode.OK


def _lock(declaration: Declaration) -> Lock:
    path = lock_path(declaration)
    found = read_lock(path, declaration.name)
    if found is None:
        hint = f"run `{lock_command(declaration)}`"
        raise StaleLock(Problem("", f"{path}: there is no lock yet", hint))
    return found


def _part(part: str, cloud: str, found: Rendered) -> str:
    return {
        "stage0": lambda: found.text,
        "expect": lambda: found.expectation,
        "settings": lambda: found.settings,
        "fetcher": lambda: fetcher(cloud),
        "deadline": lambda: "\n".join(table(found.deadline)),
    }[part]()


def _summary(found: Rendered) -> list[str]:
    """Sizes and the deadline's sum, for people."""
    parts = ", ".join(f"{part} {size:,}" for part, size in found.parts.items())
    told = found.deadline
    most = f" of {told.allowed_seconds:,} s" if told.allowed_seconds is not None else ""
    return [
        f"{found.size:,} of {found.limit:,} bytes ({parts}), sha256 {found.sha256[:16]}",
        f"boot: at most {told.total_seconds:,} s{most}; --part deadline lists every limit",
    ]


def _document(
    declaration: Declaration, name: str, cloud: str, found: Rendered
) -> dict[str, object]:
    """Schema `gputier/render/1`."""
    return {
        "schema": SCHEMA,
        "name": declaration.name,
        "workload": name,
        "cloud": cloud,
        "user_data": found.text,
        "sha256": found.sha256,
        "bytes": found.size,
        "limit_bytes": found.limit,
        "parts": dict(found.parts),
        "deadline": document(found.deadline),
    }
