"""`gate`: judge, then open or shut."""

from __future__ import annotations

import argparse
import sys

from gputier.node import cli, gate
from gputier.node.expect import Expectation
from gputier.node.host import Host
from gputier.node.verbs import common


def main(arguments: list[str]) -> int:
    parser = common.parser("gate", "Judge this machine and open or shut the gate.")
    common.add_run(parser)
    options = parser.parse_args(arguments)
    host = Host(cli.root())
    wanted = common.read_expectation(host, options.expect)
    try:
        return _gate(host, wanted, options)
    except OSError as error:
        sys.stderr.write(f"gputier-node: the gate's state cannot be kept: {error}\n")
        return 40


def _gate(host: Host, wanted: Expectation, options: argparse.Namespace) -> int:
    if wanted.gate == gate.OFF:
        gate.write(host, gate.Gate(True, "unchecked", gate.OFF, (), int(host.now())))
        sys.stderr.write("gputier-node: the gate is off: open without a check\n")
        return 0
    # Shut while it is not known: an earlier verdict of this boot is not this one's.
    gate.write(host, gate.Gate(False, "checking", wanted.gate, ("checking",), int(host.now())))
    found = common.judge(host, wanted, options.depth)
    state = gate.settle(host, wanted.gate, found.report)
    common.show(found.report, options.json)
    words = "open" if state.open else "shut"
    sys.stderr.write(f"gputier-node: gate {words} ({wanted.gate}, {state.outcome})\n")
    return found.exit if wanted.gate == gate.ENFORCE else 0
