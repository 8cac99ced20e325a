"""Keys that encrypt: KMS keys, their aliases and grants."""

from __future__ import annotations

from typing import Any

from tests.engine.aws.found import plain
from tests.engine.aws.resource import Resource, only, tags_to_change, unseen
from tests.engine.aws.session import Session
from tests.engine.wire import Props


class Kms(Resource):
    service = "kms"
    named = ("", "")


def _tag_list(tags: Props) -> list[Props]:
    return [{"TagKey": key, "TagValue": value} for key, value in tags.items()]


class Key(Kms):
    token = "aws:kms/key:Key"
    creates, answer = "CreateKey", "KeyMetadata.KeyId"
    apart = frozenset({"deletionWindowInDays", "enableKeyRotation", "isEnabled", "tags"})
    renames = {
        "customerMasterKeySpec": "KeySpec",
        "bypassPolicyLockoutSafetyCheck": "BypassPolicyLockoutSafetyCheck",
    }
    chosen = frozenset({"policy", "keyUsage", "multiRegion", "rotationPeriodInDays", "description"})

    def create(self, aws: Session, inputs: Props) -> str:
        id_ = super().create(aws, inputs)
        self._rotate(aws, id_, {}, inputs)
        self._tags(aws, id_, {}, inputs)
        return id_

    def _rotate(self, aws: Session, id_: str, _olds: Props, news: Props) -> None:
        if news.get("enableKeyRotation"):
            self.call(aws, "EnableKeyRotation", KeyId=id_)
        else:
            self.call(aws, "DisableKeyRotation", KeyId=id_)

    def _tags(self, aws: Session, id_: str, olds: Props, news: Props) -> None:
        gone, new = tags_to_change(olds, news)
        if gone:
            self.call(aws, "UntagResource", KeyId=id_, TagKeys=gone)
        if new:
            self.call(aws, "TagResource", KeyId=id_, Tags=_tag_list(new))

    def _policy(self, aws: Session, id_: str, _olds: Props, news: Props) -> None:
        policy = {"PolicyName": "default", "Policy": news["policy"]}
        self.call(aws, "PutKeyPolicy", KeyId=id_, **policy)

    def _describe(self, aws: Session, id_: str, _olds: Props, news: Props) -> None:
        text = news.get("description", "")
        self.call(aws, "UpdateKeyDescription", KeyId=id_, Description=text)

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        live = self.call(aws, "DescribeKey", KeyId=id_)["KeyMetadata"]
        return None if live["KeyState"] == "PendingDeletion" else live

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = super().describe(aws, id_, live, inputs)
        policy = self.call(aws, "GetKeyPolicy", KeyId=id_, PolicyName="default")
        tags = self.call(aws, "ListResourceTags", KeyId=id_)["Tags"]
        rotation = self.call(aws, "GetKeyRotationStatus", KeyId=id_)
        return {
            **found,
            "policy": policy["Policy"],
            "tags": {tag["TagKey"]: tag["TagValue"] for tag in tags} if tags else None,
            "enableKeyRotation": rotation["KeyRotationEnabled"],
            "isEnabled": live["Enabled"],
        }

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        days = inputs.get("deletionWindowInDays", 30)
        self.call(aws, "ScheduleKeyDeletion", KeyId=id_, PendingWindowInDays=days)

    in_place = {
        "tags": _tags,
        "policy": _policy,
        "description": _describe,
        "enableKeyRotation": _rotate,
        "deletionWindowInDays": unseen,
    }


class Alias(Kms):
    token = "aws:kms/alias:Alias"
    creates, answer = "CreateAlias", "=name"
    named = ("name", "alias/{}")
    renames = {"name": "AliasName"}
    apart = frozenset({"namePrefix"})

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        aliases = self.call(aws, "ListAliases")["Aliases"]
        return only(alias for alias in aliases if alias["AliasName"] == id_)

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        key = self.call(aws, "DescribeKey", KeyId=live["TargetKeyId"])["KeyMetadata"]
        # The provider takes a key's id and its ARN for the same.
        declared = inputs.get("targetKeyId")
        same = declared in (key["KeyId"], key["Arn"])
        return {
            "name": id_,
            "arn": live["AliasArn"],
            "targetKeyId": declared if same else key["KeyId"],
            "targetKeyArn": key["Arn"],
        }

    def _retarget(self, aws: Session, id_: str, _olds: Props, news: Props) -> None:
        self.call(aws, "UpdateAlias", AliasName=id_, TargetKeyId=news["targetKeyId"])

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        self.call(aws, "DeleteAlias", AliasName=id_)

    in_place = {"targetKeyId": _retarget}


class Grant(Kms):
    token = "aws:kms/grant:Grant"
    creates, answer = "CreateGrant", "GrantId"
    named = ("name", "{}")
    apart = frozenset({"retireOnDelete"})
    renames = {"grantCreationTokens": "GrantTokens"}

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        grants = self.call(aws, "ListGrants", KeyId=inputs["keyId"])["Grants"]
        return only(grant for grant in grants if grant["GrantId"] == id_)

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        found: Any = plain(super().describe(aws, id_, live, inputs))
        declared = inputs.get("keyId", found.get("keyId"))
        return {**found, "keyId": declared, "grantId": id_, "grantToken": f"token-of-{id_}"}

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        self.call(aws, "RevokeGrant", KeyId=inputs["keyId"], GrantId=id_)


TYPES: tuple[Resource, ...] = (Key(), Alias(), Grant())
