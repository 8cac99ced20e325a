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
from gputier.lock.entries import lock_command
from gputier.plan import StackPlan, plan_declaration
from gputier.workload import Declaration, digest, read_file, read_stack

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
    assert all(p.hint == "run `gputier lock dev.yaml`" for p in found)
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
        "chat: g6.xlarge in us-east-1 → g5.xlarge in us-east-1, −$0.50/h, −$365.00 a month"
    )
    assert describe(Change("chat", new, old)).endswith("+$0.50/h, +$365.00 a month")


HERE = "g6.xlarge in us-east-1"


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (None, {}, f"chat: new, {HERE}, +$1.00/h, +$730.00 a month"),
        (None, {"usd_per_hour": None}, f"chat: new, {HERE}, price unknown"),
        ({}, None, "chat: removed, −$1.00/h, −$730.00 a month"),
        ({}, {"usd_per_hour": None, "region": "us-west-2"},
         f"chat: {HERE} → g6.xlarge in us-west-2, price unknown"),
        ({}, {"digest": "f" * 16, "catalog": "e" * 16, "catalog_as_of": "2027-01-01"},
         f"chat: same machine, {HERE}, same price"),
        ({}, {"region": "us-west-2"}, f"chat: {HERE} → g6.xlarge in us-west-2, same price"),
        ({}, {"usd_per_hour": 1.001}, f"chat: same machine, {HERE}, +$0.0010/h, +$0.73 a month"),
        ({}, {"capacity": "spot", "usd_per_hour": 0.25},
         f"chat: {HERE} → {HERE} spot, −$0.75/h, −$547.50 a month"),
        ({}, {"hours_per_month": 200.0},
         f"chat: same machine, {HERE}, ±$0.00/h, −$530.00 a month"),
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


def test_money_a_month_counts_the_hours_that_run() -> None:
    nights = [{"start": "0 20 * * *", "stop": "0 6 * * *"}]
    entry = locked({"chat": {**CHAT, "schedule": nights}}).entries["chat"]
    assert entry.hours_per_month == pytest.approx(10 * 1461 / 48, abs=0.01)
    assert entry.usd_per_month == pytest.approx((entry.usd_per_hour or 0) * entry.hours_per_month)


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
    digest_ = locked(ways).entries["chat"].digest
    entry = locked({"chat": CHAT}).entries["chat"]
    lock = Lock("dev", {"chat": replace(entry, digest=digest_)})
    (cheaper,) = cheaper_than(lock, planned(ways), declared(ways), 1, load())
    assert (cheaper.locked.capacity, cheaper.best.capacity) == ("on_demand", "spot")
    assert cheaper.locked_usd_per_hour == in_file("aws", "us-east-1", "g6.xlarge", "on_demand")


def test_a_stale_entry_is_not_compared_because_the_declaration_differs() -> None:
    smaller = {"chat": {"gpu": {"memory": "16GB"}}}
    lock = locked({"chat": CHAT})
    assert cheaper_than(lock, planned(smaller), declared(smaller), 1, load()) == ()


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
