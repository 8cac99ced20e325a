"""The rules judge a stack by the numbers of its own environment."""

from __future__ import annotations

from gputier_policies.rule import Config, Findings, Rule, Violation
from gputier_policies.values import Stack
from gputier_policies.words import ENVIRONMENT

KEY = "gputier:environment"


def stack_requires_environment(stack: Stack, config: Config) -> Findings:
    """A stack that does not say what it is may be judged as anything."""
    told, judged = stack.surroundings.config.get(KEY), config["environment"]
    if told and told != judged:
        yield Violation(
            f"{KEY} of this stack is {told}, and these rules are configured for {judged}; they must"
            f" be of one environment: --policy-pack-config policies/config.{told}.json"
        )


ENVIRONMENT_OF_STACK = Rule(
    check_stack=stack_requires_environment,
    description="The configuration of the rules is for the environment that the stack is.",
    remediation="Run the pack with the configuration of the stack's environment.",
    severity="high",
    url="https://www.pulumi.com/docs/using-pulumi/crossguard/configuration/",
    settings={"environment": ENVIRONMENT},
)

RULES = (ENVIRONMENT_OF_STACK,)
