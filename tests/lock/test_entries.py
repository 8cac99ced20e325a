"""What is locked, what keeps its machine, what is stale, and what a change costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.plan.world import Doctored, declared, held, in_file

from gputier.catalog import Catalog, load
from gputier.errors import CannotPlace
from gputier.lock import (
    Change,
    Cheaper,
    Lock,
    cheaper_than,
    check_lock,
    compare,
    describe,
    digest_of,
    lock_path,
    make_lock,
    merged,
    unknown_names,
)
from gputier.plan import StackPlan, plan_declaration
from gputier.workload import Declaration, digest, read_file

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


# ---- what is locked ------------------------------------------------------------------------


def test_an_entry_holds_everything_that_was_chosen_and_on_what() -> None:
    plan, lock = planned(STACK), locked(STACK)
    assert lock.stack == "dev"
    assert set(lock.entries) == set(STACK)
    for w in plan.workloads:
        entry, chosen = lock.entries[w.name], w.chosen
        assert chosen is not None
        found = chosen.verdict
        assert entry.digest == digest(declared(STACK).workloads[w.name], "dev", ())
        assert (entry.cloud, entry.region, entry.zones) == (
            found.type.cloud, found.region, chosen.zones,
        )  # fmt: skip
        assert (entry.instance_type, entry.catalog_type) == (
            found.machine.instance_type, found.type.name,
        )  # fmt: skip
        assert (entry.nodes, entry.capacity) == (found.machine.nodes, found.use)
        assert entry.usd_per_hour == pytest.approx(found.total)
        assert (entry.catalog, entry.catalog_as_of) == (load().id, load().as_of)
        assert entry.availability == found.availability


def test_what_is_attached_to_a_composed_machine_is_locked() -> None:
    entry = locked(STACK).entries["attached"]
    assert entry.attached == "2 × T4"
    assert entry.attached_ssds == 3
    assert entry.machine == f"2 × {entry.instance_type} + 2 × T4"
    assert locked(STACK).entries["chat"].machine == "g6.xlarge"


def test_a_workload_that_fits_nowhere_cannot_be_locked_and_neither_can_a_plan_only_one() -> None:
    stack = {**STACK, "huge": {"gpu": {"count": 64}}, "elsewhere": {"clouds": ["azure"]}}
    with pytest.raises(CannotPlace) as refused:
        locked(stack)
    assert [p.path for p in refused.value.problems] == ["workloads.huge", "workloads.elsewhere"]
    assert all(p.position is not None and p.hint for p in refused.value.problems)
    assert "plan only" in refused.value.problems[1].message


def test_the_lock_lies_beside_the_file_under_the_stacks_name(tmp_path: Path) -> None:
    file = tmp_path / "team.yaml"
    file.write_text("workloads: {chat: {gpu: {count: 1}}}", encoding="utf-8")
    assert lock_path(read_file(file)) == tmp_path / "gputier.team.lock"


# ---- what keeps its machine ----------------------------------------------------------------


def test_a_newer_catalogue_never_changes_a_locked_machine_by_itself() -> None:
    old = locked({"chat": CHAT}, g6_at(1.0))
    new = locked({"chat": CHAT}, g6_at(1.0, other=0.5))
    assert old.entries["chat"].instance_type == "g6.xlarge"
    assert new.entries["chat"].instance_type == "g5.xlarge"
    assert merged(old, new) == old


def test_upgrading_takes_the_new_machine_of_the_named_workloads_alone() -> None:
    stack = {"chat": CHAT, "other": CHAT}
    old, new = locked(stack, g6_at(1.0)), locked(stack, g6_at(1.0, other=0.5))
    after = merged(old, new, ["chat"])
    assert after.entries == {"chat": new.entries["chat"], "other": old.entries["other"]}
    assert merged(old, new, stack) == new


def test_a_changed_declaration_takes_its_new_machine_and_a_removed_one_goes() -> None:
    old = locked({"chat": CHAT, "gone": CHAT}, g6_at(1.0))
    changed = {"chat": {**CHAT, "nodes": 2}, "new": CHAT}
    new = locked(changed, g6_at(1.0, other=0.5))
    assert merged(old, new) == new
    assert merged(None, new) == new


# ---- what is stale -------------------------------------------------------------------------


def test_a_lock_of_its_own_declaration_is_not_stale() -> None:
    assert check_lock(locked(STACK), declared(STACK)) == []


def stale(lock: Lock, declaration: Declaration) -> list[tuple[str, str]]:
    found = check_lock(lock, declaration)
    assert all(p.hint == "run `gputier lock dev`" for p in found)
    return [(p.path, p.message) for p in found]


def test_a_changed_a_new_and_a_removed_workload_are_all_told_at_once() -> None:
    lock = locked({"chat": CHAT, "gone": CHAT})
    now = declared({"chat": {**CHAT, "nodes": 2}, "new": CHAT})
    assert stale(lock, now) == [
        ("chat", "workload `chat` changed since it was locked on g6.xlarge"),
        ("new", "workload `new` is not in the lock"),
        ("gone", "the lock holds `gone`, which is no longer declared"),
    ]
    placed = [p.position is not None for p in check_lock(lock, now)]
    assert placed == [True, True, False]


@pytest.mark.parametrize(
    "keys",
    [
        {"environment": "prod"},
        {"discounts": [{"cloud": "aws", "families": ["g6"], "percent": 9, "reason": "x"}]},
    ],
    ids=lambda k: next(iter(k)),
)
def test_what_else_decides_the_machine_makes_the_lock_stale_too(keys: dict[str, Any]) -> None:
    lock = locked({"chat": CHAT})
    assert len(stale(lock, declared({"chat": CHAT}, **keys))) == 1


def test_the_order_and_spelling_of_the_file_make_nothing_stale() -> None:
    lock = locked(STACK)
    turned = {name: dict(reversed(STACK[name].items())) for name in reversed(STACK)}
    turned["chat"] = {**turned["chat"], "prefer": "price", "cpu": {"architecture": "x86_64"}}
    assert check_lock(lock, declared(turned)) == []


def test_digests_differ_between_workloads() -> None:
    declaration = declared(STACK)
    assert len({digest_of(declaration, name) for name in STACK}) == len(STACK)


def test_names_that_are_not_declared_come_with_the_nearest_one() -> None:
    (problem,) = unknown_names(["chat", "chta"], declared(STACK))
    assert "`chta` is not a workload of dev" in problem.message
    assert problem.hint == "did you mean `chat`?"


# ---- what a change costs -------------------------------------------------------------------


def test_only_what_differs_is_a_change_sorted_by_name() -> None:
    old, new = locked(STACK), locked({**STACK, "chat": {**CHAT, "nodes": 2}})
    assert compare(old, old) == ()
    (change,) = compare(old, new)
    assert change.name == "chat"
    assert change.usd_per_hour == pytest.approx(old.entries["chat"].usd_per_hour)
    assert [c.name for c in compare(None, new)] == sorted(STACK)


def test_a_change_is_told_in_one_line_with_the_money() -> None:
    old = locked({"chat": CHAT}, g6_at(1.0)).entries["chat"]
    new = locked({"chat": CHAT}, g6_at(1.0, other=0.5)).entries["chat"]
    assert describe(Change("chat", old, new)) == (
        "chat: g6.xlarge in us-east-1 → g5.xlarge in us-east-1, "
        "−$0.50/h (−$365.00 a month of 730 h)"
    )
    assert "+$0.50/h (+$365.00 a month of 730 h)" in describe(Change("chat", new, old))


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (None, {}, "chat: new, g6.xlarge in us-east-1, $1.00/h"),
        (None, {"usd_per_hour": None}, "chat: new, g6.xlarge in us-east-1, price unknown"),
        ({}, None, "chat: removed"),
        ({}, {"usd_per_hour": None, "region": "us-west-2"},
         "chat: g6.xlarge in us-east-1 → g6.xlarge in us-west-2, price unknown"),
        ({}, {"digest": "f" * 16, "catalog": "e" * 16, "catalog_as_of": "2027-01-01"},
         "chat: same machine, g6.xlarge; declaration or catalogue is newer"),
        ({}, {"region": "us-west-2"},
         "chat: g6.xlarge in us-east-1 → g6.xlarge in us-west-2, same price"),
        ({}, {"usd_per_hour": 1.001},
         "chat: g6.xlarge in us-east-1 → g6.xlarge in us-east-1, "
         "+$0.0010/h (+$0.73 a month of 730 h)"),
    ],
)  # fmt: skip
def test_every_kind_of_change_has_its_words(
    before: dict[str, Any] | None, after: dict[str, Any] | None, says: str
) -> None:
    base = locked({"chat": CHAT}, g6_at(1.0)).entries["chat"]
    change = Change(
        "chat",
        None if before is None else replace(base, **before),
        None if after is None else replace(base, **after),
    )
    assert describe(change) == says


def test_a_change_to_or_from_nothing_costs_all_of_it() -> None:
    entry = locked({"chat": CHAT}, g6_at(1.0)).entries["chat"]
    assert Change("chat", None, entry).usd_per_hour == 1.0
    assert Change("chat", entry, None).usd_per_hour == -1.0
    assert Change("chat", None, replace(entry, usd_per_hour=None)).usd_per_hour is None


# ---- watching for something cheaper --------------------------------------------------------


def told(
    workloads: dict[str, Any], before: Catalog, today: Catalog, percent: float
) -> tuple[Cheaper, ...]:
    """What is cheaper today than what was locked before."""
    declaration = declared(workloads)
    plan = planned(workloads, today)
    return cheaper_than(locked(workloads, before), plan, declaration, percent, today)


@pytest.mark.parametrize(("percent", "found"), [(49.0, True), (50.0, False), (0.0, True)])
def test_a_cheaper_pick_is_told_when_it_saves_more_than_asked(percent: float, found: bool) -> None:
    cheaper = told({"chat": CHAT}, g6_at(1.0), g6_at(1.0, other=0.5), percent)
    assert [(c.name, c.best.instance_type) for c in cheaper] == [("chat", "g5.xlarge")] * found
    for one in cheaper:
        assert one.percent == pytest.approx(50)
        assert one.locked_usd_per_hour == 1.0


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
    lock = Lock("dev", {"chat": locked({"chat": CHAT}).entries["chat"]})
    (cheaper,) = cheaper_than(lock, planned(ways), declared(ways), 1, load())
    assert (cheaper.locked.capacity, cheaper.best.capacity) == ("on_demand", "spot")
    assert cheaper.locked_usd_per_hour == in_file("aws", "us-east-1", "g6.xlarge", "on_demand")


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
