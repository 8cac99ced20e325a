"""What the types of EC2 have in common: tags of one kind, and a description by id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tests.engine import schema
from tests.engine.aws.found import named, plain
from tests.engine.aws.resource import Change, Resource, only, pairs, tags_to_change
from tests.engine.aws.session import Session
from tests.engine.wire import Props


def retag(_kind: Resource, aws: Session, id_: str, olds: Props, news: Props) -> None:
    """Tags to what the program says; others that somebody set stay."""
    ec2, (gone, new) = aws.client("ec2"), tags_to_change(olds, news)
    if gone:
        ec2.delete_tags(Resources=[id_], Tags=[{"Key": key} for key in gone])
    if new:
        ec2.create_tags(Resources=[id_], Tags=pairs(new))


class Ec2(Resource):
    """`describes` is (operation, parameter of ids, list in the answer), `deletes` the last two."""

    describes: ClassVar[tuple[str, str, str]]
    deletes: ClassVar[tuple[str, str]]
    named = ("", "")
    in_place: ClassVar[Mapping[str, Change]] = {"tags": retag}

    def create(self, aws: Session, inputs: Props) -> str:
        """What `apart` names is set as a change of it is."""
        id_ = super().create(aws, inputs)
        later = [self.in_place[name] for name in inputs if name in self.apart & set(self.in_place)]
        for way in dict.fromkeys(later):
            way(self, aws, id_, {}, inputs)
        return id_

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        operation, ids, items = self.describes
        found = self.call(aws, operation, **{ids: [id_]})[items]
        return only(found)

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = named(live, schema.outputs(self.token), self.renames)
        found["tags"] = plain(live.get("Tags") or []) or {}
        if "tags" not in inputs and not found["tags"]:
            del found["tags"]
        if "arn" not in found and self.kind:
            found["arn"] = self.arn(aws, f"{self.kind}/{id_}")
        return found

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        operation, id_parameter = self.deletes
        self.call(aws, operation, **{id_parameter: id_})
