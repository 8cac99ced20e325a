"""The root command and what it knows of the others: a name, a place, a line of help."""

from __future__ import annotations

import click

import gputier
from gputier.cli import console
from gputier.cli.command import Group, Lazy

COMMANDS = {
    "plan": Lazy(
        "gputier.cli.plan:plan", "Choose a machine for each workload, priced and explained."
    ),
    "lock": Lazy("gputier.cli.lock:lock", "Write, check or upgrade the lock of a stack."),
    "size": Lazy(
        "gputier.cli.size:size", "Say how much GPU memory each workload needs, part by part."
    ),
    "pick": Lazy("gputier.cli.pick:pick", "Choose a machine from flags alone, without a file."),
    "tiers": Lazy("gputier.cli.tiers:tiers", "Print the tiers and purposes: floors, and why."),
    "catalog": Lazy(
        "gputier.cli.catalog:catalog", "Search, show and compare GPU machines and prices."
    ),
    "render": Lazy("gputier.cli.render:render", "Print exactly what a node is given at boot."),
    "review": Lazy("gputier.cli.review:review", "Say what a change costs and risks."),
    "doctor": Lazy(
        "gputier.cli.doctor:doctor", "Ask the account whether it can take what a stack deploys."
    ),
    "status": Lazy(
        "gputier.cli.status:status",
        "Say what runs, what it costs, and why something does not appear.",
    ),
    "node": Lazy("gputier.cli.node:node", "Build the validator that a machine runs on itself."),
    "init": Lazy("gputier.cli.init:init", "Write a project: stacks, locks, policies and CI."),
    "completion": Lazy(
        "gputier.cli.completion:completion", "Print the completion script of a shell."
    ),
}


def _version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        console.out(f"gputier {gputier.__version__}")
        ctx.exit()


root = Group(
    "gputier",
    lazy=COMMANDS,
    help="Declare a GPU workload; get the cheapest machine that really fits it, priced and"
    " explained. All of it works offline, from a dated catalogue, but what asks an account:"
    " doctor, status, lock --images and review --post.",
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_version,
            help="Show the version and exit.",
        )
    ],
    examples=(
        ("gputier plan", "what every stack of this project would run on, and cost"),
        ("gputier plan prod --explain", "why not each of the other machines"),
        ("gputier pick --gpu-memory 24GB --region aws:us-east-1 --spot", "without a file"),
        ("gputier catalog show p5.48xlarge", "everything known about a machine"),
    ),
    no_args_is_help=True,
)
