"""`gputier completion SHELL`: what a shell needs to complete our words."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from gputier.cli import console
from gputier.cli.app import root
from gputier.cli.command import Command
from gputier.errors import ExitCode

SHELLS = ("bash", "zsh", "fish")


@click.command(
    cls=Command,
    examples=(
        ('eval "$(gputier completion bash)"', "in ~/.bashrc; bash 4.4 or newer"),
        ('eval "$(gputier completion zsh)"', "in ~/.zshrc"),
        ("gputier completion fish | source", "in ~/.config/fish/config.fish"),
    ),
)
@click.argument("shell", type=click.Choice(SHELLS), metavar="SHELL")
def completion(shell: str) -> int:
    """Print the completion script of a shell: bash, zsh or fish.

    Commands, options, stacks, instance types, GPU models and regions are completed.
    """
    found = get_completion_class(shell)
    if found is None:
        raise LookupError(f"click knows no completion for {shell}")
    # bash's own `source` starts a bash to look at its version; the help says which it needs.
    script = ShellComplete.source(found(root, {}, "gputier", "_GPUTIER_COMPLETE"))
    console.out(script)
    return ExitCode.OK
