"""`python -m gputier.node`, and the start of the zipapp."""

from __future__ import annotations

import sys

from gputier.node.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
