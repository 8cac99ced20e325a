"""The tables: sourced, dated, plausible, and equal to what the catalogue says of the same card."""

from __future__ import annotations

import re

import pytest

from gputier import catalog
from gputier.node import cards, thresholds, tools, versions, xids
from gputier.node.cards import CARDS
from gputier.node.result import HEALTHY, REBOOT, REPLACE, WARNING
from gputier.node.thresholds import FLOORS, Floor

DATE = re.compile(r"^\d{4}-\d{2}(-\d{2})?$")


def implausible(floor: Floor) -> str | None:
    """Why a floor cannot be right; DCGM's slips of three orders of magnitude are such."""
    share = floor.value / floor.nominal
    if not 0.3 <= share <= 1.0:
        return f"{floor.measure} {floor.key}: {share:.3f} of nominal"
    if not (floor.source and floor.unit and floor.derating and DATE.match(floor.date)):
        return f"{floor.measure} {floor.key}: without source, unit, date or derating"
    return None


@pytest.mark.parametrize("floor", FLOORS, ids=lambda floor: f"{floor.measure} {floor.key}")
def test_a_floor_is_sourced_and_plausible(floor: Floor) -> None:
    assert implausible(floor) is None


# The three slips of DCGM 4.6's nvvs/diag-skus.yaml.in, in MB/s, beside what was measured.
SLIPS = [("H200", 2333, 3_110_000), ("A100-20b0", 137_500, 1_830_000), ("L40", 49_050, 654_000)]


@pytest.mark.parametrize(("key", "value", "measured"), SLIPS)
def test_a_unit_slip_would_be_found(key: str, value: float, measured: float) -> None:
    slip = Floor("memory-bandwidth", key, value, measured, "MB/s", "x", "2026-07-06", "x")
    assert "of nominal" in (implausible(slip) or "")


def test_a_floor_without_source_would_be_found() -> None:
    assert implausible(FLOORS[0]._replace(source=""))


def test_floors_name_cards_of_the_table() -> None:
    names = {card.name for card in CARDS}
    free = {thresholds.PAIRS, thresholds.FABRIC, thresholds.LOOPBACK, thresholds.DISK}
    assert {f.key for f in FLOORS if f.measure not in free} <= names


def test_a_card_without_a_sourced_floor_gates_nothing() -> None:
    assert thresholds.floor(thresholds.ALL_REDUCE, "B200") is None
    assert thresholds.floor(thresholds.DISK, "B200") is not None


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_a_card_is_the_catalogues(card: cards.Card) -> None:
    gpu = catalog.load().gpus[card.name]
    assert card.capability == gpu.compute_capability
    assert card.arch == gpu.architecture
    assert card.pcie[0] == gpu.pcie_generation
    assert card.mig == bool(gpu.mig_supported)
    smallest, largest = min(card.memory_mib), max(card.memory_mib)
    assert gpu.vram_gib * 1024 * 0.92 <= smallest <= largest <= gpu.vram_gib * 1024 * 1.04
    if card.nvlinks and card.link_gb_s > 20:
        both_ways = 2 * card.nvlinks * card.link_gb_s
        assert gpu.nvlink_gb_s_per_gpu == pytest.approx(both_ways, rel=0.07)


def test_cards_are_told_apart_by_name_and_by_id() -> None:
    for card in CARDS:
        assert cards.by_text(card.name) is card
        assert all(cards.by_id(device) is card for device in card.ids)
    assert cards.by_text("NVIDIA A10G") is not cards.by_text("NVIDIA A10")
    assert cards.by_text("NVIDIA H200") is not cards.by_text("NVIDIA H20")
    assert cards.by_text("NVIDIA L40S") is not cards.by_text("NVIDIA L40")


PRINTED = {
    "Tesla T4": "T4",
    "Tesla V100-SXM2-16GB": "V100-16GB",
    "NVIDIA A100-SXM4-80GB": "A100-80GB",
    "A100-SXM4-40GB": "A100-40GB",
    "NVIDIA A100 80GB PCIe": "A100-PCIE-80GB",
    "NVIDIA L4-12Q": "L4",
    "NVIDIA H100 80GB HBM3": "H100-80GB",
    "NVIDIA H100 NVL": "H100-NVL-94GB",
    "NVIDIA GB200": "GB200",
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": "RTX-PRO-6000-SE",
}


@pytest.mark.parametrize(("printed", "name"), PRINTED.items())
def test_what_nvidia_smi_prints_is_recognised(printed: str, name: str) -> None:
    card = cards.by_text(printed)
    assert card
    assert card.name == name


def event(code: int, detail: str = "") -> xids.Event:
    return xids.Event("0000:1b:00", code, detail, f"NVRM: Xid (PCI:0000:1b:00): {code}, {detail}")


# The documented table, written out once more by hand: code → what we do.
ACTIONS = {
    **dict.fromkeys((13, 31, 43, 45, 63), HEALTHY),
    **dict.fromkeys((48, 74, 109, 110, 119, 120, 136, 140, 143, 151, 155, 156, 158, 168), REBOOT),
    **dict.fromkeys((54, 61, 62, 64, 79, 95, 157), REPLACE),
    **dict.fromkeys((92, 94, *range(144, 151)), WARNING),
}


@pytest.mark.parametrize(("code", "outcome"), ACTIONS.items())
def test_an_xid_asks_for_what_the_table_says(code: int, outcome: str) -> None:
    assert xids.action(event(code), links_down=False) == outcome


def test_the_table_of_xids_has_no_row_without_a_test() -> None:
    assert set(xids.TABLE) == {*ACTIONS, 154}
    assert len(xids.TABLE) == len(xids.XIDS)


@pytest.mark.parametrize("code", range(144, 151))
def test_an_nvlink_5_error_with_links_down_is_a_replacement(code: int) -> None:
    assert xids.action(event(code), links_down=True) == REPLACE


RECOVERY = {
    "pid=1, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)": REBOOT,
    "pid=1, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)": REBOOT,
    "pid=1, GPU recovery action changed from 0x0 (None) to 0x3 (Drain P2P)": WARNING,
    "pid=1, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)": REBOOT,
}


@pytest.mark.parametrize(("text", "outcome"), RECOVERY.items())
def test_xid_154_follows_its_text(text: str, outcome: str) -> None:
    assert xids.action(event(154, text), links_down=False) == outcome


def test_an_xid_that_the_table_lacks_is_a_warning() -> None:
    assert xids.action(event(999), links_down=False) == WARNING


def test_the_code_is_read_after_the_bracket_and_not_from_the_bus_number() -> None:
    """0000:79:00 is no Xid 79, and a line about something else is none at all."""
    log = ("kernel: NVRM: Xid (PCI:0000:79:00): 13, pid=1, Graphics Exception\n"
           "kernel: NVRM: GPU at PCI:0000:79:00: GPU-1\n"
           "kernel: pcieport 0000:00:79.0: AER: Corrected error received\n")  # fmt: skip
    (found,) = xids.find(log)
    assert (found.code, found.device) == (13, "0000:79:00")


def test_dcgm_tables_hold_together() -> None:
    assert set(tools.SEVERITY) == set(range(7))
    assert set(tools.DCGM_VERDICTS) <= set(tools.DCGM_STATUS)
    assert all(row.why for row in tools.OVERRIDES.values())
    assert tools.OVERRIDES[80].outcome == REPLACE, "an RMA criterion, whatever DCGM says"


COMPARED = [
    ("2.9.0+cu128", "2.9", True),
    ("2.9.0+cu128", "2.9.0+cu128", True),
    ("2.9.0+cu126", "2.9.0+cu128", False),
    ("2.9.0", "2.9.0+cu128", False),
    ("2.10.0", "2.1", False),
    ("2.9.1", "2.9.0", False),
]


@pytest.mark.parametrize(("have", "wanted", "same"), COMPARED)
def test_versions_are_compared_as_far_as_they_are_named(have: str, wanted: str, same: bool) -> None:
    assert versions.same(have, wanted) is same


def test_floors_and_ceilings_of_drivers() -> None:
    assert versions.at_least("580.95.05", "580")
    assert not versions.at_least("570.172.08", "580")
    assert versions.at_most("580.159.04", "580"), "a branch takes all of it"
    assert not versions.at_most("595.58.03", "580")
    assert not versions.at_least("unknown", "580")
    assert versions.cuda_of_index("https://download.pytorch.org/whl/cu128") == "12.8"
    assert versions.cuda_of_index("https://download.pytorch.org/whl/cpu") is None
