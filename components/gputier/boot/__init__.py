"""From a plan to what a machine is given at boot; today the expectation it is checked against."""

from gputier.boot.expectation import expectation, expectation_text

__all__ = ["expectation", "expectation_text"]
