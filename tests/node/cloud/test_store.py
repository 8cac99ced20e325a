"""Objects are put whole, shared state only over what was read, and no refusal shows a secret."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.node.clouds import Quick, World, world
from tests.standins.metadata import Aws as Imds
from tests.standins.metadata import Gcp as Google
from tests.standins.object_store import S3, Gcs
from tests.standins.server import Fault
from tests.standins.signature import Credentials

from gputier.node.cloud import Refused, Trouble, shared
from gputier.node.cloud.here import Here
from gputier.node.cloud.identity import Identity
from gputier.node.cloud.store import Store

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])


@pytest.fixture(params=["aws", "gcp"])
def there(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    with world(tmp_path, request.param) as made:
        yield made


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path, "aws") as made:
        yield made


@pytest.mark.parametrize("key", ["reports/tuner/i-1/x.json", "a b/ü+%~.json", "k"])
def test_what_was_put_is_got(there: World, key: str) -> None:
    store = there.here().store
    assert store.get(key) is None
    store.put(key, b'{"a": 1}')
    found = store.get(key)
    assert found
    assert found.body == b'{"a": 1}' == there.store.objects[key]


def test_a_conditional_put_wins_only_over_what_was_read(there: World) -> None:
    store = there.here().store
    assert store.put_if("k", b"1", None)
    assert not store.put_if("k", b"2", None), "somebody is there already"
    first = store.get("k")
    assert first
    assert store.put_if("k", b"2", first.version)
    assert not store.put_if("k", b"3", first.version), "the version has gone"
    assert there.store.objects["k"] == b"2"


def test_a_put_over_an_object_that_has_gone_is_a_conflict(there: World) -> None:
    store = there.here().store
    store.put("k", b"1")
    found = store.get("k")
    assert found
    del there.store.objects["k"]
    if isinstance(there.store, Gcs):
        there.store.generations["k"] = 0
    assert not store.put_if("k", b"2", found.version)


def test_a_store_in_trouble_is_tried_again(there: World) -> None:
    there.store.faults.append(Fault(status=503, times=3))
    there.here().store.put("k", b"1")
    assert there.store.objects["k"] == b"1"


def test_a_refusal_says_what_was_refused_and_why(there: World) -> None:
    there.store.denied.add(("PUT", "reports/"))
    with pytest.raises(
        Refused, match=r"put (s3|gs)://.*reports/x.*(Access Denied|no storage)"
    ) as e:
        there.here().store.put("reports/x", b"1")
    assert e.value.denied
    assert len(there.store.seen) == 1, "another try would not be allowed either"


def test_a_bucket_of_somebody_else_gets_nothing(aws: World) -> None:
    """A name can be taken by anybody once the stack is gone."""
    assert isinstance(aws.store, S3)
    aws.store.owner = "999999999999"
    with pytest.raises(Refused, match="AccessDenied"):
        aws.here().store.put("reports/x", b"secret figures")
    assert aws.store.objects == {}


def test_the_owner_that_is_named_is_the_machines_own_account(aws: World) -> None:
    assert isinstance(aws.store, S3)
    aws.store.owner = "444455556666"
    here = aws.here()
    mine = here.identity._replace(account="444455556666")
    Here(aws.host, here.settings, mine).store.put("reports/x", b"1")
    assert aws.store.objects["reports/x"] == b"1"


def test_credentials_that_ran_out_are_renewed_once(aws: World) -> None:
    assert isinstance(aws.store, S3)
    store = aws.here().store
    store.get("k")
    new = Credentials("ASIANEW", "another/secret", "another-token")
    aws.store.verifier.good = {"ASIANEW": new}
    aws.store.verifier.admit(Credentials(until=1.0))
    assert isinstance(aws.metadata, Imds)
    aws.metadata.credentials = new
    store.put("k", b"1")
    assert aws.store.objects["k"] == b"1"


def gives(gcp: World, token: str) -> None:
    assert isinstance(gcp.metadata, Google)
    gcp.metadata.token = token


def takes(gcp: World, token: str) -> None:
    assert isinstance(gcp.store, Gcs)
    gcp.store.token = token


def test_a_bearer_token_that_ran_out_is_renewed_once(tmp_path: Path) -> None:
    with world(tmp_path, "gcp") as gcp:
        store = gcp.here().store
        store.get("k")
        gives(gcp, "another")
        takes(gcp, "another")
        store.put("k", b"1")
        assert gcp.store.objects["k"] == b"1"
        takes(gcp, "a third")
        with pytest.raises(Refused, match="authError"):
            store.put("k", b"2")


@pytest.mark.parametrize("ahead", [-7200.0, 7200.0, 86400.0 * 400])
def test_a_wrong_clock_is_made_up_for(aws: World, ahead: float) -> None:
    """The report of a node whose clock is off is the one that has to arrive."""
    store = aws.here().store
    aws.host.ahead = ahead
    store.put("k", b"1")
    assert [asked.status for asked in aws.store.seen] == [403, 200]
    assert abs(store.now() - time.time()) < 30


def test_a_signature_that_is_refused_shows_no_token(aws: World) -> None:
    """The service quotes what should have been signed, session token and all."""
    store = aws.here().store
    store.get("k")
    assert isinstance(aws.store, S3)
    aws.store.verifier.admit(Credentials(secret="changed"))  # noqa: S106 (belongs to nobody)
    with pytest.raises(Refused, match="SignatureDoesNotMatch") as error:
        store.put("k", b"1")
    assert "stand-in" not in f"{error.value}{error.value!r}{error.value.message}"


@pytest.mark.parametrize("bucket", ["", "b"])
def test_a_machine_without_a_bucket_says_so(aws: World, bucket: str) -> None:
    here = aws.here()
    cloud = "azure" if bucket else "aws"
    lost = Here(aws.host, here.settings, Identity(cloud, "1", "r", "z", "i", bucket))
    with pytest.raises(Trouble, match=r"bucket|not kept on azure"):
        _ = lost.store


# --- shared state ----------------------------------------------------------------------------


def added(name: str) -> Any:
    def change(data: Any) -> Any:
        names = list(data.get("names", []))
        return None if name in names else {"names": [*names, name]}

    return change


def test_many_nodes_that_write_at_once_lose_nothing(there: World) -> None:
    here = there.here()
    # Each with a clock of its own: pauses of one do not use up another's time.
    hosts = [Quick(there.host.root) for _ in range(12)]
    stores: list[Store] = [Here(host, here.settings, here.identity).store for host in hosts]
    names = [f"i-{number}" for number in range(12)]
    threads = [
        threading.Thread(target=shared.update, args=(store, "k", added(name)))
        for store, name in zip(stores, names, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(there.store.json("k")["names"]) == sorted(names)


@pytest.mark.parametrize("times", [1, 2])
def test_a_write_whose_answer_got_lost_is_found_again(there: World, times: int) -> None:
    there.store.faults.append(Fault(method="P", lost=True, times=times))
    there.store.faults[0].method = "PUT" if there.cloud == "aws" else "POST"
    assert shared.update(there.here().store, "k", added("i-1")) == {"names": ["i-1"]}
    assert there.store.json("k") == {"names": ["i-1"]}
    assert there.store.writes == 1


def test_what_is_not_there_may_be_answered_with_403(aws: World) -> None:
    """S3 hides whether a key exists from who may not list."""
    assert isinstance(aws.store, S3)
    aws.store.may_list = False
    assert shared.update(aws.here().store, "k", added("i-1")) == {"names": ["i-1"]}


def test_what_may_not_be_read_is_not_written_over(aws: World) -> None:
    aws.store.objects["k"] = b'{"names": ["i-0"]}'
    aws.store.denied.add(("GET", "k"))
    with pytest.raises(Refused, match=r"get s3:.*AccessDenied"):
        shared.update(aws.here().store, "k", added("i-1"))
    assert aws.store.json("k") == {"names": ["i-0"]}
    assert len(aws.store.requests(method="PUT")) == 1


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"\xff"])
def test_a_state_that_cannot_be_read_is_begun_anew(there: World, text: bytes) -> None:
    there.here().store.put("k", text)
    assert shared.update(there.here().store, "k", added("i-1")) == {"names": ["i-1"]}


def test_others_that_never_stop_writing_are_said(there: World) -> None:
    there.store.faults.append(Fault(method="PUT" if there.cloud == "aws" else "POST", status=412))
    with pytest.raises(Trouble, match="kept writing"):
        shared.update(there.here().store, "k", added("i-1"))


def test_nothing_to_change_writes_nothing(there: World) -> None:
    store = there.here().store
    shared.update(store, "k", added("i-1"))
    shared.update(store, "k", added("i-1"))
    assert there.store.writes == 1
