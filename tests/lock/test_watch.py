"""Watching a lock: the locked machine at its price of today against the best pick of today."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.plan.world import Doctored, declared, held, in_file

from gputier.catalog import Catalog, load
from gputier.lock import (
    Change,
    Cheaper,
    Lock,
    cheaper_than,
    describe,
    lock_command,
    make_lock,
)
from gputier.plan import StackPlan, plan_declaration
from gputier.workload import read_file, read_stack

CHAT: dict[str, Any] = {"gpu": {"memory": "24GB"}, "clouds": ["aws"],
                        "regions": {"aws": ["us-east-1"]}}  # fmt: skip
STACK: dict[str, Any] = {
    "chat": CHAT,
    "attached": {"gpu": {"models": ["T4"], "count": 2}, "clouds": ["gcp"],
                 "disk": {"scratch": "1TB"}, "nodes": 2},
    "held": {"capacity": held("p5.48xlarge", "use1-az4", 4).model_dump(exclude_none=True)},
}  # fmt: skip


def planned(workloads: dict[str, Any], catalog: Catalog | None = None) -> StackPlan:
    return plan_declaration(declared(workloads), catalog or load())


def locked(workloads: dict[str, Any], catalog: Catalog | None = None) -> Lock:
    return make_lock(planned(workloads, catalog), declared(workloads))


def g6_at(usd: float, other: float = 5.0) -> Catalog:
    """Two machines with 24 GB cards in us-east-1 at these prices."""
    return Doctored(
        only=[("aws", "g6.xlarge"), ("aws", "g5.xlarge")],
        prices={
            ("aws", "g6.xlarge", "on_demand"): {"us-east-1": usd},
            ("aws", "g5.xlarge", "on_demand"): {"us-east-1": other},
        },
    )


def told(
    workloads: dict[str, Any], before: Catalog, today: Catalog, percent: float
) -> tuple[Cheaper, ...]:
    """What is cheaper today than what was locked before."""
    declaration = declared(workloads)
    plan = planned(workloads, today)
    return cheaper_than(locked(workloads, before), plan, declaration, percent, today)


def test_the_locked_machine_counts_at_its_price_of_today() -> None:
    (dearer,) = told({"chat": CHAT}, g6_at(1.0), g6_at(2.0, other=1.0), 10)
    assert dearer.locked_usd_per_hour == 2.0
    assert told({"chat": CHAT}, g6_at(1.0), g6_at(0.4, other=1.0), 10) == ()


def test_a_locked_region_counts_at_its_own_price_even_when_another_is_cheaper_today() -> None:
    wide = {"chat": {"gpu": {"memory": "24GB"}, "clouds": ["aws"], "nodes": 2}}

    def at(east: float, west: float) -> Catalog:
        prices = {("aws", "g6.xlarge", "on_demand"): {"us-east-1": east, "us-west-2": west}}
        return Doctored(only=[("aws", "g6.xlarge")], prices=prices)

    (cheaper,) = told(wide, at(1.0, 3.0), at(2.0, 1.5), 1)
    assert cheaper.locked_usd_per_hour == 4.0
    assert cheaper.percent == pytest.approx(25)


def test_a_locked_composed_machine_counts_with_all_that_is_attached() -> None:
    entry = locked(STACK).entries["attached"]
    dear = Lock("dev", {"attached": replace(entry, instance_type="n1-standard-32")})
    stack = {"attached": STACK["attached"]}
    (cheaper,) = cheaper_than(dear, planned(stack), declared(stack), 1, load())
    host, each = (
        in_file("gcp", entry.region, name, "on_demand")
        for name in ("n1-standard-32", "accelerator:nvidia-tesla-t4")
    )
    disks = load().item("gcp", "local-ssd", entry.region)
    assert disks is not None
    assert disks.usd is not None
    one = host + 2 * each + 3 * 375 * disks.usd / 730
    assert cheaper.locked_usd_per_hour == pytest.approx(2 * one)


def test_a_machine_of_a_dearer_way_to_buy_counts_at_that_way() -> None:
    ways = {"chat": {**CHAT, "capacity": ["spot", "on_demand"]}}
    digest_ = locked(ways).entries["chat"].digest
    entry = locked({"chat": CHAT}).entries["chat"]
    lock = Lock("dev", {"chat": replace(entry, digest=digest_)})
    (cheaper,) = cheaper_than(lock, planned(ways), declared(ways), 1, load())
    assert (cheaper.locked.capacity, cheaper.best.capacity) == ("on_demand", "spot")
    assert cheaper.locked_usd_per_hour == in_file("aws", "us-east-1", "g6.xlarge", "on_demand")


def test_of_several_reservations_each_counts_with_its_own_machines() -> None:
    ways = [held("g6.xlarge", "use1-az4", 1), held("g6.xlarge", "use1-az6", 2)]
    stack = {"chat": {**CHAT, "capacity": [way.model_dump(exclude_none=True) for way in ways]}}
    entry = locked(stack).entries["chat"]
    assert entry.machines == 1
    both = Lock("dev", {"chat": replace(entry, machines=2, zones=("use1-az6",))})
    (cheaper,) = cheaper_than(both, planned(stack), declared(stack), 1, load())
    assert cheaper.locked_usd_per_hour == 2 * (entry.usd_per_hour or 0)


def test_without_a_price_of_today_the_locked_price_counts() -> None:
    gone = {"chat": locked({"chat": CHAT}, g6_at(1.0)).entries["chat"]}
    lock = Lock("dev", {"chat": replace(gone["chat"], catalog_type="g6.gone")})
    plan = planned({"chat": CHAT}, g6_at(0.9))
    (cheaper,) = cheaper_than(lock, plan, declared({"chat": CHAT}), 5, g6_at(0.9))
    assert cheaper.locked_usd_per_hour == 1.0


def test_what_cannot_be_compared_is_not_called_cheaper() -> None:
    unpriced = {"p": {"capacity": held("p5e.48xlarge", "use2-az1").model_dump(exclude_none=True)}}
    assert told(unpriced, load(), load(), 0) == ()
    only_azure = {"p": {"clouds": ["azure"]}}
    lock = Lock("dev", {"p": locked({"p": CHAT}).entries["p"]})
    assert cheaper_than(lock, planned(only_azure), declared(only_azure), 0, load()) == ()
    assert cheaper_than(Lock("dev", {}), planned(STACK), declared(STACK), 0, load()) == ()


# ---- the words and the command -------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "command"),
    [("Pulumi.dev.yaml", "gputier lock dev"), ("team.yaml", "gputier lock {folder}/team.yaml")],
)
def test_the_command_to_lock_names_the_stack_or_the_file(
    name: str, command: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    text = "{chat: {gpu: {count: 1}}}"
    stack = name.startswith("Pulumi")
    body = f"config: {{gputier:workloads: {text}}}" if stack else f"workloads: {text}"
    file.write_text(body, encoding="utf-8")
    (tmp_path / "Pulumi.yaml").write_text("name: x\nruntime: python\n", encoding="utf-8")
    declaration = read_stack("dev", tmp_path) if stack else read_file(file)
    assert lock_command(declaration) == command.format(folder=tmp_path)


def test_a_difference_below_a_cent_never_prints_as_nothing() -> None:
    base = locked({"chat": CHAT}, g6_at(1.0)).entries["chat"]
    change = Change("chat", base, replace(base, usd_per_hour=1.001))
    assert describe(change).endswith("+$0.0010/h, +$0.73 a month")


def test_a_change_to_or_from_nothing_costs_all_of_it() -> None:
    entry = locked({"chat": CHAT}, g6_at(1.0)).entries["chat"]
    assert Change("chat", None, entry).usd_per_hour == 1.0
    assert Change("chat", entry, None).usd_per_month == -730.0
    assert Change("chat", None, replace(entry, usd_per_hour=None)).usd_per_hour is None
    assert Change("chat", None, replace(entry, usd_per_hour=None)).usd_per_month is None
