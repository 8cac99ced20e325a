"""What stops a workload whose budget is spent: a topic that budgets alone may tell, and a workflow
that each message starts (docs/adr/0016-what-stops-a-fleet-over-budget.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pulumi
import pulumi_gcp as gcp

from gputier.gcp import stop_workflow
from gputier.gcp.place import Place, project_of
from gputier.plan.identity_gcp import role_id

#: Who tells a topic what a budget has seen. It is the same account for everybody, which is why a
#: message has to name our budget (docs.cloud.google.com/billing, programmatic notifications, 2025;
#: the address as public Terraform modules grant it, 2026-08).
BUDGETS = "serviceAccount:billing-budget-alert@system.gserviceaccount.com"
PUBLISHES, INVOKES, LOGS = (
    "roles/pubsub.publisher",
    "roles/workflows.invoker",
    "roles/logging.logWriter",
)
#: What the calls of a workflow need, and that it waits for them (iam-dataset@2073fa52a, map.json of
#: 2026-08-22). Conditions know no group and no autoscaler by its name (docs.cloud.google.com/iam,
#: conditions-resource-attributes: Instance is among the types, InstanceGroupManager is not), so
#: these are of the project, as a node's own are.
GROUP = ("compute.instanceGroupManagers.get", "compute.instanceGroupManagers.update")
AUTOSCALER = ("compute.autoscalers.get", "compute.autoscalers.update")
ZONE, REGION = "compute.zoneOperations.get", "compute.regionOperations.get"
#: A lone machine has a policy of its own, and these are on it alone.
MACHINE = (
    "compute.instances.get",
    "compute.instances.removeResourcePolicies",
    "compute.instances.stop",
)
RUNS = "workflows.googleapis.com"
ONCE_A_DAY = "86400s"


class Target(NamedTuple):
    """What is stopped: the workflow's text and environment, what its account may do in the project,
    and the lone machine on which it may do more."""

    source: str
    settings: Mapping[str, pulumi.Input[str]]
    rights: tuple[str, ...]
    machine: gcp.compute.Instance | None = None


def a_group(place: Place, zone: str | None, *, scaled: bool) -> Target:
    """A group in one zone or in the fleet's region, with its autoscaler where it has one."""
    settings: dict[str, pulumi.Input[str]] = {
        "NAME": place.names.of("group"),
        "WHERE": zone or place.region,
    }
    rights = (*GROUP, ZONE if zone else REGION)
    if scaled:
        settings["AUTOSCALER"] = place.names.of("autoscaler")
        rights = (*AUTOSCALER, *rights)
    return Target(stop_workflow.group_source(scaled=scaled, regional=not zone), settings, rights)


def a_machine(zone: str, machine: gcp.compute.Instance) -> Target:
    """A lone machine, and the schedule that would start it again."""
    settings: dict[str, pulumi.Input[str]] = {"NAME": machine.name, "WHERE": zone}
    return Target(stop_workflow.machine_source(), settings, (ZONE,), machine)


class Topic(pulumi.ComponentResource):
    """What the budget tells. It is there before the budget, which cannot be made without."""

    id: pulumi.Output[str]

    def __init__(self, place: Place, *, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("gputier:gcp:StopTopic", place.name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        topic = gcp.pubsub.Topic(
            place.logical("stop"), name=place.names.of("stop"), labels=place.labels, opts=child
        )
        allowed = gcp.pubsub.TopicIAMMember(
            place.logical("stop"), topic=topic.name, role=PUBLISHES, member=BUDGETS, opts=child
        )
        # Whoever has its id has a topic that is told.
        both = pulumi.Output.all(topic.id, allowed.id)
        self.id = both.apply(lambda known: str(known[0]))
        self.register_outputs({"id": self.id})


class Stop(pulumi.ComponentResource):
    """The workflow, its account, and what people are told of it on `channels`. `topic` is what the
    `budget` tells."""

    def __init__(
        self,
        place: Place,
        target: Target,
        budget: gcp.billing.Budget,
        topic: Topic,
        *,
        channels: tuple[pulumi.Input[str], ...] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gputier:gcp:Stop", place.name, None, opts)
        self._place, self._target, self._channels = place, target, channels
        self._name, self._project = place.names.of("stop"), project_of(self)
        self._child = pulumi.ResourceOptions(parent=self)
        account = gcp.serviceaccount.Account(
            place.logical("stop"),
            account_id=self._name,
            display_name=f"stops {place.names.of('group')} over its budget",
            opts=self._child,
        )
        rights = self._allow(pulumi.Output.concat("serviceAccount:", account.email))
        workflow = self._workflow(account, budget, rights)
        self._called(topic, workflow, account)
        self._tell()
        self.register_outputs({})

    def _allow(self, member: pulumi.Output[str]) -> list[pulumi.Resource]:
        target = self._target
        found = [
            self._in_project("stop", member, self._role("stop", target.rights)),
            self._in_project("stop-start", member, INVOKES),
            self._in_project("stop-log", member, LOGS),
        ]
        if target.machine is None:
            return found
        on_machine = gcp.compute.InstanceIAMMember(
            self._place.logical("stop"),
            instance_name=target.machine.name,
            zone=target.machine.zone,
            role=self._role("halt", MACHINE),
            member=member,
            opts=self._child,
        )
        return [*found, on_machine]

    def _in_project(
        self, word: str, member: pulumi.Output[str], role: pulumi.Input[str]
    ) -> pulumi.Resource:
        return gcp.projects.IAMMember(
            self._place.logical(word),
            project=self._project.id,
            role=role,
            member=member,
            opts=self._child,
        )

    def _role(self, word: str, permissions: tuple[str, ...]) -> pulumi.Output[str]:
        return gcp.projects.IAMCustomRole(
            self._place.logical(word),
            role_id=role_id(f"{self._place.names.of('service-account')}-{word}"),
            title=f"{word} {self._place.names.of('group')}",
            description="stop a workload over its budget",
            permissions=list(permissions),
            opts=self._child,
        ).name

    def _workflow(
        self,
        account: gcp.serviceaccount.Account,
        budget: gcp.billing.Budget,
        rights: list[pulumi.Resource],
    ) -> gcp.workflows.Workflow:
        return gcp.workflows.Workflow(
            self._place.logical("stop"),
            name=self._name,
            region=self._place.region,
            description="Stops a workload whose budget is spent",
            service_account=account.email,
            source_contents=self._target.source,
            user_env_vars={
                "PROJECT": self._project.id,
                # What messages call it is the last part of its resource name.
                "BUDGET": budget.id.apply(lambda name: name.rsplit("/", 1)[-1]),
                "BILLING_ACCOUNT": budget.billing_account,
                **self._target.settings,
            },
            labels=self._place.labels,
            # Else the provider keeps it from being deleted with its stack.
            deletion_protection=False,
            opts=pulumi.ResourceOptions(parent=self, depends_on=rights),
        )

    def _called(
        self, topic: Topic, workflow: gcp.workflows.Workflow, account: gcp.serviceaccount.Account
    ) -> None:
        gcp.eventarc.Trigger(
            self._place.logical("stop"),
            name=self._name,
            location=self._place.region,
            matching_criterias=[
                {"attribute": "type", "value": "google.cloud.pubsub.topic.v1.messagePublished"}
            ],
            destination={"workflow": workflow.id},
            transport={"pubsub": {"topic": topic.id}},
            service_account=account.email,
            labels=self._place.labels,
            opts=self._child,
        )

    def _tell(self) -> None:
        """A workload that was stopped is worth a word, and one that could not be a louder one. What
        fails is tried again with the budget's next message, some of which come every day."""
        own = f'resource.type="{RUNS}/Workflow" AND resource.labels.workflow_id="{self._name}"'
        self._alert(
            "stopped",
            "The workload was stopped over its budget",
            "more was spent this month than is declared: the runbook over-budget says what was done"
            " and how it is resumed",
            {"condition_matched_log": {"filter": f"{own} AND severity={stop_workflow.SEVERITY}"}},
            # A condition over log entries wants a limit of how often it tells.
            {"notification_rate_limit": {"period": ONCE_A_DAY}},
        )
        failed = f'metric.type="{RUNS}/finished_execution_count" AND metric.labels.status="FAILED"'
        self._alert(
            "not-stopped",
            "The workload is not stopped, though its budget is spent",
            "what stops it failed: its executions say why; stop it by hand, as the runbook drain"
            " says",
            {
                "condition_threshold": {
                    "filter": f"{own} AND {failed}",
                    "comparison": "COMPARISON_GT",
                    "threshold_value": 0,
                    "duration": "0s",
                    "aggregations": [
                        {"alignment_period": "300s", "per_series_aligner": "ALIGN_DELTA"}
                    ],
                }
            },
            None,
        )

    def _alert(
        self, word: str, title: str, why: str, condition: dict[str, Any], strategy: Any
    ) -> None:
        place = self._place
        whole: Any = {"display_name": title, **condition}
        gcp.monitoring.AlertPolicy(
            place.logical(word),
            display_name=f"{place.names.of('alarm')}: {title}",
            combiner="OR",
            conditions=[whole],
            alert_strategy=strategy,
            documentation={"content": why, "mime_type": "text/markdown"},
            notification_channels=list(self._channels),
            user_labels=place.labels,
            opts=self._child,
        )
