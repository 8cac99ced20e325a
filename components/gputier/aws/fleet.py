"""`GpuFleet`: one workload of a plan, deployed."""

from __future__ import annotations

import base64
from typing import NamedTuple

import pulumi

from gputier.aws import image, outputs
from gputier.aws.anomalies import Anomalies
from gputier.aws.budget import Budget
from gputier.aws.group import Group
from gputier.aws.identity import Identity
from gputier.aws.instance import Machine
from gputier.aws.machine import Parts
from gputier.aws.monitoring import TELLS, TELLS_ANOMALIES, Alerts, Monitoring
from gputier.aws.network import Existing, Network, Stand, security_group
from gputier.aws.place import place_of
from gputier.aws.refused import refuse
from gputier.aws.scaling import Hours, Scaling
from gputier.aws.stop import Stop, Target, a_group, a_machine
from gputier.aws.storage import Storage
from gputier.aws.store import Store
from gputier.boot import Bundle as Rendering
from gputier.boot import Rendered, Stack, render
from gputier.catalog import Catalog, load
from gputier.errors import InvalidInput, Problem
from gputier.lock import Bundle, current_bundle
from gputier.plan import Chosen, WorkloadPlan
from gputier.plan.region import networks


class Given(NamedTuple):
    """What a fleet takes instead of making or finding it. `role` is an existing role's name, `key`
    a KMS key's ARN, `topic` an SNS topic's ARN for alarms; each may be an output. `image` is the id
    that the plan's image has in this region, where somebody looked it up already. `bundle` is what
    the lock pins (default: this release's), `catalog` what the plan was made on."""

    role: pulumi.Input[str] | None = None
    key: pulumi.Input[str] | None = None
    topic: pulumi.Input[str] | None = None
    image: str | None = None
    bundle: Bundle | None = None
    catalog: Catalog | None = None


class GpuFleet(pulumi.ComponentResource):
    """The machines of one planned workload, with everything that belongs to them alone.

    `name` is the workload's, as the plan has it. `network` and `store` are shared by the fleets of
    a region and stack; without them the fleet makes its own, so a second fleet needs them passed.

    Raises `InvalidInput` for what cannot be deployed, before anything is made.
    """

    machine: pulumi.Output[str]
    usd_per_hour: pulumi.Output[float | None]
    usd_per_month: pulumi.Output[float | None]
    group_name: pulumi.Output[str | None]
    connect: pulumi.Output[dict[str, str]]
    gate_state: pulumi.Output[str]
    dashboard_url: pulumi.Output[str]
    topic: pulumi.Output[str]

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
        _same_name(name, plan)
        refuse([(plan, bundle)])
        chosen = plan.chosen
        if chosen is None:
            raise ValueError(f"no machine was chosen for {name}")
        super().__init__("gputier:aws:GpuFleet", name, None, _renamed(chosen, opts))
        self._place, self._chosen, self._given = place_of(plan), chosen, given
        self._image = given.image or image.image_ids([plan], self)[name]
        self._rendered = _rendered(plan, bundle, given.catalog or load())
        self._store = store or Store(
            self._place.region,
            self._place.region,
            reports={chosen.fleet.resources: chosen.identity.reports},
            tags=chosen.fleet.tags,
            opts=self._child(),
        )
        # What a machine finds when it boots: it fetches its bundle with its rights, by its way out.
        self._first: list[pulumi.Resource] = [self._store.upload(bundle)]
        parts = self._parts(self._stand(network, plan))
        image.warn(name, chosen.boot.image, self)
        self.topic = self._topic()
        own, target = self._group(parts) if chosen.fleet.shape == "group" else self._machine(parts)
        self._watch(own)
        self._bound(target)
        self._export()

    def _child(self) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self)

    def _last(self) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, depends_on=self._first)

    def _stand(self, network: Network | Existing | None, plan: WorkloadPlan) -> Stand:
        if isinstance(network, Existing):
            return Stand(network.vpc_id, network.subnet_ids, network.zone_name)
        if network is None:
            (own,) = networks([plan]).values()
            network = Network(own, tags=self._chosen.fleet.tags, opts=self._child())
        self._first.append(network)
        return network.stand(self._chosen.network, f"workloads.{plan.name}")

    def _parts(self, stand: Stand) -> Parts:
        place, chosen = self._place, self._chosen
        identity = Identity(
            place,
            chosen.identity,
            bucket=self._store.bucket,
            role=self._given.role,
            opts=self._child(),
        )
        storage = Storage(place, chosen.storage, key=self._given.key, opts=self._child())
        self._first += [identity, storage]
        joined = chosen.verdict.machine.nodes > 1
        group = security_group(place, stand.vpc_id, joined=joined, parent=self)
        return Parts(
            stand=stand,
            security_group=group.id,
            profile_arn=identity.profile_arn,
            profile_name=identity.profile_name,
            image=self._image,
            user_data=base64.b64encode(self._rendered.text.encode()).decode(),
            storage=storage,
            hook_seconds=self._rendered.deadline.hook_seconds,
        )

    def _topic(self) -> pulumi.Output[str]:
        if self._given.topic is not None:
            return pulumi.Output.from_input(self._given.topic)
        budget = self._chosen.budget
        services = (*TELLS, TELLS_ANOMALIES) if budget and budget.anomalies else TELLS
        return Alerts(self._place, services=services, opts=self._child()).topic

    def _group(self, parts: Parts) -> tuple[pulumi.Output[str], Target]:
        place, chosen = self._place, self._chosen
        group = Group(place, chosen, parts, opts=self._last())
        Scaling(place, chosen.scaling, group=group.name, opts=self._child())
        region, target = place.region, outputs.first_of_group(place.region, place.names.of("group"))
        self.group_name = group.name.apply(_maybe)
        self.connect = group.name.apply(lambda _: _connect(region, target, chosen))
        self.gate_state = group.name.apply(lambda name: outputs.group_state(region, name))
        return group.name, a_group(group.name)

    def _machine(self, parts: Parts) -> tuple[pulumi.Output[str], Target]:
        place, chosen = self._place, self._chosen
        lone = Machine(place, chosen, parts, opts=self._last())
        hours = Hours(
            place,
            chosen.scaling,
            machine=lone.machine,
            stops=chosen.budget is not None and chosen.budget.stops,
            opts=self._child(),
        )
        region, workload = place.region, chosen.fleet.resources
        self.group_name = pulumi.Output.from_input(None)
        self.connect = lone.id.apply(lambda id_: _connect(region, id_, chosen))
        self.gate_state = self._store.bucket.apply(
            lambda bucket: outputs.machine_state(region, bucket, workload)
        )
        return lone.id, a_machine(lone.machine, hours)

    def _watch(self, own: pulumi.Output[str]) -> None:
        place, chosen = self._place, self._chosen
        monitoring = Monitoring(
            place, chosen.monitoring, own=own, topic=self.topic, opts=self._child()
        )
        self.dashboard_url = monitoring.dashboard_url

    def _bound(self, target: Target) -> None:
        """The budget, and what it sets in motion."""
        place, budget = self._place, self._chosen.budget
        if budget is None:
            return
        stop = Stop(place, target, told=self.topic, opts=self._child()) if budget.stops else None
        after = pulumi.ResourceOptions(parent=self, depends_on=[stop] if stop else [])
        Budget(place, budget, topic=self.topic, stop=stop and stop.topic, opts=after)
        if budget.anomalies:
            Anomalies(place, budget, topic=self.topic, opts=self._child())

    def _export(self) -> None:
        chosen = self._chosen
        self.machine = pulumi.Output.from_input(chosen.verdict.machine.instance_type)
        self.usd_per_hour = pulumi.Output.from_input(_money(chosen.usd_per_hour))
        self.usd_per_month = pulumi.Output.from_input(_money(chosen.usd_per_month))
        self.register_outputs(self.outputs())

    def outputs(self) -> dict[str, pulumi.Output[object]]:
        """Everything that a person wants to see of a fleet, by name."""
        return {
            "machine": self.machine,
            "usd_per_hour": self.usd_per_hour,
            "usd_per_month": self.usd_per_month,
            "group_name": self.group_name,
            "connect": self.connect,
            "gate_state": self.gate_state,
            "dashboard_url": self.dashboard_url,
            "alerts_topic": self.topic,
        }


def _same_name(name: str, plan: WorkloadPlan) -> None:
    """Names in the cloud are the plan's; under another name two fleets would have the same."""
    if name != plan.name:
        raise InvalidInput(
            Problem(
                name,
                f"the fleet is called `{name}`, and its plan is of workload `{plan.name}`",
                f'give the plan its name: gputier.plan(..., name="{name}")',
            )
        )


def _renamed(chosen: Chosen, opts: pulumi.ResourceOptions | None) -> pulumi.ResourceOptions:
    """The caller's options, and the former name as an alias. Parts follow: their names begin with
    the fleet's."""
    was = chosen.fleet.was
    alias = pulumi.ResourceOptions(aliases=[pulumi.Alias(name=was)] if was else None)
    return pulumi.ResourceOptions.merge(opts, alias)


def _rendered(plan: WorkloadPlan, bundle: Bundle, catalog: Catalog) -> Rendered:
    stack = Stack(pulumi.get_project(), pulumi.get_stack())
    return render(plan, catalog, stack, Rendering(bundle.sha256, bundle.version))


def _money(usd: float | None) -> float | None:
    """As the lock has it: what a float drags along would be another output for the same price."""
    return None if usd is None else round(usd, 6)


def _maybe(name: str) -> str | None:
    return name


def _connect(region: str, target: str, chosen: Chosen) -> dict[str, str]:
    port = outputs.port_of(chosen)
    return {
        "shell": outputs.shell(region, target),
        "forward": outputs.forward(region, target, port),
    }
