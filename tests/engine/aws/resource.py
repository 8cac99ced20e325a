"""One resource type of AWS: how its inputs become calls, and what a later look finds.

Most types say where their inputs go in a few lines and override what differs. The request that
creates is made, and checked, in a preview too; what `apart` names goes into other calls.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

from tests.engine import schema
from tests.engine.aws import request
from tests.engine.aws.found import named
from tests.engine.aws.session import Session
from tests.engine.provider import Refused
from tests.engine.wire import Props, is_unknown

# What changes an input in place: it gets the id, the old inputs and the new ones.
Change = Callable[[Any, Session, str, Props, Props], None]


class Resource:
    """The default way of a type; `inputs` are the program's, `live` is AWS's own description."""

    token: ClassVar[str]
    service: ClassVar[str] = "ec2"
    creates: ClassVar[str] = ""  # the operation whose request holds the inputs
    answer: ClassVar[str] = ""  # where its answer has the id; "=name" is an input
    renames: ClassVar[Mapping[str, str]] = {}  # input path -> member, where the names differ
    apart: ClassVar[frozenset[str]] = frozenset()  # inputs for other calls, or for the provider
    defaults: ClassVar[Mapping[str, Any]] = {}  # what the provider fills in
    kind: ClassVar[str] = ""  # EC2's word for the type: for tags and in ARNs
    named: ClassVar[tuple[str, str]] = ("name", "{}")  # the input that is named, and the form
    restless: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # output -> inputs that change it
    chosen: ClassVar[frozenset[str]] = (
        frozenset()
    )  # inputs that AWS fills in when they are left out
    in_place: ClassVar[Mapping[str, Change]] = {}
    again: ClassVar[bool] = False  # creating is a Put: an update is the same call

    # --- before ------------------------------------------------------------------------------

    def check(self, aws: Session, inputs: Props) -> Iterator[schema.Problem]:
        """What AWS would refuse, as far as the inputs alone tell."""
        try:
            made = self.request(aws, inputs)
        except Refused as refused:
            yield refused.problem
            return
        form = request.shape(self.service, self.creates)
        yield from (("", why) for why in request.problems(made, form))

    def request(self, aws: Session, inputs: Props) -> Props:
        """The request that creates."""
        form = request.shape(self.service, self.creates)
        values = {k: v for k, v in inputs.items() if k not in self.apart and k != "region"}
        tags = values.pop("tags", None) if self.kind else None
        made = request.Translation(self.creates, self.renames).structure(form, values)
        if tags:
            made["TagSpecifications"] = [{"ResourceType": self.kind, "Tags": pairs(tags)}]
        return made

    def unknown(self, inputs: Props) -> set[str]:
        """The outputs that only AWS can tell before the resource is there."""
        given = schema.inputs(self.token)
        return {
            name
            for name in schema.outputs(self.token)
            if name not in inputs and (name not in given or name in self.chosen)
        } - {"tagsAll"} | ({"tagsAll"} & schema.outputs(self.token))

    def unknown_after(self, changed: set[str]) -> set[str]:
        """The outputs that an update of these inputs changes."""
        return {output for output, by in self.restless.items() if changed & set(by)}

    # --- effects -----------------------------------------------------------------------------

    def create(self, aws: Session, inputs: Props) -> str:
        made = self.call(aws, self.creates, **self.request(aws, inputs))
        if self.answer.startswith("="):
            return str(inputs[self.answer[1:]])
        for part in self.answer.split("."):
            made = made[part]
        return made

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        """AWS's description; None or an error that says so when the resource is gone."""
        raise NotImplementedError

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        """The description as the program names things, inputs and outputs alike."""
        return named(live, schema.outputs(self.token), self.renames)

    def update(self, aws: Session, id_: str, olds: Props, news: Props) -> None:
        changed = {k for k in {*olds, *news} if olds.get(k) != news.get(k)}
        ways = dict[Change, None]()
        for name in sorted(changed):
            if way := self.way_of(name):
                ways[way] = None
            elif not self.again and name not in self.settings_only():
                raise Refused(name, f"{self.token}: the stand-in cannot change it in place")
        for way in ways:
            way(self, aws, id_, olds, news)
        if self.again and changed - set(self.in_place):
            self.call(aws, self.creates, **self.request(aws, news))

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        raise NotImplementedError

    def way_of(self, name: str) -> Change | None:
        """What changes an input in place."""
        return self.in_place.get(name)

    def settings_only(self) -> frozenset[str]:
        """Inputs that only tell the provider what to do: changing them changes nothing in AWS."""
        return PROVIDER_ONLY

    # --- help --------------------------------------------------------------------------------

    def call(self, aws: Session, operation: str, **arguments: Any) -> Any:
        return request.method(aws.client(self.service), operation)(**arguments)

    def arn(self, aws: Session, what: str) -> str:
        return f"arn:aws:{self.service}:{aws.region}:{aws.account}:{what}"


PROVIDER_ONLY = frozenset(
    {
        "forceDelete",
        "forceDeleteWarmPool",
        "forceDestroy",
        "forceDetach",
        "forceDetachPolicies",
        "getPasswordData",
        "ignoreFailedScalingActivities",
        "minElbCapacity",
        "revokeRulesOnDelete",
        "skipDestroy",
        "stopInstanceBeforeDetaching",
        "userDataReplaceOnChange",
        "waitForCapacityTimeout",
        "waitForElbCapacity",
    }
)


def pairs(tags: Any) -> Any:
    """Tags as the API lists them; unknown ones stay what they are."""
    return tags if is_unknown(tags) else [{"Key": k, "Value": v} for k, v in tags.items()]


def tags_to_change(olds: Props, news: Props) -> tuple[list[str], dict[str, str]]:
    """The keys of tags to take away, and the tags to set; others that somebody set stay."""
    old: dict[str, str] = olds.get("tags") or {}
    new: dict[str, str] = news.get("tags") or {}
    return sorted(old.keys() - new.keys()), new


def unseen(_kind: Any, _aws: Session, _id: str, _olds: Props, _news: Props) -> None:
    """A change that the provider alone takes note of."""


def digest(*parts: object) -> str:
    """A short name for something that AWS gives none, such as a route."""
    return str(zlib.crc32("\0".join(map(str, parts)).encode()))


def only(items: Iterable[Any]) -> Any:
    """The one description, or None where AWS has none."""
    return next(iter(items), None)
