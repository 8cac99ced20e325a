"""One resource type of Google's: how its inputs become calls, and what a later look finds.

Most types say where their inputs go in a few lines and override what differs. The body that
creates is made, and held against the discovery document, in a preview too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, cast

from tests.engine import schema
from tests.engine.gcp import documents, images, links
from tests.engine.gcp.api import GoogleError, merge
from tests.engine.gcp.request import NOT_SENT, Name, Translation
from tests.engine.gcp.session import Session
from tests.engine.gcp.values import block
from tests.engine.provider import Refused
from tests.engine.wire import Props, is_unknown

# What changes an input in place: it gets the key, the old inputs and the new ones.
Change = Callable[[Any, Session, str, Props, Props], None]
SCOPES = ("project", "region", "zone")


class Resource:
    """The default way of a type of Compute Engine; `inputs` are the program's, `live` is Google's
    own description, `key` its place in the stand-in's store."""

    token: ClassVar[str]
    collection: ClassVar[str]  # such as compute.networks
    scope: ClassVar[str] = "global"  # or region, zone
    creates: ClassVar[str] = "insert"
    changes: ClassVar[str] = "patch"  # "" where nothing can be changed
    names: ClassVar[Mapping[str, Name]] = {}  # input path -> member, where the names differ
    apart: ClassVar[frozenset[str]] = frozenset()  # inputs for other calls, or for the provider
    beta: ClassVar[frozenset[str]] = frozenset()  # members that only the beta document has
    defaults: ClassVar[Mapping[str, Any]] = {}  # what the provider fills in
    named: ClassVar[tuple[str, str]] = ("name", "{}")  # the input that is named, and the form
    restless: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # output -> inputs that change it
    chosen: ClassVar[frozenset[str]] = frozenset()  # inputs that Google fills in when left out
    in_place: ClassVar[Mapping[str, Change]] = {}
    outputs: ClassVar[Mapping[str, str]] = {}  # output -> member, where the names differ
    labelled: ClassVar[str] = ""  # the member that has the labels, with the provider's own
    types_whole: ClassVar[bool] = True  # machine types are links, not names

    # --- before ------------------------------------------------------------------------------

    @property
    def method(self) -> documents.Method:
        return documents.method(f"{self.collection}.{self.creates}")

    @property
    def form(self) -> Props:
        """The schema that the inputs become."""
        return documents.schema(self.method.document, self.method.body)

    def check(self, gcp: Session, inputs: Props) -> Iterator[schema.Problem]:
        """What Google would refuse, as far as the inputs alone tell."""
        try:
            body = self.request(gcp, inputs)
            where = self.where(gcp)
        except Refused as refused:
            yield refused.problem
            return
        id_ = f"{self.collection}.{self.creates}"
        yield from gcp.api.check(id_, {**where, **self.query(inputs)}, body, self.beta)

    def request(self, gcp: Session, inputs: Props) -> Props:
        """The body that creates."""
        values = {k: v for k, v in inputs.items() if k not in self.not_sent()}
        body = self.translation(gcp).body(self.form, values)
        return self.with_labels(gcp, body, inputs)

    def with_labels(self, gcp: Session, body: Props, inputs: Props) -> Props:
        own: Any = block(inputs.get("labels"))
        if self.labelled and not is_unknown(own):
            found = gcp.labels(own)
            if found:
                _put(body, self.labelled, found)
        return body

    def not_sent(self) -> frozenset[str]:
        own = {"labels"} if self.labelled else set[str]()
        return self.apart | PROVIDER_ONLY | {*SCOPES} | own

    def translation(self, gcp: Session) -> Translation:
        place = gcp.place
        document = self.method.document
        return Translation(
            document,
            self.names,
            place,
            whole_types=self.types_whole,
            images=images.Images(gcp.api, place.project),
        )

    def where(self, gcp: Session) -> Props:
        """The parameters of a method on the collection."""
        found: Props = {"project": gcp.project}
        if self.scope != "global":
            found[self.scope] = gcp.region if self.scope == "region" else gcp.zone
        return found

    def query(self, inputs: Props) -> Props:
        """More parameters of the method that creates."""
        return {}

    def taken(self, gcp: Session, inputs: Props) -> bool:
        """Whether another one has the name."""
        prop, _ = self.named
        try:
            at = self.method.url(self.where(gcp))
        except (Refused, KeyError):
            return False
        return f"{self.collection.split('.')[0]}/{at}/{inputs[prop]}" in gcp.api.objects

    def unknown(self, inputs: Props) -> set[str]:
        """The outputs that only Google can tell before the resource is there."""
        given = schema.inputs(self.token)
        return {
            name
            for name in schema.outputs(self.token)
            if name not in inputs and (name not in given or name in self.chosen)
        }

    def unknown_after(self, changed: set[str]) -> set[str]:
        """The outputs that an update of these inputs changes."""
        return {output for output, by in self.restless.items() if changed & set(by)}

    # --- effects -----------------------------------------------------------------------------

    def create(self, gcp: Session, inputs: Props) -> str:
        body = self.request(gcp, inputs)
        at = self.call(gcp, self.creates, body, **self.where(gcp), **self.query(inputs))
        key = f"{at}/{self.name_of(inputs, body)}"
        body = gcp.api.insert(key, body)
        body |= {**gcp.api.born(key), **{k: v for k, v in body.items() if k != "id"}}
        self.finished(gcp, key, body)
        return self.id_of(key, body)

    def finished(self, gcp: Session, key: str, body: Props) -> None:
        """What else comes with it; nothing stays of one that cannot have it."""
        try:
            self.made(gcp, key, body)
        except Exception:
            del gcp.api.objects[key]
            raise

    def name_of(self, inputs: Props, body: Props) -> str:
        return str(body["name"])

    def made(self, gcp: Session, key: str, body: Props) -> None:
        """What else comes with it."""

    def id_of(self, key: str, body: Props) -> str:
        return key.partition("/")[2]

    def key_of(self, id_: str, inputs: Props) -> str:
        return f"{self.collection.split('.')[0]}/{id_}"

    def look(self, gcp: Session, id_: str, inputs: Props) -> Props | None:
        """Google's description; None when the resource is gone."""
        return gcp.api.objects.get(self.key_of(id_, inputs))

    def read(self, gcp: Session, live: Props, inputs: Props) -> Props:
        """The inputs as they are now."""
        sent = {k: v for k, v in inputs.items() if k not in self.not_sent()}
        found = self.translation(gcp).back(self.form, sent, self.live(live))
        if self.labelled and "labels" in inputs:
            found["labels"] = self._own_labels(gcp, live, inputs)
        kept = {k: v for k, v in inputs.items() if k in self.not_sent() and k not in found}
        return {k: v for k, v in {**kept, **found}.items() if v is not None}

    def live(self, live: Props) -> Props:
        """The part of the description that has the inputs."""
        return live

    def _own_labels(self, gcp: Session, live: Props, inputs: Props) -> Props:
        """Those that the program set: of others, the provider takes no note."""
        own: Props = inputs["labels"] or {}
        now = block(_get(self.live(live), self.labelled))
        return {k: now[k] for k in own if k in now}

    def describe(self, gcp: Session, id_: str, live: Props, inputs: Props) -> Props:
        """The outputs, by the names of the program."""
        found: Props = {}
        for name in schema.outputs(self.token) - set(inputs):
            at = self.outputs.get(name) or name
            value = _get(live, at)
            if value is not None:
                found[name] = value
        found["project"] = gcp.project
        if self.scope != "global":
            found[self.scope] = getattr(gcp, self.scope)
        if self.labelled:
            labels = block(_get(self.live(live), self.labelled))
            found |= {"effectiveLabels": labels, "pulumiLabels": labels}
        return found

    filled: ClassVar[frozenset[str]] = frozenset()  # inputs with outputs inside of them

    def inside(self, live: Props | None, inputs: Props) -> Props:
        """The inputs that `filled` names with what Google adds; UNKNOWN before it is there."""
        return {}

    def update(self, gcp: Session, id_: str, olds: Props, news: Props) -> None:
        changed = {k for k in {*olds, *news} if olds.get(k) != news.get(k)}
        key = self.key_of(id_, news)
        ways, patched = dict[Change, None](), set[str]()
        for name in sorted(changed - PROVIDER_ONLY):
            if way := self.in_place.get(name):
                ways[way] = None
            elif self.changes and name not in self.apart:
                patched.add(name)
            elif name not in self.apart:
                raise Refused(name, f"{self.token}: the stand-in cannot change it in place")
        for way in ways:
            way(self, gcp, key, olds, news)
        if patched:
            self.patch(gcp, key, self.difference(gcp, olds, news, patched))

    def difference(self, gcp: Session, olds: Props, news: Props, names: set[str]) -> Props:
        """The part of the body that these inputs are in; null for what is no longer set."""
        before, after = (
            self.request(gcp, {k: v for k, v in side.items() if k in names or k in self.anchors})
            for side in (olds, news)
        )
        return _difference(before, after)

    anchors: ClassVar[frozenset[str]] = frozenset()  # inputs that a part of the body needs

    def patch(self, gcp: Session, key: str, body: Props) -> None:
        parameters = self.parameters(self.changes, key)
        self.call(gcp, self.changes, body, **parameters)
        gcp.api.patch(key, body)
        if "fingerprint" in gcp.api.objects[key]:
            number = str(len(gcp.api.calls))
            gcp.api.objects[key]["fingerprint"] = f"{int(number):08x}"

    def delete(self, gcp: Session, id_: str, inputs: Props) -> None:
        key = self.key_of(id_, inputs)
        if inputs.get("deletionPolicy") == "ABANDON":
            return
        if inputs.get("deletionPolicy") == "PREVENT":
            raise Refused("deletionPolicy", f"{self.token} {id_} is protected: PREVENT")
        if key in gcp.api.objects:
            self.call(gcp, "delete", None, **self.parameters("delete", key))
            gcp.api.delete(key)

    # --- help --------------------------------------------------------------------------------

    def parameters(self, verb: str, key: str) -> Props:
        """The parameters of a method on one object, from its key."""
        method = documents.method(f"{self.collection}.{verb}")
        return matched(method.path, key.partition("/")[2])

    def call(self, gcp: Session, verb: str, body: Props | None, **parameters: Any) -> str:
        return gcp.api.call(f"{self.collection}.{verb}", parameters, body, self.beta)


PROVIDER_ONLY = frozenset({"deletionPolicy", "deletionProtectionEnabled"})


def matched(template: str, path: str) -> Props:
    """The parameters that a method's path has in this place."""
    parts, found = path.split("/"), dict[str, Any]()
    for index, part in enumerate(template.split("/")):
        if part.startswith("{+"):
            found[part[2:-1]] = path
        elif part.startswith("{") and index < len(parts):
            found[part[1:-1]] = parts[index]
    return found


def _difference(before: Props, after: Props) -> Props:
    found: Props = {}
    for key in sorted({*before, *after}):
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            found[key] = _difference(cast(Props, old), cast(Props, new))
        else:
            found[key] = new
    return found


def _get(live: Any, at: str) -> Any:
    for part in at.split("."):
        live = cast(Props, live).get(part) if isinstance(live, dict) else None
    return live


def _put(body: Props, at: str, value: Any) -> None:
    *around, last = at.split(".")
    for part in around:
        body = body.setdefault(part, {})
    body[last] = value


def by_method(verb: str, member: str, *, body: str = "") -> Change:
    """A change that has a method of its own, such as instances.setMachineType."""

    def change(kind: Resource, gcp: Session, key: str, _olds: Props, news: Props) -> None:
        whole = kind.request(gcp, news)
        value = _get(whole, member)
        sent = {body or member: value} if body != "." else (value or {})
        fingerprint = gcp.api.get(key).get("fingerprint")
        form = documents.schema(
            kind.method.document, documents.method(f"{kind.collection}.{verb}").body
        )
        for name in ("fingerprint", "labelFingerprint"):
            if name in form.get("properties", {}):
                sent[name] = fingerprint
        kind.call(gcp, verb, sent, **kind.parameters(verb, key))
        merge(gcp.api.get(key), {member: None})
        if value is not None:
            gcp.api.patch(key, {member: value})

    return change


__all__ = ["NOT_SENT", "Change", "GoogleError", "Resource", "by_method", "links"]
