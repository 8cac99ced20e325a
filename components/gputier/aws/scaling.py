"""What makes a fleet larger and smaller: a figure it is kept at, and the clock."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import pulumi
import pulumi_aws as aws

from gputier.aws.identity import RoleParts, allow, document, role_of
from gputier.aws.place import Place, account_of
from gputier.plan.actions import START, Action, Sizes
from gputier.plan.identity import Statement
from gputier.plan.metrics import GROUP, Metric
from gputier.plan.scaling import ScalingPlan, Tracking

_MOMENT = "%Y-%m-%dT%H:%M:%SZ"


def ahead(actions: Iterable[Action], now: datetime | None = None) -> tuple[Action, ...]:
    """The actions that can still be told: a moment that has passed is refused by AWS, and what it
    asked for has happened."""
    moment = (now or datetime.now(UTC)).strftime(_MOMENT)
    return tuple(action for action in actions if action.at is None or action.at > moment)


def begins_with(plan: ScalingPlan, now: datetime | None = None) -> Sizes:
    """What a group is made with: no machine that must be there before it may be. Of moments that
    have passed the last one counts."""
    left = ahead(plan.actions, now)
    passed = [action for action in plan.actions if action not in left]
    last = max(passed, key=lambda action: action.at or "", default=None)
    desired = plan.desired if last is None else last.desired
    return Sizes(min(plan.min, desired), plan.max, desired)


class Scaling(pulumi.ComponentResource):
    """Target tracking and scheduled actions of a group."""

    def __init__(
        self,
        place: Place,
        plan: ScalingPlan,
        *,
        group: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gputier:aws:Scaling", place.name, None, opts)
        self._place, self._group = place, group
        if plan.tracking is not None:
            self._track(plan.tracking)
        for action in ahead(plan.actions):
            self._schedule(action)
        self.register_outputs({})

    def _track(self, plan: Tracking) -> None:
        metric = plan.metric
        aws.autoscaling.Policy(
            self._place.logical("tracking"),
            name=f"{self._place.names.of('group')}-{metric.key}",
            autoscaling_group_name=self._group,
            policy_type="TargetTrackingScaling",
            estimated_instance_warmup=plan.warmup_seconds,
            target_tracking_configuration={
                "target_value": plan.target,
                "customized_metric_specification": {
                    "namespace": metric.namespace,
                    "metric_name": metric.name,
                    "statistic": metric.statistic,
                    "period": metric.period_seconds,
                    "metric_dimensions": list(self._dimensions(metric)),
                },
            },
            region=self._place.region,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _dimensions(
        self, metric: Metric
    ) -> Iterator[
        aws.autoscaling.PolicyTargetTrackingConfigurationCustomizedMetricSpecificationMetricDimensionArgsDict
    ]:
        for name, value in metric.dimensions:
            yield {"name": name, "value": self._group if value == GROUP else value}

    def _schedule(self, action: Action) -> None:
        aws.autoscaling.Schedule(
            self._place.logical(action.key),
            scheduled_action_name=action.key,
            autoscaling_group_name=self._group,
            min_size=action.least,
            max_size=action.most,
            desired_capacity=action.desired,
            recurrence=action.recurrence,
            start_time=action.at,
            # A zone is for what recurs: a moment is in UTC.
            time_zone=action.timezone if action.recurrence else None,
            region=self._place.region,
            opts=pulumi.ResourceOptions(parent=self),
        )


class Hours(pulumi.ComponentResource):
    """The hours of a lone machine: EventBridge Scheduler starts and stops it, with a role that may
    do that to this machine and nothing else. Where the machine `stops` over its budget there is a
    policy too that keeps the role from starting it while it is attached; nothing here attaches it,
    or takes it off."""

    role: aws.iam.Role | None = None
    halt: aws.iam.Policy | None = None

    def __init__(
        self,
        place: Place,
        plan: ScalingPlan,
        *,
        machine: aws.ec2.Instance,
        stops: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gputier:aws:Hours", place.name, None, opts)
        self._place, self._machine = place, machine
        actions = ahead(plan.actions)
        if actions:
            self.halt = self._halt() if stops else None
            role = self.role = self._role()
            for action in actions:
                for word, expression in timed(action):
                    self._schedule((word, expression), action, role)
        self.register_outputs({})

    def _role(self) -> aws.iam.Role:
        place = self._place
        # A policy that is attached cannot be deleted: the role goes first, and lets go of it.
        first = [self.halt] if self.halt else []
        made = role_of(RoleParts(place, "hours", None, "scheduler"), None, self, first)
        values = {"machine": self._machine.arn}
        allow(place.logical("hours"), made, document((HOURS,), values), self)
        return made

    def _halt(self) -> aws.iam.Policy:
        place = self._place
        return aws.iam.Policy(
            place.logical("halt"),
            policy=self._machine.arn.apply(halting),
            tags=place.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _schedule(self, when: tuple[str, str], action: Action, role: aws.iam.Role) -> None:
        word, expression = when
        call = "startInstances" if action.what == START else "stopInstances"
        partition = account_of(self).partition
        aws.scheduler.Schedule(
            self._place.logical(word),
            name=f"{self._place.names.of('group')[: 64 - len(word) - 1]}-{word}",
            schedule_expression=expression,
            schedule_expression_timezone=action.timezone,
            flexible_time_window={"mode": "OFF"},
            target={
                "arn": partition.apply(lambda p: f"arn:{p}:scheduler:::aws-sdk:ec2:{call}"),
                "role_arn": role.arn,
                "input": self._machine.id.apply(lambda id_: json.dumps({"InstanceIds": [id_]})),
            },
            region=self._place.region,
            opts=pulumi.ResourceOptions(parent=self),
        )


HOURS = Statement(
    "KeepHours",
    ("ec2:StartInstances", "ec2:StopInstances"),
    ("{machine}",),
    (),
    "start and stop the machine by its schedule",
)


def halting(machine: str) -> str:
    """A policy that starts no machine, whatever else allows it."""
    denied = {
        "Sid": "OverBudget",
        "Effect": "Deny",
        "Action": "ec2:StartInstances",
        "Resource": machine,
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [denied]})


def timed(action: Action) -> Iterator[tuple[str, str]]:
    """A word and an expression for each schedule that an action takes. Two of them differ in what
    they go by: days of the month, or of the week."""
    if action.at is not None:
        yield action.key, f"at({action.at.removesuffix('Z')})"
    for expression in action.expressions:
        by_week = expression.split()[2] == "?"
        several = len(action.expressions) > 1
        yield (f"{action.key}-weekdays" if several and by_week else action.key), expression
