"""The prices of the pack are the catalogue's, and reading them takes no time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.aws import world
from tests.policies import prices

from gputier.plan.machine import Machine as Planned
from gputier.plan.price import LISTED, UnitPrice, machine_price
from gputier_policies import facts
from gputier_policies.machine import Machine

FILE = "policies/gputier_policies/prices.json"
Generated = Callable[[str, str, str], None]


@pytest.mark.usefixtures("generated")
def test_the_prices_are_those_of_the_catalogue(root: Path, request: pytest.FixtureRequest) -> None:
    wanted = prices.text(world.catalog())
    if request.config.getoption("--update-docs"):
        (root / FILE).write_text(wanted, encoding="utf-8")
    assert (root / FILE).read_text(encoding="utf-8") == wanted, f"{FILE}: `make docs` writes it"


def test_every_machine_costs_what_the_plan_says() -> None:
    catalog, compared = world.catalog(), 0
    for row in catalog.rows(prices.CLOUDS):
        if row.accelerator:
            continue
        planned = Planned(row, None, 0, 1, None, 0.0)
        for use in prices.BOUGHT:
            for region in {*catalog.prices(row.cloud, row.name, use), "us-east-1", "us-central1"}:
                price = machine_price(catalog, planned, region, use)
                told = facts.price(Machine(row.cloud, row.name, "", use), region)
                assert _same(price, told), (row.name, region, use)
                compared += isinstance(told, facts.Price)
    assert compared > 2000


def _same(price: UnitPrice, told: facts.Price | str) -> bool:
    """A price that is borrowed for a region in which nothing lists the machine is none here."""
    if isinstance(told, str):
        return price.basis != LISTED
    return price.usd is not None and abs(price.usd - told.usd) < 1e-6


def test_gpus_that_are_attached_cost_what_the_plan_says() -> None:
    catalog = world.catalog()
    row = catalog.types["gcp", "n1+nvidia-tesla-t4x2"]
    host = next(h for h in catalog.hosts_of(row) if h.name == "n1-standard-8")
    planned = machine_price(catalog, Planned(row, host, 0, 1, None, 0.0), "us-central1", "spot")
    told = facts.price(
        Machine("gcp", "n1-standard-8", "", "spot", "nvidia-tesla-t4", 2), "us-central1"
    )
    assert isinstance(told, facts.Price)
    assert told.usd == planned.usd


def test_the_date_of_the_prices_is_the_catalogues() -> None:
    assert facts.as_of() == world.catalog().as_of
    assert facts.catalog() == world.catalog().id


def test_the_file_is_read_within_a_hundredth_of_a_second(root: Path) -> None:
    file = root / FILE
    took: list[float] = []
    for _ in range(5):
        begun = time.perf_counter()
        json.loads(file.read_bytes())
        took.append(time.perf_counter() - begun)
    assert min(took) < 0.01, took
    assert file.stat().st_size < 200_000
