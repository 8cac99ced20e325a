"""What real machines printed is read as it was meant."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.node import public_logs
from tests.node.machines import Machine
from tests.node.public_logs import Log

from gputier.node import cards, smi
from gputier.node.engine import Context
from gputier.node.expect import Expectation
from gputier.node.host import Done
from gputier.node.verbs.common import Run

Judge = Callable[..., Run]


def links(log: Log) -> list[tuple[int, list[smi.Link]]]:
    machine = Machine("p3.16xlarge")
    machine.overrides.insert(
        0, (("nvidia-smi", "nvlink"), Done((), 0, log.text, "", 0.1, "exited"))
    )
    return smi.links(Context(machine, Expectation({})))[1]


def test_inactive_links_are_not_up() -> None:
    ((gpu, found),) = links(public_logs.V100_LINKS)
    assert gpu == 3
    assert [link.number for link in found if not link.speed] == [3, 5]
    assert found[0].speed == 25.781


def test_eighteen_links_of_a_gb200() -> None:
    ((_, found),) = links(public_logs.GB200_LINKS)
    assert [link.speed for link in found] == [53.125] * 18


def test_a_gpu_without_nvlink_stands_out_in_the_matrix(run: Judge) -> None:
    rows = smi.matrix(public_logs.B200_MATRIX.text)
    assert rows["GPU2"] == {"GPU0": "NODE", "GPU1": "NODE", "GPU2": "X", "GPU3": "NODE"}
    machine = Machine("p6-b200.48xlarge")
    machine.says("nvidia-smi topo -m", 0, public_logs.B200_MATRIX.text)
    (found,) = (c for c in run(machine, "standard").report["checks"] if c["name"] == "topology")
    assert found["outcome"] == "reboot"
    assert "GPU0–GPU2 NODE" in found["evidence"]


def test_network_cards_in_the_matrix_do_not_disturb() -> None:
    rows = smi.matrix(public_logs.NIC_MATRIX.text)
    assert {rows[f"GPU{n}"].get(f"GPU{(n + 1) % 4}") for n in range(4)} == {"NV6"}


def test_the_details_of_branch_535_are_read() -> None:
    (tree,) = smi.tree(public_logs.VGPU_DETAILS.text)
    assert tree["address"] == "00000000:01:00.0"
    assert smi.look(tree, "MIG Mode", "Pending") == "Disabled"
    assert smi.absent(smi.look(tree, "Serial Number"))
    assert smi.look(tree, "Fabric", "State") is None
    assert cards.is_slice(smi.look(tree, "Product Name") or "")


def test_a_slice_names_itself() -> None:
    assert "NVIDIA L4-12Q" in public_logs.SLICE_BANNER.text
    card = cards.by_text("NVIDIA L4-12Q")
    assert card
    assert card.name == "L4"


def test_a_driver_that_is_not_there_is_our_fault(run: Judge) -> None:
    machine = Machine("gr6f.4xlarge")
    machine.says("nvidia-smi", 9, public_logs.NO_DRIVER.text)
    assert run(machine).report["outcome"] == "config"


@pytest.mark.parametrize("log", public_logs.ALL, ids=lambda log: log.address)
def test_every_excerpt_has_an_address(log: Log) -> None:
    assert log.address.startswith("https://github.com/")
    assert log.text.endswith("\n")
