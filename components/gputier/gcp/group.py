"""A group of machines: Google makes them, and a health check asks each whether it has proved
itself."""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_gcp as gcp

from gputier.boot.health import HealthCheck
from gputier.gcp.machine import Parts, template
from gputier.gcp.place import Place
from gputier.gcp.storage import DATA
from gputier.plan import Chosen
from gputier.plan.google import UpdatePlan, update_of
from gputier.plan.scaling_gcp import autoscaling


class Group(pulumi.ComponentResource):
    """The template, the health check and the group, in one zone or spread over several.

    A change makes another template. Running machines keep theirs unless the plan says `rolling`;
    one that is made anew takes the newest either way. Nothing goes back by itself.
    """

    name: pulumi.Output[str]
    link: pulumi.Output[str]
    zone: str | None

    def __init__(
        self,
        place: Place,
        chosen: Chosen,
        parts: Parts,
        *,
        ignored: tuple[str, ...] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gputier:gcp:Group", place.name, None, opts)
        self._place, self._chosen, self._parts = place, chosen, parts
        zones = chosen.network.zones
        data = chosen.storage.data
        self._stateful = data is not None and data.stays
        self._update = update_of(
            chosen.fleet, len(zones), moves=moves(chosen), stateful=self._stateful
        )
        self._template = template(place, chosen, parts, self, list(ignored))
        self._check = self._health(parts.health) if parts.health else None
        self.zone = zones[0] if len(zones) == 1 else None
        group = self._zonal(self.zone) if self.zone else self._regional(zones)
        self.name, self.link = group.name, group.self_link
        self.register_outputs({"name": self.name})

    def _health(self, plan: HealthCheck) -> pulumi.Output[str]:
        return gcp.compute.HealthCheck(
            self._place.logical("health-check"),
            name=self._place.names.of("health-check"),
            description=f"whether a machine of {self._place.names.of('group')} has proved itself",
            check_interval_sec=plan.interval_seconds,
            timeout_sec=plan.timeout_seconds,
            healthy_threshold=1,
            unhealthy_threshold=plan.failures,
            http_health_check={"port": plan.port, "request_path": plan.path},
            opts=pulumi.ResourceOptions(parent=self),
        ).self_link

    def _zonal(self, zone: str) -> gcp.compute.InstanceGroupManager:
        policy: Any = _policy(self._update)
        return gcp.compute.InstanceGroupManager(
            self._place.logical("group"),
            zone=zone,
            update_policy=policy,
            **self._both(),
        )

    def _regional(self, zones: tuple[str, ...]) -> gcp.compute.RegionInstanceGroupManager:
        policy: Any = {**_policy(self._update), **_moving(self._update)}
        return gcp.compute.RegionInstanceGroupManager(
            self._place.logical("group"),
            region=self._place.region,
            distribution_policy_zones=list(zones),
            distribution_policy_target_shape=self._update.shape,
            update_policy=policy,
            **self._both(),
        )

    def _both(self) -> dict[str, Any]:
        """What groups of one zone and of several have alike."""
        place, scaling = self._place, self._chosen.scaling
        managed = self._chosen.fleet.manages_desired
        return {
            "name": place.names.of("group"),
            "base_instance_name": place.names.of("instance"),
            "description": f"gputier {place.names.workload}",
            "versions": [{"instance_template": self._template.self_link}],
            "target_size": scaling.desired if managed else None,
            "auto_healing_policies": self._healing(),
            "instance_lifecycle_policy": self._lifecycle(),
            # A disk that stays belongs to a machine's name, and comes with it when it is made anew.
            "stateful_disks": [{"device_name": DATA, "delete_rule": "NEVER"}]
            if self._stateful
            else None,
            # A boot outlasts any patience of a deployment; the gate and the alarms tell.
            "wait_for_instances": False,
            "opts": pulumi.ResourceOptions(
                parent=self, ignore_changes=[] if managed else ["targetSize"]
            ),
        }

    def _healing(self) -> dict[str, Any] | None:
        plan = self._parts.health
        if plan is None or self._check is None:
            return None
        delay = plan.initial_delay_seconds
        return {"health_check": self._check, "initial_delay_sec": delay}

    def _lifecycle(self) -> dict[str, Any]:
        """A machine that is gone is made anew, from the newest template; one that does not pass its
        gate is too, unless the gate only reports."""
        plan = self._parts.health
        found = {"default_action_on_failure": "REPAIR", "force_update_on_repair": "YES"}
        if plan is None:
            return found
        return {**found, "on_failed_health_check": "REPAIR" if plan.repairs else "DO_NOTHING"}


def moves(chosen: Chosen) -> bool:
    """Whether an autoscaler changes the group's size: by a figure, or by the clock."""
    return autoscaling(chosen, 0) is not None


def _policy(plan: UpdatePlan) -> dict[str, Any]:
    return {
        "type": "PROACTIVE" if plan.proactive else "OPPORTUNISTIC",
        "minimal_action": "REPLACE",
        "most_disruptive_allowed_action": "REPLACE",
        "replacement_method": "RECREATE" if plan.keeps_names else "SUBSTITUTE",
        "max_surge_fixed": plan.surge,
        "max_unavailable_fixed": plan.unavailable,
    }


def _moving(plan: UpdatePlan) -> dict[str, Any]:
    """Whether running machines are ended to have as many in each zone."""
    return {"instance_redistribution_type": "PROACTIVE" if plan.redistributes else "NONE"}
