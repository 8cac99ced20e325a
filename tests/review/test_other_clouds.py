"""Machines of Azure, Alibaba Cloud and Tencent Cloud, by the catalogue's prices.csv."""

from __future__ import annotations

import pytest

from gputier.review.cost import Priced, Unpriced
from gputier.review.other_clouds import PRICERS
from gputier.review.preview import State
from tests.review.worlds import cost, state

H = 730.0
A100, T4X1_16 = 3.673, 1.204  # Standard_NC24ads_A100_v4, Standard_NC16as_T4_v3 in eastus
GN6IA = 4.5214  # ecs.ebmgn6ia.20xlarge in cn-hangzhou
VM = "azure-native:compute:VirtualMachine"
SET = "azure-native:compute:VirtualMachineScaleSet"
LINUX = "azure:compute/linuxVirtualMachine:LinuxVirtualMachine"
ALIBABA = "alicloud:ecs/instance:Instance"
TENCENT = "tencentcloud:Instance/instance:Instance"


@pytest.mark.parametrize(
    ("expected", "one"),
    [
        (A100 * H, state(VM, location="East US",
                         hardwareProfile={"vmSize": "Standard_NC24ads_A100_v4"})),
        (T4X1_16 * H, state(LINUX, location="eastus", size="Standard_NC16as_T4_v3")),
        (3 * A100 * H, state(SET, location="eastus",
                             sku={"name": "Standard_NC24ads_A100_v4", "capacity": 3})),
        (GN6IA * H, state(ALIBABA, availabilityZone="cn-hangzhou-i",
                          instanceType="ecs.ebmgn6ia.20xlarge")),
    ],
)  # fmt: skip
def test_a_machine_costs_its_hours(expected: float, one: State) -> None:
    found = cost(PRICERS, one)
    assert isinstance(found, Priced), found
    assert found.usd_per_month == pytest.approx(expected)
    assert found.gaps == ("its disks have no known price",)


def test_what_has_no_price_names_its_type_and_region() -> None:
    one = state(TENCENT, availabilityZone="ap-guangzhou-3", instanceType="GN10Xp.2XLARGE40")
    found = cost(PRICERS, one)
    assert isinstance(found, Unpriced)
    assert "GN10Xp.2XLARGE40" in found.why
    assert "ap-guangzhou" in found.why


def test_a_size_that_is_not_shown_is_not_priced() -> None:
    one = state(SET, location="eastus", sku={"name": "Standard_NC24ads_A100_v4"})
    assert isinstance(cost(PRICERS, one), Unpriced)
