"""What `gputier lock` does."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from gputier import errors, units
from gputier.catalog import Catalog
from gputier.cli import console
from gputier.cli.console import Paint
from gputier.cli.inputs import json_text, load_catalog
from gputier.cli.lock import LockArguments
from gputier.cli.text import plural
from gputier.errors import ExitCode, InvalidInput, Problem, StaleLock
from gputier.lock import (
    Change,
    Cheaper,
    Entry,
    Lock,
    cheaper_than,
    check_lock,
    compare,
    describe,
    former_names,
    lock_command,
    lock_path,
    make_lock,
    merged,
    pin_images,
    read_lock,
    to_pin,
    unknown_names,
    write_lock,
)
from gputier.plan import StackPlan, money, plan_declaration
from gputier.plan.known import KnownNames
from gputier.workload import Declaration, resolve
from gputier.workload.known import asking

SCHEMA = "gputier/lock/1"
SCHEMA_CHECK = "gputier/lock-check/1"


def run(typed: LockArguments) -> int:
    """Write, upgrade or check; the exit code."""
    if typed.target == "-":
        hint = "name a stack, or a file"
        raise InvalidInput(Problem("", "standard input has no lock beside it", hint))
    if typed.check and typed.watch is None:  # only digests are compared: no catalogue is needed
        (declaration,) = resolve(typed.target, Path.cwd())
        _refuse_mixed(typed, True)
        return _checked(declaration, None, typed.as_json)
    catalog = load_catalog(typed.catalog_directory)
    with asking(KnownNames(catalog)):
        (declaration,) = resolve(typed.target, Path.cwd())
    _refuse_mixed(typed, typed.watch is not None)
    if typed.watch is not None:
        return _checked(declaration, (typed.watch, catalog), typed.as_json)
    unknown = unknown_names(typed.workloads, declaration)
    if unknown:
        raise InvalidInput(unknown)
    return _written(declaration, catalog, typed)


def _refuse_mixed(typed: LockArguments, reads: bool) -> None:
    writes = "--upgrade" if typed.upgrade else "--images" if typed.images else ""
    if typed.workloads and not writes:
        names = " ".join(typed.workloads)
        hint = f"to choose anew for it: --upgrade {names}; for a newer image: --images {names}"
        raise InvalidInput(Problem("", f"`{typed.workloads[0]}` is not needed here", hint))
    if reads and writes:
        message = f"{writes} writes, and --check and --watch only look"
        raise InvalidInput(Problem(writes, message, "use them one after the other"))


def _written(declaration: Declaration, catalog: Catalog, typed: LockArguments) -> int:
    path, as_json = lock_path(declaration), typed.as_json
    anew = (typed.workloads or tuple(declaration.workloads)) if typed.upgrade else ()
    before = read_lock(path, declaration.name)
    plan = plan_declaration(declaration, catalog)
    after = merged(before, make_lock(plan, declaration), anew, former_names(declaration))
    if typed.images:
        after = _with_images(after, plan, declaration, typed.workloads)
    changes = compare(before, after)
    if changes or before is None:
        write_lock(path, after)
    for warning in plan.warnings:
        console.note(warning)
    if as_json:
        console.out(json_text(_written_document(declaration, path, after, changes)))
    else:
        console.out("\n".join(_written_lines(path, after, changes)))
    return ExitCode.OK


def _with_images(
    lock: Lock, plan: StackPlan, declaration: Declaration, named: Sequence[str]
) -> Lock:
    """Images of today, asked of each cloud as whoever deploys the stack; what is no family of
    theirs is left as it is, and said."""
    from gputier.account.stack import read_account
    from gputier.cli import lock_images, lock_images_gcp
    from gputier.lock.images import Found, is_google

    families = to_pin(lock, plan, named)
    for name in named:
        if name not in families:
            console.note(f"{name}: its image is no family of a cloud's, and stays as it is")
    account = read_account(declaration)
    for warning in account.warnings if families else ():
        console.note(warning)
    amazon, google = lock_images.looker(account.aws), lock_images_gcp.looker(account.gcp)

    def look(region: str, family: str) -> Found:
        return (google if is_google(family) else amazon)(region, family)

    return pin_images(lock, plan, families, look)


def _written_lines(path: Path, after: Lock, changes: Sequence[Change]) -> list[str]:
    count = plural(len(after.entries), "workload")
    if not changes:
        return [f"{path}: up to date, {count}"]
    head = f"{path}: written, {count}, {len(changes)} changed{_total(changes)}"
    return [head, *(f"  {describe(change)}" for change in changes)]


def _total(changes: Sequence[Change]) -> str:
    """The difference of everything that changed, where all of it is known."""
    parts = [change.usd_per_month for change in changes]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or abs(sum(known)) < 0.005:
        return ""
    sign = "+" if sum(known) > 0 else "−"
    return f", {sign}{units.usd(abs(sum(known)))} a month"


def _written_document(
    declaration: Declaration, path: Path, after: Lock, changes: Sequence[Change]
) -> dict[str, object]:
    """Schema `gputier/lock/1`."""
    return {
        "schema": SCHEMA,
        "name": declaration.name,
        "path": str(path),
        "entries": {name: _entry(after.entries[name]) for name in sorted(after.entries)},
        "changes": [
            {
                "workload": change.name,
                "before": _entry(change.before) if change.before else None,
                "after": _entry(change.after) if change.after else None,
                "usd_per_hour": money(change.usd_per_hour),
                "usd_per_month": money(change.usd_per_month),
            }
            for change in changes
        ],
    }


def _entry(entry: Entry) -> dict[str, object]:
    fields: dict[str, object] = asdict(entry)
    return fields | {"zones": list(entry.zones)}


def _checked(declaration: Declaration, watch: tuple[float, Catalog] | None, as_json: bool) -> int:
    """`watch`: the percentage that a better pick has to save, and what it is picked from."""
    path = lock_path(declaration)
    found = read_lock(path, declaration.name)
    if found is None:
        message = f"{path}: there is no lock yet"
        problems = [Problem("", message, f"run `{lock_command(declaration)}`")]
        if not as_json:
            raise StaleLock(problems)
    else:
        problems = check_lock(found, declaration)
    cheaper: Sequence[Cheaper] = ()
    percent = watch[0] if watch else None
    if watch is not None and found is not None:
        limit, catalog = watch
        plan = plan_declaration(declaration, catalog)
        cheaper = cheaper_than(found, plan, declaration, limit, catalog)
    if as_json:
        document = _checked_document(declaration, path, problems, (percent, cheaper))
        console.out(json_text(document))
    else:
        console.out("\n".join(_checked_lines(declaration, found, problems, (percent, cheaper))))
    if problems:
        console.err(errors.render(problems, color=Paint(sys.stderr).on))
    return ExitCode.STALE_LOCK if problems or cheaper else ExitCode.OK


Watched = tuple[float | None, Sequence[Cheaper]]


def _checked_lines(
    declaration: Declaration, found: Lock | None, problems: Sequence[Problem], watched: Watched
) -> list[str]:
    path, command = lock_path(declaration), lock_command(declaration)
    count = plural(len(found.entries) if found else 0, "workload")
    state = "stale" if problems else "fresh"
    percent, cheaper = watched
    lines = [f"{path}: {state}, {count}"]
    if percent is not None and not cheaper:
        lines[0] += f", nothing is cheaper by more than {percent:g} %"
    for one in cheaper:
        best = one.best.usd_per_hour or 0.0
        dearer = f" {100 * (one.locked_usd_per_hour / best - 1):.0f} %" if best else ""
        lines.append(
            f"  {one.name}: the lock's {one.locked.machine} in {one.locked.region} is now{dearer}"
            f" dearer than the best pick: {units.usd_per_hour(one.locked_usd_per_hour)}, and"
            f" {one.best.machine} in {one.best.region} is {units.usd_per_hour(best)}"
            f" ({one.percent:.0f} % less)"
        )
    if cheaper:
        names = " ".join(one.name for one in cheaper)
        lines.append(f"  to take it: {command} --upgrade {names}")
    return lines


def _checked_document(
    declaration: Declaration, path: Path, problems: Sequence[Problem], watched: Watched
) -> dict[str, object]:
    """Schema `gputier/lock-check/1`."""
    percent, cheaper = watched
    return {
        "schema": SCHEMA_CHECK,
        "name": declaration.name,
        "path": str(path),
        "ok": not problems and not cheaper,
        "problems": [
            {
                "workload": p.path or None,
                "message": p.message,
                "hint": p.hint or None,
                "file": p.position.file if p.position else None,
                "line": p.position.line if p.position else None,
            }
            for p in problems
        ],
        "watched_percent": percent,
        "cheaper": [
            {
                "workload": one.name,
                "percent": round(one.percent, 6),
                "locked_usd_per_hour": round(one.locked_usd_per_hour, 6),
                "locked": _entry(one.locked),
                "best": _entry(one.best),
            }
            for one in cheaper
        ],
    }
