"""What stops a fleet over its budget: workflows, what starts them, and who may do what on a topic
or on one machine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, cast

from tests.engine import schema
from tests.engine.gcp.identity import Member
from tests.engine.gcp.request import NOT_SENT, Form, Name, Translation
from tests.engine.gcp.resource import Resource
from tests.engine.gcp.services import Service
from tests.engine.gcp.session import Session
from tests.engine.provider import Refused
from tests.engine.wire import Props, is_unknown

# Cloud Workflows reference, userEnvVars (workflows v1 discovery): keys that are its own.
OWN_KEYS = ("GOOGLE", "WORKFLOWS")


class Workflow(Service):
    token = "gcp:workflows/workflow:Workflow"
    collection, kind = "workflows.projects.locations.workflows", "workflows"
    scope, masked, labelled = "region", True, "labels"
    named = ("name", "{}")
    apart = frozenset({"name", "namePrefix", "deletionProtection"})
    defaults = {"deletionProtection": True}
    chosen = frozenset({"description", "serviceAccount"})

    def around(self, gcp: Session) -> str:
        return f"projects/{gcp.project}/locations/{gcp.region}"

    def query(self, inputs: Props) -> Props:
        own = inputs.get("name")
        return {"workflowId": "workflow" if own is None or is_unknown(own) else own}

    def own_name(self, gcp: Session, inputs: Props, body: Props) -> str:
        return str(inputs["name"])

    def check(self, gcp: Session, inputs: Props) -> Iterator[schema.Problem]:
        yield from super().check(gcp, inputs)
        settings: Any = inputs.get("userEnvVars") or {}
        for key in () if is_unknown(settings) else settings:
            if key.startswith(OWN_KEYS):
                yield f"userEnvVars.{key}", "is one of the service's own"
        text = inputs.get("sourceContents")
        if isinstance(text, str) and text[:1] == "{":
            try:
                json.loads(text)
            except ValueError as error:
                yield "sourceContents", f"is no JSON: {error}"

    def made(self, gcp: Session, key: str, body: Props) -> None:
        _account_there(gcp, body)
        body |= {"state": "ACTIVE", "revisionId": "000001-a4d"}

    def describe(self, gcp: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = super().describe(gcp, id_, live, inputs)
        return {**found, "name": id_.rsplit("/", 1)[-1]}

    def delete(self, gcp: Session, id_: str, inputs: Props) -> None:
        if inputs.get("deletionProtection", True):
            raise Refused("deletionProtection", f"{id_} is protected from being deleted")
        super().delete(gcp, id_, inputs)


def _account_there(gcp: Session, body: Props) -> None:
    own = f"@{gcp.project}.iam.gserviceaccount.com"
    account = str(body.get("serviceAccount", "")).rsplit("/", 1)[-1]
    if account.endswith(own):
        gcp.api.get(f"iam/projects/{gcp.project}/serviceAccounts/{account}")


def _cloud_run(_translation: Translation, value: Any) -> Any:
    return {k: v for k, v in cast(Props, value).items() if v is not None}


class Trigger(Service):
    token = "gcp:eventarc/trigger:Trigger"
    collection, kind = "eventarc.projects.locations.triggers", "triggers"
    masked, labelled = True, "labels"
    named = ("name", "{}")
    apart = frozenset({"name", "location"})
    names: ClassVar[Mapping[str, Name]] = {
        "matchingCriterias": "eventFilters",
        "destination.cloudRunService": Form(
            "cloudRun", _cloud_run, lambda _translation, live, old: live and old
        ),
        # Google's own, whatever a program says.
        "transport.pubsub.subscription": NOT_SENT,
    }
    chosen = frozenset({"eventDataContentType", "transport", "retryPolicy"})

    def around(self, gcp: Session) -> str:
        where = gcp.inputs.get("location")
        found = gcp.region if where is None or is_unknown(where) else where
        return f"projects/{gcp.project}/locations/{found}"

    def query(self, inputs: Props) -> Props:
        own = inputs.get("name")
        return {"triggerId": "trigger" if own is None or is_unknown(own) else own}

    def request(self, gcp: Session, inputs: Props) -> Props:
        body = super().request(gcp, inputs)
        own = inputs.get("name")
        return body if own is None else {**body, "name": f"{self.around(gcp)}/triggers/{own}"}

    def own_name(self, gcp: Session, inputs: Props, body: Props) -> str:
        return str(inputs["name"])

    def patch(self, gcp: Session, key: str, body: Props) -> None:
        super().patch(gcp, key, {k: v for k, v in body.items() if k != "name"})

    def made(self, gcp: Session, key: str, body: Props) -> None:
        """What it reads, what it starts and whose name it does that in have to be there."""
        _account_there(gcp, body)
        workflow = body.get("destination", {}).get("workflow")
        if workflow:
            gcp.api.get(f"workflows/{workflow}")
        topic = body.get("transport", {}).get("pubsub", {}).get("topic")
        if topic:
            gcp.api.get(f"pubsub/{topic}")

    def describe(self, gcp: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = super().describe(gcp, id_, live, inputs)
        return {**found, "name": id_.rsplit("/", 1)[-1], "uid": "5c1f"}


class TopicMember(Member):
    token = "gcp:pubsub/topicIAMMember:TopicIAMMember"
    collection, on = "pubsub.projects.topics", "topics"

    def resource(self, gcp: Session, inputs: Props) -> str:
        topic = str(inputs["topic"])
        return topic if "/" in topic else f"projects/{gcp.project}/topics/{topic}"

    def there(self, gcp: Session, inputs: Props) -> None:
        gcp.api.get(f"pubsub/{self.resource(gcp, inputs)}")


class MachineMember(Member):
    token = "gcp:compute/instanceIAMMember:InstanceIAMMember"
    collection, on = "compute.instances", "instances"

    def target(self, gcp: Session, inputs: Props) -> Props:
        where = {"project": gcp.project, "zone": inputs.get("zone") or gcp.zone}
        return {**where, "resource": inputs["instanceName"]}

    def resource(self, gcp: Session, inputs: Props) -> str:
        at = self.target(gcp, inputs)
        return f"projects/{at['project']}/zones/{at['zone']}/instances/{at['resource']}"

    def there(self, gcp: Session, inputs: Props) -> None:
        gcp.api.get(f"compute/{self.resource(gcp, inputs)}")


TYPES: tuple[Resource, ...] = (Workflow(), Trigger(), TopicMember(), MachineMember())
