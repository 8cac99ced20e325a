"""Wildcards in roles, grants and the accounts of machines."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.policies import cases
from tests.policies.tables import Case, check, misspelt

from gputier_policies.identity import WILDCARDS
from gputier_policies.values import UNKNOWN

POLICY = "aws:iam/policy:Policy"
ROLE = "aws:iam/role:Role"
POLICIES: tuple[tuple[str, dict[str, Any]], ...] = (
    (POLICY, {}),
    ("aws:iam/rolePolicy:RolePolicy", {"role": "r"}),
    ("aws:iam/userPolicy:UserPolicy", {"user": "u"}),
    ("aws:iam/groupPolicy:GroupPolicy", {"group": "g"}),
)
ATTACHMENTS = (
    "aws:iam/policyAttachment:PolicyAttachment",
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
    "aws:iam/userPolicyAttachment:UserPolicyAttachment",
    "aws:iam/groupPolicyAttachment:GroupPolicyAttachment",
)
EXCLUSIVE = "aws:iam/rolePolicyAttachmentsExclusive:RolePolicyAttachmentsExclusive"
ADMIN = "arn:aws:iam::aws:policy/AdministratorAccess"
GCP_MEMBER = "gcp:projects/iAMMember:IAMMember"
GCP_POLICY = "gcp:projects/iAMPolicy:IAMPolicy"
GCP_INSTANCE = "gcp:compute/instance:Instance"
GCP_TEMPLATE = "gcp:compute/instanceTemplate:InstanceTemplate"

FINE = {"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": "arn:aws:s3:::b/*"}
TRUST = {"Effect": "Allow", "Action": "sts:AssumeRole",
         "Principal": {"Service": "ec2.amazonaws.com"}}  # fmt: skip


def document(**changes: Any) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": [{**FINE, **changes}]}


def told(policy: Any, **config: Any) -> list[str]:
    return cases.violations(WILDCARDS, cases.resource(POLICY, policy=policy), **config)


def waits(policy: Any) -> list[str]:
    return cases.waits(WILDCARDS, cases.resource(POLICY, policy=policy))


BROAD: list[dict[str, Any]] = [
    {"Action": "*", "Resource": "*"},
    {"Action": ["s3:GetObject", "s3:*"], "Resource": ["*"]},
    {"Action": "*:*", "Resource": "*"},
    {"Action": "ec2:**", "Resource": "*"},
    {"Action": "s3:*", "Resource": "arn:aws:s3:::*"},
    {"Action": "s3:*", "Resource": "arn:aws:s3:::*/*"},
    {"Action": None, "NotAction": "iam:*", "Resource": "*"},
    {"Action": "*", "Resource": None, "NotResource": "arn:aws:s3:::b"},
    {"Action": "ec2:*", "Resource": "*", "Condition": {"Bool": {"aws:SecureTransport": "true"}}},
]
NARROW: list[dict[str, Any]] = [
    {"Effect": "Deny", "Action": "*", "Resource": "*"},
    {"Action": "s3:*", "Resource": "arn:aws:s3:::bucket/*"},
    {"Action": ["ec2:Describe*", "cloudwatch:PutMetricData"], "Resource": "*"},
    {"Action": "s3:Get*", "Resource": "*"},
    {"Action": None, "NotAction": "iam:*", "Resource": "arn:aws:s3:::b"},
    {"Action": "s3:GetObject", "Resource": None, "NotResource": "arn:aws:s3:::b"},
    {"Action": "logs:*", "Resource": "arn:aws:logs:us-east-1:1:*"},
]


def cleaned(changes: dict[str, Any]) -> dict[str, Any]:
    made = document(**changes)
    made["Statement"] = [{k: v for k, v in made["Statement"][0].items() if v is not None}]
    return made


@pytest.mark.parametrize("changes", BROAD, ids=str)
def test_everything_of_a_service_on_everything_is_a_wildcard(changes: dict[str, Any]) -> None:
    policy = cleaned(changes)
    assert len(told(policy)) == 1
    assert told(json.dumps(policy)) == told(policy), "a document is a text or a block"
    single = {**policy, "Statement": policy["Statement"][0]}
    assert told(single) == told(policy)


@pytest.mark.parametrize("changes", NARROW, ids=str)
def test_what_names_actions_or_resources_is_none(changes: dict[str, Any]) -> None:
    assert told(cleaned(changes)) == []
    assert waits(cleaned(changes)) == []


def test_what_is_known_of_a_document_decides_first() -> None:
    wide = document(Action=["s3:*", UNKNOWN], Resource=[UNKNOWN, "*"], Sid=UNKNOWN)
    assert len(told(wide)) == 1
    assert waits(document(Resource=UNKNOWN)) == [], "its actions are named"
    assert waits(document(Action="*", Resource=UNKNOWN)) == ["policy: Resource"]
    assert waits(document(Action=UNKNOWN, Resource="*")) == ["policy: Action"]
    assert waits(document(Effect=UNKNOWN, Action="*", Resource="*")) == ["policy: Effect"]
    assert waits(document(Effect="Deny", Action="*", Resource=UNKNOWN)) == []
    assert waits(UNKNOWN) == ["policy"]
    assert waits({"Statement": [UNKNOWN]}) == ["policy: Effect"]
    assert told("{no json") == []


RULES = [
    *(
        Case(t, {**props, "policy": json.dumps(document())}, "policy",
             json.dumps(document(Action="s3:*", Resource="*")),
             "policy allows Action s3:* on Resource *")
        for t, props in POLICIES
    ),
    Case(ROLE, {"assumeRolePolicy": json.dumps({"Statement": [TRUST]}),
                "inlinePolicies": [{"name": "i", "policy": json.dumps(document())}]},
         "inlinePolicies[0].policy", json.dumps(document(Action="*", Resource="*")),
         "inlinePolicies[0].policy allows Action *"),
    Case(ROLE, {"managedPolicyArns": ["arn:aws:iam::1:policy/mine"]}, "managedPolicyArns[0]",
         ADMIN, "managedPolicyArns[0] is " + ADMIN),
    *(
        Case(ROLE, {"assumeRolePolicy": json.dumps({"Statement": [TRUST]})}, "assumeRolePolicy",
             json.dumps({"Statement": [{**TRUST, "Principal": who}]}), "lets anybody take the role")
        for who in ("*", {"AWS": "*"}, {"AWS": ["arn:aws:iam::1:root", "*"]})
    ),
    *(
        Case(t, {"policyArn": "arn:aws:iam::1:policy/mine"}, "policyArn", arn, f"is {arn}")
        for t in ATTACHMENTS
        for arn in (ADMIN, "arn:aws-us-gov:iam::aws:policy/AmazonS3FullAccess",
                    "arn:aws:iam::aws:policy/PowerUserAccess")
    ),
    Case(EXCLUSIVE, {"policyArns": ["arn:aws:iam::1:policy/mine"], "roleName": "r"},
         "policyArns[0]", ADMIN, "policyArns[0] is"),
    *(
        Case(f"gcp:{where}/iAM{kind}:IAM{kind}", {"role": "roles/viewer", **who}, "role", role,
             f"role is {role}")
        for where in ("projects", "folder", "organizations")
        for kind, who in (("Member", {"member": "user:a"}), ("Binding", {"members": ["user:a"]}))
        for role in ("roles/owner", "roles/editor")
    ),
    *(
        Case(t, {"role": "roles/x", "member": "user:a@b"}, "member", who, f"member is {who}")
        for t in (GCP_MEMBER, "gcp:serviceaccount/iAMMember:IAMMember",
                  "gcp:secretmanager/secretIamMember:SecretIamMember")
        for who in ("allUsers", "allAuthenticatedUsers")
    ),
    *(
        Case(t, {"role": "roles/x", "members": ["user:a@b"]}, "members[0]", "allUsers",
             "members[0] is allUsers")
        for t in ("gcp:serviceaccount/iAMBinding:IAMBinding",
                  "gcp:secretmanager/secretIamBinding:SecretIamBinding")
    ),
    *(
        Case(GCP_POLICY, {"policyData": json.dumps({"bindings": [{"role": "roles/viewer"}]})},
             "policyData", json.dumps({"bindings": [bad]}), says)
        for bad, says in (({"role": "roles/owner"}, "policyData: bindings[0].role is roles/owner"),
                          ({"role": "r", "members": ["allUsers"]}, "members[0] is allUsers"))
    ),
    *(
        Case(t, {"serviceAccount": {"email": "gpu@p.iam.gserviceaccount.com",
                                    "scopes": ["cloud-platform"]}},
             "serviceAccount.email", email, f"serviceAccount.email is {says}",
             ("serviceAccount.scopes[0]",))
        for t in (GCP_INSTANCE, GCP_TEMPLATE,
                  "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate",
                  "gcp:compute/instanceFromTemplate:InstanceFromTemplate")
        for email, says in (("1234-compute@developer.gserviceaccount.com", "1234-compute"),
                            ("default", "default"), ("", "not set"), (None, "not set"))
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", RULES, ids=str)
def test_every_role_names_what_it_allows(case: Case) -> None:
    check(WILDCARDS, case)


def test_the_text_of_a_block_is_spelt_as_the_sdk_spells_it() -> None:
    assert misspelt(POLICY, {"policy": document()}) == []


def test_a_role_that_a_condition_bounds_may_be_taken_by_more() -> None:
    bound = {**TRUST, "Principal": "*", "Condition": {"StringEquals": {"aws:PrincipalOrgID": "o"}}}
    role = cases.resource(ROLE, assumeRolePolicy={"Statement": [bound]})
    assert cases.found(WILDCARDS, role) == []
    later = cases.resource(ROLE, assumeRolePolicy={"Statement": [{**bound, "Condition": UNKNOWN}]})
    assert cases.waits(WILDCARDS, later) == ["assumeRolePolicy: Condition"]


@pytest.mark.parametrize(
    "account",
    [
        {"scopes": ["https://www.googleapis.com/auth/logging.write"]},
        {"email": "gpu@p.iam.gserviceaccount.com", "scopes": UNKNOWN},
        {"email": UNKNOWN, "scopes": ["logging-write"]},
    ],
)
def test_a_machine_with_few_scopes_or_an_account_of_its_own_passes(account: dict[str, Any]) -> None:
    machine = cases.resource(GCP_INSTANCE, serviceAccount=account)
    assert cases.found(WILDCARDS, machine) == []


def test_the_full_name_of_the_scope_is_the_same() -> None:
    scope = "https://www.googleapis.com/auth/cloud-platform"
    machine = cases.resource(GCP_INSTANCE, serviceAccount={"scopes": [scope]})
    assert len(cases.violations(WILDCARDS, machine)) == 1


def test_exceptions_are_configured() -> None:
    wide = document(Action="*", Resource="*")
    assert told(wide, **{"except": ["one"]}) == []
    attached = cases.resource(ATTACHMENTS[1], policyArn=ADMIN)
    assert cases.violations(WILDCARDS, attached, allowed_policies=[ADMIN]) == []
    granted = cases.resource(GCP_MEMBER, role="roles/viewer", member="user:a")
    assert cases.violations(WILDCARDS, granted, forbidden_roles=["roles/viewer"])
