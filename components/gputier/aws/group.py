"""A group of machines: Auto Scaling starts them, and a launch hook holds each until it has proved
itself."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from gputier.aws import image
from gputier.aws.machine import Parts, template
from gputier.aws.place import Place
from gputier.aws.scaling import begins_with
from gputier.plan import Chosen
from gputier.plan.fleet import RefreshPlan

LAUNCHING = "autoscaling:EC2_INSTANCE_LAUNCHING"
#: A node that says nothing never comes in.
SAYS_NOTHING = "ABANDON"
#: Seconds after joining in which a failed status check is passed over. It counts from the end of
#: the hook, when the node has proved itself (EC2 Auto Scaling user guide, lifecycle hooks): a few
#: minutes for the status checks to settle are enough. Ours.
GRACE_SECONDS = 300
#: What somebody else sets: the breaker suspends launches, and a runbook resumes them.
OTHERS = ("suspendedProcesses",)


class Group(pulumi.ComponentResource):
    """The launch template, the group and its hook.

    A change of the template makes a new version. Running machines keep theirs, unless the plan says
    `rolling`: then an instance refresh replaces them, and goes back by itself when the new ones
    fail.
    """

    name: pulumi.Output[str]

    def __init__(
        self,
        place: Place,
        chosen: Chosen,
        parts: Parts,
        *,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gputier:aws:Group", place.name, None, opts)
        self._place, self._chosen, self._parts = place, chosen, parts
        ignored = image.kept(chosen.boot.image, "imageId")
        self._template = template(place, chosen, parts, self, ignored)
        group = self._group()
        self.name = group.name
        if parts.hook_seconds is not None:
            # Of its own beside the one at creation, which holds the first machines: that one is
            # never looked at again, and this one can be edited.
            aws.autoscaling.LifecycleHook(
                place.logical("hook"),
                name=place.names.of("hook"),
                autoscaling_group_name=group.name,
                lifecycle_transition=LAUNCHING,
                default_result=SAYS_NOTHING,
                heartbeat_timeout=parts.hook_seconds,
                region=place.region,
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.register_outputs({"name": self.name})

    def _group(self) -> aws.autoscaling.Group:
        place, chosen, fleet = self._place, self._chosen, self._chosen.fleet
        sizes, tracking = begins_with(chosen.scaling), chosen.scaling.tracking
        spot = fleet.spot_allocation is not None
        return aws.autoscaling.Group(
            place.logical("group"),
            name=place.names.of("group"),
            min_size=sizes.least,
            max_size=sizes.most,
            desired_capacity=sizes.desired,
            vpc_zone_identifiers=list(self._parts.stand.subnet_ids),
            launch_template=None if spot else self._concrete(),
            mixed_instances_policy=self._mixed() if spot else None,
            capacity_rebalance=fleet.capacity_rebalance,
            placement_group=self._placement(),
            health_check_type="EC2",
            health_check_grace_period=GRACE_SECONDS,
            default_instance_warmup=tracking.warmup_seconds if tracking else None,
            instance_refresh=_refresh(fleet.refresh),
            initial_lifecycle_hooks=self._first_hooks(),
            enabled_metrics=[aws.autoscaling.Metric(m) for m in chosen.monitoring.group_metrics],
            metrics_granularity="1Minute",
            # A boot outlasts any patience of a deployment; the gate and the alarms tell.
            wait_for_capacity_timeout="0",
            # Emptying first would wait for machines that a hook holds, or that hang.
            force_delete=True,
            tags=[
                {"key": key, "value": value, "propagate_at_launch": True}
                for key, value in sorted(place.tags.items())
            ],
            region=place.region,
            opts=pulumi.ResourceOptions(parent=self, ignore_changes=unmanaged(chosen)),
        )

    def _concrete(self) -> aws.autoscaling.GroupLaunchTemplateArgsDict:
        """A concrete version: with `$Latest` no refresh starts, and none goes back
        (github.com/pulumi/pulumi-aws/issues/1577)."""
        version = self._template.latest_version.apply(str)
        return {"id": self._template.id, "version": version}

    def _mixed(self) -> aws.autoscaling.GroupMixedInstancesPolicyArgsDict:
        """Spot above a base on demand."""
        fleet = self._chosen.fleet
        return {
            "launch_template": {
                "launch_template_specification": {
                    "launch_template_id": self._template.id,
                    "version": self._template.latest_version.apply(str),
                },
                "overrides": [{"instance_type": self._chosen.verdict.machine.instance_type}],
            },
            "instances_distribution": {
                "on_demand_base_capacity": fleet.on_demand_base,
                "on_demand_percentage_above_base_capacity": 0,
                "spot_allocation_strategy": fleet.spot_allocation or "",
            },
        }

    def _placement(self) -> pulumi.Output[str] | None:
        place, strategy = self._place, self._chosen.fleet.placement
        if strategy == "none":
            return None
        return aws.ec2.PlacementGroup(
            place.logical("placement"),
            name=place.names.of("placement"),
            strategy=strategy,
            region=place.region,
            tags=place.tags,
            opts=pulumi.ResourceOptions(parent=self),
        ).name

    def _first_hooks(self) -> list[aws.autoscaling.GroupInitialLifecycleHookArgsDict] | None:
        if self._parts.hook_seconds is None:
            return None
        return [
            {
                "name": self._place.names.of("hook"),
                "lifecycle_transition": LAUNCHING,
                "default_result": SAYS_NOTHING,
                "heartbeat_timeout": self._parts.hook_seconds,
            }
        ]


def unmanaged(chosen: Chosen) -> list[str]:
    """What a deployment leaves as it finds it: the size where machines come and go by themselves,
    its bounds where the clock sets them too, and the first hooks, whose change would replace the
    group."""
    return [
        "initialLifecycleHooks",
        *OTHERS,
        *([] if chosen.fleet.manages_desired else ["desiredCapacity"]),
        *(["minSize", "maxSize"] if chosen.scaling.actions else []),
    ]


def _refresh(plan: RefreshPlan | None) -> aws.autoscaling.GroupInstanceRefreshArgs | None:
    if plan is None:
        return None
    return aws.autoscaling.GroupInstanceRefreshArgs(
        strategy="Rolling",
        preferences=aws.autoscaling.GroupInstanceRefreshPreferencesArgs(
            min_healthy_percentage=plan.min_healthy_percent,
            max_healthy_percentage=plan.max_healthy_percent,
            auto_rollback=plan.rollback,
        ),
    )
