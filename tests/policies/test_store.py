"""Buckets are private."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.aws import world
from tests.policies import cases
from tests.policies.tables import Case, awaited, check, misspelt

from gputier_policies.store import PUBLIC_ACCESS
from gputier_policies.values import UNKNOWN, Resource, Stack

BUCKET = "aws:s3/bucket:Bucket"
BUCKET_V2 = "aws:s3/bucketV2:BucketV2"
BLOCK = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
ACCOUNT_BLOCK = "aws:s3/accountPublicAccessBlock:AccountPublicAccessBlock"
POLICY = "aws:s3/bucketPolicy:BucketPolicy"
ACLS = ("aws:s3/bucketAcl:BucketAcl", "aws:s3/bucketAclV2:BucketAclV2")
GCP_BUCKET = "gcp:storage/bucket:Bucket"

FLAGS = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
ON: dict[str, Any] = dict.fromkeys(FLAGS, True)
EVERYBODY = "http://acs.amazonaws.com/groups/global/AllUsers"
GRANT = {"type": "Group", "uri": "http://acs.amazonaws.com/groups/s3/LogDelivery",
         "permissions": ["READ"]}  # fmt: skip
GOOGLE = {"publicAccessPrevention": "enforced", "uniformBucketLevelAccess": True, "location": "US"}
LOGS = cases.resource(BUCKET, "logs", id="logs-1", bucket="logs-1")
PRIVATE = cases.resource(BLOCK, "logs-private", bucket="logs-1", **ON)


def statement(**changes: Any) -> str:
    one = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*", "Principal": {"AWS": "1"}}
    return json.dumps({"Statement": [{**one, **changes}]})


OPEN = [
    *(
        Case(BLOCK, {"bucket": "logs-1", **ON}, flag, bad, f"{flag} is {says}", ("bucket",),
             others=(LOGS,))
        for flag in FLAGS
        for bad, says in ((False, "false; it must be true"), (None, "not set"))
    ),
    *(
        Case(t, {"acl": "private"}, "acl", bad, f"acl is {bad}")
        for t in ACLS
        for bad in ("public-read", "public-read-write", "authenticated-read")
    ),
    *(
        Case(t, {"accessControlPolicy": {"owner": {"id": "me"},
                                         "grants": [{"permission": "READ", "grantee": grantee}]}},
             "accessControlPolicy.grants[0].grantee.uri", EVERYBODY,
             "accessControlPolicy.grants[0].grantee.uri lets everybody in")
        for t in ACLS
        for grantee in ({"type": "Group", "uri": GRANT["uri"]},)
    ),
    *(
        Case(POLICY, {"policy": statement()}, "policy", statement(Principal=who), "allows anybody")
        for who in ("*", {"AWS": "*"}, {"AWS": ["1", "*"]})
    ),
    Case(GCP_BUCKET, GOOGLE, "publicAccessPrevention", "inherited", "is inherited; it must be enf"),
    Case(GCP_BUCKET, GOOGLE, "publicAccessPrevention", None, "publicAccessPrevention is not set"),
    Case(GCP_BUCKET, GOOGLE, "uniformBucketLevelAccess", False, "uniformBucketLevelAccess is fal"),
    Case(GCP_BUCKET, GOOGLE, "uniformBucketLevelAccess", None, "uniformBucketLevelAccess is not"),
    *(
        Case(t, {path: value}, at, bad, f"{at} is {bad}, which is anybody")
        for t, path, value, at, bad in (
            ("gcp:storage/bucketIAMMember:BucketIAMMember", "member", "user:a", "member",
             "allUsers"),
            ("gcp:storage/bucketIAMBinding:BucketIAMBinding", "members", ["user:a"], "members[0]",
             "allAuthenticatedUsers"),
            ("gcp:storage/bucketAccessControl:BucketAccessControl", "entity", "user-a", "entity",
             "allUsers"),
            ("gcp:storage/defaultObjectAccessControl:DefaultObjectAccessControl", "entity",
             "user-a", "entity", "allUsers"),
            ("gcp:storage/bucketACL:BucketACL", "predefinedAcl", "private", "predefinedAcl",
             "publicRead"),
            ("gcp:storage/bucketACL:BucketACL", "defaultAcl", "private", "defaultAcl",
             "publicRead"),
            ("gcp:storage/bucketACL:BucketACL", "roleEntities", ["READER:user-a"],
             "roleEntities[0]", "READER:allUsers"),
            ("gcp:storage/defaultObjectACL:DefaultObjectACL", "roleEntities", ["READER:user-a"],
             "roleEntities[0]", "READER:allUsers"),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", OPEN, ids=str)
def test_nothing_lets_everybody_in(case: Case) -> None:
    check(PUBLIC_ACCESS, case)


@pytest.mark.parametrize("type_", [BUCKET, BUCKET_V2])
@pytest.mark.parametrize(
    ("path", "good", "bad"),
    [
        ("acl", "private", "public-read"),
        ("grants", [GRANT], [{**GRANT, "uri": EVERYBODY}]),
        ("policy", statement(), statement(Principal="*")),
    ],
)
def test_a_bucket_of_an_older_program_says_it_itself(
    type_: str, path: str, good: Any, bad: Any
) -> None:
    check(PUBLIC_ACCESS, Case(type_, {path: good}, path, bad, path, config={"account_block": True}))


def told(*resources: Resource, **config: Any) -> list[str]:
    return cases.violations(PUBLIC_ACCESS, cases.stack(*resources), **config)


@pytest.mark.parametrize("type_", [BUCKET, BUCKET_V2])
def test_a_bucket_without_a_block_may_be_opened(type_: str) -> None:
    bucket = replace(LOGS, type=type_)
    (message,) = told(bucket)
    assert message.startswith("nothing blocks public access: aws.s3.BucketPublicAccessBlock(")
    assert told(bucket, PRIVATE) == []
    assert len(told(bucket, replace(PRIVATE, props={**ON, "bucket": "another"}))) == 1
    assert told(bucket, account_block=True) == []
    assert told(bucket, cases.resource(ACCOUNT_BLOCK, "account", **ON)) == []
    assert misspelt(ACCOUNT_BLOCK, ON) == []
    but_one: dict[str, Any] = {**ON, "ignorePublicAcls": False}
    half = cases.resource(ACCOUNT_BLOCK, "account", **but_one)
    assert len(told(bucket, half)) == 1


def test_a_block_is_found_before_the_bucket_has_a_name() -> None:
    bucket = cases.resource(BUCKET, "logs")
    block = cases.resource(BLOCK, "private", bucket=UNKNOWN, sources={"bucket": (bucket,)}, **ON)
    assert cases.found(PUBLIC_ACCESS, cases.stack(bucket, block)) == []
    unlinked = cases.stack(bucket, awaited(replace(block, sources={})))
    assert cases.violations(PUBLIC_ACCESS, unlinked) == []
    assert cases.waits(PUBLIC_ACCESS, unlinked) == ["bucket"]


@pytest.mark.parametrize(
    "policy",
    [
        statement(Effect="Deny", Principal="*"),
        statement(Principal="*", Condition={"StringEquals": {"aws:PrincipalOrgID": "o-1"}}),
        statement(Principal={"Service": "logging.s3.amazonaws.com"}),
        "{no json",
    ],
)
def test_what_denies_and_what_a_condition_bounds_passes(policy: str) -> None:
    one = cases.resource(POLICY, policy=policy)
    assert cases.found(PUBLIC_ACCESS, cases.stack(one)) == []


def test_a_policy_that_is_partly_known_decides_where_it_can() -> None:
    def waits(**parts: Any) -> list[str]:
        one = {"Effect": "Allow", "Action": UNKNOWN, "Principal": "*", **parts}
        policy = cases.resource(POLICY, policy={"Statement": [one]})
        return [str(found[0]) for found in cases.found(PUBLIC_ACCESS, cases.stack(policy))]

    assert "allows anybody" in waits()[0]
    assert waits(Effect=UNKNOWN) == ["policy: Effect"]
    assert waits(Principal=UNKNOWN) == ["policy: Principal"]
    assert waits(Condition=UNKNOWN) == ["policy: Condition"]
    assert waits(Principal={"AWS": ["1"]}, Condition=UNKNOWN) == []


def test_our_own_bucket_fails_without_its_block() -> None:
    stack = cases.recorded(world.example("prod"), {"aws:region": "us-east-1"}, "prod")
    left = tuple(one for one in stack.resources if one.type != BLOCK)
    assert len(cases.violations(PUBLIC_ACCESS, Stack(left, stack.surroundings))) == 1


def test_what_the_provider_fills_in_is_not_waited_for() -> None:
    early: dict[str, Any] = {"acl": UNKNOWN, "policy": UNKNOWN, "grants": UNKNOWN}
    bucket = cases.resource(BUCKET, "logs", bucket="logs-1", **early)
    assert cases.found(PUBLIC_ACCESS, cases.stack(bucket, PRIVATE)) == []


def test_a_policy_that_is_not_known_is_named_as_a_whole() -> None:
    policy = awaited(cases.resource(POLICY, policy=UNKNOWN))
    assert cases.waits(PUBLIC_ACCESS, cases.stack(policy)) == ["policy"]
