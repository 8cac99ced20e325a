"""Lambda: a function with its code, who may call it, and what becomes of calls that fail."""

from __future__ import annotations

import io
import json
import zipfile
from importlib import import_module
from typing import Any

from tests.engine.aws.resource import Resource, tags_to_change
from tests.engine.aws.session import Session
from tests.engine.provider import Refused
from tests.engine.wire import ARCHIVE, ASSET, SIGNATURE, Props, is_unknown

_backends: Any = import_module("moto.awslambda.models").lambda_backends
MOVED_BY = ("code", "environment", "handler", "memorySize", "role", "runtime", "timeout")
MOVES = ("lastModified", "codeSha256", "sourceCodeSize", "qualifiedArn", "version")


class Function(Resource):
    token = "aws:lambda/function:Function"
    service, creates, answer = "lambda", "CreateFunction", "=name"
    renames = {"name": "FunctionName"}
    apart = frozenset({"code", "sourceCodeHash", "skipDestroy", "reservedConcurrentExecutions"})
    chosen = frozenset(
        {"architectures", "codeSha256", "ephemeralStorage", "loggingConfig", "snapStart"}
        | {"tracingConfig", "memorySize", "packageType", "timeout", "version", "sourceCodeHash"}
    )
    restless = dict.fromkeys(MOVES, MOVED_BY)

    def request(self, aws: Session, inputs: Props) -> Props:
        return {**super().request(aws, inputs), "Code": {"ZipFile": zipped(inputs.get("code"))}}

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        return self.call(aws, "GetFunction", FunctionName=id_)

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        found: Props = live["Configuration"]
        none: Props | None = {} if "tags" in inputs else None
        return {
            **super().describe(aws, id_, found, inputs),
            "name": id_,
            "arn": found["FunctionArn"],
            # Names of variables are the program's own, and no members of the API's.
            "environment": {"variables": found.get("Environment", {}).get("Variables", {})},
            "codeSha256": found["CodeSha256"],
            "sourceCodeSize": found["CodeSize"],
            "tags": live.get("Tags") or none,
        }

    def _code(self, aws: Session, id_: str, _olds: Props, news: Props) -> None:
        self.call(aws, "UpdateFunctionCode", FunctionName=id_, ZipFile=zipped(news.get("code")))

    def _settings(self, aws: Session, id_: str, _olds: Props, news: Props) -> None:
        apart = ("Code", "Tags", "PackageType", "Publish", "Architectures")
        made = {k: v for k, v in self.request(aws, news).items() if k not in apart}
        self.call(aws, "UpdateFunctionConfiguration", **made)

    def _tags(self, aws: Session, id_: str, olds: Props, news: Props) -> None:
        gone, new = tags_to_change(olds, news)
        arn = self.arn(aws, f"function:{id_}")
        if gone:
            self.call(aws, "UntagResource", Resource=arn, TagKeys=gone)
        if new:
            self.call(aws, "TagResource", Resource=arn, Tags=new)

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        self.call(aws, "DeleteFunction", FunctionName=id_)

    in_place = {
        "code": _code,
        "sourceCodeHash": _code,
        "tags": _tags,
        **dict.fromkeys(
            ("description", "environment", "handler", "memorySize", "role", "runtime", "timeout"),
            _settings,
        ),
    }


def zipped(code: Props | None) -> bytes:
    """An archive of texts, as the bridge packs it: the same bytes for the same texts."""
    found = code or {}
    if found.get(SIGNATURE) != ARCHIVE or "assets" not in found:
        raise Refused("code", "the stand-in takes an archive of texts")
    packed = io.BytesIO()
    assets: Props = found["assets"]
    with zipfile.ZipFile(packed, "w") as archive:
        for name, asset in sorted(assets.items()):
            if asset.get(SIGNATURE) != ASSET or "text" not in asset:
                raise Refused("code", f"{name} is no text")
            archive.writestr(zipfile.ZipInfo(name), asset["text"])
    return packed.getvalue()


def unzipped(name: str, aws: Session) -> dict[str, str]:
    """The texts of a function that is there. AWS shows them at an address, which moto has not."""
    data: bytes = _backends[aws.account][aws.region].get_function(name).code_bytes
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {part: archive.read(part).decode() for part in archive.namelist()}


class Permission(Resource):
    token = "aws:lambda/permission:Permission"
    service, creates, answer = "lambda", "AddPermission", "=statementId"
    renames = {"function": "FunctionName"}
    apart = frozenset({"statementIdPrefix"})
    named = ("", "")

    def check(self, aws: Session, inputs: Props) -> Any:
        yield from super().check(aws, inputs)
        if "sourceArn" not in inputs and not is_unknown(inputs.get("principal")):
            yield "sourceArn", "anybody's topic could call it"

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        policy = self.call(aws, "GetPolicy", FunctionName=inputs["function"])["Policy"]
        statements = json.loads(policy)["Statement"]
        return next((found for found in statements if found["Sid"] == id_), None)

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        return {
            "statementId": id_,
            "action": live["Action"],
            "function": inputs["function"],
            "principal": live["Principal"]["Service"],
            "sourceArn": live.get("Condition", {}).get("ArnLike", {}).get("AWS:SourceArn"),
        }

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        self.call(aws, "RemovePermission", FunctionName=inputs["function"], StatementId=id_)


class EventInvokeConfig(Resource):
    token = "aws:lambda/functionEventInvokeConfig:FunctionEventInvokeConfig"
    service, creates, answer = "lambda", "PutFunctionEventInvokeConfig", "=functionName"
    named = ("", "")
    again = True

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        return self.call(aws, "GetFunctionEventInvokeConfig", FunctionName=id_)

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        return {**super().describe(aws, id_, live, inputs), "functionName": id_}

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        self.call(aws, "DeleteFunctionEventInvokeConfig", FunctionName=id_)


TYPES: tuple[Resource, ...] = (Function(), Permission(), EventInvokeConfig())
