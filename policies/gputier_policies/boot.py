"""What a machine starts with: its metadata service, its image, its user data."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from gputier_policies.rule import Config, Findings, Rule, Undecided, Violation
from gputier_policies.values import UNKNOWN, Resource

INSTANCE = "aws:ec2/instance:Instance"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"


def machine_requires_imdsv2(machine: Resource, _config: Config) -> Findings:
    """Anything on the machine that can be made to fetch an address reads its role's credentials
    from version 1 of the metadata service."""
    tokens = machine.at("metadataOptions.httpTokens")
    if tokens is UNKNOWN:
        yield Undecided("metadataOptions.httpTokens")
    elif tokens != "required":
        yield Violation(
            f"metadataOptions.httpTokens is {tokens or 'not set'}; it must be `required`:"
            ' metadata_options={"http_tokens": "required"}'
        )


def _require_tokens(_type: str, props: MutableMapping[str, Any], _config: Config) -> bool:
    options = props.get("metadataOptions")
    if isinstance(options, str) or (options and options.get("httpTokens") == "required"):
        return False
    props["metadataOptions"] = {**(options or {}), "httpTokens": "required"}
    return True


IMDSV2 = Rule(
    check=machine_requires_imdsv2,
    description="Machines answer only version 2 of the instance metadata service.",
    remediation='Set metadata_options={"http_tokens": "required"}.',
    severity="high",
    url="https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html",
    types=frozenset({INSTANCE, TEMPLATE}),
    remedy=_require_tokens,
)
