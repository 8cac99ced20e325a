"""What verbs share: the expectation's file, the run, what is printed."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from gputier.node import boots, expect, report, screen
from gputier.node.checks import ALL
from gputier.node.engine import Context, run
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


def judge(host: Host, wanted: expect.Expectation, depth: str | None, keep: bool = True) -> Run:
    """Run the checks and settle the count of reboots; with `keep` it and the report are written."""
    chosen = depth or wanted.depth
    ctx = Context(host, wanted)
    verdict = boots.settle(ctx, run(ctx, ALL, chosen), keep)
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
