"""What every command has: examples in its help, and help that any stream can show."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from gputier.cli import console

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Example(NamedTuple):
    """A command line and what it is for."""

    line: str
    text: str


class Command(click.Command):
    """A click command with examples. It returns its exit code."""

    examples: Sequence[Example] = ()

    def __init__(self, *args: Any, examples: Sequence[tuple[str, str]] = (), **kwargs: Any) -> None:
        kwargs.setdefault("context_settings", CONTEXT)
        super().__init__(*args, **kwargs)
        self.examples = tuple(Example(*pair) for pair in examples)

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        return _readable(super().get_help_option(ctx))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_examples(self.examples, formatter)
        super().format_epilog(ctx, formatter)


class Lazy(NamedTuple):
    """Where a command lives (`module:attribute`), and its line in the list of commands."""

    place: str
    summary: str


class Group(click.Group):
    """Commands that are imported when they run. Help and completion read their summaries only.

    `aliases` are other words for a command, which help does not list.
    """

    examples: Sequence[Example] = ()

    def __init__(
        self,
        *args: Any,
        lazy: Mapping[str, Lazy],
        aliases: Mapping[str, str] | None = None,
        examples: Sequence[tuple[str, str]] = (),
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("context_settings", CONTEXT)
        super().__init__(*args, **kwargs)
        self.lazy = lazy
        self.aliases = aliases or {}
        self.examples = tuple(Example(*pair) for pair in examples)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        return list(self.lazy)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 (click's signature)
        cmd_name: str,
    ) -> click.Command | None:
        found = self.lazy.get(self.aliases.get(cmd_name, cmd_name))
        if found is None:
            return None
        module, attribute = found.place.split(":")
        return getattr(importlib.import_module(module), attribute)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        known = name in self.lazy or name in self.aliases
        if not known and not name.startswith("-") and not ctx.resilient_parsing:
            raise UnknownCommand(name, self.lazy, ctx)
        return super().resolve_command(ctx, args)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 (click's signature)
        formatter: click.HelpFormatter,
    ) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, found.summary) for name, found in self.lazy.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        found = [
            CompletionItem(name, help=one.summary)
            for name, one in self.lazy.items()
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        return _readable(super().get_help_option(ctx))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_examples(self.examples, formatter)
        super().format_epilog(ctx, formatter)


class UnknownCommand(click.UsageError):
    """A word where a command is expected."""

    def __init__(self, name: str, known: Mapping[str, Lazy], ctx: click.Context) -> None:
        super().__init__(f"`{name}` is not a command of `{ctx.command_path}`", ctx)
        self.name = name
        self.known = tuple(known)


def _readable(option: click.Option | None) -> click.Option | None:
    """The help option, writing through `console`, which knows what a stream can show."""
    if option is not None:
        option.callback = show_help
    return option


def show_help(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        console.out(ctx.get_help())
        ctx.exit()


def _write_examples(examples: Sequence[Example], formatter: click.HelpFormatter) -> None:
    if not examples:
        return
    with formatter.section("Examples"):
        for example in examples:
            for line in (f"# {example.text}", f"$ {example.line}"):
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")


def completes(
    words: Callable[[click.Context, str], Sequence[str]],
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """`words(context, incomplete)` as what click asks for. Completion never complains."""

    def complete(
        ctx: click.Context, _parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        try:
            found = words(ctx, incomplete)
        except Exception:  # a shell that waits for words must not see an error
            return []
        return [CompletionItem(word) for word in found if word.startswith(incomplete)]

    return complete
