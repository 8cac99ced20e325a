"""`gputier doctor`: whether the account can take what a stack deploys."""

from __future__ import annotations

from dataclasses import dataclass

import click

from gputier.cli.command import Command
from gputier.cli.options import catalog_option, complete_stacks, json_option


@dataclass(frozen=True, slots=True)
class DoctorArguments:
    """What was typed."""

    target: str
    as_json: bool
    catalog_directory: str | None


@click.command(
    cls=Command,
    examples=(
        ("gputier doctor prod", "before the first `pulumi up`, and when one fails"),
        ("gputier doctor prod --json | jq '.answers[] | select(.state == \"bad\")'", "in a script"),
    ),
)
@click.argument("target", metavar="STACK", shell_complete=complete_stacks)
@json_option("every answer")
@catalog_option
def doctor(target: str, as_json: bool, catalog_directory: str | None) -> int:
    """Ask the account whether it can take what a stack deploys.

    Zones, quotas, reservations, images, fabric, rights, service-linked roles, cost tags, APIs and
    billing, of AWS and Google Cloud, for the machines of the lock or else of today's plan. Asked
    with the stack's own profile, roles and project; nothing is changed. Exits with 3 when something
    is bad; what could not be asked is a warning. docs/doctor.md has every check with the right it
    takes.
    """
    from gputier.cli.doctor_run import run

    return run(DoctorArguments(target, as_json, catalog_directory))
