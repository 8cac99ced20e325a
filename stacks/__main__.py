"""The Pulumi program of every stack: it refuses to run until there is something to deploy with.

Without this file `pulumi up` would fail on a missing module and say nothing of use; a program
that did nothing would report success, and would empty a stack that already holds resources.
"""

import sys

sys.stderr.write(
    "error: this release of gputier plans and prices a stack, and does not deploy it yet\n"
    "hint: `gputier plan STACK` prints the machines and their price, `gputier lock STACK` records "
    "them; deploying arrives with a later release (CHANGELOG.md)\n"
)
sys.exit(1)
