"""`gputier init`: write a project that deploys, with its policies and continuous integration."""

from __future__ import annotations

from dataclasses import dataclass

import click

from gputier.cli.command import Command, completes
from gputier.cli.options import catalog_option

CLOUDS = {"aws": ("aws",), "gcp": ("gcp",), "both": ("aws", "gcp")}
FORGES = {"github": ("github",), "gitlab": ("gitlab",), "both": ("github", "gitlab"), "none": ()}
TIERS = ("entry", "mid", "high-end")


@dataclass(frozen=True, slots=True)
class InitArguments:
    """What was typed; an empty name is taken from the folder."""

    folder: str
    name: str
    cloud: str
    region: str
    tier: str
    ci: str
    owner: str
    cost_center: str
    images: bool
    dry_run: bool
    catalog_directory: str | None


def _regions(_context: click.Context, _incomplete: str) -> list[str]:
    from gputier import catalog

    return sorted(catalog.load().regions("aws"))


@click.command(
    cls=Command,
    examples=(
        ("gputier init", "in this folder: AWS, us-east-1, tier entry, GitHub"),
        ("gputier init my-gpus --region eu-central-1 --tier mid --ci gitlab", "in a new folder"),
        ("gputier init --dry-run", "only list what would be written"),
    ),
)
@click.argument("folder", required=False, default=".", type=click.Path())
@click.option("--name", default="", help="The project's name. Default: the folder's.")
@click.option(
    "--cloud",
    type=click.Choice(tuple(CLOUDS)),
    default="aws",
    show_default=True,
    help="What the project is made for and the workflows sign in to. `both`: the example's machines"
    " are on AWS, and a stack's `clouds` and `gcp:project` move them to Google Cloud.",
)
@click.option(
    "--region",
    default="us-east-1",
    show_default=True,
    shell_complete=completes(_regions),
    help="The region of the machines.",
)
@click.option(
    "--tier",
    type=click.Choice(TIERS),
    default="entry",
    show_default=True,
    help="What the example workload starts from: a small model served, one fine-tuned, or a"
    " large one trained.",
)
@click.option(
    "--ci",
    type=click.Choice(tuple(FORGES)),
    default="github",
    show_default=True,
    help="Whose continuous integration to write files for.",
)
@click.option("--owner", default="", help="The tag `owner` of every machine. Default: the name.")
@click.option("--cost-center", default="", help="The tag `cost-center`. Default: the name.")
@click.option(
    "--images",
    is_flag=True,
    help="Ask AWS for the image ids of today and pin them in the locks, as `gputier lock --images`"
    " does later.",
)
@click.option("--dry-run", is_flag=True, help="Write nothing; list what would be written.")
@catalog_option
def init(
    folder: str,
    name: str,
    cloud: str,
    region: str,
    tier: str,
    ci: str,
    owner: str,
    cost_center: str,
    images: bool,
    dry_run: bool,
    catalog_directory: str | None,
) -> int:
    """Write a project: stacks, locks, policies and CI.

    FOLDER is made where it is missing; default is the current one. The project needs the
    installed package and no clone of it. Nothing is ever overwritten: a file that is there is kept
    and named. docs/first-half-hour.md goes on from here.
    """
    from gputier.cli.init_run import run

    return run(
        InitArguments(
            folder=folder,
            name=name,
            cloud=cloud,
            region=region,
            tier=tier,
            ci=ci,
            owner=owner,
            cost_center=cost_center,
            images=images,
            dry_run=dry_run,
            catalog_directory=catalog_directory,
        )
    )
