"""`gputier catalog refresh`: what the clouds' own tools print → an overlay of one's own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from gputier.catalog.refresh import Report
from gputier.catalog.refresh import refresh as make_overlay
from gputier.catalog.refresh_io import COMMANDS
from gputier.cli import console
from gputier.cli.command import Command
from gputier.cli.inputs import json_text
from gputier.cli.options import json_option
from gputier.errors import ExitCode

SCHEMA = "gputier/catalog-refresh/1"
DEFAULT_OUT = "gputier-catalog"
_COMMANDS = "\n".join(f"  {command}" for command in COMMANDS.values())


@click.command(
    cls=Command,
    help="Make an overlay from what the clouds' own tools print.\n\n"
    "Each file is recognised by its content; nothing here talks to a cloud. The overlay's rows win"
    " over the packaged ones wherever --catalog or GPUTIER_CATALOG names it, and the catalogue's id"
    f" changes with it. Files that are understood:\n\n\b\n{_COMMANDS}",
    examples=(
        ("aws ec2 describe-instance-types > types.json", "first, with your own account"),
        ("gputier catalog refresh --from types.json spot.json --out my-catalog", "then"),
        ("GPUTIER_CATALOG=my-catalog gputier plan prod", "and use it"),
    ),
)
@click.option("--from", "first", multiple=True, metavar="FILE...", required=True, help="Files.")
@click.argument("more", nargs=-1, metavar="[FILE...]")
@click.option(
    "--out",
    metavar="DIR",
    help=f"Where to write; an overlay that is there is extended. Default: GPUTIER_CATALOG, else"
    f" ./{DEFAULT_OUT}.",
)
@json_option("what was read and written")
def refresh(first: tuple[str, ...], more: tuple[str, ...], out: str | None, as_json: bool) -> int:
    files = [Path(name).expanduser() for name in (*first, *more)]
    folder = Path(out or os.environ.get("GPUTIER_CATALOG") or DEFAULT_OUT).expanduser()
    if console.is_terminal(sys.stderr):
        console.err(f"reading {len(files)} file{'s' if len(files) != 1 else ''}…")
    report = make_overlay(files, folder)
    if as_json:
        console.out(json_text(document(report)))
        return ExitCode.OK
    console.out("\n".join(report.lines()))
    if os.environ.get("GPUTIER_CATALOG") != str(folder):
        console.note(f"to plan on it: --catalog {folder}, or GPUTIER_CATALOG={folder}")
    return ExitCode.OK


def document(report: Report) -> dict[str, object]:
    """Schema `gputier/catalog-refresh/1`."""
    return {
        "schema": SCHEMA,
        "catalog": {"id": report.catalog_id, "as_of": report.as_of},
        "path": str(report.out),
        "files": [
            {"path": str(path), "command": command, "records": count}
            for path, command, count in report.files
        ],
        "written": dict(sorted(report.written.items())),
        "new_types": list(report.new_types),
        "gone": list(report.gone),
        "refused": list(report.refused),
        "unknown_gpus": list(report.unknown),
        "ignored": dict(sorted(report.ignored.items())),
    }
