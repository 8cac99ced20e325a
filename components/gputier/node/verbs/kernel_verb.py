"""`kernel`: the CUDA kernel of `kernel.py`, in a process of its own."""

from __future__ import annotations

import json
import sys

from gputier.node import cli, kernel


def main(arguments: list[str]) -> int:
    if arguments:
        sys.stderr.write("gputier-node kernel takes no argument\n")
        return 2
    sys.stdout.write(json.dumps(kernel.run(cli.root())) + "\n")
    return 0
