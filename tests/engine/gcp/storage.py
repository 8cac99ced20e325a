"""Buckets of Cloud Storage and what is in them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from tests.engine import schema
from tests.engine.gcp.api import WHEN, GoogleError
from tests.engine.gcp.request import NOT_SENT, Form, Name, Translation
from tests.engine.gcp.resource import Resource
from tests.engine.gcp.session import Session
from tests.engine.gcp.values import block
from tests.engine.provider import Refused
from tests.engine.wire import ASSET, SIGNATURE, UNKNOWN, Props, is_unknown

NUMBER = "123456789012"
CONDITION = "lifecycleRules.condition"
ZERO = ("Age", "DaysSinceCustomTime", "DaysSinceNoncurrentTime", "NumNewerVersions")


def _live(_translation: Translation, value: Any) -> Any:
    return {"LIVE": True, "ARCHIVED": False}.get(value)


def _live_now(_translation: Translation, live: Any, old: Any) -> Any:
    found = {True: "LIVE", False: "ARCHIVED"}.get(live, "ANY")
    return old if found == old else found


class Bucket(Resource):
    token = "gcp:storage/bucket:Bucket"
    collection = "storage.buckets"
    names: ClassVar[Mapping[str, Name]] = {
        "lifecycleRules": "lifecycle.rule",
        f"{CONDITION}.matchesPrefixes": "matchesPrefix",
        f"{CONDITION}.matchesSuffixes": "matchesSuffix",
        f"{CONDITION}.matchesStorageClasses": "matchesStorageClass",
        f"{CONDITION}.withState": Form("isLive", _live, _live_now),
        **{f"{CONDITION}.send{name}IfZero": NOT_SENT for name in ZERO},
        "publicAccessPrevention": "iamConfiguration.publicAccessPrevention",
        "uniformBucketLevelAccess": "iamConfiguration.uniformBucketLevelAccess.enabled",
        "requesterPays": "billing.requesterPays",
        "retentionPolicy.isLocked": NOT_SENT,
        "ipFilter.vpcNetworkSources.network": "network",
    }
    apart = frozenset({"forceDestroy", "enableObjectRetention"})
    defaults = {"forceDestroy": False, "storageClass": "STANDARD"}
    chosen = frozenset(
        {"publicAccessPrevention", "rpo", "softDeletePolicy", "uniformBucketLevelAccess"}
    )
    labelled = "labels"

    def check(self, gcp: Session, inputs: Props) -> Iterator[schema.Problem]:
        yield from super().check(gcp, inputs)
        if inputs.get("publicAccessPrevention") not in (None, "enforced", "inherited", UNKNOWN):
            yield "publicAccessPrevention", "is neither enforced nor inherited"
        name = inputs.get("name")
        if name and not is_unknown(name) and not (3 <= len(name) <= 63 and name == name.lower()):
            yield "name", f"{name!r} is not 3 to 63 characters without capital letters"
        rules: Any = inputs.get("lifecycleRules") or []
        for index, rule in enumerate([] if is_unknown(rules) else rules):
            yield from _rule(f"lifecycleRules[{index}]", rule)

    def query(self, inputs: Props) -> Props:
        return {"enableObjectRetention": True} if inputs.get("enableObjectRetention") else {}

    def made(self, gcp: Session, key: str, body: Props) -> None:
        body["selfLink"] = f"https://www.googleapis.com/{key}"
        body |= {"timeCreated": WHEN, "updated": WHEN, "projectNumber": NUMBER}
        body["location"] = str(body["location"]).upper()

    def id_of(self, key: str, body: Props) -> str:
        return str(body["name"])

    def key_of(self, id_: str, inputs: Props) -> str:
        return f"storage/b/{id_}"

    def describe(self, gcp: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = super().describe(gcp, id_, live, inputs)
        access: Props = live.get("iamConfiguration", {})
        return {
            **found,
            "projectNumber": int(NUMBER),
            "publicAccessPrevention": access.get("publicAccessPrevention", "inherited"),
            "uniformBucketLevelAccess": access.get("uniformBucketLevelAccess", {}).get(
                "enabled", False
            ),
            "url": f"gs://{id_}",
        }

    def read(self, gcp: Session, live: Props, inputs: Props) -> Props:
        found = super().read(gcp, live, inputs)
        if str(found.get("location", "")).upper() == str(inputs.get("location", "")).upper():
            found["location"] = inputs.get("location")
        return found

    def delete(self, gcp: Session, id_: str, inputs: Props) -> None:
        inside = [key for key in gcp.api.objects if key.startswith(f"storage/b/{id_}/o/")]
        if inside and not inputs.get("forceDestroy"):
            raise GoogleError(409, f"The bucket you tried to delete is not empty: {id_}")
        for key in inside:
            del gcp.api.objects[key]
        super().delete(gcp, id_, inputs)
        gcp.api.objects.pop(f"policy/buckets/{id_}", None)


def _rule(at: str, rule: Any) -> Iterator[schema.Problem]:
    """The document has no list of them: docs.cloud.google.com/storage/docs/lifecycle, recalled."""
    action: Any = {} if is_unknown(rule) else block(rule.get("action"))
    kind = None if is_unknown(action) else action.get("type")
    if kind not in (None, UNKNOWN, "Delete", "SetStorageClass", "AbortIncompleteMultipartUpload"):
        yield f"{at}.action.type", f"{kind!r} is no action"
    if kind == "SetStorageClass" and not action.get("storageClass"):
        yield f"{at}.action.storageClass", "SetStorageClass needs it"


class BucketObject(Resource):
    token = "gcp:storage/bucketObject:BucketObject"
    collection = "storage.objects"
    apart = frozenset(
        {"bucket", "content", "detectMd5hash", "forceEmptyContentType", "source", "sourceMd5hash"}
    )
    names: ClassVar[Mapping[str, Name]] = {
        "customerEncryption.encryptionKey": NOT_SENT,
        "contexts.customs": NOT_SENT,
    }
    defaults = {"detectMd5hash": "different hash"}
    chosen = frozenset({"contentType", "kmsKeyName", "storageClass"})
    named = ("name", "{}")
    restless = dict.fromkeys(
        ("crc32c", "generation", "md5hash", "md5hexhash", "mediaLink"), ("content", "source")
    )

    def where(self, gcp: Session) -> Props:
        bucket = gcp.inputs.get("bucket")
        return {"bucket": "bucket" if bucket is None or is_unknown(bucket) else bucket}

    def made(self, gcp: Session, key: str, body: Props) -> None:
        gcp.api.get(key.partition("/o/")[0])
        self._upload(gcp, key, gcp.inputs)

    def _upload(self, gcp: Session, key: str, inputs: Props) -> None:
        data, live = _bytes(inputs), gcp.api.get(key)
        digest = hashlib.md5(data, usedforsecurity=False)
        live |= {
            "md5Hash": base64.b64encode(digest.digest()).decode(),
            "size": str(len(data)),
            "generation": str(1000 + len(gcp.api.calls)),
            "data": data,
        }
        live.setdefault("contentType", "text/plain; charset=utf-8")
        live.setdefault("storageClass", "STANDARD")
        live["mediaLink"] = f"https://storage.googleapis.com/download/{key}?alt=media"
        live["selfLink"] = f"https://www.googleapis.com/{key}"

    def id_of(self, key: str, body: Props) -> str:
        bucket, _, name = key.removeprefix("storage/b/").partition("/o/")
        return f"{bucket}-{name}"

    def key_of(self, id_: str, inputs: Props) -> str:
        bucket = inputs["bucket"]
        return f"storage/b/{bucket}/o/{id_.removeprefix(f'{bucket}-')}"

    def parameters(self, verb: str, key: str) -> Props:
        bucket, _, name = key.removeprefix("storage/b/").partition("/o/")
        return {"bucket": bucket, "object": name}

    def read(self, gcp: Session, live: Props, inputs: Props) -> Props:
        found = super().read(gcp, live, inputs)
        if "content" in inputs:
            found["content"] = live["data"].decode()
        elif "source" in inputs and _digest(live["data"]) != inputs["source"].get("hash"):
            found["source"] = {SIGNATURE: ASSET, "hash": _digest(live["data"])}
        return found

    def describe(self, gcp: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = super().describe(gcp, id_, live, inputs)
        raw = base64.b64decode(live["md5Hash"]).hex()
        return {
            **found,
            "crc32c": "AAAAAA==",
            "generation": int(live["generation"]),
            "md5hash": live["md5Hash"],
            "md5hexhash": raw,
            "outputName": live["name"],
        }

    def _again(self, gcp: Session, key: str, _olds: Props, news: Props) -> None:
        self.call(gcp, "insert", self.request(gcp, news), **self.where(gcp))
        self._upload(gcp, key, news)

    def delete(self, gcp: Session, id_: str, inputs: Props) -> None:
        key = self.key_of(id_, inputs)
        if key in gcp.api.objects:
            self.call(gcp, "delete", None, **self.parameters("delete", key))
            del gcp.api.objects[key]

    in_place = {"content": _again}


def _digest(data: bytes) -> str:
    """As the engine keeps an asset: without its text."""
    return hashlib.sha256(data).hexdigest()


def _bytes(inputs: Props) -> bytes:
    """A file is named by its whole path, as the stand-in knows no program's folder."""
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


TYPES: tuple[Resource, ...] = (Bucket(), BucketObject())
