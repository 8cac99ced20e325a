"""`GpuFleet`: one workload of a plan, deployed to Google."""

from __future__ import annotations

from typing import NamedTuple

import pulumi

from gputier.boot.health import health_check
from gputier.catalog import Catalog, load
from gputier.deploy import Fleet, refuse, rendered, same_name
from gputier.deploy.fleet import maybe, port_of
from gputier.gcp import image, outputs
from gputier.gcp.budget import Budget
from gputier.gcp.group import Group
from gputier.gcp.identity import Identity
from gputier.gcp.instance import Machine
from gputier.gcp.machine import Parts
from gputier.gcp.monitoring import Monitoring
from gputier.gcp.network import Doors, Existing, Network, Stand, firewall
from gputier.gcp.place import place_of
from gputier.gcp.refused import problems_of
from gputier.gcp.scaling import Hours, Scaling
from gputier.gcp.stop import Stop, Target, Topic, a_group, a_machine
from gputier.gcp.storage import Storage
from gputier.gcp.store import Store
from gputier.lock import Bundle, current_bundle
from gputier.plan import Chosen, WorkloadPlan
from gputier.plan.google import WORKSTATION, google_machine
from gputier.plan.monitoring_gcp import watched
from gputier.plan.region_gcp import networks
from gputier.plan.scaling_gcp import autoscaling, hours_of


class Given(NamedTuple):
    """What a fleet takes instead of making or finding it. `account` is an existing service
    account's address, `key` the name of a key, `channels` whom alerts and budgets tell (ids of
    notification channels); each may be an output. `image` is the path that the plan's image has,
    where somebody looked it up already. `bundle` is what the lock pins (default: this release's),
    `catalog` what the plan was made on."""

    account: pulumi.Input[str] | None = None
    key: pulumi.Input[str] | None = None
    channels: tuple[pulumi.Input[str], ...] = ()
    image: str | None = None
    bundle: Bundle | None = None
    catalog: Catalog | None = None


class GpuFleet(Fleet):
    """The machines of one planned workload, with everything that belongs to them alone.

    `name` is the workload's, as the plan has it. `network` and `store` are shared by the fleets of
    a region and stack; without them the fleet makes its own, so a second fleet needs them passed.

    Raises `InvalidInput` for what cannot be deployed, before anything is made.
    """

    def __init__(
        self,
        name: str,
        plan: WorkloadPlan,
        *,
        network: Network | Existing | None = None,
        store: Store | None = None,
        given: Given | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        given = given or Given()
        bundle = given.bundle or current_bundle()
        same_name(name, plan)
        refuse(problems_of(plan, bundle))
        chosen = plan.chosen
        if chosen is None:
            raise ValueError(f"no machine was chosen for {name}")
        super().__init__("gcp", name, chosen, opts)
        self._place, self._chosen, self._given = place_of(plan), chosen, given
        self._workstation = plan.need.purpose == WORKSTATION
        self._image = given.image or image.image_links([plan], self)[name]
        self._rendered = rendered(plan, bundle, given.catalog or load())
        self._store = store or Store(
            self._place.region,
            self._place.region,
            reports={chosen.fleet.resources: chosen.identity.reports},
            labels=chosen.fleet.tags,
            opts=self._child(),
        )
        self._first.append(self._store.upload(bundle))
        parts = self._parts(self._stand(network, plan))
        image.warn(name, chosen.boot.image, self)
        if parts.health and parts.health.note:
            pulumi.log.info(f"{name}: {parts.health.note}", self)
        grouped = chosen.fleet.shape == "group"
        target = self._group(parts) if grouped else self._machine(parts)
        self._watch()
        self._bound(target)
        self._told(chosen)

    def _stand(self, network: Network | Existing | None, plan: WorkloadPlan) -> Stand:
        if not isinstance(network, Network):
            (own,) = networks([plan]).values()
            network = Network(own, existing=network, opts=self._child())
        self._first.append(network)
        return network.stand(self._chosen.network, f"workloads.{plan.name}")

    def _parts(self, stand: Stand) -> Parts:
        place, chosen = self._place, self._chosen
        identity = Identity(
            place,
            chosen.identity,
            bucket=self._store.bucket,
            account=self._given.account,
            opts=self._child(),
        )
        storage = Storage(place, chosen.storage, key=self._given.key, opts=self._child())
        health = health_check(self._rendered.deadline, chosen.boot.gate)
        container = chosen.boot.container
        doors = Doors(
            health=health.port if health else None,
            ports=container.ports if container else (),
            joined=chosen.verdict.machine.nodes > 1,
        )
        rules = firewall(place, stand.network, identity.email, doors, self)
        self._first += [identity, storage, *rules]
        return Parts(
            stand=stand,
            account=identity.email,
            image=self._image,
            script=self._rendered.text,
            storage=storage,
            told=google_machine(chosen, workstation=self._workstation),
            health=health,
        )

    def _group(self, parts: Parts) -> Target:
        place, chosen = self._place, self._chosen
        moving = image.kept(chosen.boot.image, "disks[0].sourceImage")
        group = Group(place, chosen, parts, ignored=moving, opts=self._last())
        scaling = autoscaling(chosen, self._rendered.deadline.total_seconds)
        if scaling is not None:
            Scaling(place, scaling, group=group.link, zone=group.zone, opts=self._child())
        name, where = place.names.of("group"), outputs.where(place.region, group.zone)
        zone = group.zone or outputs.first_of_group(name, where, "instance.scope(zones).segment(0)")
        machine = outputs.first_of_group(name, where, "instance.basename()")
        self.group_name = group.name.apply(maybe)
        self.connect = group.name.apply(lambda _: _connect(zone, machine, chosen))
        self.gate_state = group.name.apply(lambda found: outputs.group_state(found, where))
        return a_group(place, group.zone, scaled=scaling is not None)

    def _machine(self, parts: Parts) -> Target:
        place, chosen = self._place, self._chosen
        hours = [Hours(place, one, opts=self._child()) for one in hours_of(chosen)]
        link = hours[0].link if hours else None
        lone = Machine(place, chosen, parts, hours=link, opts=self._last())
        workload = chosen.fleet.resources
        self.group_name = pulumi.Output.from_input(None)
        self.connect = lone.name.apply(lambda name: _connect(lone.zone, name, chosen))
        self.gate_state = self._store.bucket.apply(
            lambda bucket: outputs.machine_state(bucket, workload)
        )
        return a_machine(lone.zone, lone.machine)

    def _watch(self) -> None:
        """Alerts and the dashboard."""
        plan, channels = watched(self._chosen), self._given.channels
        made = Monitoring(self._place, plan, channels=channels, opts=self._child())
        self.dashboard_url = made.dashboard_url

    def _bound(self, target: Target) -> None:
        """The budget where one is declared, and what it sets in motion."""
        place, plan, channels = self._place, self._chosen.budget, self._given.channels
        if plan is None:
            return
        topic = Topic(place, opts=self._child()) if plan.stops else None
        told = topic.id if topic else None
        made = Budget(place, plan, channels=channels, topic=told, opts=self._child())
        if topic is not None:
            Stop(place, target, made.budget, topic, channels=channels, opts=self._child())


def _connect(zone: str, machine: str, chosen: Chosen) -> dict[str, str]:
    port = port_of(chosen)
    return {
        "shell": outputs.shell(zone, machine),
        "forward": outputs.forward(zone, machine, port),
    }
