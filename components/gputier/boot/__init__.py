"""From a plan to what a machine is given at boot.

    from gputier.boot import Bundle, Stack, render
    found = render(plan, catalog, Stack("web", "prod"), Bundle(entry.bundle, entry.bundle_version))
    found.text, found.deadline.hook_seconds

`bucket_name` is the node's own: both sides derive the same name.
"""

from gputier.boot.deadlines import Deadline
from gputier.boot.expectation import expectation, expectation_text
from gputier.boot.rendered import Rendered, render
from gputier.boot.settings import Bundle, Stack
from gputier.boot.stage0 import fetcher
from gputier.node.bucket import bucket_name

__all__ = [
    "Bundle",
    "Deadline",
    "Rendered",
    "Stack",
    "bucket_name",
    "expectation",
    "expectation_text",
    "fetcher",
    "render",
]
