"""What machines and people may do: roles without wildcards."""

from __future__ import annotations

import re
from typing import Any

from gputier_policies.documents import Statement, anybody, bindings, statements
from gputier_policies.parts import GCP_MACHINES, Part, shown, whole
from gputier_policies.rule import Config, Findings, Rule, Undecided, Violation
from gputier_policies.values import Resource, items

ROLE = "aws:iam/role:Role"
_POLICIES = frozenset(
    {
        "aws:iam/policy:Policy",
        "aws:iam/rolePolicy:RolePolicy",
        "aws:iam/userPolicy:UserPolicy",
        "aws:iam/groupPolicy:GroupPolicy",
    }
)
_ATTACHMENTS = frozenset(
    {
        "aws:iam/policyAttachment:PolicyAttachment",
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
        "aws:iam/userPolicyAttachment:UserPolicyAttachment",
        "aws:iam/groupPolicyAttachment:GroupPolicyAttachment",
        "aws:iam/rolePolicyAttachmentsExclusive:RolePolicyAttachmentsExclusive",
    }
)
_SCOPES = ("projects", "folder", "organizations")
_GRANTS = frozenset(
    {
        *(f"gcp:{s}/iAM{kind}:IAM{kind}" for s in _SCOPES for kind in ("Member", "Binding")),
        "gcp:serviceaccount/iAMMember:IAMMember",
        "gcp:serviceaccount/iAMBinding:IAMBinding",
        "gcp:secretmanager/secretIamMember:SecretIamMember",
        "gcp:secretmanager/secretIamBinding:SecretIamBinding",
    }
)
_GOOGLE_POLICIES = frozenset(f"gcp:{s}/iAMPolicy:IAMPolicy" for s in _SCOPES)
#: Policies that AWS manages and that allow everything of a service, or of all of them.
_BROAD = re.compile(
    r"arn:[\w-]+:iam::aws:policy/(?:[\w-]+/)*"
    r"(?:AdministratorAccess|PowerUserAccess|\w*FullAccess\w*)"
)
_DEFAULT_ACCOUNT = re.compile(r"\d+-compute@developer\.gserviceaccount\.com|default")
_EVERYTHING = ("cloud-platform", "https://www.googleapis.com/auth/cloud-platform")


def role_forbids_wildcards(role: Resource, config: Config) -> Findings:
    """Who gets a machine to run something gets everything that its role may do."""
    root = whole(role)
    if role.name in items(config["except"]):
        return
    if role.type == ROLE:
        yield from _trusted(root.at("assumeRolePolicy"))
        for inline in root.each("inlinePolicies"):
            yield from _document(inline.at("policy"))
        for arn in root.each("managedPolicyArns"):
            yield from _attached(arn, config)
    elif role.type in _POLICIES:
        yield from _document(root.at("policy"))
    elif role.type in _ATTACHMENTS:
        for path in ("policyArn", "policyArns"):
            for arn in root.each(path):
                yield from _attached(arn, config)
    elif role.type in GCP_MACHINES:
        yield from _default_account(root)
    else:
        policy = role.type in _GOOGLE_POLICIES
        for grant in bindings(root.at("policyData")) if policy else [root]:
            yield from _granted(grant, config)


def _document(policy: Part) -> Findings:
    for one in statements(policy):
        # Each of the three holds, does not, or cannot be told yet; one that does not is enough.
        tests = (
            (one.effect == "Allow", one.maybe("Effect")),
            (one.inverted or any(map(_any_action, one.actions)), one.maybe("Action", "NotAction")),
            (
                one.elsewhere or any(map(_any_resource, one.resources)),
                one.maybe("Resource", "NotResource"),
            ),
        )
        if all(holds for holds, _ in tests):
            yield _too_much(policy, one)
        elif all(holds or waits for holds, waits in tests):
            word = next(waits for holds, waits in tests if not holds)
            yield Undecided(policy.path if policy.unknown else f"{policy.path}: {word}")


def _too_much(policy: Part, one: Statement) -> Violation:
    return Violation(
        f"{policy.path} allows {one.says}; list the actions that are needed, and the ARNs:"
        ' {"Action": ["s3:GetObject"], "Resource": ["arn:aws:s3:::bucket/*"]}'
    )


def _any_action(action: str) -> bool:
    """`*`, `s3:*`, `*:*` and the like; `s3:Get*` names something."""
    return not action.split(":", 1)[-1].strip("*?") and "*" in action


def _any_resource(resource: str) -> bool:
    """`*`, and an ARN with nothing but wildcards after the service: `arn:aws:s3:::*`."""
    parts = resource.split(":", 5)
    if len(parts) < 6:
        return "*" in resource and not resource.strip("*")
    return all(not part.strip("*/") for part in parts[3:]) and "*" in parts[5]


def _trusted(policy: Part) -> Findings:
    for one in statements(policy):
        if one.conditions or one.effect == "Deny":
            continue
        waits = one.maybe("Effect", "Principal", "Condition")
        if one.effect == "Allow" and anybody(one.principals) and not one.maybe("Condition"):
            yield Violation(
                f"{policy.path} lets anybody take the role: its Principal is *; name the service or"
                ' the account: {"Principal": {"Service": "ec2.amazonaws.com"}}'
            )
        elif waits and (anybody(one.principals) or one.maybe("Principal")):
            yield Undecided(policy.path if policy.unknown else f"{policy.path}: {waits}")


def _attached(arn: Part, config: Config) -> Findings:
    if arn.unknown:
        yield Undecided(arn.path)
    elif _BROAD.fullmatch(arn.text) and arn.text not in items(config["allowed_policies"]):
        yield Violation(
            f"{arn.path} is {arn.text}, which allows everything of a service or of all; attach a"
            " policy with the actions that it needs"
        )


def _granted(grant: Part, config: Config) -> Findings:
    """A grant of Google's: a block with `role`, and `member` or `members`."""
    role = grant.at("role")
    if role.unknown:
        yield Undecided(role.path)
    elif role.text in items(config["forbidden_roles"]):
        yield Violation(
            f"{role.path} is {role.text}, which may change nearly everything; grant roles of the"
            " services that are needed: role='roles/storage.objectViewer'"
        )
    for path in ("member", "members"):
        for member in grant.each(path):
            if member.unknown:
                yield Undecided(member.path)
            elif member.text in ("allUsers", "allAuthenticatedUsers"):
                yield Violation(f"{member.path} is {member.text}, which is anybody; name who it is")


def _default_account(machine: Part) -> Findings:
    """The account that every machine has unless another is named may edit the project, unless an
    organization forbids it (Google: service accounts, default grants; unverified since when)."""
    for account in machine.each("serviceAccount"):
        email, scopes = account.at("email"), account.each("scopes")
        wide = any(scope.value in _EVERYTHING for scope in scopes)
        waits = next((part for part in (account, email, *scopes) if part.unknown), None)
        named = email.text and not _DEFAULT_ACCOUNT.fullmatch(email.text)
        if wide and not email.unknown and not named:
            yield Violation(
                f"{email.path} is {shown(email.value or None)}, the project's default account, with"
                " the scope cloud-platform; make an account for these machines: service_account="
                '{"email": account.email, "scopes": ["cloud-platform"]}'
            )
        elif waits and not named and (wide or not scopes or any(s.unknown for s in scopes)):
            yield Undecided(waits.path)


def _list(what: str, default: list[str]) -> dict[str, Any]:
    kind = {"type": "array", "items": {"type": "string"}}
    return {**kind, "default": default, "description": what}


WILDCARDS = Rule(
    check=role_forbids_wildcards,
    description="Roles name the actions that they allow: no `*` on everything, no policy of AWS's"
    " that allows all of a service, no owner, no editor, nothing for anybody; no machine runs as"
    " the project's default account.",
    remediation="List the actions and resources that are needed; make a service account for"
    " machines.",
    severity="high",
    url="https://docs.aws.amazon.com/IAM/latest/UserGuide/best-practices.html",
    types=_POLICIES | _ATTACHMENTS | _GRANTS | _GOOGLE_POLICIES | GCP_MACHINES | {ROLE},
    settings={
        "except": _list("Names of resources that may have wildcards, such as a boundary.", []),
        "allowed_policies": _list("ARNs of AWS's policies that may be attached all the same.", []),
        "forbidden_roles": _list(
            "Google's roles that are granted to nobody.", ["roles/owner", "roles/editor"]
        ),
    },
)

RULES = (WILDCARDS,)
