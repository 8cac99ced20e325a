"""What makes a fleet larger and smaller: a figure it is kept at, and the clock."""

from __future__ import annotations

import base64
import json
from typing import Any

import pulumi
import pulumi_gcp as gcp

from gputier.gcp.place import Place, project_of
from gputier.plan import scaling_gcp as plans
from gputier.plan.identity_gcp import role_id
from gputier.plan.scaling_gcp import Autoscaling, Bound

#: Compute Engine's own account in a project, which starts and stops machines by a schedule
#: (recalled and so unverified).
KEEPS_HOURS = "service-{0}@compute-system.iam.gserviceaccount.com"
STARTS = ("compute.instances.start", "compute.instances.stop")
#: What a change of an autoscaler needs (iam-dataset@2073fa52a, map.json of 2026-08-22). There is no
#: condition that knows one by its name, so these are of the project.
BOUNDS = ("compute.autoscalers.get", "compute.autoscalers.update")
API = "https://compute.googleapis.com/compute/v1"
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
#: How often a call is tried again that was not answered well; ours.
TRIES = 5


class Scaling(pulumi.ComponentResource):
    """The autoscaler of a group, of one zone or of a region."""

    def __init__(
        self,
        place: Place,
        plan: Autoscaling,
        *,
        group: pulumi.Input[str],
        zone: str | None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gputier:gcp:Scaling", place.name, None, opts)
        policy: Any = _policy(plan)
        both: Any = {
            "name": place.names.of("autoscaler"),
            "target": group,
            "autoscaling_policy": policy,
            "opts": pulumi.ResourceOptions(parent=self),
        }
        if zone:
            gcp.compute.Autoscaler(place.logical("autoscaler"), zone=zone, **both)
        else:
            gcp.compute.RegionAutoscaler(place.logical("autoscaler"), region=place.region, **both)
        if plan.bounds:
            Bounds(place, plan.bounds, zone=zone, opts=pulumi.ResourceOptions(parent=self))
        self.register_outputs({})


def _policy(plan: Autoscaling) -> dict[str, Any]:
    signal = plan.signal
    return {
        "mode": "ON",
        "min_replicas": plan.least,
        "max_replicas": plan.most,
        "cooldown_period": plan.warmup_seconds,
        "metrics": [
            {
                "name": signal.metric,
                "type": "GAUGE",
                "target": signal.target,
                "filter": signal.filter,
            }
        ]
        if signal
        else None,
        "scaling_schedules": [
            {
                "name": one.key,
                "schedule": one.cron,
                "time_zone": one.timezone,
                "duration_sec": one.seconds,
                "min_required_replicas": one.machines,
            }
            for one in plan.hours
        ]
        or None,
    }


class Bounds(pulumi.ComponentResource):
    """What takes the most machines of a group to none when its hours end, and back when they begin:
    jobs of Cloud Scheduler, with an account that may change autoscalers and nothing else. Whether
    the autoscaler is on they leave as it is: one that was turned off stays so."""

    def __init__(
        self,
        place: Place,
        bounds: tuple[Bound, ...],
        *,
        zone: str | None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gputier:gcp:Bounds", place.name, None, opts)
        child, project = pulumi.ResourceOptions(parent=self), project_of(self)
        account = gcp.serviceaccount.Account(
            place.logical("hours"),
            account_id=place.names.of("hours"),
            display_name=f"hours of {place.names.of('group')}",
            opts=child,
        )
        role = gcp.projects.IAMCustomRole(
            place.logical("hours"),
            role_id=f"{role_id(place.names.of('service-account'))}_hours",
            title=f"hours of {place.names.of('group')}",
            description="bound an autoscaler by its schedule",
            permissions=list(BOUNDS),
            opts=child,
        )
        allowed = gcp.projects.IAMMember(
            place.logical("hours"),
            project=project.id,
            role=role.name,
            member=pulumi.Output.concat("serviceAccount:", account.email),
            opts=child,
        )
        where = f"zones/{zone}" if zone else f"regions/{place.region}"
        name = place.names.of("autoscaler")
        uri = project.id.apply(
            lambda known: f"{API}/projects/{known}/{where}/autoscalers?autoscaler={name}"
        )
        for bound in bounds:
            target: Any = {
                "uri": uri,
                "http_method": "PATCH",
                "headers": {"Content-Type": "application/json"},
                "body": base64.b64encode(most(bound).encode()).decode(),
                "oauth_token": {"service_account_email": account.email, "scope": SCOPE},
            }
            gcp.cloudscheduler.Job(
                place.logical(bound.key),
                name=f"{place.names.of('group')}-{bound.key}",
                region=place.region,
                description=f"{bound.most} machines of {place.names.of('group')} and no more",
                schedule=bound.cron,
                time_zone=bound.timezone,
                http_target=target,
                retry_config={"retry_count": TRIES},
                opts=pulumi.ResourceOptions(parent=self, depends_on=[allowed]),
            )
        self.register_outputs({})


def most(bound: Bound) -> str:
    """The change of an autoscaler: nothing but its upper bound."""
    return json.dumps({"autoscalingPolicy": {"maxNumReplicas": bound.most}})


class Hours(pulumi.ComponentResource):
    """The hours of a lone machine: a schedule that starts and stops whatever holds to it. Google's
    own account does that, and is allowed to start and stop machines of the project: it takes no
    condition that a machine made later would meet."""

    link: pulumi.Output[str]

    def __init__(
        self,
        place: Place,
        plan: plans.Hours,
        *,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gputier:gcp:Hours", place.name, None, opts)
        child, project = pulumi.ResourceOptions(parent=self), project_of(self)
        role = gcp.projects.IAMCustomRole(
            place.logical("hours"),
            role_id=f"{role_id(place.names.of('service-account'))}_hours",
            title=f"hours of {place.names.of('instance')}",
            description="start and stop a machine by its schedule",
            permissions=list(STARTS),
            opts=child,
        )
        allowed = gcp.projects.IAMMember(
            place.logical("hours"),
            project=project.id,
            role=role.name,
            member=pulumi.Output.format("serviceAccount:" + KEEPS_HOURS, project.number),
            opts=child,
        )
        self.link = gcp.compute.ResourcePolicy(
            # By its hours: in most fields a change is another policy.
            place.logical(plan.key),
            region=place.region,
            instance_schedule_policy={
                "vm_start_schedule": {"schedule": plan.cron},
                "vm_stop_schedule": {"schedule": plan.ends},
                "time_zone": plan.timezone,
            },
            # A machine cannot take a schedule that nobody may keep.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[allowed]),
        ).self_link
        self.register_outputs({"link": self.link})
