"""The PCI bus in every form that lspci prints it, and without lspci; RDMA ports likewise."""

# ruff: noqa: E501 (as lspci prints it)
from __future__ import annotations

import json

import pytest
from tests.node.machines import Machine

from gputier.node import expect, pci
from gputier.node.checks import network
from gputier.node.checks.gpus import is_model
from gputier.node.engine import Context

FORMS = {
    "-Dnnk": "0000:1b:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)\n"
    "\tSubsystem: NVIDIA Corporation Device [10de:16c1]\n\tKernel driver in use: nvidia\n",
    "-nn": "1b:00.0 3D controller [0302]: NVIDIA Corporation Device [10de:2330] (rev a1)\n",
    "-n": "1b:00.0 0302: 10de:2330 (rev a1)\n",
    "-Dn": "0000:1b:00.0 0302: 10de:2330 (rev a1)\n",
    "plain": "1b:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)\n",
    "eight digits": "00000000:1b:00.0 3D controller [0302]: NVIDIA Corporation Device [10de:2330]\n",
}  # fmt: skip


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_a_gpu_is_seen_in_every_form(text: str) -> None:
    (device,) = pci.parse(text)
    assert device.is_gpu
    assert device.address == "0000:1b:00.0"
    assert device.device in ("2330", "")
    assert not device.dead


OTHERS = """\
0000:00:1f.0 Ethernet controller [0200]: Amazon.com, Inc. Elastic Fabric Adapter (EFA) [1d0f:efa1]
0000:65:00.0 Bridge [0680]: NVIDIA Corporation GH100 [H100 NVSwitch] [10de:22a3] (rev a1)
0000:01:00.1 Audio device [0403]: NVIDIA Corporation Device [10de:22ba] (rev a1)
0000:02:00.0 Ethernet controller [0200]: Mellanox Technologies MT2910 [ConnectX-7] [15b3:1021]
"""


def test_switches_sound_and_network_cards_are_no_gpus() -> None:
    devices = pci.parse(OTHERS)
    assert [device.is_gpu for device in devices] == [False] * 4
    assert [device.is_switch for device in devices] == [False, True, False, False]
    assert [device.vendor for device in devices] == ["1d0f", "10de", "10de", "15b3"]


def test_a_card_that_fell_off_is_dead() -> None:
    (device,) = pci.parse(
        "1b:00.0 3D controller [0302]: NVIDIA Corporation Device [10de:2330] (rev ff)\n"
    )
    assert device.dead


def test_without_lspci_sysfs_tells() -> None:
    machine = Machine("g4dn.xlarge")
    machine.absent.add("lspci")
    base = "/sys/bus/pci/devices/0000:00:1e.0"
    machine.files.update({f"{base}/class": "0x030200\n", f"{base}/vendor": "0x10de\n", f"{base}/device": "0x1eb8\n"})  # fmt: skip
    machine.links[f"{base}/driver"] = "../../../bus/pci/drivers/nvidia"
    found = pci.bus(Context(machine, expect.read("{}")))
    assert [(gpu.device, gpu.driver) for gpu in found.gpus] == [("1eb8", "nvidia")]


def test_an_lspci_that_knows_only_plain_options_is_asked_plainly() -> None:
    machine = Machine("g4dn.xlarge")
    machine.says("lspci", 0, "")
    machine.says("lspci -n", 0, "00:1e.0 0302: 10de:1eb8 (rev a1)\n")
    assert len(pci.bus(Context(machine, expect.read("{}"))).gpus) == 1


IBSTAT = """\
CA 'mlx5_ib0'
\tCA type: MT4129
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 400
\t\tLink layer: InfiniBand
CA 'mlx5_an0'
\tPort 1:
\t\tState: Active
\t\tRate: 100
\t\tLink layer: Ethernet
"""


def test_ports_are_read_from_ibstat_where_sysfs_shows_none() -> None:
    machine = Machine("p5.48xlarge")
    machine.says("ibstat", 0, IBSTAT)
    ctx = Context(machine, expect.read(json.dumps({"fabric": {"kind": "infiniband"}})))
    (port,) = network.ports(ctx, "infiniband")
    assert (port.name, port.state, port.gbps) == ("mlx5_ib0", "Active", 400.0)
    assert network.ports(ctx, "roce") == [], "accelerated networking is no fabric"


SAME = [
    ("NVIDIA H100 80GB HBM3", "H100-80GB", True),
    ("NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3", True),
    ("NVIDIA H100 80GB HBM3", "H100", True),
    ("NVIDIA H100 PCIe", "H100-80GB", False),
    ("NVIDIA A10G", "A10", False),
    ("NVIDIA H200", "H20-96GB", False),
    ("NVIDIA H20-3e", "H20-141GB", True),
    ("Tesla P4", "P4", True),
    ("Tesla P40", "P4", False),
    ("NVIDIA A800-SXM4-80GB", "A800-80GB", True),
    ("NVIDIA L4-3Q", "L4", True),
]


@pytest.mark.parametrize(("printed", "wanted", "same"), SAME)
def test_a_card_is_recognised_by_either_name(printed: str, wanted: str, same: bool) -> None:
    assert is_model(printed, wanted) is same
