"""Every combination that a cloud refuses, and each of its parts alone, which it takes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from tests.policies import cases
from tests.policies.tables import awaited, misspelt

from gputier_policies.placement import LEGAL_PLACEMENT
from gputier_policies.placement_aws import COMBINATIONS as AWS
from gputier_policies.placement_gcp import COMBINATIONS as GCP
from gputier_policies.traits import Combination
from gputier_policies.values import UNKNOWN, Resource, Stack

TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
GROUP = "aws:autoscaling/group:Group"
INSTANCE = "aws:ec2/instance:Instance"
PLACEMENT = "aws:ec2/placementGroup:PlacementGroup"
SUBNET = "aws:ec2/subnet:Subnet"
GCP_TEMPLATE = "gcp:compute/instanceTemplate:InstanceTemplate"
GCP_INSTANCE = "gcp:compute/instance:Instance"
MANAGED = "gcp:compute/instanceGroupManager:InstanceGroupManager"
REGIONAL = "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager"
SCALER = "gcp:compute/autoscaler:Autoscaler"
POLICY = "gcp:compute/resourcePolicy:ResourcePolicy"

Props = dict[str, Any]


@dataclass(frozen=True)
class Placed:
    """A fleet: what its template says and what its group does."""

    template: Props = field(default_factory=dict[str, Any])
    group: Props = field(default_factory=dict[str, Any])


def own(resource: Resource) -> dict[str, Any]:
    """The inputs without what the cases add to link them."""
    return {k: v for k, v in resource.props.items() if k not in ("id", "selfLink")}


# --- AWS ------------------------------------------------------------------------------------------

CLOSE = cases.resource(PLACEMENT, "close", id="close", name="close", strategy="cluster")
SPREAD = cases.resource(PLACEMENT, "apart", id="apart", name="apart", strategy="spread")
ZONES = [
    cases.resource(
        SUBNET, zone, id=f"subnet-{zone}", vpcId="v", availabilityZone=f"us-east-1{zone}"
    )
    for zone in "ab"
]
ONE_ZONE: Props = {"vpcZoneIdentifiers": ["subnet-a"]}
TWO_ZONES: Props = {"vpcZoneIdentifiers": ["subnet-a", "subnet-b"]}


def aws(placed: Placed) -> Stack:
    group: Props = {"maxSize": 2, "minSize": 2, **ONE_ZONE, **placed.group}
    named: Props = {"launchTemplate": {"id": "lt-1", "version": "7"}}
    if "mixedInstancesPolicy" not in group and "launchTemplate" not in group:
        group = {**group, **named}
    said: Props = {"instanceType": "p5.48xlarge", **placed.template}
    template = cases.resource(TEMPLATE, "lt", id="lt-1", **said)
    pool = cases.resource(GROUP, "pool", **group)
    for one in (template, pool, CLOSE, *ZONES):
        assert misspelt(one.type, own(one)) == []
    return cases.stack(template, pool, CLOSE, SPREAD, *ZONES)


def market(kind: str, **spot: str) -> Props:
    return {
        "instanceMarketOptions": {"marketType": kind, **({"spotOptions": spot} if spot else {})}
    }


def reserved(**words: Any) -> Props:
    return {"capacityReservationSpecification": words}


TARGET: Props = {"capacityReservationTarget": {"capacityReservationId": "cr-1"}}
BLOCK: Props = {**market("capacity-block"), **reserved(**TARGET)}
SPOT: Props = market("spot")


def mixed(percent: int = 100) -> Props:
    within = {"launchTemplateSpecification": {"launchTemplateId": "lt-1", "version": "7"}}
    share = {"onDemandPercentageAboveBaseCapacity": percent}
    return {"mixedInstancesPolicy": {"launchTemplate": within, "instancesDistribution": share}}


WARM: Props = {"warmPool": {"poolState": "Stopped"}}
IN_CLOSE: Props = {"placementGroup": "close"}
GROUP_TARGET: Props = {"capacityReservationTarget": {"capacityReservationIds": ["cr-1"]}}

#: Of each combination: a fleet that has it, and fleets that have all of it but one part.
ON_AWS: dict[tuple[str, ...], tuple[Placed, list[Placed]]] = {
    ("cluster group", "several zones"): (
        Placed(group={**IN_CLOSE, **TWO_ZONES}),
        [Placed(group=IN_CLOSE), Placed(group=TWO_ZONES),
         Placed(group={**TWO_ZONES, "placementGroup": "apart"})],
    ),
    ("cluster group", "spot that stops"): (
        Placed(market("spot", instanceInterruptionBehavior="stop"), IN_CLOSE),
        [Placed(market("spot", instanceInterruptionBehavior="terminate"), IN_CLOSE),
         Placed(market("spot", instanceInterruptionBehavior="stop"))],
    ),
    ("capacity block", "placement group"): (
        Placed(BLOCK, {"placementGroup": "apart"}),
        [Placed(BLOCK), Placed(group=IN_CLOSE)],
    ),
    ("capacity block", "several zones"): (Placed(BLOCK, TWO_ZONES), [Placed(BLOCK)]),
    ("capacity block", "mixed policy"): (Placed(BLOCK, mixed()), [Placed({}, mixed())]),
    ("capacity block", "warm pool"): (Placed(BLOCK, WARM), [Placed({}, WARM)]),
    ("capacity block", "no target"): (
        Placed(market("capacity-block")),
        [Placed(BLOCK), Placed(), Placed(market("capacity-block"), reserved(
            capacityReservationPreference="capacity-reservations-only", **GROUP_TARGET))],
    ),
    ("capacity block", "moving version"): (
        Placed(BLOCK, {"launchTemplate": {"id": "lt-1", "version": "$Latest"}}),
        [Placed({}, {"launchTemplate": {"id": "lt-1", "version": "$Latest"}})],
    ),
    ("spot template", "mixed policy"): (Placed(SPOT, mixed()), [Placed(SPOT)]),
    ("warm pool", "spot template"): (Placed(SPOT, WARM), []),
    ("warm pool", "mixed with spot"): (
        Placed({}, {**WARM, **mixed(50)}),
        [Placed({}, {**WARM, **mixed(100)}), Placed({}, mixed(50))],
    ),
    ("hibernated pool", "gpu"): (
        Placed({}, {"warmPool": {"poolState": "Hibernated"}}),
        [Placed({"instanceType": "m7i.large"}, {"warmPool": {"poolState": "Hibernated"}})],
    ),
    ("hibernation", "gpu"): (
        Placed({"hibernationOptions": {"configured": True}}),
        [Placed({"hibernationOptions": {"configured": False}}),
         Placed({"instanceType": "m7i.large", "hibernationOptions": {"configured": True}})],
    ),
    ("preference", "target"): (
        Placed(reserved(capacityReservationPreference="open", **TARGET)),
        [Placed(reserved(capacityReservationPreference="open")),
         Placed(reserved(capacityReservationPreference="capacity-reservations-only", **TARGET))],
    ),
    ("group preference", "group target"): (
        Placed({}, reserved(capacityReservationPreference="default", **GROUP_TARGET)),
        [Placed({}, reserved(capacityReservationPreference="default")), Placed({}, reserved(
            capacityReservationPreference="capacity-reservations-first", **GROUP_TARGET))],
    ),
    ("several targets",): (
        Placed({}, reserved(capacityReservationTarget={"capacityReservationIds": ["a", "b"]})),
        [],
    ),
}  # fmt: skip

# --- Google Cloud ---------------------------------------------------------------------------------

COMPACT = cases.resource(
    POLICY,
    "compact",
    id="compact",
    name="compact",
    groupPlacementPolicy={"collocation": "COLLOCATED", "maxDistance": 1},
)
LOOSE = cases.resource(
    POLICY,
    "loose",
    id="loose",
    name="loose",
    groupPlacementPolicy={"collocation": "COLLOCATED", "maxDistance": 2},
)
FLEX: Props = {
    "machineType": "a3-megagpu-8g",
    "reservationAffinity": {"type": "NO_RESERVATION"},
    "scheduling": {
        "provisioningModel": "FLEX_START",
        "maxRunDuration": {"seconds": 3600},
        "automaticRestart": False,
        "instanceTerminationAction": "DELETE",
        "onHostMaintenance": "TERMINATE",
    },
}
QUEUE: Props = {
    "targetSize": 0,
    "instanceLifecyclePolicy": {"defaultActionOnFailure": "DO_NOTHING"},
}


def scheduled(template: Props, **words: Any) -> dict[str, Any]:
    return {**template, "scheduling": {**template.get("scheduling", {}), **words}}


def without(props: Props, word: str) -> dict[str, Any]:
    return {key: value for key, value in props.items() if key != word}


def gcp(placed: Placed, *more: Resource, regional: bool = False) -> Stack:
    said: Props = {"machineType": "a2-highgpu-8g", **placed.template}
    template = cases.resource(GCP_TEMPLATE, "gt", selfLink="gt-1", **said)
    regional = regional or any(word.startswith("distribution") for word in placed.group)
    pool = cases.resource(
        REGIONAL if regional else MANAGED,
        "pool",
        id="pool-1",
        versions=[{"instanceTemplate": "gt-1"}],
        **placed.group,
    )
    for one in (template, pool, COMPACT, LOOSE, *more):
        assert misspelt(one.type, own(one)) == []
    return cases.stack(template, pool, COMPACT, LOOSE, *more)


SPOT_OF_GOOGLE: Props = {"machineType": "a2-highgpu-8g", "scheduling": {
    "provisioningModel": "SPOT", "preemptible": True, "automaticRestart": False}}  # fmt: skip
SPECIFIC: Props = {
    "reservationAffinity": {
        "type": "SPECIFIC_RESERVATION",
        "specificReservation": {"key": "k", "values": ["r"]},
    }
}
EVERYWHERE: Props = {"distributionPolicyTargetShape": "EVEN"}
ANYWHERE: Props = {"distributionPolicyTargetShape": "ANY"}
IN_ONE: Props = {"distributionPolicyTargetShape": "ANY_SINGLE_ZONE"}
SCALED = cases.resource(SCALER, "scaler", target="pool-1",
                        autoscalingPolicy={"minReplicas": 0, "maxReplicas": 2})  # fmt: skip
CLOSER: Props = {"resourcePolicies": "compact"}
WORKLOAD: Props = {"resourcePolicies": {"workloadPolicy": "w"}}
NO_MOVE: Props = {"updatePolicy": {"type": "PROACTIVE", "minimalAction": "REPLACE",
                            "instanceRedistributionType": "NONE"}}  # fmt: skip
MOVE: Props = {"updatePolicy": {"type": "PROACTIVE", "minimalAction": "REPLACE",
                         "instanceRedistributionType": "PROACTIVE"}}  # fmt: skip

MOVED: Props = {"scheduling": {"onHostMaintenance": "MIGRATE"}}
ON_GCP: dict[tuple[str, ...], tuple[Stack, list[Stack]]] = {
    ("flex", "reservation"): (
        gcp(Placed(without(FLEX, "reservationAffinity"), QUEUE)), [gcp(Placed(FLEX, QUEUE))]),
    ("flex", "no duration"): (
        gcp(Placed({**FLEX, "scheduling": without(FLEX["scheduling"], "maxRunDuration")}, QUEUE)),
        [gcp(Placed({}))]),
    ("flex", "restarts"): (gcp(Placed(scheduled(FLEX, automaticRestart=True), QUEUE)), []),
    ("flex group", "does not delete"): (
        gcp(Placed(scheduled(FLEX, instanceTerminationAction="STOP"), QUEUE)),
        [cases.stack(cases.resource(GCP_INSTANCE, **scheduled(
            FLEX, instanceTerminationAction="STOP")))]),
    ("flex group", "autoscaler"): (
        gcp(Placed(FLEX, QUEUE), SCALED), [gcp(Placed({}, {"targetSize": 0}), SCALED)]),
    ("flex group", "size"): (
        gcp(Placed(FLEX, {**QUEUE, "targetSize": 2})), [gcp(Placed({}, {"targetSize": 2}))]),
    ("flex group", "repairs"): (gcp(Placed(FLEX, {"targetSize": 0})), []),
    ("flex group", "several zones"): (
        gcp(Placed(FLEX, {**QUEUE, **EVERYWHERE})),
        [gcp(Placed(FLEX, {**QUEUE, **IN_ONE})), gcp(Placed({}, EVERYWHERE)),
         gcp(Placed(FLEX, {**QUEUE, **EVERYWHERE, "distributionPolicyZones": ["z"]}))]),
    ("flex", "grace blackwell"): (
        gcp(Placed({**FLEX, "machineType": "a4x-highgpu-4g"}, QUEUE)),
        [gcp(Placed({"machineType": "a4x-highgpu-4g"}))]),
    ("spot", "specific reservation"): (
        gcp(Placed({**SPOT_OF_GOOGLE, **SPECIFIC})),
        [gcp(Placed(SPOT_OF_GOOGLE)), gcp(Placed(SPECIFIC))]),
    ("spot", "restarts"): (
        gcp(Placed(scheduled(SPOT_OF_GOOGLE, automaticRestart=True))), [gcp(Placed({}))]),
    ("bound", "no specific reservation"): (
        gcp(Placed({"scheduling": {"provisioningModel": "RESERVATION_BOUND"}})),
        [gcp(Placed({"scheduling": {"provisioningModel": "RESERVATION_BOUND"}, **SPECIFIC}))]),
    ("gpu", "migrates"): (
        gcp(Placed(MOVED)), [gcp(Placed({"machineType": "n2-standard-4", **MOVED})),
         gcp(Placed({"scheduling": {"onHostMaintenance": "TERMINATE"}}))]),
    ("small a3", "on demand"): (
        gcp(Placed({"machineType": "a3-highgpu-2g"})),
        [gcp(Placed({**SPOT_OF_GOOGLE, "machineType": "a3-highgpu-2g"})),
         gcp(Placed({"machineType": "a3-highgpu-8g"}))]),
    ("compact", "several zones"): (
        gcp(Placed(CLOSER, EVERYWHERE)),
        [gcp(Placed(CLOSER)), gcp(Placed(CLOSER, IN_ONE)), gcp(Placed(CLOSER, {
            **EVERYWHERE, "distributionPolicyZones": ["z"]}))]),
    ("compact", "n1"): (
        gcp(Placed({**CLOSER, "machineType": "n1-standard-8",
                    "guestAccelerators": [{"type": "nvidia-tesla-t4", "count": 1}]})),
        [gcp(Placed(CLOSER))]),
    ("adjacent", "a3"): (
        gcp(Placed({**CLOSER, "machineType": "a3-megagpu-8g"})),
        [gcp(Placed({"resourcePolicies": "loose", "machineType": "a3-megagpu-8g"})),
         gcp(Placed(CLOSER))]),
    ("workload policy", "no workload series"): (
        gcp(Placed({"machineType": "g2-standard-4"}, WORKLOAD)),
        [gcp(Placed({"machineType": kind}, WORKLOAD)) for kind in
         ("a4-highgpu-8g", "a4x-highgpu-4g", "a3-ultragpu-8g", "a3-megagpu-8g", "a3-highgpu-8g")]),
    ("one shape", "redistributes"): (
        gcp(Placed({}, {**ANYWHERE, **MOVE})),
        [gcp(Placed({}, {**ANYWHERE, **NO_MOVE})), gcp(Placed({}, {**EVERYWHERE, **MOVE}))]),
    ("any shape", "autoscaler"): (
        gcp(Placed({}, ANYWHERE), cases.resource(
            "gcp:compute/regionAutoscaler:RegionAutoscaler", "scaler", target="pool-1",
            autoscalingPolicy={"minReplicas": 0, "maxReplicas": 2})),
        [gcp(Placed({}, ANYWHERE))]),
}  # fmt: skip

BY_TRAITS = {one.traits: one for one in (*AWS, *GCP)}
SCENES: dict[tuple[str, ...], tuple[Stack, list[Stack]]] = {
    **{traits: (aws(bad), [aws(one) for one in good]) for traits, (bad, good) in ON_AWS.items()},
    **ON_GCP,
}


def test_every_combination_has_a_scene_and_a_source() -> None:
    assert set(SCENES) == set(BY_TRAITS)
    assert len(BY_TRAITS) == len(AWS) + len(GCP)
    assert all(one.source and one.message for one in BY_TRAITS.values())


def starts_with(stack: Stack, one: Combination) -> bool:
    return any(told.startswith(one.message) for told in cases.violations(LEGAL_PLACEMENT, stack))


@pytest.mark.parametrize("traits", SCENES, ids=" × ".join)
def test_what_a_cloud_refuses_is_one_message(traits: tuple[str, ...]) -> None:
    bad, _ = SCENES[traits]
    told = cases.violations(LEGAL_PLACEMENT, bad)
    assert [one for one in told if one.startswith(BY_TRAITS[traits].message)]
    assert len(told) == 1, told


@pytest.mark.parametrize("traits", SCENES, ids=" × ".join)
def test_each_part_alone_is_taken(traits: tuple[str, ...]) -> None:
    for good in SCENES[traits][1]:
        assert not starts_with(good, BY_TRAITS[traits])


@pytest.mark.parametrize("traits", SCENES, ids=" × ".join)
def test_what_is_not_known_is_never_a_breach(traits: tuple[str, ...]) -> None:
    bad, _ = SCENES[traits]
    links = ("id", "selfLink", "name", "target", "versions", "launchTemplate")
    hidden = [
        replace(one, props={k: v if k in links else UNKNOWN for k, v in one.props.items()})
        for one in bad.resources
    ]
    stack = cases.stack(*map(awaited, hidden))
    assert cases.violations(LEGAL_PLACEMENT, stack) == []
    assert cases.waits(LEGAL_PLACEMENT, stack)


def test_zones_are_counted_by_name_too_and_elsewhere_not_at_all() -> None:
    named = aws(
        Placed(group={**IN_CLOSE, "availabilityZones": ["a", "b"], "vpcZoneIdentifiers": []})
    )
    assert len(cases.violations(LEGAL_PLACEMENT, named)) == 1
    unseen = aws(Placed(group={**IN_CLOSE, "vpcZoneIdentifiers": ["subnet-x", "subnet-y"]}))
    assert cases.found(LEGAL_PLACEMENT, unseen) == []


def test_a_lone_machine_is_judged_too() -> None:
    alone = cases.resource(INSTANCE, instanceType="p5.48xlarge", placementGroup="close", **BLOCK)
    assert misspelt(INSTANCE, alone.props) == []
    (message,) = cases.violations(LEGAL_PLACEMENT, cases.stack(alone, CLOSE))
    assert "takes no placement group" in message
    sleeping = cases.resource(INSTANCE, instanceType="g6.xlarge", hibernation=True)
    assert len(cases.violations(LEGAL_PLACEMENT, cases.stack(sleeping))) == 1


def test_a_machine_without_a_gpu_is_not_judged() -> None:
    stack = aws(Placed({"instanceType": "m7i.large"}, {**IN_CLOSE, **TWO_ZONES}))
    assert cases.found(LEGAL_PLACEMENT, stack) == []


def test_a_template_that_is_not_known_is_waited_for() -> None:
    group = cases.resource(MANAGED, versions=[{"instanceTemplate": UNKNOWN}], **WORKLOAD)
    assert cases.waits(LEGAL_PLACEMENT, cases.stack(awaited(group)))
    assert cases.violations(LEGAL_PLACEMENT, cases.stack(awaited(group))) == []
