"""How interfaces are laid over network cards: the grammar, and every row of the data."""

from __future__ import annotations

import pytest

from gputier.catalog import InstanceType, Interface, load, parse_layout

ROWS = [row for row in load().rows(["aws"]) if load().card_layout(row.name)]


def test_78_a_layout_gives_each_interface_its_card_and_device() -> None:
    """eksctl-io/eksctl#7520: p5 came up with wrong device indexes."""
    assert parse_layout("0:0:interface;0:1:efa-only;1-3:0:efa-only") == (
        Interface(0, 0, "interface"), Interface(0, 1, "efa-only"), Interface(1, 0, "efa-only"),
        Interface(2, 0, "efa-only"), Interface(3, 0, "efa-only"),
    )  # fmt: skip
    assert parse_layout("0:0:efa;4,8:1:interface") == (
        Interface(0, 0, "efa"), Interface(4, 1, "interface"), Interface(8, 1, "interface"),
    )  # fmt: skip


@pytest.mark.parametrize(
    "text", ["", "0:0", "0:0:ena", "x:0:efa", "0:0:efa;", "0:0:efa;0:0:interface", "0:0:efa (or)"]
)
def test_another_grammar_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"card:device:kind|two interfaces in one place"):
        parse_layout(text)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_76_every_card_that_carries_the_fabric_has_its_interface(row: InstanceType) -> None:
    """skypilot-org/skypilot#8391: 1 of 4 EFA interfaces used, a quarter of the bandwidth."""
    name, most = row.name, row.efa_interfaces_max
    layout = load().card_layout(name)
    assert layout is not None
    efa = [one for one in layout.fabric if one.kind != "interface"]
    # Of GB200's sixteen places, four of 400 Gbps are all that the GPUs reach (the data's notes).
    assert len(efa) == (4 if name == "p6e-gb200.36xlarge" else most)
    assert all(one.card < layout.cards for one in layout.fabric)
    assert len({one.card for one in efa}) == len(efa)
    assert [one for one in layout.fabric if one.kind == "interface"] == [layout.fabric[0]]
    assert layout.fabric[0] == Interface(0, 0, "interface")


def test_types_with_a_layout_are_those_with_the_fabric() -> None:
    catalog = load()
    with_fabric = {row.name for row in catalog.rows(["aws"]) if row.interconnect == "efa"}
    assert with_fabric == {row.name for row in ROWS}


@pytest.mark.parametrize(
    ("name", "cards", "interfaces", "gbps"),
    [
        ("g6.8xlarge", 1, 2, 25), ("p4d.24xlarge", 4, 5, 100), ("p5.48xlarge", 32, 33, 100),
        ("p5en.48xlarge", 16, 17, 200), ("p6-b300.48xlarge", 17, 17, 350),
        ("p6e-gb200.36xlarge", 17, 5, 100),
    ],
)  # fmt: skip
def test_machines_have_the_cards_that_amazon_lists(
    name: str, cards: int, interfaces: int, gbps: float
) -> None:
    layout = load().card_layout(name)
    assert layout is not None
    assert (layout.cards, len(layout.fabric), layout.ip_gbps) == (cards, interfaces, gbps)
