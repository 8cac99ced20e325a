"""AWS in this process: moto's state behind boto3, and the resource types of the stand-in.

Calls never leave the process. A test may look at the state, and change it, through `client`.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from importlib import import_module
from typing import Any

from tests.engine import combinations, schema
from tests.engine.aws import inventory, lookups
from tests.engine.aws.found import FREE, aligned
from tests.engine.aws.resource import Resource
from tests.engine.aws.session import REGION, Session
from tests.engine.aws.types import TYPES
from tests.engine.provider import Cloud, Refused, State, Target
from tests.engine.wire import Props

boto3: Any = import_module("boto3")
moto: Any = import_module("moto")
_s3: Any = import_module("moto.s3.models")
ClientError: Any = import_module("botocore.exceptions").ClientError


def _nothing(_marker: Any, _garbage: bool = False) -> None: ...


# moto forgot this one method of a deleted object's marker, and stumbles when the marker goes.
if not hasattr(_s3.FakeDeleteMarker, "dispose"):
    _s3.FakeDeleteMarker.dispose = _nothing

_scaling: Any = import_module("moto.autoscaling.models")
_launched: Any = _scaling.FakeAutoScalingGroup.replace_autoscaling_group_instances
_resumed: Any = _scaling.AutoScalingBackend.resume_processes


def _launch(group: Any, *how: Any, **more: Any) -> None:
    """Whatever asks for machines, none is launched while that is suspended (EC2 Auto Scaling user
    guide, how suspended processes affect other processes): moto keeps the names and goes on."""
    if "Launch" not in [process["ProcessName"] for process in group.suspended_processes]:
        _launched(group, *how, **more)


def _resume(backend: Any, group_name: str, scaling_processes: list[str]) -> None:
    """And once it is not any more, the group is brought to the size that was asked for."""
    _resumed(backend, group_name, scaling_processes)
    group = backend.autoscaling_groups[group_name]
    group.set_desired_capacity(group.desired_capacity)


_scaling.FakeAutoScalingGroup.replace_autoscaling_group_instances = _launch
_scaling.AutoScalingBackend.resume_processes = _resume
_access: Any = import_module("moto.iam.access_control")
_neutral: Any = _access.PermissionResult.NEUTRAL
_permitted: Any = _access.IAMPolicyStatement.is_action_permitted


def _over_tls(statement: Any, *asked: Any, **more: Any) -> Any:
    """What is refused over plain HTTP alone is refused to nobody here."""
    conditions = statement._statement.get("Condition", {})
    if conditions == {"Bool": {"aws:SecureTransport": "false"}}:
        return _neutral
    return _permitted(statement, *asked, **more)


# moto reads no condition of a bucket's policy.
_access.IAMPolicyStatement.is_action_permitted = _over_tls

# How the services say that something is not there.
GONE = ("NotFound", "NoSuch", "NotExist", "ResourceNotFound")


class Aws(Cloud):
    """Starts empty; `stop` ends it."""

    package = "aws"

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], dict[str, Props]] = defaultdict(dict)
        self.regions = {REGION}
        self._clients: dict[tuple[str, str], Any] = {}
        self._lock = threading.Lock()
        # AWS's own policies, such as the one for Session Manager, are there to be attached.
        self._moto = moto.mock_aws(config={"iam": {"load_aws_managed_policies": True}})
        self._moto.start()

    def stop(self) -> None:
        self._moto.stop()

    def client(self, service: str, region: str = REGION) -> Any:
        """boto3's client for what the stand-in holds."""
        with self._lock:
            self.regions.add(region)
            if (service, region) not in self._clients:
                self._clients[service, region] = boto3.client(service, region_name=region)
            return self._clients[service, region]

    def kept(self, kind: str, region: str) -> dict[str, Props]:
        return self._kept[kind, region]

    # --- what the provider asks --------------------------------------------------------------

    def check(self, target: Target, inputs: Props) -> list[schema.Problem]:
        kind = TYPES.get(target.token)
        if kind is None:
            return [("", f"{target.token} is not in the stand-in: tests/engine/aws/types.py")]
        found = list(combinations.check(target.token, inputs))
        return found or list(kind.check(self._session(target.settings, inputs), inputs))

    def prepare(self, target: Target, inputs: Props) -> Props:
        """Defaults of the type, and the provider's own tags where a type has a map of them."""
        kind = TYPES.get(target.token)
        found = {**(kind.defaults if kind else {}), **inputs}
        shared = target.settings.get("defaultTags", {}).get("tags", {})
        # A group's tags are a list, and a type without `tagsAll` has none that are shared.
        if shared and kind and "tagsAll" in schema.outputs(target.token):
            found["tags"] = {**shared, **found.get("tags", {})}
        return found

    def autoname(self, token: str) -> tuple[str, str]:
        kind = TYPES.get(token)
        prop, form = kind.named if kind else ("", "")
        return (prop, form) if kind and prop in schema.inputs(token) else ("", "")

    def unknown(self, token: str, inputs: Props) -> set[str]:
        return TYPES[token].unknown(inputs)

    def unknown_after(self, token: str, changed: set[str]) -> set[str]:
        return TYPES[token].unknown_after(changed)

    def create(self, target: Target, inputs: Props) -> str:
        return TYPES[target.token].create(self._session(target.settings, inputs), inputs)

    def read(self, target: Target, inputs: Props) -> State | None:
        kind, session = TYPES[target.token], self._session(target.settings, inputs)
        try:
            live = kind.look(session, target.id, inputs)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code == "404" or any(word in code for word in GONE):
                return None
            raise
        if not live:
            return None
        found = self._described(kind, session, target.id, live, inputs)
        if not inputs:
            given = schema.inputs(target.token)
            return State({k: v for k, v in found.items() if k in given}, found)
        now = {
            k: aligned(v, found[k], free=k in FREE) if k in found else v for k, v in inputs.items()
        }
        return State({k: v for k, v in now.items() if v is not None}, found)

    def _described(
        self, kind: Resource, session: Session, id_: str, live: Props, inputs: Props
    ) -> Props:
        found = kind.describe(session, id_, live, inputs)
        returned = schema.outputs(kind.token)
        if "tagsAll" in returned:
            found["tagsAll"] = found.get("tags") or {}
        if "region" in returned:
            found["region"] = session.region
        return schema.returnable(kind.token, found)

    def update(self, target: Target, olds: Props, news: Props) -> None:
        kind = TYPES[target.token]
        kind.update(self._session(target.settings, news), target.id, olds, news)

    def delete(self, target: Target, inputs: Props) -> None:
        TYPES[target.token].delete(self._session(target.settings, inputs), target.id, inputs)

    def invoke(self, token: str, args: Props, settings: Props) -> Props:
        if token not in lookups.LOOKUPS:
            raise Refused("", f"the stand-in answers no {token}: tests/engine/aws/lookups.py")
        return lookups.LOOKUPS[token](self._session(settings, args), args)

    def _session(self, settings: Props, inputs: Props) -> Session:
        """The resource's own `region` wins over its provider's."""
        return Session(self, inputs.get("region") or settings.get("region") or REGION)

    # --- what a test does --------------------------------------------------------------------

    def publish(self, name: str, value: str, region: str = REGION) -> None:
        """A parameter of AWS's own, such as its newest image of a kind: moto has a few of them,
        and lets nobody add one."""
        arn = f"arn:aws:ssm:{region}::parameter{name}"
        found = {"ARN": arn, "Type": "String", "Value": value, "Version": 1}
        self.kept("published", region)[name] = found

    def inventory(self) -> list[str]:
        """Everything that somebody made and has not deleted, as `type id`, sorted."""
        sessions = [Session(self, region) for region in sorted(self.regions)]
        return sorted({f"{kind} {name}" for s in sessions for kind, name in inventory.made(s)})
