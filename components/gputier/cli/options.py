"""Options and arguments that several commands share, so that they read the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from gputier.cli.command import completes

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def json_option(what: str) -> Decorator:
    return click.option(
        "--json", "as_json", is_flag=True, help=f"Print {what} as JSON (docs/json.md)."
    )


catalog_option: Decorator = click.option(
    "--catalog",
    "catalog_directory",
    metavar="DIR",
    envvar="GPUTIER_CATALOG",
    help="Your own overlay of the catalogue, as `gputier catalog refresh --out DIR` writes it."
    "  [env: GPUTIER_CATALOG]",
)


def _stacks(_context: click.Context, incomplete: str) -> list[str]:
    from pathlib import Path

    from gputier.workload import find_stacks

    files = Path.cwd().glob("*.y*ml") if not incomplete or "/" not in incomplete else ()
    return sorted([*find_stacks(Path.cwd()), *(file.name for file in files)])


def _types(_context: click.Context, _incomplete: str) -> list[str]:
    from gputier import catalog

    return sorted({name for _cloud, name in catalog.load().types})


def _gpus(_context: click.Context, _incomplete: str) -> list[str]:
    from gputier import catalog

    return sorted(catalog.load().gpus)


complete_stacks = completes(_stacks)
complete_types = completes(_types)
complete_gpus = completes(_gpus)


stack_argument: Decorator = click.argument(
    "target", metavar="[STACK|FILE]", required=False, shell_complete=complete_stacks
)
