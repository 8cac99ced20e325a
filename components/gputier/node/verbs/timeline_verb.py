"""`timeline`: what the boots of this machine did, stage by stage."""

from __future__ import annotations

import sys

from gputier.node import cli, timeline
from gputier.node.host import Host
from gputier.node.verbs import common


def main(arguments: list[str]) -> int:
    parser = common.parser("timeline", "Show what each stage of the boots took, and its limit.")
    parser.add_argument("--json", action="store_true", help="print the file as it is")
    parser.add_argument("--last", action="store_true", help="this boot only")
    options = parser.parse_args(arguments)
    found = timeline.read(Host(cli.root()))
    if options.json:
        sys.stdout.write(timeline.to_json(found))
    else:
        sys.stdout.write(timeline.text(found, 1 if options.last else 0))
    return 0 if found.boots else 2
