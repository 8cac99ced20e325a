"""The loop breaker: a fleet with one configuration fault stops, a run of bad hosts does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.rehearsal.cloud import Cloud, Verdict
from tests.rehearsal.image import Image
from tests.rehearsal.plans import given
from tests.rehearsal.scene import Part, in_container

pytestmark = [pytest.mark.rehearsal(seconds=15), pytest.mark.enable_socket]
LIMIT = 120.0
OLDER = "driver of an older branch"


def one(
    image: Image, place: Path, cloud: Cloud, part: Part, ends: tuple[str, str]
) -> tuple[Verdict, str]:
    """The next machine of a fleet, up to its end; the verdict and what it said on the way."""
    with in_container(image, place, part, cloud) as scene:
        found = scene.ends(*ends, limit=LIMIT)
        return found, scene.machine.console()


def test_the_second_machine_with_the_same_configuration_fault_stops_a_fleet_at_aws(
    image: Image, tmp_path: Path
) -> None:
    cloud = Cloud(given("group"))
    group = cloud.autoscaling
    assert group
    for number, suspended in ((1, set[str]()), (2, {"Launch"})):
        part = Part("group", boots=((OLDER,),), instance=f"i-000{number}", host=number)
        found, _ = one(image, tmp_path, cloud, part, ("config", "ABANDON"))
        assert "595" in found.report["checks"][0]["evidence"]
        assert group.suspended == suspended, f"after machine {number}"
    actions = [form["Action"] for form in group.calls()]
    assert actions.index("SuspendProcesses") < len(actions) - 1, "stopped before it gave up"
    assert actions[-1] == "CompleteLifecycleAction"
    assert cloud.store.json("breaker/group.json")["tripped"]["instance"] == "i-0002"


def test_a_fleet_that_cannot_get_its_bundle_is_stopped_by_the_fetcher_alone(
    image: Image, tmp_path: Path
) -> None:
    cloud = Cloud(given("group"))
    cloud.put_bundle(b"print('of another release')\n")
    group = cloud.autoscaling
    assert group
    for number in (1, 2):
        part = Part("group", instance=f"i-000{number}", host=number)
        one(image, tmp_path, cloud, part, ("config", "ABANDON"))
        assert group.suspended == ({"Launch"} if number == 2 else set())


def test_a_fleet_at_google_loses_its_autoscaler_and_then_its_broken_machine(
    image: Image, tmp_path: Path
) -> None:
    cloud = Cloud(given("autohealed"))
    group = cloud.compute
    assert group
    size = group.size
    for number, told in ((1, "recreateInstances"), (2, "deleteInstances")):
        part = Part("autohealed", boots=((OLDER,),), instance=f"tuner-{number}", host=number)
        one(image, tmp_path, cloud, part, ("config", told))
    assert group.policy["mode"] == "OFF"
    assert group.size == size - 1, "nothing comes after the machine that went"


def test_hosts_that_are_bad_in_their_own_ways_are_replaced_as_long_as_they_come(
    image: Image, tmp_path: Path
) -> None:
    """And a configuration fault among them is the first of its kind again."""
    cloud = Cloud(given("group"))
    group = cloud.autoscaling
    assert group
    fleet = (
        ("Xid 79 in the kernel log", "replace"),
        ("uncorrectable memory errors", "replace"),
        (OLDER, "config"),
    )
    for number, (fault, outcome) in enumerate(fleet, 1):
        part = Part("group", boots=((fault,),), instance=f"i-000{number}", host=number)
        one(image, tmp_path, cloud, part, (outcome, "ABANDON"))
    assert group.suspended == set()
    assert len(cloud.store.json("bad-hosts/group.json")["hosts"]) == 2


def test_a_bad_host_that_is_handed_out_again_is_known(image: Image, tmp_path: Path) -> None:
    """The second instance on it looks well, and is given back at once."""
    cloud = Cloud(given("group"))
    for instance, fault in (("i-0001", ("uncorrectable memory errors",)), ("i-0002", ())):
        part = Part("group", boots=(fault,), instance=instance, host=7)
        found, _ = one(image, tmp_path, cloud, part, ("replace", "ABANDON"))
        if not fault:
            assert "the same bad host: instance i-0001" in str(found.report["checks"])
