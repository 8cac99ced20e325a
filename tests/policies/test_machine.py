"""What machines are read from resources, in any of the ways in which programs ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.policies import cases
from tests.policies.tables import misspelt

from gputier_policies import facts, machine
from gputier_policies.machine import machines, region_of
from gputier_policies.values import UNKNOWN, Surroundings, known

INSTANCE, TEMPLATE, GROUP = machine.INSTANCE, machine.TEMPLATE, machine.GROUP
T4 = [{"type": "projects/p/zones/z/acceleratorTypes/nvidia-tesla-t4-vws", "count": 2}]


def overrides(*each: Mapping[str, Any]) -> dict[str, Any]:
    within: dict[str, Any] = {"launchTemplateSpecification": {}, "overrides": list(each)}
    return {"mixedInstancesPolicy": {"launchTemplate": within}}


def held(**what: Any) -> dict[str, Any]:
    return {"capacityReservationSpecification": what}


#: type, properties, what is read: its text, and how it is bought.
READ: list[tuple[str, dict[str, Any], list[tuple[str, Any]]]] = [
    (INSTANCE, {"instanceType": "g6.xlarge"}, [("g6.xlarge", "on_demand")]),
    (INSTANCE, {"launchTemplate": {"id": "lt-1"}}, []),
    (INSTANCE, {"instanceType": "g6.xlarge", "instanceMarketOptions": {"marketType": "spot"}},
     [("g6.xlarge", "spot")]),
    (TEMPLATE, {"instanceType": "p5.48xlarge",
                "instanceMarketOptions": {"marketType": "capacity-block"}},
     [("p5.48xlarge", "capacity_block")]),
    (TEMPLATE, {"instanceType": "p5.48xlarge", "instanceMarketOptions": UNKNOWN},
     [("p5.48xlarge", UNKNOWN)]),
    (TEMPLATE, {"instanceType": "p5.48xlarge",
                **held(capacityReservationTarget={"capacityReservationId": "cr-1"})},
     [("p5.48xlarge", "reservation")]),
    (TEMPLATE, {"instanceType": "p5.48xlarge",
                **held(capacityReservationPreference="capacity-reservations-only")},
     [("p5.48xlarge", "reservation")]),
    (TEMPLATE, {"instanceType": "p5.48xlarge", **held(capacityReservationPreference="open")},
     [("p5.48xlarge", "on_demand")]),
    (TEMPLATE, {"instanceRequirements": {"vcpuCount": {"min": 4}, "memoryMib": {"min": 4},
                                         "acceleratorCount": {"min": 1}}},
     [("a machine that is chosen by its traits", "on_demand")]),
    (machine.SPOT_INSTANCE, {"instanceType": "g6.xlarge"}, [("g6.xlarge", "spot")]),
    (machine.CONFIGURATION, {"instanceType": "g6.xlarge", "spotPrice": "1"},
     [("g6.xlarge", "spot")]),
    (GROUP, overrides({"instanceType": "g6.xlarge"}, {"instanceType": UNKNOWN}, {}),
     [("g6.xlarge", "on_demand"), ("a machine", "on_demand")]),
    (machine.EC2_FLEET,
     {"launchTemplateConfigs": [{"overrides": [{"instanceType": "g6.xlarge"}]}],
      "targetCapacitySpecification": {"defaultTargetCapacityType": "spot",
                                      "totalTargetCapacity": 2}},
     [("g6.xlarge", "spot")]),
    (machine.SPOT_FLEET, {"launchSpecifications": [{"instanceType": "g6.xlarge"}]},
     [("g6.xlarge", "spot")]),
    (machine.NODE_GROUP, {"instanceTypes": ["g6.xlarge"], "capacityType": "SPOT"},
     [("g6.xlarge", "spot")]),
    (machine.NODE_GROUP, {"instanceTypes": ["p5.48xlarge"], "capacityType": "CAPACITY_BLOCK"},
     [("p5.48xlarge", "capacity_block")]),
    (machine.GCP_INSTANCE, {"machineType": "zones/z/machineTypes/n1-standard-8",
                            "guestAccelerators": T4},
     [("n1-standard-8 with 2 × nvidia-tesla-t4", "on_demand")]),
    # What the provider lists of a type with GPUs of its own is not attached.
    (machine.GCP_INSTANCE, {"machineType": "g2-standard-4",
                            "guestAccelerators": [{"type": "nvidia-l4", "count": 1}]},
     [("g2-standard-4", "on_demand")]),
    (machine.GCP_TEMPLATE, {"machineType": "a4-highgpu-8g",
                            "scheduling": {"provisioningModel": "FLEX_START"}},
     [("a4-highgpu-8g", "flex_start")]),
    (machine.GCP_TEMPLATE, {"machineType": "g2-standard-4",
                            "scheduling": {"preemptible": True}}, [("g2-standard-4", "spot")]),
    (machine.GCP_TEMPLATE, {"machineType": "g2-standard-4", "scheduling": UNKNOWN},
     [("g2-standard-4", UNKNOWN)]),
    (machine.GCP_REGION_TEMPLATE, {"machineType": "a3-ultragpu-8g",
                                   "scheduling": {"provisioningModel": "RESERVATION_BOUND"}},
     [("a3-ultragpu-8g", "reservation")]),
    (machine.GCP_TEMPLATE, {"machineType": "a3-highgpu-8g",
                            "reservationAffinity": {"type": "SPECIFIC_RESERVATION"}},
     [("a3-highgpu-8g", "reservation")]),
    (machine.GCP_REGION_GROUP, {"instanceFlexibilityPolicy": {"instanceSelections": [
        {"name": "a", "machineTypes": ["g2-standard-4", "g2-standard-8"]}]}},
     [("g2-standard-4", "on_demand"), ("g2-standard-8", "on_demand")]),
    (machine.NODE_POOL, {"nodeConfig": {"machineType": "g2-standard-4", "spot": True}},
     [("g2-standard-4", "spot")]),
    (machine.NODE_POOL, {"nodeConfig": {"machineType": "g2-standard-4", "flexStart": True}},
     [("g2-standard-4", "flex_start")]),
    (machine.NODE_POOL, {"nodeConfig": {"machineType": "g2-standard-4", "reservationAffinity": {
        "consumeReservationType": "SPECIFIC_RESERVATION"}}}, [("g2-standard-4", "reservation")]),
    ("aws:s3/bucket:Bucket", {}, []),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "props", "read"), READ)
def test_machines_are_read(type_: str, props: dict[str, Any], read: list[tuple[str, Any]]) -> None:
    assert misspelt(type_, {k: v for k, v in props.items() if known(v)}) == []
    found = machines(cases.resource(type_, **props))
    assert [(str(one), one.capacity) for one in found] == read


@pytest.mark.parametrize(("type_", "props", "gpu"), [
    (INSTANCE, {"instanceType": "g6.xlarge"}, True),
    (INSTANCE, {"instanceType": "gr6.4xlarge"}, True),
    (INSTANCE, {"instanceType": "p99.metal"}, True),
    (INSTANCE, {"instanceType": "m7g.large"}, False),
    (INSTANCE, {"instanceType": "inf2.xlarge"}, False),
    (INSTANCE, {"instanceType": UNKNOWN}, UNKNOWN),
    (machine.GCP_INSTANCE, {"machineType": "a4x-highgpu-4g"}, True),
    (machine.GCP_INSTANCE, {"machineType": "c4a-standard-4"}, False),
    (machine.GCP_INSTANCE, {"machineType": "n1-standard-4"}, False),
    (machine.GCP_INSTANCE, {"machineType": UNKNOWN, "guestAccelerators": T4}, True),
    (machine.GCP_INSTANCE, {"machineType": "n1-standard-4", "guestAccelerators": UNKNOWN}, UNKNOWN),
])  # fmt: skip
def test_whether_a_machine_has_a_gpu(type_: str, props: dict[str, Any], gpu: Any) -> None:
    (found,) = machines(cases.resource(type_, **props))
    assert found.gpu is gpu


def test_every_type_of_machine_of_the_catalogue_is_seen_to_have_one() -> None:
    for cloud in ("aws", "gcp"):
        assert all(
            machine.Machine(cloud, name, "").gpu is True for name, _ in facts.machines(cloud)
        )


NOWHERE = Surroundings("test", "project", {})


@pytest.mark.parametrize(("type_", "props", "provider", "where"), [
    (INSTANCE, {"region": "eu-west-1"}, {"region": "us-east-2"}, "eu-west-1"),
    (INSTANCE, {"availabilityZone": "us-west-2-lax-1a"}, {}, "us-west-2"),
    (INSTANCE, {"availabilityZone": UNKNOWN}, {"region": "us-east-2"}, "us-east-2"),
    (INSTANCE, {"region": UNKNOWN}, {"region": "us-east-2"}, UNKNOWN),
    (INSTANCE, {"arn": "arn:aws:ec2:ap-south-1:1:instance/i-1"}, {}, "ap-south-1"),
    (GROUP, {"availabilityZones": ["us-east-1a"]}, {}, "us-east-1"),
    (INSTANCE, {}, {}, None),
    (machine.GCP_INSTANCE, {"zone": "projects/p/zones/us-central1-a"}, {}, "us-central1"),
    (machine.GCP_INSTANCE, {"zone": UNKNOWN}, {"region": "us-west1"}, UNKNOWN),
    (machine.NODE_POOL, {"location": "europe-west4"}, {}, "europe-west4"),
])  # fmt: skip
def test_where_a_machine_is(
    type_: str, props: dict[str, Any], provider: dict[str, Any], where: Any
) -> None:
    one = cases.of(cases.resource(type_, stack=NOWHERE, **props), provider)
    assert region_of(one) == where


def test_the_config_of_the_stack_is_asked_last() -> None:
    assert region_of(cases.resource(INSTANCE)) == "us-east-1"
    assert region_of(cases.resource(machine.GCP_TEMPLATE)) == "us-central1"
    zonal = Surroundings("test", "project", {"gcp:zone": "us-west1-b", "aws:region": "x"})
    assert region_of(cases.resource(machine.GCP_TEMPLATE, stack=zonal)) == "us-west1"
