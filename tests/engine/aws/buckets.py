"""Buckets, each of their settings as a resource of its own, and objects in them."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any, ClassVar

from tests.engine.aws.found import plain
from tests.engine.aws.resource import Resource, pairs
from tests.engine.aws.session import Session
from tests.engine.provider import Refused
from tests.engine.wire import ASSET, SIGNATURE, Props

# Settings that the provider still takes inside of the bucket, and deprecates.
OF_THEIR_OWN = [
    "accelerationStatus",
    "corsRules",
    "lifecycleRules",
    "logging",
    "policy",
    "replicationConfiguration",
    "requestPayer",
    "serverSideEncryptionConfiguration",
    "versioning",
    "website",
    "grants",
]


class S3(Resource):
    service = "s3"
    named = ("", "")


class Bucket(S3):
    token = "aws:s3/bucket:Bucket"
    creates, answer = "CreateBucket", "=bucket"
    named = ("bucket", "{}")
    renames = {"objectLockEnabled": "ObjectLockEnabledForBucket"}
    apart = frozenset({"tags", "forceDestroy", "bucketPrefix"})
    chosen = frozenset({*OF_THEIR_OWN, "acl", "objectLockEnabled"})

    def check(self, aws: Session, inputs: Props) -> Any:
        for name in OF_THEIR_OWN:
            if name in inputs:
                yield name, "deprecated in the bucket: it is a resource of its own"
        yield from super().check(aws, inputs)

    def request(self, aws: Session, inputs: Props) -> Props:
        made = super().request(aws, inputs)
        # S3's oldest region is the one that may not be named.
        if aws.region != "us-east-1":
            made["CreateBucketConfiguration"] = {"LocationConstraint": aws.region}
        return made

    def create(self, aws: Session, inputs: Props) -> str:
        name = super().create(aws, inputs)
        self._tags(aws, name, {}, inputs)
        return name

    def _tags(self, aws: Session, id_: str, olds: Props, news: Props) -> None:
        if tags := news.get("tags"):
            self.call(aws, "PutBucketTagging", Bucket=id_, Tagging={"TagSet": pairs(tags)})
        elif olds.get("tags"):
            self.call(aws, "DeleteBucketTagging", Bucket=id_)

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        return self.call(aws, "HeadBucket", Bucket=id_)

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        return {
            "bucket": id_,
            "arn": f"arn:aws:s3:::{id_}",
            "bucketDomainName": f"{id_}.s3.amazonaws.com",
            "bucketRegionalDomainName": f"{id_}.s3.{aws.region}.amazonaws.com",
            "bucketRegion": aws.region,
            "hostedZoneId": "Z3AQBSTGFYJSTF",
            "tags": self._live_tags(aws, id_) if "tags" in inputs else None,
        }

    def _live_tags(self, aws: Session, id_: str) -> Props:
        client = aws.client("s3")
        try:
            return plain(client.get_bucket_tagging(Bucket=id_)["TagSet"]) or {}
        except client.exceptions.ClientError:  # it says "no tags" as an error
            return {}

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        """A bucket that holds something stays, unless it is told to lose it."""
        if inputs.get("forceDestroy"):
            _delete_versions(self, aws, id_)
        self.call(aws, "DeleteBucket", Bucket=id_)

    in_place = {"tags": _tags}


class Setting(S3):
    """One setting of a bucket: a Put, a Get and a Delete; its id is the bucket's name."""

    gets: ClassVar[str]
    deletes: ClassVar[str]
    holder: ClassVar[str]  # the member of request and answer that holds the inputs
    again = True
    answer = "=bucket"

    def request(self, aws: Session, inputs: Props) -> Props:
        outside = {"bucket", "expectedBucketOwner", "region", "transitionDefaultMinimumObjectSize"}
        inner = {k: v for k, v in inputs.items() if k not in outside and k not in self.apart}
        outer = {k: v for k, v in inputs.items() if k in outside}
        return super().request(aws, {**outer, self.holder: inner})

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        return self.call(aws, self.gets, Bucket=id_)[self.holder]

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        return {**super().describe(aws, id_, live, inputs), "bucket": id_}

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        self.call(aws, self.deletes, Bucket=id_)


class OwnershipControls(Setting):
    token = "aws:s3/bucketOwnershipControls:BucketOwnershipControls"
    creates, gets = "PutBucketOwnershipControls", "GetBucketOwnershipControls"
    deletes, holder = "DeleteBucketOwnershipControls", "OwnershipControls"


class PublicAccessBlock(Setting):
    token = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
    creates, gets = "PutPublicAccessBlock", "GetPublicAccessBlock"
    deletes, holder = "DeletePublicAccessBlock", "PublicAccessBlockConfiguration"
    apart = frozenset({"skipDestroy"})


class Encryption(Setting):
    token = "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"
    creates, gets = "PutBucketEncryption", "GetBucketEncryption"
    deletes, holder = "DeleteBucketEncryption", "ServerSideEncryptionConfiguration"
    renames = {"kmsMasterKeyId": "KMSMasterKeyID"}


class Versioning(Setting):
    token = "aws:s3/bucketVersioning:BucketVersioning"
    creates, gets, holder = "PutBucketVersioning", "GetBucketVersioning", "VersioningConfiguration"
    renames = {"mfa": "MFA", "mfaDelete": "MFADelete"}

    def request(self, aws: Session, inputs: Props) -> Props:
        return S3.request(self, aws, inputs)

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        return self.call(aws, self.gets, Bucket=id_)

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        return {"bucket": id_, "versioningConfiguration": {"status": live.get("Status")}}

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        off = {"VersioningConfiguration": {"Status": "Suspended"}}
        self.call(aws, self.creates, Bucket=id_, **off)


class Lifecycle(Setting):
    token = "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"
    creates, gets = "PutBucketLifecycleConfiguration", "GetBucketLifecycleConfiguration"
    deletes, holder = "DeleteBucketLifecycle", "LifecycleConfiguration"
    renames = {"id": "ID"}
    apart = frozenset({"timeouts"})
    chosen = frozenset({"transitionDefaultMinimumObjectSize"})

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        return self.call(aws, self.gets, Bucket=id_)

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        rules = [{**plain(rule), "id": rule["ID"]} for rule in live["Rules"]]
        return {"bucket": id_, "rules": rules}


class BucketPolicy(S3):
    token = "aws:s3/bucketPolicy:BucketPolicy"
    creates, answer = "PutBucketPolicy", "=bucket"
    again = True

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        return self.call(aws, "GetBucketPolicy", Bucket=id_)

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        return {"bucket": id_, "policy": live["Policy"]}

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        self.call(aws, "DeleteBucketPolicy", Bucket=id_)


class Object(S3):
    token = "aws:s3/bucketObjectv2:BucketObjectv2"
    creates = "PutObject"
    again = True
    apart = frozenset(
        [
            "content",
            "contentBase64",
            "source",
            "sourceHash",
            "etag",
            "forceDestroy",
            "overrideProvider",
            "tags",
        ]
    )
    renames = {"kmsKeyId": "SSEKMSKeyId", "websiteRedirect": "WebsiteRedirectLocation"}
    chosen = frozenset(
        [
            "etag",
            "contentType",
            "storageClass",
            "serverSideEncryption",
            "kmsKeyId",
            "acl",
            "bucketKeyEnabled",
        ]
    )
    restless = {"versionId": ("content", "contentBase64", "source"), "etag": ("content", "source")}

    def request(self, aws: Session, inputs: Props) -> Props:
        made = super().request(aws, inputs)
        made["Body"] = _body(inputs)
        if tags := inputs.get("tags"):
            made["Tagging"] = "&".join(f"{key}={value}" for key, value in tags.items())
        return made

    def create(self, aws: Session, inputs: Props) -> str:
        self.call(aws, self.creates, **self.request(aws, inputs))
        return f"{inputs['bucket']}/{inputs['key']}"

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        bucket, key = id_.split("/", 1)
        return {"Key": key, **self.call(aws, "GetObject", Bucket=bucket, Key=key)}

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        body: bytes = live["Body"].read()
        found = super().describe(aws, id_, {k: v for k, v in live.items() if k != "Body"}, inputs)
        found["arn"] = f"arn:aws:s3:::{id_}"
        found["etag"] = live["ETag"].strip('"')
        changed = hashlib.md5(body, usedforsecurity=False).hexdigest() != found["etag"]
        if "content" in inputs and not changed:
            found["content"] = body.decode()
        return {k: v for k, v in found.items() if k != "tags"}

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        _delete_versions(self, aws, *id_.split("/", 1))


def _delete_versions(kind: Resource, aws: Session, bucket: str, key: str = "") -> None:
    """Every version of an object, or of all: in a versioned bucket no less would be gone."""
    listed = kind.call(aws, "ListObjectVersions", Bucket=bucket, Prefix=key)
    for item in (*listed.get("Versions", ()), *listed.get("DeleteMarkers", ())):
        if key in ("", item["Key"]):
            where = {"Bucket": bucket, "Key": item["Key"], "VersionId": item["VersionId"]}
            kind.call(aws, "DeleteObject", **where)


def _body(inputs: Props) -> Any:
    """The bytes; a file is named by its whole path, as the stand-in knows no program's folder."""
    if "contentBase64" in inputs:
        return base64.b64decode(inputs["contentBase64"])
    source = inputs.get("source")
    if source is None:
        return str(inputs.get("content", "")).encode()
    if source.get(SIGNATURE) != ASSET:
        raise Refused("source", "the stand-in takes a text or a file, no archive")
    if "text" in source:
        return source["text"].encode()
    if not Path(source["path"]).is_absolute():
        raise Refused("source", f"{source['path']} is relative: give the file's whole path")
    return Path(source["path"]).read_bytes()


TYPES: tuple[Resource, ...] = (
    Bucket(),
    OwnershipControls(),
    PublicAccessBlock(),
    Encryption(),
    Versioning(),
    Lifecycle(),
    BucketPolicy(),
    Object(),
)
