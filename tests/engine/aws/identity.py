"""Roles, what they may do, and how a machine gets one."""

from __future__ import annotations

import json
from typing import Any

from tests.engine.aws.found import plain
from tests.engine.aws.resource import Change, Resource, only, pairs, tags_to_change
from tests.engine.aws.session import Session
from tests.engine.provider import Refused
from tests.engine.wire import Props


def _retagger(what: str, parameter: str) -> Change:
    """IAM has a pair of calls for each kind of thing with tags."""

    def retag(kind: Resource, aws: Session, id_: str, olds: Props, news: Props) -> None:
        gone, new = tags_to_change(olds, news)
        where = {parameter: id_}
        if gone:
            kind.call(aws, f"Untag{what}", **where, TagKeys=gone)
        if new:
            kind.call(aws, f"Tag{what}", **where, Tags=pairs(new))

    return retag


class Iam(Resource):
    service = "iam"

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = super().describe(aws, id_, live, inputs)
        found["tags"] = plain(live.get("Tags") or []) or {}
        return found if "tags" in inputs or found["tags"] else {**found, "tags": None}


class Role(Iam):
    token = "aws:iam/role:Role"
    creates, answer = "CreateRole", "=name"
    renames = {
        "name": "RoleName",
        "assumeRolePolicy": "AssumeRolePolicyDocument",
        "uniqueId": "RoleId",
    }
    apart = frozenset({"inlinePolicies", "managedPolicyArns", "forceDetachPolicies", "namePrefix"})
    chosen = frozenset({"inlinePolicies", "managedPolicyArns", "path"})

    def create(self, aws: Session, inputs: Props) -> str:
        name = super().create(aws, inputs)
        self._policies(aws, name, {}, inputs)
        return name

    def _policies(self, aws: Session, id_: str, olds: Props, news: Props) -> None:
        old, new = (set(side.get("managedPolicyArns") or ()) for side in (olds, news))
        for operation, arns in (("DetachRolePolicy", old - new), ("AttachRolePolicy", new - old)):
            for arn in sorted(arns):
                self.call(aws, operation, RoleName=id_, PolicyArn=arn)
        was, now = (
            {p["name"]: p["policy"] for p in s.get("inlinePolicies") or ()} for s in (olds, news)
        )
        for name in was.keys() - now.keys():
            self.call(aws, "DeleteRolePolicy", RoleName=id_, PolicyName=name)
        for name, document in now.items():
            arguments = {"RoleName": id_, "PolicyName": name, "PolicyDocument": document}
            self.call(aws, "PutRolePolicy", **arguments)

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        return self.call(aws, "GetRole", RoleName=id_)["Role"]

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = super().describe(aws, id_, live, inputs)
        found["assumeRolePolicy"] = live["AssumeRolePolicyDocument"]
        if boundary := live.get("PermissionsBoundary"):
            found["permissionsBoundary"] = boundary["PermissionsBoundaryArn"]
        attached = self.call(aws, "ListAttachedRolePolicies", RoleName=id_)["AttachedPolicies"]
        found["managedPolicyArns"] = [policy["PolicyArn"] for policy in attached]
        return _as_text(found, "assumeRolePolicy", inputs)

    def _trust(self, aws: Session, id_: str, _olds: Props, news: Props) -> None:
        document = _text(news["assumeRolePolicy"])
        self.call(aws, "UpdateAssumeRolePolicy", RoleName=id_, PolicyDocument=document)

    def _plain(self, aws: Session, id_: str, _olds: Props, news: Props) -> None:
        names = {"description": "Description", "maxSessionDuration": "MaxSessionDuration"}
        changed = {member: news[name] for name, member in names.items() if name in news}
        self.call(aws, "UpdateRole", RoleName=id_, **changed)

    def _bound(self, aws: Session, id_: str, _olds: Props, news: Props) -> None:
        if boundary := news.get("permissionsBoundary"):
            bound = {"PermissionsBoundary": boundary}
            self.call(aws, "PutRolePermissionsBoundary", RoleName=id_, **bound)
        else:
            self.call(aws, "DeleteRolePermissionsBoundary", RoleName=id_)

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        """The provider takes off what the role itself declares, and everything when forced."""
        self._policies(aws, id_, inputs, {})
        if inputs.get("forceDetachPolicies"):
            attached = self.call(aws, "ListAttachedRolePolicies", RoleName=id_)
            for policy in attached["AttachedPolicies"]:
                arguments = {"RoleName": id_, "PolicyArn": policy["PolicyArn"]}
                self.call(aws, "DetachRolePolicy", **arguments)
        self.call(aws, "DeleteRole", RoleName=id_)

    in_place = {
        "tags": _retagger("Role", "RoleName"),
        "assumeRolePolicy": _trust,
        "description": _plain,
        "maxSessionDuration": _plain,
        "permissionsBoundary": _bound,
        "managedPolicyArns": _policies,
        "inlinePolicies": _policies,
    }


def _text(document: Any) -> str:
    return document if isinstance(document, str) else json.dumps(document)


def _as_text(found: Props, name: str, inputs: Props) -> Props:
    """IAM gives documents parsed; a program has them as text, and its own layout is as good."""
    live, declared = found[name], inputs.get(name)
    same = declared is not None and json.loads(_text(declared)) == live
    return {**found, name: declared if same else json.dumps(live)}


class RolePolicy(Iam):
    token = "aws:iam/rolePolicy:RolePolicy"
    creates = "PutRolePolicy"
    renames = {"name": "PolicyName", "role": "RoleName", "policy": "PolicyDocument"}
    apart = frozenset({"namePrefix"})
    again = True

    def create(self, aws: Session, inputs: Props) -> str:
        self.call(aws, self.creates, **self.request(aws, inputs))
        return f"{inputs['role']}:{inputs['name']}"

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        role, name = id_.split(":", 1)
        return self.call(aws, "GetRolePolicy", RoleName=role, PolicyName=name)

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = {"name": live["PolicyName"], "role": live["RoleName"]}
        return _as_text({**found, "policy": live["PolicyDocument"]}, "policy", inputs)

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        role, name = id_.split(":", 1)
        self.call(aws, "DeleteRolePolicy", RoleName=role, PolicyName=name)


class RolePolicyAttachment(Iam):
    token = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
    creates = "AttachRolePolicy"
    renames = {"role": "RoleName"}

    def create(self, aws: Session, inputs: Props) -> str:
        self.call(aws, self.creates, **self.request(aws, inputs))
        return f"{inputs['role']}/{inputs['policyArn']}"

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        role, arn = id_.split("/", 1)
        attached = self.call(aws, "ListAttachedRolePolicies", RoleName=role)["AttachedPolicies"]
        return only({"role": role, **policy} for policy in attached if policy["PolicyArn"] == arn)

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        return {"role": live["role"], "policyArn": live["PolicyArn"]}

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        role, arn = id_.split("/", 1)
        self.call(aws, "DetachRolePolicy", RoleName=role, PolicyArn=arn)


class Policy(Iam):
    token = "aws:iam/policy:Policy"
    creates, answer = "CreatePolicy", "Policy.Arn"
    renames = {"name": "PolicyName", "policy": "PolicyDocument"}
    apart = frozenset({"namePrefix", "delayAfterPolicyCreationInMs"})
    chosen = frozenset({"path"})

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        return self.call(aws, "GetPolicy", PolicyArn=id_)["Policy"]

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        where = {"PolicyArn": id_, "VersionId": live["DefaultVersionId"]}
        version = self.call(aws, "GetPolicyVersion", **where)["PolicyVersion"]
        found = {**super().describe(aws, id_, live, inputs), "policy": version["Document"]}
        return _as_text(found, "policy", inputs)

    def _document(self, aws: Session, id_: str, _olds: Props, news: Props) -> None:
        document = {"PolicyDocument": _text(news["policy"]), "SetAsDefault": True}
        self.call(aws, "CreatePolicyVersion", PolicyArn=id_, **document)

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        for version in self.call(aws, "ListPolicyVersions", PolicyArn=id_)["Versions"]:
            if not version["IsDefaultVersion"]:
                where = {"PolicyArn": id_, "VersionId": version["VersionId"]}
                self.call(aws, "DeletePolicyVersion", **where)
        self.call(aws, "DeletePolicy", PolicyArn=id_)

    in_place = {"policy": _document, "tags": _retagger("Policy", "PolicyArn")}


class InstanceProfile(Iam):
    token = "aws:iam/instanceProfile:InstanceProfile"
    creates, answer = "CreateInstanceProfile", "=name"
    renames = {"name": "InstanceProfileName", "uniqueId": "InstanceProfileId"}
    apart = frozenset({"role", "namePrefix"})
    chosen = frozenset({"path"})

    def create(self, aws: Session, inputs: Props) -> str:
        name = super().create(aws, inputs)
        self._role(aws, name, {}, inputs)
        return name

    def _role(self, aws: Session, id_: str, olds: Props, news: Props) -> None:
        where = {"InstanceProfileName": id_}
        if olds.get("role"):
            self.call(aws, "RemoveRoleFromInstanceProfile", **where, RoleName=olds["role"])
        if role := news.get("role"):
            if not self.call(aws, "GetRole", RoleName=role):
                raise Refused("role", f"NoSuchEntity: no role {role}")
            self.call(aws, "AddRoleToInstanceProfile", **where, RoleName=role)

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        return self.call(aws, "GetInstanceProfile", InstanceProfileName=id_)["InstanceProfile"]

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        role = only(live["Roles"])
        return {**super().describe(aws, id_, live, inputs), "role": role and role["RoleName"]}

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        live = self.look(aws, id_, inputs)
        for role in (live or {}).get("Roles", ()):
            where = {"InstanceProfileName": id_, "RoleName": role["RoleName"]}
            self.call(aws, "RemoveRoleFromInstanceProfile", **where)
        self.call(aws, "DeleteInstanceProfile", InstanceProfileName=id_)

    in_place = {"role": _role, "tags": _retagger("InstanceProfile", "InstanceProfileName")}


TYPES: tuple[Resource, ...] = (
    Role(),
    RolePolicy(),
    RolePolicyAttachment(),
    Policy(),
    InstanceProfile(),
)
