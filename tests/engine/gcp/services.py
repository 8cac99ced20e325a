"""What the types outside of Compute Engine have in common: an object's name is its whole path."""

from __future__ import annotations

from typing import ClassVar

from tests.engine.gcp import documents
from tests.engine.gcp.api import fingerprint
from tests.engine.gcp.resource import Resource
from tests.engine.gcp.session import Session
from tests.engine.wire import Props


class Service(Resource):
    """`parent` is the parameter that names what the object is made in, `kind` its collection."""

    creates, changes = "create", "patch"
    parent: ClassVar[str] = "parent"
    kind: ClassVar[str] = ""
    named: ClassVar[tuple[str, str]] = ("", "")
    masked: ClassVar[bool] = False  # a change names its members: updateMask

    def where(self, gcp: Session) -> Props:
        return {self.parent: self.around(gcp)}

    def around(self, gcp: Session) -> str:
        return f"projects/{gcp.project}"

    def own_name(self, gcp: Session, inputs: Props, body: Props) -> str:
        """The last part of its name; Google's own choice unless the type says otherwise."""
        return fingerprint(self.token, len(gcp.api.calls))

    def create(self, gcp: Session, inputs: Props) -> str:
        body = self.request(gcp, inputs)
        self.call(gcp, self.creates, body, **self.where(gcp), **self.query(inputs))
        name = f"{self.around(gcp)}/{self.kind}/{self.own_name(gcp, inputs, body)}"
        key = self.key_of(name, inputs)
        gcp.api.insert(key, {**self.stored(body), "name": name})
        self.finished(gcp, key, gcp.api.get(key))
        return self.id_of(key, body)

    def stored(self, body: Props) -> Props:
        """What of the request becomes the object."""
        return body

    def patch(self, gcp: Session, key: str, body: Props) -> None:
        mask = {"updateMask": ",".join(sorted(body))} if self.masked else {}
        sent = {k: v for k, v in body.items() if v is not None}
        self.call(gcp, self.changes, sent, **self.parameters(self.changes, key), **mask)
        gcp.api.patch(key, body)

    def parameters(self, verb: str, key: str) -> Props:
        """The one parameter of the path is the object's whole name."""
        path = documents.method(f"{self.collection}.{verb}").path
        (name,) = [part.strip("{+}") for part in path.split("/", 1)[1:] if "{+" in part] or [""]
        return {name.split("}")[0]: key.partition("/")[2]}

    def describe(self, gcp: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = super().describe(gcp, id_, live, inputs)
        return {**found, "name": found.get("name", live.get("name"))}
