"""What verbs share: the expectation's file, the run, what is printed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from gputier.node import boots, expect, report, screen, settings
from gputier.node.checks import ALL
from gputier.node.engine import Context, Verdict, run
from gputier.node.host import Host
from gputier.node.result import EXIT

EXPECT = "/etc/gputier/expect.json"


class Run(NamedTuple):
    """A finished run: its report and the context that it was made in."""

    ctx: Context
    report: dict[str, Any]

    @property
    def exit(self) -> int:
        return EXIT[self.report["outcome"]]


def parser(verb: str, words: str) -> argparse.ArgumentParser:
    """A parser of a verb's arguments."""
    return argparse.ArgumentParser(prog=f"gputier-node {verb}", description=words)


def add_expect(arguments: argparse.ArgumentParser) -> None:
    arguments.add_argument("--expect", metavar="FILE", help=f"the expectation; default {EXPECT}")


def add_settings(arguments: argparse.ArgumentParser) -> None:
    words = f"the settings of the boot; default {settings.FILE}"
    arguments.add_argument("--settings", metavar="FILE", help=words)


def add_run(arguments: argparse.ArgumentParser) -> None:
    """The options of everything that judges."""
    add_expect(arguments)
    arguments.add_argument("--depth", choices=expect.DEPTHS, help="instead of the expectation's")
    arguments.add_argument("--json", action="store_true", help="print the report as JSON")


def read_expectation(host: Host, path: str | None) -> expect.Expectation:
    """The expectation of a file that the caller names, or of its place. Raises BadExpectation."""
    if path is None:
        text = host.read(EXPECT)
        if text is None:
            raise expect.BadExpectation([f"{EXPECT} is not there: name one with --expect FILE"])
        return expect.read(text)
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise expect.BadExpectation([f"{path}: {error}"]) from None
    return expect.read(text)


def read_settings(host: Host, path: str | None) -> settings.Settings:
    """The settings of a file that the caller names, or of their place. Raises BadSettings."""
    if path is None:
        text = host.read(settings.FILE)
        if text is None:
            raise settings.BadSettings([f"{settings.FILE} is not there: name one with --settings"])
        return settings.read(text)
    try:
        return settings.read(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise settings.BadSettings([f"{path}: {error}"]) from None


class Given(NamedTuple):
    """What a boot is given. `problem`: why it cannot be used as it is, "" when it can."""

    settings: settings.Settings
    expect: expect.Expectation
    problem: str = ""  # one line each


def given(host: Host) -> Given:
    """Settings and expectation of this machine, as far as they can be read.

    A file that is wrong is wrong on every new node, and a launch hook that hears nothing of it
    brings the next one: what is left says how the cloud is told.
    """
    found, problems = settings.Settings({}), []
    wanted = expect.Expectation({})
    try:
        found = read_settings(host, None)
    except settings.BadSettings as error:
        found, problems = settings.Settings(error.values), [str(error)]
    try:
        wanted = read_expectation(host, None)
    except expect.BadExpectation as error:
        problems.append(str(error))
    return Given(found, wanted, "\n".join(problems))


def judge(host: Host, wanted: expect.Expectation, depth: str | None, keep: bool = True) -> Run:
    """Run the checks and settle the count of reboots; with `keep` it and the report are written."""
    return judge_in(Context(host, wanted), depth, keep)


def _as_it_is(_: Context, verdict: Verdict) -> Verdict:
    return verdict


def judge_in(
    ctx: Context,
    depth: str | None,
    keep: bool = True,
    after: Callable[[Context, Verdict], Verdict] = _as_it_is,
) -> Run:
    """The same in a context of the caller's: with an end, or with what ended the preparation.

    `after` may still change the verdict before it counts.
    """
    host = ctx.host
    chosen = depth or ctx.expect.depth
    verdict = boots.settle(ctx, after(ctx, run(ctx, ALL, chosen)), keep)
    found = report.build(ctx, verdict, chosen)
    if keep:
        trouble = report.save(host, found)
        if trouble:
            found["warnings"].append(f"the report was not kept: {trouble}")
    return Run(ctx, found)


def show(found: dict[str, Any], as_json: bool) -> None:
    """Print a report on stdout."""
    if as_json:
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
        return
    sys.stdout.write(screen.text(found, sys.stdout.encoding))
