"""Service accounts, roles of a project, services, and who may do what on a resource."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar, cast

from tests.engine import schema
from tests.engine.gcp.api import GoogleError
from tests.engine.gcp.resource import Resource
from tests.engine.gcp.services import Service
from tests.engine.gcp.session import Session
from tests.engine.gcp.values import block
from tests.engine.provider import Refused
from tests.engine.wire import Props, has_unknown, is_unknown


class Account(Service):
    token = "gcp:serviceaccount/account:Account"
    collection, parent, kind = "iam.projects.serviceAccounts", "name", "serviceAccounts"
    names = {
        "displayName": "serviceAccount.displayName",
        "description": "serviceAccount.description",
    }
    apart = frozenset({"createIgnoreAlreadyExists", "disabled"})
    named = ("", "")

    def check(self, gcp: Session, inputs: Props) -> Iterator[schema.Problem]:
        yield from super().check(gcp, inputs)
        own = inputs.get("accountId")
        if (
            own
            and not is_unknown(own)
            and not re.fullmatch(r"[a-z](?:[-a-z0-9]{4,28}[a-z0-9])", own)
        ):
            yield "accountId", f"{own!r} is not 6 to 30 lower-case letters, digits and dashes"

    def own_name(self, gcp: Session, inputs: Props, body: Props) -> str:
        return f"{inputs['accountId']}@{gcp.project}.iam.gserviceaccount.com"

    def stored(self, body: Props) -> Props:
        return dict(body.get("serviceAccount", {}))

    def made(self, gcp: Session, key: str, body: Props) -> None:
        number = str(len(gcp.api.calls))
        body |= {"email": key.rsplit("/", 1)[-1], "uniqueId": f"1000000000000000{number:0>5}"}

    def live(self, live: Props) -> Props:
        return {"serviceAccount": live, "accountId": live["email"].split("@")[0]}

    def describe(self, gcp: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = super().describe(gcp, id_, live, inputs)
        return {**found, "member": f"serviceAccount:{live['email']}"}

    def patch(self, gcp: Session, key: str, body: Props) -> None:
        changed: Props = body["serviceAccount"]
        sent = {"serviceAccount": changed, "updateMask": ",".join(sorted(changed))}
        self.call(gcp, "patch", sent, **self.parameters("patch", key))
        gcp.api.patch(key, changed)

    def read(self, gcp: Session, live: Props, inputs: Props) -> Props:
        found = super().read(gcp, live, inputs)
        if "disabled" in inputs:
            found["disabled"] = bool(live.get("disabled"))
        return found

    def _disable(self, gcp: Session, key: str, _olds: Props, news: Props) -> None:
        verb = "disable" if news.get("disabled") else "enable"
        self.call(gcp, verb, {}, **self.parameters(verb, key))
        gcp.api.patch(key, {"disabled": bool(news.get("disabled"))})

    in_place = {"disabled": _disable}


class CustomRole(Service):
    token = "gcp:projects/iAMCustomRole:IAMCustomRole"
    collection, kind, masked = "iam.projects.roles", "roles", True
    names = {
        "title": "role.title",
        "description": "role.description",
        "permissions": "role.includedPermissions",
        "stage": "role.stage",
    }
    defaults = {"stage": "GA"}

    def check(self, gcp: Session, inputs: Props) -> Iterator[schema.Problem]:
        yield from super().check(gcp, inputs)
        own = inputs.get("roleId")
        if own and not is_unknown(own) and not re.fullmatch(r"[a-zA-Z0-9_.]{3,64}", own):
            yield "roleId", f"{own!r} is not 3 to 64 letters, digits, points and underscores"

    def own_name(self, gcp: Session, inputs: Props, body: Props) -> str:
        return str(inputs["roleId"])

    def stored(self, body: Props) -> Props:
        return dict(body["role"])

    def live(self, live: Props) -> Props:
        return {"role": live, "roleId": live["name"].rsplit("/", 1)[-1]}

    def patch(self, gcp: Session, key: str, body: Props) -> None:
        super().patch(gcp, key, body["role"])


class ProjectService(Service):
    """A service that a project uses; it stays on unless the program says otherwise."""

    token = "gcp:projects/service:Service"
    collection, creates, changes = "serviceusage.services", "enable", ""
    apart = frozenset(
        {
            "checkIfServiceHasUsageOnDestroy",
            "disableDependentServices",
            "disableOnDestroy",
            "service",
        }
    )

    def where(self, gcp: Session) -> Props:
        service = gcp.inputs.get("service")
        return {"name": f"projects/{gcp.project}/services/{service}"}

    def check(self, gcp: Session, inputs: Props) -> Iterator[schema.Problem]:
        yield from super().check(gcp, inputs)
        service = inputs.get("service")
        if service and not is_unknown(service) and not str(service).endswith(".googleapis.com"):
            yield "service", f"{service!r} is no name of a service, such as compute.googleapis.com"

    def create(self, gcp: Session, inputs: Props) -> str:
        name = self.where(gcp)["name"]
        self.call(gcp, "enable", {}, name=name)
        gcp.api.objects[f"serviceusage/{name}"] = {"name": name, "state": "ENABLED"}
        return f"{gcp.project}/{inputs['service']}"

    def key_of(self, id_: str, inputs: Props) -> str:
        project, _, service = id_.partition("/")
        return f"serviceusage/projects/{project}/services/{service}"

    def read(self, gcp: Session, live: Props, inputs: Props) -> Props:
        return inputs

    def delete(self, gcp: Session, id_: str, inputs: Props) -> None:
        key = self.key_of(id_, inputs)
        if inputs.get("disableOnDestroy") and key in gcp.api.objects:
            self.call(gcp, "disable", {}, **self.parameters("disable", key))
            gcp.api.delete(key)


MEMBER = re.compile(
    r"allUsers|allAuthenticatedUsers|"
    r"(deleted:)?(user|serviceAccount|group|domain|principal|principalSet|projectOwner|"
    r"projectEditor|projectViewer|principalHierarchy):\S+"
)


class Member(Resource):
    """One member of one role in the policy of `on`; other members are nobody's business here."""

    on: ClassVar[str]
    creates, changes = "setIamPolicy", ""
    named: ClassVar[tuple[str, str]] = ("", "")

    def resource(self, gcp: Session, inputs: Props) -> str:
        """The path of what the policy is for."""
        raise NotImplementedError

    def policy(self, bindings: list[Props]) -> Props:
        """The body that sets these bindings."""
        version = 3 if any("condition" in binding for binding in bindings) else 1
        return {"policy": {"bindings": bindings, "version": version}}

    def target(self, gcp: Session, inputs: Props) -> Props:
        """The parameters of setIamPolicy."""
        return {"resource": self.resource(gcp, inputs)}

    def binding(self, inputs: Props) -> Props:
        found: Props = {"role": inputs.get("role"), "members": [inputs.get("member")]}
        if inputs.get("condition"):
            found["condition"] = inputs["condition"]
        return found

    def check(self, gcp: Session, inputs: Props) -> Iterator[schema.Problem]:
        try:
            target = self.target(gcp, inputs)
        except Refused as refused:
            yield refused.problem
            return
        if not has_unknown(target):
            id_ = f"{self.collection}.{self.creates}"
            yield from gcp.api.check(id_, target, self.request(gcp, inputs))
        member, role = inputs["member"], inputs["role"]
        if not has_unknown(member) and not MEMBER.fullmatch(str(member)):
            yield "member", f"{member!r} is no member, such as serviceAccount:ADDRESS"
        if not has_unknown(role) and not ROLE.fullmatch(str(role)):
            yield "role", f"{role!r} is no role, such as roles/NAME or projects/PROJECT/roles/NAME"

    def request(self, gcp: Session, inputs: Props) -> Props:
        return self.policy([self.binding(inputs)])

    def _bindings(self, gcp: Session, inputs: Props) -> list[Props]:
        key = f"policy/{self.on}/{self.resource(gcp, inputs)}"
        return gcp.api.objects.get(key, {}).get("bindings", [])

    def _put(self, gcp: Session, inputs: Props, bindings: list[Props]) -> None:
        self.call(gcp, self.creates, self.policy(bindings), **self.target(gcp, inputs))
        key = f"policy/{self.on}/{self.resource(gcp, inputs)}"
        if bindings:
            gcp.api.objects[key] = {"bindings": bindings}
        else:
            gcp.api.objects.pop(key, None)

    def create(self, gcp: Session, inputs: Props) -> str:
        self._known(gcp, inputs)
        self.there(gcp, inputs)
        found, own = self._bindings(gcp, inputs), self.binding(inputs)
        kept = [b for b in found if not _same_binding(b, own)]
        members = {m for b in found if _same_binding(b, own) for m in b["members"]}
        whole = {**own, "members": sorted({*members, inputs["member"]})}
        self._put(gcp, inputs, [*kept, whole])
        title: str = block(inputs.get("condition")).get("title", "")
        parts = (self.resource_id(gcp, inputs), inputs["role"], inputs["member"], title)
        return "/".join(part for part in parts if part)

    def resource_id(self, gcp: Session, inputs: Props) -> str:
        return self.resource(gcp, inputs)

    def there(self, gcp: Session, inputs: Props) -> None:
        """404 where there is nothing to have a policy."""

    def _known(self, gcp: Session, inputs: Props) -> None:
        """A service account of this project, and a role of it, has to be there."""
        kind, _, address = str(inputs["member"]).partition(":")
        own = f"@{gcp.project}.iam.gserviceaccount.com"
        at = f"iam/projects/{gcp.project}/serviceAccounts/{address}"
        if kind == "serviceAccount" and address.endswith(own) and at not in gcp.api.objects:
            raise GoogleError(400, f"Service account {address} does not exist.")
        role = str(inputs["role"])
        if role.startswith(f"projects/{gcp.project}/") and f"iam/{role}" not in gcp.api.objects:
            raise GoogleError(400, f"Role ({role}) does not exist in the resource's hierarchy.")

    def look(self, gcp: Session, id_: str, inputs: Props) -> Props | None:
        own = self.binding(inputs)
        return next(
            (
                {**inputs, "etag": "BwAA"}
                for b in self._bindings(gcp, inputs)
                if _same_binding(b, own) and inputs["member"] in b["members"]
            ),
            None,
        )

    def read(self, gcp: Session, live: Props, inputs: Props) -> Props:
        return inputs

    def describe(self, gcp: Session, id_: str, live: Props, inputs: Props) -> Props:
        return {"etag": live["etag"]}

    def delete(self, gcp: Session, id_: str, inputs: Props) -> None:
        own, left = self.binding(inputs), list[Props]()
        for found in self._bindings(gcp, inputs):
            members = cast(list[str], found["members"])
            if _same_binding(found, own):
                members = [m for m in members if m != inputs["member"]]
            left += [{**found, "members": members}] if members else []
        self._put(gcp, inputs, left)


ROLE = re.compile(r"roles/[\w.]+|(projects|organizations)/[^/]+/roles/[\w.]+")


def _same_binding(one: Props, other: Props) -> bool:
    return one["role"] == other["role"] and one.get("condition") == other.get("condition")


class ProjectMember(Member):
    token = "gcp:projects/iAMMember:IAMMember"
    collection, on = "cloudresourcemanager.projects", "projects"

    def resource(self, gcp: Session, inputs: Props) -> str:
        return str(inputs["project"]).removeprefix("projects/")


class BucketMember(Member):
    token = "gcp:storage/bucketIAMMember:BucketIAMMember"
    collection, on = "storage.buckets", "buckets"

    def resource(self, gcp: Session, inputs: Props) -> str:
        return str(inputs["bucket"]).removeprefix("b/")

    def resource_id(self, gcp: Session, inputs: Props) -> str:
        return f"b/{self.resource(gcp, inputs)}"

    def policy(self, bindings: list[Props]) -> Props:
        return super().policy(bindings)["policy"]

    def target(self, gcp: Session, inputs: Props) -> Props:
        return {"bucket": self.resource(gcp, inputs)}

    def there(self, gcp: Session, inputs: Props) -> None:
        gcp.api.get(f"storage/b/{self.resource(gcp, inputs)}")


class AccountMember(Member):
    token = "gcp:serviceaccount/iAMMember:IAMMember"
    collection, on = "iam.projects.serviceAccounts", "serviceAccounts"

    def resource(self, gcp: Session, inputs: Props) -> str:
        return str(inputs["serviceAccountId"])

    def there(self, gcp: Session, inputs: Props) -> None:
        gcp.api.get(f"iam/{self.resource(gcp, inputs)}")


class KeyMember(Member):
    """The key is somebody else's: the stand-in makes none."""

    token = "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember"
    collection, on = "cloudkms.projects.locations.keyRings.cryptoKeys", "cryptoKeys"

    def resource(self, gcp: Session, inputs: Props) -> str:
        return str(inputs["cryptoKeyId"])


TYPES: tuple[Resource, ...] = (
    Account(),
    CustomRole(),
    ProjectService(),
    ProjectMember(),
    BucketMember(),
    AccountMember(),
    KeyMember(),
)
