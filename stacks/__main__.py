"""The Pulumi program of every stack: it refuses to run until there is something to deploy with.

Without this file `pulumi up` would fail on a missing module and say nothing of use; a program
that did nothing would report success, and would empty a stack that already holds resources.
"""

import importlib
import importlib.util

MESSAGE = """\
this release of gputier plans and prices a stack, and does not deploy it yet
hint: `gputier plan STACK` prints the machines and their price, and `gputier lock STACK` records \
them; deploying arrives with a later release (CHANGELOG.md)"""

# The engine prints the message of a RunError, and a traceback for anything else. The SDK is there
# when the engine runs this, and is no dependency of planning.
if importlib.util.find_spec("pulumi"):
    raise importlib.import_module("pulumi").RunError(MESSAGE)
raise SystemExit(f"error: {MESSAGE}")
