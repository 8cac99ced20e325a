"""`gputier review`: what a change costs and risks, from what `pulumi preview` says."""

from __future__ import annotations

from dataclasses import dataclass

import click

from gputier.cli.command import Command
from gputier.cli.options import catalog_option, complete_stacks, json_option

PLATFORMS = ("github", "gitlab")
FORMATS = ("text", "markdown", "json", "html")


@dataclass(frozen=True, slots=True)
class ReviewArguments:
    """What was typed."""

    preview: str
    base: str | None
    stack: str | None
    format: str
    post: str | None
    always: bool
    threshold: float | None
    fail_over: float | None
    catalog_directory: str | None


@click.command(
    cls=Command,
    examples=(
        ("pulumi preview --json > preview.json; gputier review preview.json", "what it costs"),
        ("gputier review preview.json --base main.json", "against what main has"),
        ("gputier review preview.json --format markdown", "the comment of a pull request"),
        ("gputier review preview.json --fail-over 500", "exit with 5 above +$500 a month"),
    ),
)
@click.argument("preview", metavar="PREVIEW", type=click.Path(allow_dash=True))
@click.option(
    "--base",
    metavar="FILE",
    type=click.Path(),
    help="What was there before: an earlier preview, or `pulumi stack export`. With it unchanged"
    " resources count too, and a saved plan can be reviewed.",
)
@click.option(
    "--stack",
    metavar="STACK",
    shell_complete=complete_stacks,
    help="A stack of this project: its discounts count, and its lock is held against the preview.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="markdown is a comment for GitHub and GitLab; json is a contract; html is a page.",
)
@json_option("the review")
@click.option(
    "--threshold",
    metavar="USD",
    type=click.FloatRange(min=0),
    help="Print nothing but a note when the difference a month is below this, nothing warns and"
    " nothing comes that has no price here.",
)
@click.option(
    "--fail-over",
    metavar="USD",
    type=click.FloatRange(min=0),
    help="Exit with 5 when the likely cost rises by more than this a month.",
)
@click.option(
    "--post",
    type=click.Choice(PLATFORMS),
    help="Post it as one comment that is found again and edited, with a token from the environment"
    " (GITHUB_TOKEN, GITLAB_TOKEN). Below the threshold none is made, and one that is there is kept"
    " true. Needs `pip install 'gputier[post]'`.",
)
@click.option(
    "--always",
    is_flag=True,
    help="With `--post`: make a comment even when nothing changed.",
)
@catalog_option
def review(
    preview: str,
    base: str | None,
    stack: str | None,
    format_: str,
    as_json: bool,
    threshold: float | None,
    fail_over: float | None,
    post: str | None,
    always: bool,
    catalog_directory: str | None,
) -> int:
    """Say what a change costs and risks.

    PREVIEW is what `pulumi preview --json` wrote, its event log (`--event-log`), a saved plan
    (`--save-plan`) or `pulumi stack export`, of any program in any language; `-` is standard input.
    Nothing is asked over the network, but for `--post`. A preview that failed is never reviewed as
    a whole one: it exits with 6.
    """
    from gputier.cli.review_run import run

    shown = "json" if as_json else format_
    return run(
        ReviewArguments(
            preview, base, stack, shown, post, always, threshold, fail_over, catalog_directory
        )
    )
