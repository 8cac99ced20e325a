"""Stage-0's fetcher, as a machine is given it, against stand-ins that are as strict as a cloud."""

from __future__ import annotations

import ast
import hashlib
import sys
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.boot.conftest import Make
from tests.boot.machine import BUNDLE, KEY, PINNED, Machine, spoil
from tests.standins.metadata import ROLE
from tests.standins.server import Asked, Fault, Reply

from gputier.boot import bucket_name
from gputier.boot.stage0 import PROGRAMS, fetcher
from gputier.node.cloud.identity import Identity

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])


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
