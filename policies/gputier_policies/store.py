"""Buckets: that nobody but you reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gputier_policies.documents import anybody, statements
from gputier_policies.links import Links
from gputier_policies.parts import Part, given, shown, whole
from gputier_policies.rule import Config, Finding, Findings, Rule, Undecided, Violation
from gputier_policies.values import UNKNOWN, Resource, Stack, yes

BUCKETS = ("aws:s3/bucket:Bucket", "aws:s3/bucketV2:BucketV2")
BLOCK = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
ACCOUNT_BLOCK = "aws:s3/accountPublicAccessBlock:AccountPublicAccessBlock"
ACLS = ("aws:s3/bucketAcl:BucketAcl", "aws:s3/bucketAclV2:BucketAclV2")
POLICY = "aws:s3/bucketPolicy:BucketPolicy"
_FOUR = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
_EVERYBODY = re.compile(r".*/groups/global/(?:AllUsers|AuthenticatedUsers)")

GCP_BUCKET = "gcp:storage/bucket:Bucket"
GCP_GRANTS = (
    "gcp:storage/bucketIAMMember:BucketIAMMember",
    "gcp:storage/bucketIAMBinding:BucketIAMBinding",
    "gcp:storage/bucketAccessControl:BucketAccessControl",
    "gcp:storage/defaultObjectAccessControl:DefaultObjectAccessControl",
    "gcp:storage/bucketACL:BucketACL",
    "gcp:storage/defaultObjectACL:DefaultObjectACL",
)
_PUBLIC = re.compile(r"(?:\w+:)?(?:allUsers|allAuthenticatedUsers)|(?:public|authenticated)\w+")


def bucket_forbids_public_access(stack: Stack, config: Config) -> Findings:
    """Reports, code and checkpoints are worth reading to others."""
    stack = given(stack)
    links = Links(stack)
    account = config["account_block"] or any(
        all(yes(one.at(flag)) for flag in _FOUR) for one in stack.of(ACCOUNT_BLOCK)
    )
    for bucket in stack.of(*BUCKETS):
        if not account:
            yield from _blocked(bucket, links)
        yield from _acls(whole(bucket), bucket.urn)
        yield from _open_policy(whole(bucket).at("policy"), bucket.urn)
    for acl in stack.of(*ACLS):
        yield from _acls(whole(acl), acl.urn)
    for policy in stack.of(POLICY):
        yield from _open_policy(whole(policy).at("policy"), policy.urn)
    for bucket in stack.of(GCP_BUCKET):
        yield from _google(bucket)
    for grant in stack.of(*GCP_GRANTS):
        yield from _granted(grant)


def _blocked(bucket: Resource, links: Links) -> Iterator[Finding]:
    """A new bucket is private by itself since April 2023 (S3 user guide); an older one, or one
    that somebody opened, is not."""
    block = _block_of(bucket, links)
    if block is None:
        for other in links.stack.of(BLOCK):
            made = map(links.stack.by_urn, other.sources.get("bucket", ()))
            named = any(one and one.type in BUCKETS for one in made)
            if other.at("bucket") is UNKNOWN and not named:
                yield Undecided("bucket", other.urn)  # it may be this one's
                return
        yield Violation(
            "nothing blocks public access: aws.s3.BucketPublicAccessBlock(bucket=bucket.id,"
            " block_public_acls=True, block_public_policy=True, ignore_public_acls=True,"
            " restrict_public_buckets=True), or the setting `account_block` where the account does",
            bucket.urn,
        )
        return
    for flag in _FOUR:
        value = block.at(flag)
        if value is UNKNOWN:
            yield Undecided(flag, block.urn)
        elif not yes(value):
            how = re.sub(r"([A-Z])", lambda letter: f"_{letter[0].lower()}", flag)
            yield Violation(f"{flag} is {shown(value)}; it must be true: {how}=True", block.urn)


def _block_of(bucket: Resource, links: Links) -> Resource | None:
    name = bucket.at("bucket")
    for block in links.stack.of(BLOCK):
        named = block.at("bucket")
        if links.follow(block, "bucket", *BUCKETS) is bucket or (name and named == name):
            return block
        if bucket.urn in block.sources.get("bucket", ()):
            return block
    return None


def _acls(box: Part, urn: str) -> Iterator[Finding]:
    acl = box.at("acl")
    if acl.unknown:
        yield Undecided(acl.path, urn)
    elif acl.text.startswith("public-") or acl.text == "authenticated-read":
        yield Violation(f'{acl.path} is {acl.text}; it must be private: acl="private"', urn)
    within = box.at("accessControlPolicy")
    grants = [*box.each("grants"), *(one.at("grantee") for one in within.each("grants"))]
    for grant in grants:
        uri = grant.at("uri")
        if uri.unknown:
            yield Undecided(uri.path, urn)
        elif _EVERYBODY.fullmatch(uri.text):
            yield Violation(f"{uri.path} lets everybody in; take the grant away", urn)


def _open_policy(policy: Part, urn: str) -> Iterator[Finding]:
    for one in statements(policy):
        waits = one.maybe("Effect", "Principal", "Condition")
        if one.effect == "Deny" or one.conditions:
            continue
        open_ = anybody(one.principals)
        if one.effect == "Allow" and open_ and not one.maybe("Condition"):
            yield Violation(
                f"{policy.path} allows anybody: its Principal is * and no Condition bounds it; name"
                ' the accounts: {"Principal": {"AWS": ["arn:aws:iam::…:root"]}}',
                urn,
            )
        elif waits and (open_ or one.maybe("Principal")):
            yield Undecided(policy.path if policy.unknown else f"{policy.path}: {waits}", urn)


def _google(bucket: Resource) -> Iterator[Finding]:
    prevention = bucket.at("publicAccessPrevention")
    uniform = bucket.at("uniformBucketLevelAccess")
    if prevention is UNKNOWN:
        yield Undecided("publicAccessPrevention", bucket.urn)
    elif prevention != "enforced":
        yield Violation(
            f"publicAccessPrevention is {shown(prevention)}; it must be enforced:"
            ' public_access_prevention="enforced"',
            bucket.urn,
        )
    if uniform is UNKNOWN:
        yield Undecided("uniformBucketLevelAccess", bucket.urn)
    elif not yes(uniform):
        yield Violation(
            f"uniformBucketLevelAccess is {shown(uniform)}, so that each object may have an ACL of"
            " its own; it must be true: uniform_bucket_level_access=True",
            bucket.urn,
        )


def _granted(grant: Resource) -> Iterator[Finding]:
    """A grant to everybody, or an ACL that has one: `READER:allUsers`, `publicRead`."""
    root = whole(grant)
    paths = ("member", "members", "entity", "predefinedAcl", "defaultAcl", "roleEntities")
    for path in paths:
        for who in root.each(path):
            if who.unknown:
                yield Undecided(who.path, grant.urn)
            elif _PUBLIC.fullmatch(who.text):
                yield Violation(
                    f"{who.path} is {who.text}, which is anybody; name who it is", grant.urn
                )


PUBLIC_ACCESS = Rule(
    check_stack=bucket_forbids_public_access,
    description="Buckets are private: public access is blocked on each, and no ACL, policy or grant"
    " lets everybody in.",
    remediation="Give each bucket of AWS's a BucketPublicAccessBlock with all four flags; Google's"
    " public access prevention and uniform access.",
    severity="critical",
    url="https://docs.aws.amazon.com/AmazonS3/latest/userguide/access-control-block-public-access.html",
    settings={
        "account_block": {
            "type": "boolean",
            "default": False,
            "description": "The AWS account blocks public access for all of its buckets.",
        }
    },
)

RULES = (PUBLIC_ACCESS,)
