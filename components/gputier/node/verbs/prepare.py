"""`prepare`: disks, MIG layout, limits, as planned; safe to run at every boot."""

from __future__ import annotations

import shlex
import sys

from gputier.node import cli
from gputier.node.engine import Context
from gputier.node.host import Host
from gputier.node.preparing import Refused, prepare
from gputier.node.result import CONFIG, EXIT, INCONCLUSIVE, REBOOT, Garbled
from gputier.node.verbs import common


def main(arguments: list[str]) -> int:
    parser = common.parser("prepare", "Make disks, MIG layout and limits what the plan says.")
    common.add_expect(parser)
    parser.add_argument("--dry-run", action="store_true", help="say what would be done")
    options = parser.parse_args(arguments)
    host = Host(cli.root())
    wanted = common.read_expectation(host, options.expect)
    try:
        found = prepare(Context(host, wanted), options.dry_run)
    except Refused as reason:
        sys.stderr.write(f"gputier-node: refused, nothing was touched on the disks: {reason}\n")
        return EXIT[CONFIG]
    except Garbled as error:
        sys.stderr.write(f"gputier-node: unreadable: {error}\n")
        return EXIT[INCONCLUSIVE]
    for step in found.steps:
        what = " ".join(map(shlex.quote, step.argv)) if step.argv else f"write {step.path}"
        sys.stdout.write(f"{step.words}: {what}\n")
    for trouble in found.failed:
        sys.stderr.write(f"gputier-node: {trouble}\n")
    if found.failed:
        return EXIT[CONFIG]
    if found.reboot:
        sys.stderr.write("gputier-node: the MIG mode waits for a reset: reboot once\n")
        return EXIT[REBOOT]
    return 0
