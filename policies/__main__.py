"""Serves the rules to the engine: `pulumi preview --policy-pack policies`."""

from pulumi_policy import PolicyPack

from gputier_policies import RULES
from gputier_policies.pack import policies

PolicyPack("gputier", policies(RULES))
