"""What Google is told of machines and groups."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from tests.gcp.world import planned
from tests.plan.world import machine, row

from gputier import catalog as facts
from gputier.plan.google import (
    ANY,
    EVEN,
    Card,
    GoogleMachine,
    google_machine,
    update_of,
    workstation_card,
)
from gputier.plan.verdict import Verdict

L4: dict[str, Any] = {"gpu": {"models": ["L4"]}, "purpose": "inference"}
H200: dict[str, Any] = {"gpu": {"models": ["H200"], "count": 8}, "capacity": "spot"}


def told(**fields: Any) -> GoogleMachine:
    chosen = planned(**fields).chosen
    assert chosen
    return google_machine(chosen)


def update(*, zones: int = 3, moves: bool = False, stateful: bool = False, **fields: Any) -> Any:
    chosen = planned(**{**L4, **fields}).chosen
    assert chosen
    return update_of(chosen.fleet, zones, moves=moves, stateful=stateful)


def test_cards_are_attached_to_n1_and_built_into_the_others() -> None:
    assert told(gpu={"models": ["T4"], "count": 2}).card == Card("nvidia-tesla-t4", 2)
    assert told(**L4).card is None
    assert told(**H200).card is None


MACHINES = Path(facts.__file__).parent / "data" / "gcp_machines.csv"
VWS = [
    (found["machine_type"], found["vws_accelerator_type"], found["gpu_count"])
    for found in csv.DictReader(MACHINES.read_text(encoding="utf-8").splitlines())
    if ("gcp", found["machine_type"]) in facts.load().types
]


@pytest.mark.parametrize(("name", "kind", "count"), VWS)
def test_a_workstation_s_cards_are_those_of_the_facts_and_none_is_a_part(
    name: str, kind: str, count: str
) -> None:
    of = row("gcp", name)
    verdict = Verdict(of, machine(of), "us-central1", (), "confirmed", "on_demand", None, ())
    found = workstation_card(verdict)
    whole = kind and count.isdecimal()
    assert found == (Card(kind, int(count)) if whole else None)


def test_a_licensed_card_is_named_even_where_it_is_built_in() -> None:
    gpu: dict[str, Any]
    for gpu, card in (
        ({"models": ["T4"], "count": 2}, Card("nvidia-tesla-t4-vws", 2)),
        ({"models": ["L4"]}, Card("nvidia-l4-vws", 1)),
    ):
        chosen = planned(gpu=gpu, purpose="vdi").chosen
        assert chosen
        assert google_machine(chosen, workstation=True).card == card
        assert google_machine(chosen, workstation=False).card != card


def test_local_disks_are_asked_for_where_they_do_not_come_with_the_machine() -> None:
    assert told(**L4, disk={"scratch": "300GiB"}).ssds == 1
    assert told(**L4).ssds == 0
    assert told(**H200, disk={"scratch": "1TiB"}).ssds == 0
    ultra = told(gpu={"models": ["A100-80GB"], "count": 1}, disk={"scratch": "300GiB"})
    assert ultra.ssds == 0


def test_a_spot_machine_is_not_started_again_and_goes_or_stops_when_it_is_taken() -> None:
    spot = told(**L4, capacity="spot")
    assert (spot.provisioning, spot.restarts, spot.ends) == ("SPOT", False, "DELETE")
    lone = told(gpu={"models": ["L4"]}, purpose="development", capacity="spot")
    assert lone.ends == "STOP"
    plain = told(**L4)
    assert (plain.provisioning, plain.restarts, plain.ends) == ("STANDARD", True, None)
    assert plain.reservation is None


def test_a_reservation_is_taken_by_its_name() -> None:
    held = {
        "use": "reservation", "id": "my-l4", "instance_type": "g2-standard-8",
        "zone": "us-central1-a", "count": 2,
    }  # fmt: skip
    found = told(**L4, capacity=held)
    assert (found.reservation, found.provisioning) == ("my-l4", "STANDARD")


@pytest.mark.parametrize(("zones", "surge"), [(1, 1), (3, 3)])
def test_a_rolling_change_launches_first_one_for_each_zone(zones: int, surge: int) -> None:
    found = update(zones=zones, rollout="rolling")
    assert (found.proactive, found.surge, found.unavailable) == (True, surge, 0)
    assert not found.keeps_names


def test_where_a_card_more_is_not_to_be_had_the_old_machine_goes_first() -> None:
    found = update(rollout="rolling", network={"placement": "cluster"}, zones=1)
    assert (found.proactive, found.surge, found.unavailable) == (True, 0, 1)
    assert found.keeps_names


def test_a_reservation_has_no_place_for_a_machine_more() -> None:
    held = {
        "use": "reservation", "instance_type": "g2-standard-8", "zone": "us-central1-a", "count": 1,
    }  # fmt: skip
    found = update(rollout="rolling", capacity=held, zones=1)
    assert (found.proactive, found.surge, found.unavailable) == (True, 0, 1)


def test_a_change_for_new_machines_replaces_none() -> None:
    found = update(rollout="new-machines")
    assert (found.proactive, found.surge, found.unavailable) == (False, 0, 3)


def test_a_group_takes_machines_where_they_are_unless_an_autoscaler_keeps_it_even() -> None:
    assert (update().shape, update().redistributes) == (ANY, False)
    moving = update(moves=True)
    assert (moving.shape, moving.redistributes) == (EVEN, True)
    assert (update(moves=True, zones=1).shape, update(moves=True, zones=1).redistributes) == (
        ANY, False,
    )  # fmt: skip


def test_disks_that_stay_keep_their_machines_names_and_places() -> None:
    found = update(rollout="rolling", stateful=True, moves=True)
    assert (found.keeps_names, found.surge, found.redistributes) == (True, 0, False)
