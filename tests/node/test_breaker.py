"""Nodes count their faults together: none is lost, one alone stops nothing, health sets it back."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.node.clouds import CONFIG, INCONCLUSIVE, REPLACE, Quick, report

from gputier.node import bad_hosts, breaker
from gputier.node.breaker import Breaker, Decision, Entry
from gputier.node.cloud import Trouble
from gputier.node.cloud.http import Patience, Web
from gputier.node.cloud.store import PATIENCE, Store, Stored

OTHER = report("config", ("mig", "health"))
WINDOW = 3600.0


class Memory(Store):
    """A store in memory; between any read and write somebody else may come (`between`)."""

    def __init__(self, host: Quick, objects: dict[str, bytes] | None = None) -> None:
        super().__init__(Web(host))
        self.objects = {} if objects is None else objects
        self.between: Callable[[], None] = lambda: None
        self.lock = threading.Lock()
        self.writes = 0

    def get(self, key: str, patience: Patience = PATIENCE) -> Stored | None:
        del patience
        body = self.objects.get(key)
        found = None if body is None else Stored(body, str(hash(body)))
        self.between()
        return found

    def put_if(
        self, key: str, body: bytes, version: str | None, patience: Patience = PATIENCE
    ) -> bool:
        del patience
        with self.lock:
            now = self.objects.get(key)
            if (None if now is None else str(hash(now))) != version:
                return False
            self.objects[key] = body
            self.writes += 1
            return True


@pytest.fixture
def store(tmp_path: Any) -> Memory:
    return Memory(Quick(tmp_path))


def fleet(store: Memory, after: int = 2) -> Breaker:
    return Breaker(store, "tuner", after, WINDOW)


def state(store: Memory) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(store.objects["breaker/tuner.json"])
    return found


def later(store: Memory, seconds: float) -> None:
    assert isinstance(store.web.host, Quick)
    store.web.host.skipped += seconds


def test_one_node_alone_stops_nothing_however_often_it_counts(store: Memory) -> None:
    for _ in range(5):
        assert fleet(store).count("i-1", CONFIG) == Decision(
            False, ("i-1",), "1 of 2 nodes in a row with driver-version@driver"
        )
    assert store.writes == 1


def test_a_second_node_with_the_same_fault_stops_the_fleet_and_so_does_each_after_it(
    store: Memory,
) -> None:
    fleet(store).count("i-1", CONFIG)
    assert fleet(store).count("i-2", CONFIG).tripped
    assert state(store)["tripped"]["instance"] == "i-2"
    assert fleet(store).count("i-3", CONFIG).tripped
    assert state(store)["tripped"]["instance"] == "i-3"
    assert fleet(store).count("i-2", CONFIG).tripped, "asked again, it says the same"


def test_another_reason_is_another_fault(store: Memory) -> None:
    fleet(store).count("i-1", CONFIG)
    assert not fleet(store).count("i-2", OTHER).tripped
    assert fleet(store).count("i-3", CONFIG).tripped, "no healthy node was between them"


@pytest.mark.parametrize("bad", [REPLACE, INCONCLUSIVE], ids=["replace", "inconclusive"])
def test_what_is_no_configuration_fault_never_stops_the_fleet(
    store: Memory, bad: dict[str, Any]
) -> None:
    decisions = [fleet(store).count(f"i-{number}", bad) for number in range(9)]
    assert not any(decision.tripped for decision in decisions)


def test_a_bad_host_among_them_does_not_stop_it_either(store: Memory) -> None:
    """The same checks may fail for another reason; what trips is this node's own outcome."""
    for number in range(2):
        fleet(store).count(f"i-{number}", CONFIG)
    hardware = report("replace", ("driver-version", "driver"))
    assert not fleet(store).count("i-9", hardware).tripped
    assert fleet(store).count("i-10", CONFIG).tripped


def test_a_healthy_node_sets_it_back(store: Memory) -> None:
    fleet(store).count("i-1", CONFIG)
    assert fleet(store).clear()
    assert not fleet(store).count("i-2", CONFIG).tripped
    assert fleet(store).count("i-3", CONFIG).tripped
    fleet(store).clear()
    assert state(store) == {"nodes": [], "schema": "gputier/breaker/1"}


def test_a_fleet_that_boots_well_writes_nothing(store: Memory) -> None:
    for _ in range(3):
        assert not fleet(store).clear()
    assert store.writes == 0


def test_a_fault_of_long_ago_does_not_count(store: Memory) -> None:
    fleet(store).count("i-1", CONFIG)
    later(store, WINDOW + 60)
    assert not fleet(store).count("i-2", CONFIG).tripped
    later(store, WINDOW - 60)
    assert fleet(store).count("i-3", CONFIG).tripped


def test_a_node_that_fails_otherwise_on_its_next_boot_counts_for_that(store: Memory) -> None:
    fleet(store).count("i-1", CONFIG)
    fleet(store).count("i-1", OTHER)
    assert not fleet(store).count("i-2", CONFIG).tripped
    assert len(state(store)["nodes"]) == 2


def test_as_many_as_are_asked_for_are_needed(store: Memory) -> None:
    tripped = [fleet(store, after=4).count(f"i-{number}", CONFIG).tripped for number in range(5)]
    assert tripped == [False, False, False, True, True]


# --- the reason ------------------------------------------------------------------------------


def test_a_reason_is_names_and_stages_and_no_evidence() -> None:
    one = report("config", ("mig", "health"), ("driver-version", "driver"))
    other = json.loads(json.dumps(one).replace("12:00", "13:37"))
    other["causes"].reverse()
    other["checks"].reverse()
    assert breaker.reason(one) == breaker.reason(other) == "driver-version@driver,mig@health"


def test_what_follows_from_a_cause_is_not_in_the_reason() -> None:
    found = report("config", ("kernel-module", "driver"))
    found["checks"].append({"name": "gpu-count", "stage": "health", "outcome": "inconclusive"})
    assert breaker.reason(found) == "kernel-module@driver"


@pytest.mark.parametrize("text", ["{}", '{"causes": null, "checks": [1, {}]}', '{"causes": ["x"]}'])
def test_a_report_without_a_cause_has_a_reason_too(text: str) -> None:
    assert breaker.reason(json.loads(text)) == "unknown"


# --- what stands there may be anything -------------------------------------------------------

JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["nodes", "tripped", "instance", "outcome", "reason", "at", "hosts"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(data=st.dictionaries(st.sampled_from(["nodes", "tripped", "schema", "hosts"]), JUNK))
def test_whatever_stands_there_one_node_alone_stops_nothing(
    data: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = Memory(Quick(tmp_path_factory.getbasetemp()))
    store.objects["breaker/tuner.json"] = json.dumps(data).encode()
    store.objects["bad-hosts/tuner.json"] = json.dumps(data).encode()
    assert not fleet(store).count("i-1", CONFIG).tripped
    assert state(store)["nodes"][-1]["instance"] == "i-1"
    assert bad_hosts.met(store, "tuner", {"gpus": ["a"]}) is None
    assert bad_hosts.add(store, "tuner", {"gpus": ["a"]}, "i-1", "x")


# --- many nodes at once ----------------------------------------------------------------------

FAULTS = st.lists(
    st.tuples(st.integers(0, 7), st.sampled_from(["config", "other", "replace"])),
    min_size=1,
    max_size=12,
)
REPORTS = {"config": CONFIG, "other": OTHER, "replace": REPLACE}


@given(faults=FAULTS, after=st.integers(2, 4), data=st.data())
def test_in_whatever_order_nodes_race_none_is_lost_and_the_count_is_right(
    faults: list[tuple[int, str]],
    after: int,
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Between any node's read and its write another one may be through, again and again."""
    store = Memory(Quick(tmp_path_factory.getbasetemp()))
    waiting = list(faults)
    decisions: dict[int, list[tuple[str, Decision]]] = {}

    def next_one() -> None:
        number, kind = waiting.pop(0)
        found = fleet(store, after).count(f"i-{number}", REPORTS[kind])
        decisions.setdefault(number, []).append((kind, found))

    def between() -> None:
        if waiting and data.draw(st.booleans()):
            next_one()

    store.between = between
    while waiting:
        next_one()
    store.between = lambda: None
    nodes = breaker.entries(state(store))
    assert {e.instance for e in nodes} == {f"i-{number}" for number, _ in faults}, "one was lost"
    assert len({e.instance for e in nodes}) == len(nodes), "one was counted twice"
    for found in decisions.values():
        for kind, decision in found:
            machines = {n for n, k in faults if k == kind}
            assert not decision.tripped or (kind != "replace" and len(machines) >= after)


@given(count=st.integers(2, 8), after=st.integers(2, 4))
def test_identical_faults_of_enough_nodes_always_trip_exactly_from_there(
    count: int, after: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = Memory(Quick(tmp_path_factory.getbasetemp()))
    found = [fleet(store, after).count(f"i-{n}", CONFIG).tripped for n in range(count)]
    assert found == [n + 1 >= after for n in range(count)]


def test_threads_that_race_lose_nothing_and_the_last_one_knows(store: Memory) -> None:
    decisions: list[Decision] = []

    def node(number: int) -> None:
        mine = Memory(Quick(store.web.host.root), store.objects)
        mine.lock = store.lock
        decisions.append(fleet(mine, after=16).count(f"i-{number}", CONFIG))

    threads = [threading.Thread(target=node, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(state(store)["nodes"]) == 16
    assert any(decision.tripped for decision in decisions), "whoever wrote last counts all"


def test_a_write_that_never_wins_is_trouble_and_no_decision(store: Memory) -> None:
    counter = iter(range(10**9))

    def between() -> None:
        store.objects["breaker/tuner.json"] = json.dumps({"x": next(counter)}).encode()

    store.between = between
    with pytest.raises(Trouble, match="kept writing"):
        fleet(store).count("i-1", CONFIG)


# --- hosts that come back --------------------------------------------------------------------


def prints(*gpus: str, **placement: str) -> Mapping[str, Any]:
    return {"gpus": list(gpus), "placement": placement}


@pytest.mark.parametrize(
    ("before", "now", "same"),
    [
        (prints("a", "b"), prints("b", "a"), True),
        (prints("a", "b"), prints("a"), True),
        (prints("a"), prints("a", "b"), True),
        (prints("a", "b"), prints("a", "c"), False),
        (prints("a", "b"), prints("c", "d"), False),
        (prints(), prints("a"), False),
        (prints("a"), prints(), False),
        (prints(physical_host="h1"), prints(physical_host="h1"), True),
        # Two machines of one host, or a host that was repaired: what it shows is judged.
        (prints(physical_host="h1"), prints("a", physical_host="h1"), False),
        (prints("a", physical_host="h1"), prints("b", physical_host="h1"), False),
        (prints(physical_host="h1"), prints(physical_host="h2"), False),
        (prints(host_id="h-1"), prints(host_id="h-1"), True),
        (prints(availability_zone_id="use1-az4"), prints(availability_zone_id="use1-az4"), False),
        ({}, {}, False),
    ],
)
def test_a_host_is_known_by_its_cards_or_its_name(
    before: Mapping[str, Any], now: Mapping[str, Any], same: bool
) -> None:
    assert bad_hosts.same_host(before, now) == same
    assert bad_hosts.same_host(now, before) == same


def test_a_bad_host_is_known_for_two_weeks(store: Memory) -> None:
    assert bad_hosts.add(store, "tuner", prints("a", "b"), "i-1", "gpu-count")
    assert bad_hosts.met(store, "tuner", prints("a", "b")) == (
        "the same bad host: instance i-1 gave it back for gpu-count"
    )
    assert bad_hosts.met(store, "other", prints("a", "b")) is None
    later(store, 15 * 86400)
    assert bad_hosts.met(store, "tuner", prints("a", "b")) is None


def test_a_host_that_shows_nothing_is_not_kept(store: Memory) -> None:
    shown = prints(availability_zone_id="use1-az4")
    assert not bad_hosts.add(store, "tuner", shown, "i-1", "driver")
    assert store.objects == {}


def test_the_list_of_hosts_does_not_grow_for_ever(store: Memory) -> None:
    for number in range(bad_hosts.KEPT + 5):
        bad_hosts.add(store, "tuner", prints(f"g{number}"), f"i-{number}", "x")
    hosts = json.loads(store.objects["bad-hosts/tuner.json"])["hosts"]
    assert len(hosts) == bad_hosts.KEPT
    assert hosts[-1]["instance"] == f"i-{bad_hosts.KEPT + 4}"


def test_the_count_of_nodes_does_not_grow_for_ever() -> None:
    many = [Entry(f"i-{number}", "config", "x", 0.0) for number in range(500)]
    assert len(breaker.added(many, Entry("i-new", "config", "x", 1.0), WINDOW)) == breaker.KEPT
