"""What every cloud's fleets have alike: what is deployed, how it is refused, and what it tells."""

from gputier.deploy.fleet import Fleet, rendered, same_name
from gputier.deploy.refused import bundle_problems, refuse, stack_name
from gputier.deploy.stack import Deployed, Deployment, Prepared, chosen_of, reports_of

__all__ = [
    "Deployed",
    "Deployment",
    "Fleet",
    "Prepared",
    "bundle_problems",
    "chosen_of",
    "refuse",
    "rendered",
    "reports_of",
    "same_name",
    "stack_name",
]
