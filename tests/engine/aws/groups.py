"""Auto Scaling groups, and what hangs on them: lifecycle hooks, policies, schedules."""

from __future__ import annotations

from typing import Any

from tests.engine.aws import request
from tests.engine.aws.found import plain
from tests.engine.aws.resource import Resource, only, unseen
from tests.engine.aws.session import Session
from tests.engine.provider import Refused
from tests.engine.wire import Props, is_unknown

APART = frozenset(
    {
        "enabledMetrics",
        "forceDelete",
        "forceDeleteWarmPool",
        "ignoreFailedScalingActivities",
        "initialLifecycleHooks",
        "instanceRefresh",
        "metricsGranularity",
        "minElbCapacity",
        "namePrefix",
        "suspendedProcesses",
        "tags",
        "waitForCapacityTimeout",
        "waitForElbCapacity",
        "warmPool",
    }
)
RENAMES = {
    "name": "AutoScalingGroupName",
    "autoscalingGroupName": "AutoScalingGroupName",
    "vpcZoneIdentifiers": "VPCZoneIdentifier",
    "protectFromScaleIn": "NewInstancesProtectedFromScaleIn",
    "launchTemplate.id": "LaunchTemplateId",
    "launchTemplate.name": "LaunchTemplateName",
    # One name in three blocks of the mixed policy; `overrides` is a list in the API's singular.
    "mixedInstancesPolicy.launchTemplate.overrides.launchTemplateSpecification": (
        "LaunchTemplateSpecification"
    ),
}
# A change of what machines are started with makes a refresh, where one is declared.
TRIGGERS = ("launchTemplate", "launchConfiguration", "mixedInstancesPolicy")


class Group(Resource):
    token = "aws:autoscaling/group:Group"
    service, creates, answer = "autoscaling", "CreateAutoScalingGroup", "=name"
    renames = RENAMES
    apart = APART
    chosen = frozenset(
        [
            "desiredCapacity",
            "availabilityZones",
            "vpcZoneIdentifiers",
            "healthCheckType",
            "defaultCooldown",
            "launchTemplate",
            "mixedInstancesPolicy",
            "serviceLinkedRoleArn",
        ]
    )

    def check(self, aws: Session, inputs: Props) -> Any:
        yield from super().check(aws, inputs)
        if not {"vpcZoneIdentifiers", "availabilityZones"} & set(inputs):
            yield "vpcZoneIdentifiers", "ValidationError: a group needs subnets or zones"
        hooks = request.shape(self.service, "PutLifecycleHook")
        for index, hook in enumerate(inputs.get("initialLifecycleHooks", ())):
            made = self._hook({**hook, "autoscalingGroupName": inputs["name"]})
            for why in request.problems(made, hooks):
                yield f"initialLifecycleHooks[{index}]", why

    def _hook(self, hook: Props) -> Props:
        form = request.shape(self.service, "PutLifecycleHook")
        renames = {**RENAMES, "name": "LifecycleHookName"}
        return request.Translation("PutLifecycleHook", renames).structure(form, hook)

    def create(self, aws: Session, inputs: Props) -> str:
        name = super().create(aws, inputs)
        for hook in inputs.get("initialLifecycleHooks", ()):
            self.call(aws, "PutLifecycleHook", **self._hook({**hook, "autoscalingGroupName": name}))
        self._tags(aws, name, {}, inputs)
        self._processes(aws, name, {}, inputs)
        self._metrics(aws, name, {}, inputs)
        if pool := inputs.get("warmPool"):
            form = request.shape(self.service, "PutWarmPool")
            made = request.Translation("PutWarmPool", {}).structure(form, pool)
            self.call(aws, "PutWarmPool", AutoScalingGroupName=name, **made)
        return name

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        found = self.call(aws, "DescribeAutoScalingGroups", AutoScalingGroupNames=[id_])
        return only(found["AutoScalingGroups"])

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = super().describe(aws, id_, live, inputs)
        found["arn"], found["name"] = live["AutoScalingGroupARN"], id_
        found["vpcZoneIdentifiers"] = [z for z in live.get("VPCZoneIdentifier", "").split(",") if z]
        suspended = [p["ProcessName"] for p in live.get("SuspendedProcesses", ())]
        metrics = [m["Metric"] for m in live.get("EnabledMetrics", ())]
        found["suspendedProcesses"], found["enabledMetrics"] = suspended, metrics
        found["tags"] = [
            {"key": t["Key"], "value": t["Value"], "propagateAtLaunch": t["PropagateAtLaunch"]}
            for t in live.get("Tags", ())
        ]
        if template := live.get("LaunchTemplate"):
            found["launchTemplate"] = _template(template)
        return found

    def _resize(self, aws: Session, id_: str, olds: Props, news: Props) -> None:
        """Only what changed goes into the update: a desired size that scaling set is left alone."""
        form = request.shape(self.service, "UpdateAutoScalingGroup")
        changed = {
            name: value
            for name, value in news.items()
            if value != olds.get(name) and name not in APART and name != "region"
        }
        translation = request.Translation("UpdateAutoScalingGroup", RENAMES)
        made = translation.structure(form, {**changed, "name": id_})
        self.call(aws, "UpdateAutoScalingGroup", **made)
        refresh: Props = news.get("instanceRefresh") or {}
        triggers: list[str] = [*TRIGGERS, *refresh.get("triggers", ())]
        if refresh and any(olds.get(name) != news.get(name) for name in triggers):
            # moto starts no refresh: that one was asked for, and how, is kept beside its state.
            aws.kept("instance-refresh")[id_] = refresh

    def _tags(self, aws: Session, id_: str, olds: Props, news: Props) -> None:
        old, new = ({t["key"]: t for t in side.get("tags") or ()} for side in (olds, news))
        where = {"ResourceId": id_, "ResourceType": "auto-scaling-group"}
        if gone := [{**where, "Key": key} for key in old.keys() - new.keys()]:
            self.call(aws, "DeleteTags", Tags=gone)
        if new:
            tags = [
                {
                    **where,
                    "Key": k,
                    "Value": t["value"],
                    "PropagateAtLaunch": t["propagateAtLaunch"],
                }
                for k, t in new.items()
            ]
            self.call(aws, "CreateOrUpdateTags", Tags=tags)

    def _processes(self, aws: Session, id_: str, olds: Props, news: Props) -> None:
        old, new = (set(side.get("suspendedProcesses") or ()) for side in (olds, news))
        for operation, names in (("SuspendProcesses", new - old), ("ResumeProcesses", old - new)):
            if names:
                arguments = {"AutoScalingGroupName": id_, "ScalingProcesses": sorted(names)}
                self.call(aws, operation, **arguments)

    def _metrics(self, aws: Session, id_: str, _olds: Props, news: Props) -> None:
        if metrics := news.get("enabledMetrics"):
            granularity = news.get("metricsGranularity", "1Minute")
            arguments = {"AutoScalingGroupName": id_, "Granularity": granularity}
            self.call(aws, "EnableMetricsCollection", **arguments, Metrics=metrics)

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        """Without `forceDelete` the provider empties the group first, and then deletes it."""
        if not inputs.get("forceDelete"):
            empty = {"MinSize": 0, "MaxSize": 0, "DesiredCapacity": 0}
            self.call(aws, "UpdateAutoScalingGroup", AutoScalingGroupName=id_, **empty)
        self.call(aws, "DeleteAutoScalingGroup", AutoScalingGroupName=id_, ForceDelete=True)

    in_place = {
        "tags": _tags,
        "suspendedProcesses": _processes,
        "enabledMetrics": _metrics,
        "instanceRefresh": unseen,
        **dict.fromkeys(
            [
                "minSize",
                "maxSize",
                "desiredCapacity",
                "launchTemplate",
                "mixedInstancesPolicy",
                "vpcZoneIdentifiers",
                "healthCheckType",
                "healthCheckGracePeriod",
                "defaultCooldown",
                "defaultInstanceWarmup",
                "terminationPolicies",
                "placementGroup",
                "maxInstanceLifetime",
                "capacityRebalance",
                "protectFromScaleIn",
                "instanceMaintenancePolicy",
                "serviceLinkedRoleArn",
                "context",
            ],
            _resize,
        ),
    }


def _template(live: Props) -> Props:
    names = {"LaunchTemplateId": "id", "LaunchTemplateName": "name", "Version": "version"}
    return {name: live[member] for member, name in names.items() if live.get(member)}


class OfGroup(Resource):
    """What belongs to a group that has to exist; moto takes some of it without."""

    service = "autoscaling"
    again = True

    def create(self, aws: Session, inputs: Props) -> str:
        name = inputs["autoscalingGroupName"]
        groups = self.call(aws, "DescribeAutoScalingGroups", AutoScalingGroupNames=[name])
        if not groups["AutoScalingGroups"]:
            raise Refused("autoscalingGroupName", f"ValidationError: no group named {name}")
        return super().create(aws, inputs)


class LifecycleHook(OfGroup):
    token = "aws:autoscaling/lifecycleHook:LifecycleHook"
    creates, answer = "PutLifecycleHook", "=name"
    renames = {**RENAMES, "name": "LifecycleHookName", "roleArn": "RoleARN"}
    chosen = frozenset({"defaultResult"})

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        where = {"AutoScalingGroupName": inputs["autoscalingGroupName"]}
        found = self.call(aws, "DescribeLifecycleHooks", **where, LifecycleHookNames=[id_])
        return only(found["LifecycleHooks"])

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        where = {"AutoScalingGroupName": inputs["autoscalingGroupName"]}
        self.call(aws, "DeleteLifecycleHook", **where, LifecycleHookName=id_)


class Policy(OfGroup):
    token = "aws:autoscaling/policy:Policy"
    creates, answer = "PutScalingPolicy", "=name"
    renames = {
        **RENAMES,
        "name": "PolicyName",
        "targetTrackingConfiguration.customizedMetricSpecification.metricDimensions": "Dimensions",
    }
    chosen = frozenset({"metricAggregationType"})

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        where = {"AutoScalingGroupName": inputs["autoscalingGroupName"]}
        found = self.call(aws, "DescribePolicies", **where, PolicyNames=[id_])
        return only(found["ScalingPolicies"])

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        return {**super().describe(aws, id_, live, inputs), "arn": live["PolicyARN"]}

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        where = {"AutoScalingGroupName": inputs["autoscalingGroupName"]}
        self.call(aws, "DeletePolicy", **where, PolicyName=id_)


class Schedule(OfGroup):
    token = "aws:autoscaling/schedule:Schedule"
    creates, answer = "PutScheduledUpdateGroupAction", "=scheduledActionName"
    renames = RENAMES
    named = ("", "")
    chosen = frozenset({"startTime", "endTime", "timeZone", "recurrence"})

    def request(self, aws: Session, inputs: Props) -> Props:
        """A size that is left out is 0 and -1 leaves it alone: the provider's own reading."""
        sizes = ("minSize", "maxSize", "desiredCapacity")
        full = {**dict.fromkeys(sizes, 0), **inputs}
        return super().request(aws, {k: v for k, v in full.items() if k not in sizes or v != -1})

    def check(self, aws: Session, inputs: Props) -> Any:
        yield from super().check(aws, inputs)
        if not {"recurrence", "startTime"} & set(inputs):
            yield "recurrence", "ValidationError: an action needs a recurrence or a start time"
        cron = inputs.get("recurrence", UNSET)
        if not is_unknown(cron) and cron != UNSET and len(cron.split()) != 5:
            yield "recurrence", f"ValidationError: {cron!r} is no cron expression of five fields"

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        where = {"AutoScalingGroupName": inputs["autoscalingGroupName"]}
        found = self.call(aws, "DescribeScheduledActions", **where, ScheduledActionNames=[id_])
        return only(found["ScheduledUpdateGroupActions"])

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = super().describe(aws, id_, live, inputs)
        # A time in another spelling is the same time; what was declared is as good.
        times = {k: v for k, v in inputs.items() if k in ("startTime", "endTime")}
        sizes = {k: -1 for k in ("minSize", "maxSize", "desiredCapacity") if inputs.get(k) == -1}
        where = f"{inputs.get('autoscalingGroupName')}:scheduledActionName/{id_}"
        arn = self.arn(aws, f"scheduledUpdateGroupAction:autoScalingGroupName/{where}")
        return plain({**found, **times, **sizes, "arn": live.get("ScheduledActionARN", arn)})

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        where = {"AutoScalingGroupName": inputs["autoscalingGroupName"]}
        self.call(aws, "DeleteScheduledAction", **where, ScheduledActionName=id_)


UNSET = ""

TYPES: tuple[Resource, ...] = (Group(), LifecycleHook(), Policy(), Schedule())
