"""`gputier catalog`: what is known of machines, GPUs, prices and places."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from gputier.cli import console
from gputier.cli.catalog_filters import Filters, check, filter_options
from gputier.cli.catalog_list import SORTS, document, screen, search
from gputier.cli.command import Group, Lazy
from gputier.cli.inputs import json_text, load_catalog
from gputier.cli.options import catalog_option, json_option
from gputier.errors import ExitCode

COMMANDS = {
    "show": Lazy("gputier.cli.catalog_show:show", "Everything known about one machine or GPU."),
    "compare": Lazy("gputier.cli.catalog_compare:compare", "Machines side by side."),
    "gpus": Lazy("gputier.cli.catalog_gpus:gpus", "The GPU models."),
    "models": Lazy("gputier.cli.catalog_models:models", "What `model.name` may name."),
    "regions": Lazy("gputier.cli.catalog_regions:regions", "The regions of a cloud."),
    "refresh": Lazy(
        "gputier.cli.catalog_refresh:refresh",
        "Make an overlay from what the clouds' own tools print.",
    ),
}


@click.group(
    cls=Group,
    lazy=COMMANDS,
    invoke_without_command=True,
    subcommand_metavar="[COMMAND]",
    examples=(
        ("gputier catalog --memory 48GB --graphics vulkan", "machines that can render"),
        ("gputier catalog --gpu H100 --region aws:us-east-1 --spot", "spot prices in one region"),
        ("gputier catalog show p5.48xlarge", "one machine whole"),
        ("gputier catalog compare g6.xlarge g5.xlarge g2-standard-4", "side by side"),
    ),
)
@filter_options
@click.option("--sort", type=click.Choice(SORTS), default="price", help="Order of the list.")
@json_option("the list")
@catalog_option
@click.pass_context
def catalog(
    context: click.Context, sort: str, as_json: bool, catalog_directory: str | None, **flags: Any
) -> int:
    """Search, show and compare GPU machines and prices.

    Without a command: a list of machines, narrowed by the options. Prices are listed ones; each
    has its date and source.
    """
    if context.invoked_subcommand:
        _refuse_options_before(context)
        return ExitCode.OK
    filters = Filters(**flags)
    loaded = load_catalog(catalog_directory)
    check(loaded, filters)
    found = search(loaded, filters, sort)
    if as_json:
        console.out(json_text(document(loaded, found, filters)))
    else:
        console.out("\n".join(screen(loaded, found, filters, console.width())))
    return ExitCode.OK


def _refuse_options_before(context: click.Context) -> None:
    """An option between `catalog` and its command would be ignored: it is refused instead."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is ParameterSource.COMMANDLINE:
            name = context.invoked_subcommand
            raise click.UsageError(
                f"`{parameter.opts[0]}` before `{name}` narrows the list, and `{name}` prints none;"
                f" options of `{name}` come after it",
                context,
            )
