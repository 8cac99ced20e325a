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
from gputier.aws.refused import problems_of
from gputier.aws.scaling import Hours, Scaling
from gputier.aws.stop import Stop, Target, a_group, a_machine
from gputier.aws.storage import Storage
from gputier.aws.store import Store
from gputier.catalog import Catalog, load
from gputier.deploy import Fleet, refuse, rendered, same_name
from gputier.deploy.fleet import maybe, port_of
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


class GpuFleet(Fleet):
    """The machines of one planned workload, with everything that belongs to them alone.

    `name` is the workload's, as the plan has it. `network` and `store` are shared by the fleets of
    a region and stack; without them the fleet makes its own, so a second fleet needs them passed.

    Raises `InvalidInput` for what cannot be deployed, before anything is made.
    """

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
        same_name(name, plan)
        refuse(problems_of(plan, bundle))
        chosen = plan.chosen
        if chosen is None:
            raise ValueError(f"no machine was chosen for {name}")
        super().__init__("aws", name, chosen, opts)
        self._place, self._chosen, self._given = place_of(plan), chosen, given
        self._image = given.image or image.image_ids([plan], self)[name]
        self._rendered = rendered(plan, bundle, given.catalog or load())
        self._store = store or Store(
            self._place.region,
            self._place.region,
            reports={chosen.fleet.resources: chosen.identity.reports},
            tags=chosen.fleet.tags,
            opts=self._child(),
        )
        self._first.append(self._store.upload(bundle))
        parts = self._parts(self._stand(network, plan))
        image.warn(name, chosen.boot.image, self)
        self.topic = self._topic()
        own, target = self._group(parts) if chosen.fleet.shape == "group" else self._machine(parts)
        self._watch(own)
        self._bound(target)
        self._told(chosen)

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
        self.group_name = group.name.apply(maybe)
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

    def outputs(self) -> dict[str, pulumi.Output[object]]:
        """Everything that a person wants to see of a fleet, by name."""
        return {**super().outputs(), "alerts_topic": self.topic}


def _connect(region: str, target: str, chosen: Chosen) -> dict[str, str]:
    port = port_of(chosen)
    return {
        "shell": outputs.shell(region, target),
        "forward": outputs.forward(region, target, port),
    }
