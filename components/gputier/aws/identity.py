"""The machines' role: the plan's statements, with what is known only here filled in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pulumi
import pulumi_aws as aws

from gputier.aws.place import Place, account_of
from gputier.plan.identity import IdentityPlan, Statement


class Identity(pulumi.ComponentResource):
    """An instance profile with a role of least rights, or with the one that is passed in.

    `bucket` is the stack's store. `role` is an existing role's name, which may be an output; it
    comes before the plan's. `statements` lists what an existing role has to allow.
    """

    profile_arn: pulumi.Output[str]
    profile_name: pulumi.Output[str]
    role_name: pulumi.Output[str]

    def __init__(
        self,
        place: Place,
        plan: IdentityPlan,
        *,
        bucket: pulumi.Input[str],
        role: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gputier:aws:Identity", place.name, None, opts)
        given = role or plan.role
        if given is None:
            self.role_name = self._made(place, plan, bucket)
        else:
            # A role is known by its name in a profile; an ARN ends in it, after its path.
            self.role_name = pulumi.Output.from_input(given).apply(lambda r: r.rsplit("/", 1)[-1])
        profile = aws.iam.InstanceProfile(
            place.logical("profile"),
            name=place.names.of("profile"),
            role=self.role_name,
            tags=place.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.profile_arn, self.profile_name = profile.arn, profile.name
        self.register_outputs({"profile_arn": self.profile_arn, "role_name": self.role_name})

    def _made(
        self, place: Place, plan: IdentityPlan, bucket: pulumi.Input[str]
    ) -> pulumi.Output[str]:
        account = account_of(self)
        made = role_of(
            RoleParts(place, "role", place.names.of("role"), "ec2"), plan.permissions_boundary, self
        )
        values = {
            "partition": account.partition,
            "region": place.region,
            "account": account.id,
            "bucket": bucket,
            "group": place.names.of("group"),
        }
        allow(place.logical("rights"), made, document(plan.statements, values), self)
        return made.name


class RoleParts(NamedTuple):
    """A role's logical word and physical name (None: Pulumi's), and the service that takes it."""

    place: Place
    word: str
    name: str | None
    service: str


def role_of(
    parts: RoleParts,
    boundary: str | None,
    parent: pulumi.Resource,
    after: Sequence[pulumi.Resource] = (),
) -> aws.iam.Role:
    """A role that one service of this partition may take; it goes before what it comes `after`."""
    domain = account_of(parent).domain
    return aws.iam.Role(
        parts.place.logical(parts.word),
        name=parts.name,
        assume_role_policy=domain.apply(lambda ending: trust(f"{parts.service}.{ending}")),
        permissions_boundary=boundary,
        # Somebody may have attached a policy to look at something: no reason to fail at the end.
        force_detach_policies=True,
        tags=parts.place.tags,
        opts=pulumi.ResourceOptions(parent=parent, depends_on=list(after)),
    )


def trust(service: str) -> str:
    """Who may take a role: one service."""
    allowed = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": service}}
    return json.dumps({"Version": "2012-10-17", "Statement": [allowed]})


def allow(
    name: str, role: aws.iam.Role, policy: pulumi.Input[str], parent: pulumi.Resource
) -> aws.iam.RolePolicy:
    """A policy of a role's own."""
    return aws.iam.RolePolicy(
        name, role=role.name, policy=policy, opts=pulumi.ResourceOptions(parent=parent)
    )


def document(
    statements: Iterable[Statement], values: Mapping[str, pulumi.Input[str]]
) -> pulumi.Output[str]:
    """The statements as a policy's text. Raises `KeyError` for a placeholder without a value."""
    given = tuple(statements)
    return pulumi.Output.all(**values).apply(lambda known: policy_text(given, known))


def policy_text(statements: Iterable[Statement], values: Mapping[str, str]) -> str:
    """The policy of these statements with these values: the same text for the same plan."""
    return json.dumps(
        {"Version": "2012-10-17", "Statement": [_statement(s, values) for s in statements]}
    )


def _statement(statement: Statement, values: Mapping[str, str]) -> dict[str, object]:
    found: dict[str, object] = {
        "Sid": statement.sid,
        "Effect": "Allow",
        "Action": list(statement.actions),
        "Resource": [resource.format_map(values) for resource in statement.resources],
    }
    conditions: dict[str, dict[str, str]] = {}
    for test, key, value in statement.conditions:
        conditions.setdefault(test, {})[key] = value.format_map(values)
    return {**found, "Condition": conditions} if conditions else found
