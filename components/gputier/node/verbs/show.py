"""`report`: the last verdict again."""

from __future__ import annotations

import sys

from gputier.node import cli, report
from gputier.node.host import Host
from gputier.node.result import EXIT
from gputier.node.verbs import common


def main(arguments: list[str]) -> int:
    parser = common.parser("report", "Show the last verdict; its exit status is the verdict's.")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    options = parser.parse_args(arguments)
    found = report.load(Host(cli.root()))
    if found is None:
        sys.stderr.write(f"gputier-node: no report in {report.FILE}: run `check` first\n")
        return 2
    common.show(found, options.json)
    return EXIT[found["outcome"]]
