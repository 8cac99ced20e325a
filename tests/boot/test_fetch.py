"""Stage-0's fetcher, as a machine is given it, against stand-ins that are as strict as a cloud."""

from __future__ import annotations

import ast
import hashlib
import json
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.boot.machine import BUNDLE, INSTANCE, KEY, PINNED, Machine, running
from tests.cli.schemas import Schemas
from tests.standins.metadata import ROLE
from tests.standins.object_store import S3
from tests.standins.server import Asked, Fault, Reply
from tests.standins.signature import Credentials

from gputier.boot import bucket_name
from gputier.boot.stage0 import PROGRAMS, fetcher
from gputier.node import breaker
from gputier.node.cloud.identity import Identity

Make = Callable[..., Machine]
pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """`make(cloud, **settings)`: a machine of a running cloud."""
    opened: list[Any] = []

    def one(cloud: str = "aws", **settings: Any) -> Machine:
        disk = tmp_path / f"disk-{len(opened)}"
        held = running(Machine(disk, cloud, **settings))
        opened.append(held)
        return held.__enter__()

    yield one
    for held in opened:
        held.__exit__(None, None, None)


@pytest.fixture
def aws(make: Make) -> Machine:
    return make("aws")


def gate(machine: Machine, mode: str) -> None:
    machine.settings["gate"]["mode"] = mode


def spoil(machine: Machine) -> None:
    machine.store.objects[KEY] = BUNDLE + b"another"


# --- it comes well --------------------------------------------------------------------------------


@pytest.mark.parametrize("cloud", PROGRAMS)
def test_the_bundle_is_fetched_verified_and_linked(make: Make, cloud: str) -> None:
    machine = make(cloud)
    assert machine.boot() == 0
    command = machine.disk / "usr/local/bin/gputier-node"
    assert command.resolve() == machine.bundle.resolve()
    assert hashlib.sha256(command.read_bytes()).hexdigest() == PINNED
    assert command.stat().st_mode & 0o111 == 0o111
    assert not list(machine.bundle.parent.glob("*.new"))
    assert not (machine.disk / "var/lib/gputier/report.json").exists()


@pytest.mark.parametrize("cloud", PROGRAMS)
def test_who_the_machine_is_is_written_as_the_bundle_reads_it(make: Make, cloud: str) -> None:
    machine = make(cloud)
    machine.boot()
    found = machine.read("var/lib/gputier/identity.json")
    assert set(found) <= set(Identity._fields)
    assert Identity(**found).bucket == machine.store.bucket
    assert found["cloud"] == cloud


@pytest.mark.parametrize("cloud", PROGRAMS)
def test_a_verified_bundle_is_never_fetched_again(make: Make, cloud: str) -> None:
    machine = make(cloud)
    machine.boot()
    machine.store.objects.clear()
    assert machine.boot() == 0
    assert machine.fetches() == 1


def test_a_bundle_that_was_spoilt_on_the_disk_is_fetched_again(aws: Machine) -> None:
    aws.boot()
    aws.bundle.write_bytes(b"half of it")
    assert aws.boot() == 0
    assert aws.bundle.read_bytes() == BUNDLE


def test_a_bundle_that_came_inline_asks_for_no_object(aws: Machine) -> None:
    aws.settings["bundle"]["delivery"] = "inline"
    aws.bundle.parent.mkdir(parents=True)
    aws.bundle.write_bytes(BUNDLE)
    assert aws.boot() == 0
    assert not aws.store.seen


@pytest.mark.parametrize("cloud", PROGRAMS)
def test_services_that_come_late_are_waited_for(make: Make, cloud: str) -> None:
    machine = make(cloud)
    machine.metadata.faults = [Fault(drop=True, times=3), Fault(status=503, times=2)]
    machine.store.faults = [Fault(status=503, times=2), Fault(lost=True, times=1)]
    assert machine.boot() == 0
    assert len(machine.clock.slept) == 8


def test_a_role_that_was_made_a_moment_ago_is_waited_for(aws: Machine) -> None:
    aws.store.faults = [Fault(status=403, text="AccessDenied", times=4)]
    assert aws.boot() == 0


def test_a_role_that_nobody_may_take_yet_is_waited_for(aws: Machine) -> None:
    """IMDS answers 200 and says so inside, for some seconds behind a role that was just made."""
    right, left = aws.metadata.reply, [4]
    words = {"Code": "AssumeRoleUnauthorizedAccess", "Message": "EC2 cannot assume the role"}

    def late(asked: Asked) -> Reply:
        if not asked.path.endswith(f"security-credentials/{ROLE}") or not left[0]:
            return right(asked)
        left[0] -= 1
        return Reply.json(words)

    aws.metadata.reply = late  # type: ignore[method-assign]
    assert aws.boot() == 0
    assert aws.clock.passed < 60


def test_a_role_that_nobody_may_ever_take_is_named(aws: Machine) -> None:
    right = aws.metadata.reply
    words = {"Code": "AssumeRoleUnauthorizedAccess", "Message": "EC2 cannot assume the role"}

    def never(asked: Asked) -> Reply:
        return Reply.json(words) if asked.path.endswith(f"/{ROLE}") else right(asked)

    aws.metadata.reply = never  # type: ignore[method-assign]
    assert aws.boot() == 1
    assert "EC2 cannot assume the role" in aws.report["checks"][0]["evidence"]


def test_every_request_says_whose_bucket_it_has_to_be(aws: Machine) -> None:
    aws.boot()
    (asked,) = aws.store.seen
    assert asked.headers["x-amz-expected-bucket-owner"] == "111122223333"
    assert asked.headers["x-amz-security-token"] == aws.credentials.token


# --- it comes badly -------------------------------------------------------------------------------


def test_a_bundle_that_is_not_the_pinned_one_is_no_bundle(aws: Machine) -> None:
    spoil(aws)
    assert aws.boot() == 1
    assert aws.fetches() == 2, "a broken line may have spoilt the first"
    assert aws.report["outcome"] == "config"
    assert PINNED in aws.report["checks"][0]["expected"]
    assert not aws.bundle.exists()
    assert not (aws.disk / "usr/local/bin/gputier-node").exists()


@pytest.mark.parametrize("cloud", PROGRAMS)
@pytest.mark.parametrize("how", ["gone", "refused"])
def test_a_refusal_that_lasts_is_our_own_fault(make: Make, cloud: str, how: str) -> None:
    machine = make(cloud)
    if how == "gone":
        del machine.store.objects[KEY]
    else:
        machine.store.denied = {("GET", "bundles/")}
    assert machine.boot() == 1
    assert machine.report["outcome"] == "config"
    assert 60 <= machine.clock.passed < 120
    assert f"{404 if how == 'gone' else 403}" in machine.report["checks"][0]["evidence"]


@pytest.mark.parametrize("cloud", PROGRAMS)
def test_a_store_that_is_down_proves_nothing(make: Make, cloud: str) -> None:
    machine = make(cloud)
    machine.store.faults = [Fault(path=PINNED, status=503)]
    assert machine.boot() == 1
    assert machine.report["outcome"] == "inconclusive"
    assert machine.clock.passed < 300 + 120
    assert machine.store.json("breaker/tuner.json")["nodes"][0]["outcome"] == "inconclusive"
    assert "tripped" not in machine.store.json("breaker/tuner.json")


def test_without_metadata_the_report_stays_on_the_disk(aws: Machine) -> None:
    aws.metadata.faults = [Fault(drop=True)]
    assert aws.boot() == 1
    assert aws.report["outcome"] == "inconclusive"
    assert aws.report["machine"]["instance_id"] is None
    assert not aws.store.seen
    assert not aws.groups.seen


def test_a_machine_without_a_role_says_so(make: Make) -> None:
    machine = make("aws")
    machine.metadata.__dict__["credentials"] = None
    assert machine.boot() == 1
    assert "give the machine its role" in machine.report["remedy"]


def test_metadata_that_makes_no_sense_is_told(aws: Machine) -> None:
    aws.metadata.set("dynamic/instance-identity/document", "not json")
    assert aws.boot() == 1
    assert aws.report["outcome"] == "inconclusive"


def test_a_clock_that_is_far_off_is_no_refusal(aws: Machine) -> None:
    aws.clock.ahead = 7200.0
    assert aws.boot() == 1
    assert aws.report["outcome"] == "inconclusive"
    assert "RequestTimeTooSkewed" in aws.report["checks"][0]["evidence"]


def test_a_redirect_is_not_followed_with_credentials(aws: Machine, make: Make) -> None:
    other = make("aws")
    aws.store.reply = lambda _asked: _moved(other.store.url)  # type: ignore[method-assign]
    assert aws.boot() == 1
    assert not other.store.seen
    assert aws.report["outcome"] == "config"


def _moved(url: str) -> Reply:
    return Reply(307, b"", {"Location": f"{url}/elsewhere"})


def test_an_inline_bundle_that_is_another_one_is_refused(aws: Machine) -> None:
    aws.settings["bundle"]["delivery"] = "inline"
    aws.bundle.parent.mkdir(parents=True)
    aws.bundle.write_bytes(b"another")
    assert aws.boot() == 1
    assert "another one" in aws.report["checks"][0]["evidence"]
    assert aws.fetches() == 0


def test_a_proxy_sees_the_store_and_never_the_metadata(aws: Machine) -> None:
    nobody = "http://127.0.0.1:9"
    aws.settings["proxy"] = {"http": nobody, "https": nobody}
    assert aws.boot() == 1
    assert aws.read("var/lib/gputier/identity.json")["account"] == "111122223333"
    assert not aws.store.seen


def test_hosts_that_need_no_proxy_are_asked_without_it(aws: Machine) -> None:
    nobody = "http://127.0.0.1:9"
    aws.settings["proxy"] = {"http": nobody, "no_proxy": "127.0.0.1"}
    assert aws.boot() == 0


# --- what follows ---------------------------------------------------------------------------------


def told(machine: Machine) -> list[str]:
    """The requests after the fetch, in order: report, breaker, group."""
    words: list[tuple[float, str]] = []
    for asked in machine.store.seen:
        if "reports/" in asked.path or "reports%2F" in asked.query:
            words.append((asked.at, "report"))
        elif asked.method != "GET":
            words.append((asked.at, "breaker"))
    words += [(asked.at, asked.form["Action"]) for asked in machine.groups.seen]
    return [word for _at, word in sorted(words)]


def test_the_report_is_kept_before_the_machine_is_given_up(aws: Machine) -> None:
    spoil(aws)
    aws.boot()
    assert told(aws) == ["report", "breaker", "CompleteLifecycleAction"]
    (call,) = aws.groups.calls("CompleteLifecycleAction")
    assert call["LifecycleActionResult"] == "ABANDON"
    assert call["InstanceId"] == INSTANCE
    (key,) = aws.store.keys("reports/")
    assert key.startswith(f"reports/tuner/{INSTANCE}/")
    assert key.endswith("Z-config.json")
    assert aws.store.json(key) == aws.report


def test_the_report_has_the_schema_of_every_other(aws: Machine, root: Path) -> None:
    spoil(aws)
    aws.boot()
    schemas = Schemas(root / "docs" / "schemas.json")
    assert not list(schemas.problems(aws.report, schemas.documents["gputier/node/1"]))


def test_the_same_fault_on_a_second_new_machine_stops_the_fleet(aws: Machine) -> None:
    spoil(aws)
    before = {
        "instance": "i-1",
        "outcome": "config",
        "reason": "bundle@bundle",
        "at": aws.store.now(),
    }
    aws.store.objects["breaker/tuner.json"] = json.dumps({"nodes": [before]}).encode()
    aws.boot()
    assert told(aws)[-2:] == ["SuspendProcesses", "CompleteLifecycleAction"]
    assert aws.groups.suspended == {"Launch"}
    assert aws.store.json("breaker/tuner.json")["tripped"]["instance"] == INSTANCE


OTHERS: dict[str, dict[str, Any]] = {
    "long ago": {"at": 0.0},
    "for another reason": {"reason": "mig@prepare"},
    "on bad hardware": {"outcome": "replace"},
    "on this very machine": {"instance": INSTANCE},
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_fault_that_came_otherwise_does_not_count(aws: Machine, name: str) -> None:
    spoil(aws)
    before = {"instance": "i-1", "outcome": "config", "reason": "bundle@bundle",
              "at": aws.store.now()} | OTHERS[name]  # fmt: skip
    aws.store.objects["breaker/tuner.json"] = json.dumps({"nodes": [before]}).encode()
    aws.boot()
    assert not aws.groups.suspended
    assert aws.groups.calls("CompleteLifecycleAction")


def test_what_proves_nothing_stops_no_fleet_whatever_came_before(aws: Machine) -> None:
    aws.store.faults = [Fault(path=PINNED, status=503)]
    before = [
        {
            "instance": f"i-{n}",
            "outcome": "config",
            "reason": "bundle@bundle",
            "at": aws.store.now(),
        }
        for n in range(3)
    ]
    aws.store.objects["breaker/tuner.json"] = json.dumps({"nodes": before}).encode()
    aws.boot()
    assert aws.report["outcome"] == "inconclusive"
    assert not aws.groups.suspended


def test_the_breakers_state_is_one_that_the_bundle_reads_on(aws: Machine) -> None:
    spoil(aws)
    aws.boot()
    state = aws.store.json("breaker/tuner.json")
    assert state["schema"] == breaker.SCHEMA
    (entry,) = breaker.entries(state)
    assert entry[:3] == (INSTANCE, "config", breaker.reason(aws.report))


def test_two_machines_that_count_at_once_both_count(aws: Machine) -> None:
    spoil(aws)
    aws.store.faults = [Fault(path="breaker/", method="PUT", status=412, times=2)]
    aws.boot()
    assert told(aws).count("breaker") == 3
    assert len(aws.store.json("breaker/tuner.json")["nodes"]) == 1


@pytest.mark.parametrize("cloud", PROGRAMS)
def test_a_store_that_refuses_us_altogether_stops_the_fleet_at_once(make: Make, cloud: str) -> None:
    """Nobody could count: every next machine would be refused like this one."""
    machine = make(cloud)
    machine.store.denied = {(method, "") for method in ("GET", "PUT", "POST")}
    machine.boot()
    if cloud == "aws":
        assert machine.groups.suspended == {"Launch"}
        assert machine.groups.calls("CompleteLifecycleAction")
    else:
        assert machine.compute.policy["mode"] == "OFF"


def test_a_count_that_may_not_be_written_stops_the_fleet_whatever_the_fault_of_ours(
    aws: Machine,
) -> None:
    """As the node's gate does: equal faults could never be added up."""
    spoil(aws)
    aws.store.denied = {("PUT", "breaker/")}
    aws.boot()
    assert aws.groups.suspended == {"Launch"}


def test_a_count_that_others_overtake_every_time_is_no_refusal(aws: Machine) -> None:
    spoil(aws)
    aws.store.faults = [Fault(path="breaker/", method="PUT", status=412)]
    aws.boot()
    assert told(aws).count("breaker") == 9
    assert not aws.groups.suspended


def test_a_breaker_that_may_not_be_listed_is_a_new_one(aws: Machine) -> None:
    spoil(aws)
    assert isinstance(aws.store, S3)
    aws.store.may_list = False
    aws.boot()
    assert not aws.groups.suspended
    assert len(aws.store.json("breaker/tuner.json")["nodes"]) == 1


def test_a_store_that_is_down_does_not_keep_the_machine(aws: Machine) -> None:
    aws.store.faults = [Fault(status=500)]
    aws.boot()
    assert not aws.groups.suspended
    assert aws.groups.calls("CompleteLifecycleAction")


@pytest.mark.parametrize("mode", ["report", "off"])
@pytest.mark.parametrize("cloud", PROGRAMS)
def test_only_an_enforced_gate_gives_a_machine_up(make: Make, cloud: str, mode: str) -> None:
    machine = make(cloud)
    gate(machine, mode)
    spoil(machine)
    assert machine.boot() == 1
    assert machine.store.keys("reports/")
    assert not machine.store.keys("breaker/")
    assert not machine.compute.seen
    # A hook that hears nothing refuses, and the next machine comes to the same end.
    ended = [call["LifecycleActionResult"] for call in machine.groups.calls()]
    assert ended == (["CONTINUE"] if cloud == "aws" else [])


@pytest.mark.parametrize("mode", ["enforce", "report"])
def test_a_machine_that_was_in_service_is_not_given_up(aws: Machine, mode: str) -> None:
    joined_as(aws, INSTANCE)
    gate(aws, mode)
    spoil(aws)
    assert aws.boot() == 1
    assert aws.store.keys("reports/")
    assert not aws.groups.seen


@pytest.mark.parametrize("who", ["i-0aaaaaaaaaaaaaaaa", "", None])
def test_a_machine_of_an_image_of_one_that_was_in_service_is_a_new_one(
    aws: Machine, who: str | None
) -> None:
    joined_as(aws, who)
    spoil(aws)
    assert aws.boot() == 1
    assert told(aws) == ["report", "breaker", "CompleteLifecycleAction"]


def joined_as(machine: Machine, who: str | None) -> None:
    path = machine.disk / "var/lib/gputier/joined.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}" if who is None else json.dumps({"instance": who}), encoding="utf-8")


def test_a_group_that_throttles_hears_it_all_the_same(aws: Machine) -> None:
    spoil(aws)
    text = "<ErrorResponse><Error><Code>Throttling</Code></Error></ErrorResponse>"
    aws.groups.faults = [Fault(status=400, text=text, times=3)]
    aws.boot()
    assert aws.groups.nodes[INSTANCE].results == ("ABANDON",)


def test_a_lone_machine_tells_no_group(aws: Machine) -> None:
    aws.settings["gate"]["kind"] = "file"
    spoil(aws)
    aws.boot()
    assert not aws.groups.seen


def test_a_hook_that_does_not_wait_any_more_is_not_asked_for_long(aws: Machine) -> None:
    spoil(aws)
    aws.groups.nodes[INSTANCE].state = "InService"
    aws.boot()
    assert len(aws.groups.seen) == 1


def test_on_google_the_group_makes_the_machine_anew(make: Make) -> None:
    machine = make("gcp")
    spoil(machine)
    machine.boot()
    assert machine.compute.done == [("recreateInstances", "tuner-x1k2")]
    assert machine.compute.policy["mode"] == "ON"


def test_on_google_a_stopped_fleet_loses_the_machine_for_good(make: Make) -> None:
    machine = make("gcp", breaker={"after": 1, "window_seconds": 86400})
    spoil(machine)
    machine.boot()
    assert machine.compute.policy["mode"] == "OFF"
    assert machine.compute.done == [("deleteInstances", "tuner-x1k2")]
    assert machine.compute.size == 3


@pytest.mark.parametrize("cloud", PROGRAMS)
def test_no_secret_is_printed_or_kept(
    make: Make, cloud: str, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = make(cloud)
    spoil(machine)
    machine.boot()
    said = capsys.readouterr()
    kept = [path.read_text("utf-8") for path in machine.disk.rglob("*") if path.is_file()]
    kept += [body.decode("utf-8", "replace") for body in machine.store.objects.values()]
    secrets = (Credentials.access, Credentials.secret, Credentials.token, "stand-in-bearer-token",
               "TOKEN-")  # fmt: skip
    for text in (said.out, said.err, *kept):
        assert not [secret for secret in secrets if secret in text]


# --- what it is -----------------------------------------------------------------------------------


@pytest.mark.parametrize("cloud", PROGRAMS)
def test_the_fetcher_is_one_that_python_3_8_reads(cloud: str) -> None:
    ast.parse(fetcher(cloud), feature_version=(3, 8))


@pytest.mark.parametrize("cloud", PROGRAMS)
def test_the_fetcher_needs_the_standard_library_only(cloud: str) -> None:
    names = {
        name.name.split(".")[0]
        for node in ast.walk(ast.parse(fetcher(cloud)))
        if isinstance(node, ast.Import)
        for name in node.names
    }
    assert names <= sys.stdlib_module_names


@given(st.lists(st.text(max_size=40), min_size=4, max_size=4))
def test_both_sides_derive_the_same_bucket(parts: list[str]) -> None:
    module = types.ModuleType("names")
    source = ast.parse(fetcher("aws"))
    wanted = [n for n in source.body if isinstance(n, ast.FunctionDef) and n.name == "bucket_name"]
    head = ast.parse("import hashlib, re")
    exec(compile(ast.Module([*head.body, *wanted], []), "x", "exec"), module.__dict__)  # noqa: S102
    assert module.__dict__["bucket_name"](*parts) == bucket_name(*parts)
