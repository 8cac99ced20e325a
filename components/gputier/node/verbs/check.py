"""`check`: judge this machine and say so."""

from __future__ import annotations

from gputier.node import cli
from gputier.node.host import Host
from gputier.node.verbs import common


def main(arguments: list[str]) -> int:
    parser = common.parser("check", "Judge this machine against the expectation.")
    common.add_run(parser)
    options = parser.parse_args(arguments)
    host = Host(cli.root())
    wanted = common.read_expectation(host, options.expect)
    found = common.judge(host, wanted, options.depth)
    common.show(found.report, options.json)
    return found.exit
