"""What `gputier doctor` does."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

from gputier.account.doctor import Subject
from gputier.account.doctor_document import document
from gputier.account.doctor_examine import Sessions, examine
from gputier.account.doctor_targets import Targets, targets
from gputier.account.stack import StackAccount, read_account
from gputier.catalog import Catalog
from gputier.cli import console
from gputier.cli.console import Paint
from gputier.cli.doctor import DoctorArguments
from gputier.cli.doctor_text import screen
from gputier.cli.inputs import json_text, load_catalog
from gputier.errors import ExitCode
from gputier.lock import lock_path, read_lock
from gputier.plan.known import KnownNames
from gputier.workload import Declaration, project, resolve
from gputier.workload.known import asking

SESSIONS = Sessions()


def run(typed: DoctorArguments) -> int:
    """Ask and print; the exit code."""
    catalog = load_catalog(typed.catalog_directory)
    with asking(KnownNames(catalog)):
        (declaration,) = resolve(typed.target, Path.cwd())
    found = targets(declaration, read_lock(lock_path(declaration), declaration.name), catalog)
    account = read_account(declaration)
    subject = _subject(typed.target, declaration, (found, account), catalog)
    notes = (*declaration.warnings, *account.warnings, *found.notes)
    examined = examine(subject, found, SESSIONS, _progress)
    if typed.as_json:
        console.out(json_text(document(declaration.name, examined, found.basis, notes)))
    else:
        width, paint = console.width(), Paint(sys.stdout)
        console.out("\n".join(screen(declaration.name, examined, found, (width, paint))))
    for note in notes:
        console.note(note)
    return ExitCode.OK if examined.ok else ExitCode.CANNOT_PLACE


def now() -> datetime:
    return datetime.now(UTC)


def _subject(
    command: str, declaration: Declaration, found: tuple[Targets, StackAccount], catalog: Catalog
) -> Subject:
    here = project.find(Path(declaration.folder))
    fleets, account = found
    return Subject(
        declaration.name,
        command,
        here.name if here else "",
        declaration.is_production,
        fleets.found,
        account,
        catalog,
        f"{now():%Y-%m-%dT%H:%M:%SZ}",
    )


def _progress(answered: int, of: int) -> None:
    console.note(f"asking: {answered} of {of} answered")
