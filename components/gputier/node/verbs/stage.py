"""`stage`: one stage of the boot by itself; without a name, all of them and which ones apply."""

from __future__ import annotations

import argparse
import importlib
import json
import signal
import sys
from types import FrameType

from gputier.node import cli, prctl, processes, stages
from gputier.node.expect import BadExpectation, Expectation
from gputier.node.fields import DEPTHS
from gputier.node.host import Host
from gputier.node.result import EXIT, Garbled, Wedged
from gputier.node.runner import MARK
from gputier.node.stages import Halt, StageResult, Work, inconclusive, reboot
from gputier.node.verbs import common


def main(arguments: list[str]) -> int:
    parser = common.parser("stage", "Run one stage of the boot, or list them.")
    parser.add_argument("name", nargs="?", choices=sorted(stages.BY_NAME), metavar="NAME")
    common.add_settings(parser)
    common.add_expect(parser)
    parser.add_argument("--seconds", type=float, help="instead of the stage's limit")
    parser.add_argument("--depth", choices=DEPTHS, help="of the validation")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    options = parser.parse_args(arguments)
    host = Host(cli.root())
    if options.name is None:
        return _list(host, options)
    return _run(host, _given(host, options), options)


def _given(host: Host, options: argparse.Namespace) -> common.Given:
    """A boot tells also that it was given something wrong; nothing else is done by that."""
    if options.json and options.name == stages.GATE:
        return common.given(host)
    settings = common.read_settings(host, options.settings)
    return common.Given(settings, common.read_expectation(host, options.expect))


def _list(host: Host, options: argparse.Namespace) -> int:
    settings = common.read_settings(host, options.settings)
    try:
        wanted = common.read_expectation(host, options.expect)
    except BadExpectation:
        wanted = Expectation({})  # the settings alone say what applies, but for the burn-in
    width = max(len(stage.name) for stage in stages.STAGES)
    for stage in stages.STAGES:
        why = stage.applies(settings)
        if stage.name == stages.BURN_IN:
            why = stages.burns_in(settings, wanted)
        words = f"not run: {why}" if why else f"{stage.seconds(settings):g} s at most"
        sys.stdout.write(f"{stage.name:<{width}}  {words}\n")
    return 0


def _run(host: Host, given: common.Given, options: argparse.Namespace) -> int:
    if options.json:
        # The boot waits for this process: it must not outlive the boot, nor its commands it.
        prctl.die_with_parent()
        signal.signal(signal.SIGTERM, _ended)
    stage = stages.BY_NAME[options.name]
    settings = given.settings
    work = Work(host, given.expect, settings, options.seconds or stage.seconds(settings))
    work.depth = options.depth or settings.depth
    found = perform(stage, work)
    if options.json:
        sys.stdout.write(f"\n{MARK}{json.dumps(found._asdict())}\n")
    else:
        for warning in found.warnings:
            sys.stderr.write(f"gputier-node: warning: {warning}\n")
        changed = " (changed)" if found.changed else ""
        sys.stdout.write(f"{stage.name}: {found.outcome}{changed}: {found.evidence}\n")
        if found.remedy:
            sys.stdout.write(f"  {found.remedy}\n")
    return EXIT[found.outcome]


def perform(stage: stages.Stage, work: Work) -> StageResult:
    """Load the stage's module and run it; whatever happens there is a result."""
    try:
        module = importlib.import_module(f"gputier.node.stages.{stage.module}")
        found: StageResult = module.run(work)
    except Halt as halt:
        found = halt.result
    except Wedged as error:
        found = reboot(str(error), "reboot once: the driver or a GPU is stuck")
    except Garbled as error:
        found = inconclusive(f"unreadable: {error}")
    except Exception as error:
        found = inconclusive(f"the stage itself failed: {type(error).__name__}: {error}")
    return found._replace(warnings=(*found.warnings, *work.warnings))


def _ended(_: int, __: FrameType | None) -> None:
    processes.end_below()
    sys.exit(EXIT["inconclusive"])
