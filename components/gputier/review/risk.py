"""What a risk is, and what every rule about one reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from gputier.review.preview import Change, Hidden, Preview, State, Value
from gputier.review.world import World

WARNING, NOTE = "warning", "note"


class Risk(NamedTuple):
    """What may go wrong: `text` for whoever carries the pager, `property` the path that causes it.
    `level` is warning or note."""

    rule: str
    urn: str
    property: str | None
    text: str
    level: str


class Rule(NamedTuple):
    """One thing that is looked for. `about` is a line of the documentation; `level` what it mostly
    is: a case that does less harm is a note."""

    id: str
    level: str
    about: str

    def at(self, urn: str, prop: str | None, text: str) -> Risk:
        """This rule's finding."""
        return Risk(self.id, urn, prop, text, self.level)

    def softly(self, urn: str, prop: str | None, text: str) -> Risk:
        """A finding of this rule that is only to be known."""
        return Risk(self.id, urn, prop, text, NOTE)


class Scene(NamedTuple):
    """A preview with both of its sides."""

    preview: Preview
    before: World
    after: World

    def changes(self, op: str, types: Iterable[str]) -> Iterator[Change]:
        """The steps of one kind on resources of these types."""
        wanted = frozenset(types)
        for change in self.preview.changes.values():
            if change.op == op and change.type in wanted:
                yield change

    def edited(self, types: Iterable[str]) -> Iterator[tuple[Change, State, State]]:
        """Resources that are there before and after and differ: (change, before, after). One that
        is replaced is among them: what it loses is lost all the same."""
        wanted = frozenset(types)
        for change in self.preview.changes.values():
            known = change.type in wanted and change.op in ("update", "replace")
            if known and change.before is not None and change.after is not None:
                yield change, change.before, change.after

    def arriving(self, types: Iterable[str]) -> Iterator[tuple[State | None, State]]:
        """Resources that are made or differ: (before, after). None before for what is made."""
        wanted = frozenset(types)
        for change in self.preview.changes.values():
            known = change.type in wanted and change.op in ("create", "update", "replace")
            if known and change.after is not None:
                yield change.before, change.after

    def goes(self, urn: str | None) -> bool:
        """Whether a resource, or a component that it is part of, is deleted."""
        while urn is not None:
            change = self.preview.changes.get(urn)
            if change is not None and change.op == "delete":
                return True
            urn = _parent(change, self.before, urn)
        return False


Finder = Callable[[Scene], Iterable[Risk]]

#: How people call a resource of a type; the last part of the token, in small words, otherwise.
NOUNS: Mapping[str, str] = {
    "aws:autoscaling/group:Group": "group",
    "gcp:compute/instanceGroupManager:InstanceGroupManager": "group",
    "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager": "group",
    "gcp:compute/autoscaler:Autoscaler": "autoscaler",
    "gcp:compute/regionAutoscaler:RegionAutoscaler": "autoscaler",
    "aws:ebs/volume:Volume": "volume",
    "aws:eks/nodeGroup:NodeGroup": "node group",
    "gcp:container/nodePool:NodePool": "node pool",
    "aws:efs/fileSystem:FileSystem": "file system",
    "aws:fsx/lustreFileSystem:LustreFileSystem": "file system",
    "aws:rds/instance:Instance": "database",
    "aws:rds/cluster:Cluster": "database cluster",
    "aws:rds/clusterInstance:ClusterInstance": "database",
    "gcp:sql/databaseInstance:DatabaseInstance": "database",
    "aws:s3/bucketV2:BucketV2": "bucket",
    "gcp:compute/regionDisk:RegionDisk": "disk",
    "gcp:compute/instanceTemplate:InstanceTemplate": "template",
    "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate": "template",
    "aws:ec2/launchTemplate:LaunchTemplate": "template",
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": "rule",
    "aws:ec2/securityGroupRule:SecurityGroupRule": "rule",
    "aws:cloudwatch/metricAlarm:MetricAlarm": "alarm",
    "gputier:aws:GpuFleet": "fleet",
    "gputier:gcp:GpuFleet": "fleet",
}


def called(state: State) -> str:
    """A resource in a sentence: "the group `chat-group`"."""
    last = state.type.rsplit(":", 1)[-1]
    words = "".join(f" {c.lower()}" if c.isupper() else c for c in last).strip()
    return f"the {NOUNS.get(state.type, words)} `{state.name}`"


def sentence(text: str) -> str:
    """With a capital."""
    return text[:1].upper() + text[1:]


def told(value: Value) -> bool:
    """Whether the preview shows it."""
    return not isinstance(value, Hidden)


def count(n: float | None, noun: str) -> str:
    """How many, in words: "1 machine", "4 machines", "an unknown number of machines"."""
    if n is None:
        return f"an unknown number of {noun}s"
    return f"{n:g} {noun}{'' if n == 1 else 's'}"


def listed(parts: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1]))) if parts else ""


def _parent(change: Change | None, world: World, urn: str) -> str | None:
    state = change.state if change is not None else world.states.get(urn)
    return None if state is None else state.parent
