"""`replay`: judge a recorded machine, on any other."""

from __future__ import annotations

from gputier.node import recording
from gputier.node.verbs import common


def main(arguments: list[str]) -> int:
    parser = common.parser("replay", "Judge a recording; its exit status is the verdict's.")
    parser.add_argument("folder", metavar="DIR")
    common.add_run(parser)
    options = parser.parse_args(arguments)
    host = recording.Replay(recording.load(options.folder))
    wanted = common.read_expectation(host, options.expect)
    found = common.judge(host, wanted, options.depth)
    common.show(found.report, options.json)
    return found.exit
