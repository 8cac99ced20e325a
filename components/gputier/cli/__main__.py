"""`gputier` and `python -m gputier.cli`: exceptions become messages and exit codes here only."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import click

from gputier import errors
from gputier.cli import console
from gputier.cli.app import root
from gputier.cli.command import UnknownCommand
from gputier.cli.text import listed
from gputier.errors import ExitCode, GputierError, Problem

INTERRUPTED = 130  # 128 + SIGINT, as shells count


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code (docs/cli.md). Never exits, never raises."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = root.main(arguments, prog_name="gputier", standalone_mode=False)
    except GputierError as error:
        return _refused(error.problems, error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        console.err(error.format_message())
        return ExitCode.USAGE
    except click.ClickException as error:
        return _refused([_usage_problem(error)], ExitCode.USAGE)
    except click.exceptions.Exit as done:
        return done.exit_code
    except SystemExit as done:  # click's completion ends this way
        return done.code if isinstance(done.code, int) else ExitCode.OK
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except OSError as error:
        return _refused([_system_problem(error)], ExitCode.USAGE)
    except Exception as error:
        return _our_bug(error)
    return code if isinstance(code, int) else ExitCode.OK


def run() -> NoReturn:
    """The console script."""
    gc.disable()  # a process of half a second holds no garbage worth a twentieth of its time
    code = int(main())
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # what was printed is flushed already
            stream.flush()
    os._exit(code)  # taking every module apart again costs 40 ms and frees nothing that matters


def _refused(problems: Sequence[Problem], code: ExitCode) -> int:
    console.err(errors.render(problems, color=console.Paint(sys.stderr).on))
    return int(code)


def _usage_problem(error: click.ClickException) -> Problem:
    """What was mistyped, in our words, with the command whose help says more."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context else "gputier"
    more = f"see `{path} --help`"
    match error:
        case click.NoSuchOption(option_name=name):
            options = context.command.get_params(context) if context else []
            known = [name for option in options for name in option.opts if name[:1] == "-"]
            hint = errors.spelling_hint(name, known, otherwise=more)
            return Problem("", f"`{path}` has no option `{name}`", hint)
        case UnknownCommand(name=name, known=known):
            return Problem("", error.message, errors.spelling_hint(name, known, otherwise=more))
        case click.MissingParameter(param=click.Parameter() as parameter):
            return Problem("", f"`{path}` needs {_named(parameter, context)}", more)
        case click.BadParameter(param=click.Parameter() as parameter):
            return _bad_value(error, parameter, context, more)
        case _:
            return Problem("", _sentence(error.format_message()), more)


def _named(parameter: click.Parameter, context: click.Context | None) -> str:
    """`--from FILE...`, `STACK`."""
    words = parameter.make_metavar(context) if context else str(parameter.name)
    return f"{parameter.opts[0]} {words}" if isinstance(parameter, click.Option) else words


def _bad_value(
    error: click.BadParameter, parameter: click.Parameter, context: click.Context | None, more: str
) -> Problem:
    option = isinstance(parameter, click.Option)
    name = parameter.opts[0] if option or not context else parameter.make_metavar(context)
    wrong = re.match(r"'([^']*)' is not one of ", error.message)
    if wrong and isinstance(parameter.type, click.Choice):
        words = [str(choice) for choice in parameter.type.choices]
        message = f"must be {listed(words, 'or')}, not `{wrong[1]}`"
        return Problem(name, message, errors.spelling_hint(wrong[1], words, otherwise=more))
    return Problem(name, _sentence(error.message), more)


def _sentence(text: str) -> str:
    """click's words as ours are written: no capital, no full stop, backticks for literals."""
    text = re.sub(r"'([^']*)'", r"`\1`", text.rstrip("."))
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def _system_problem(error: OSError) -> Problem:
    where = str(error.filename) if error.filename else ""
    return Problem(where, (error.strerror or str(error)).lower(), "")


def _our_bug(error: Exception) -> int:
    """Say it short; the traceback is for those who ask."""
    if os.environ.get("GPUTIER_DEBUG"):
        console.err("".join(traceback.format_exception(error)))
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    text = " ".join(str(error).split())[:300]
    what = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return _refused(
        [
            Problem(
                "",
                f"this is a bug in gputier: {what}{place}",
                "please report it with the command you ran and the traceback that GPUTIER_DEBUG=1"
                " prints",
            )
        ],
        ExitCode.BUG,
    )


if __name__ == "__main__":
    run()
