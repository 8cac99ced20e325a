"""The stand-ins refuse what the real services refuse: else tests with them would show nothing."""

from __future__ import annotations

import hashlib
import http.client
import json
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from gputier.node.cloud.sign import Keys, Scope, headers
from tests.standins import metadata
from tests.standins.__main__ import KINDS, make
from tests.standins.autoscaling import Autoscaling
from tests.standins.compute import Compute
from tests.standins.object_store import S3, Gcs
from tests.standins.server import Fault, StandIn
from tests.standins.signature import Credentials

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])
Started = Callable[[StandIn], str]
KEYS = Credentials()
OWNER = {"x-amz-expected-bucket-owner": "111122223333"}
IMDS = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}


@pytest.fixture
def started() -> Iterator[Started]:
    with ExitStack() as stack:

        def start(service: StandIn) -> str:
            service.start()
            stack.callback(service.stop)
            return service.url

        yield start


def send(
    url: str, method: str = "GET", given: dict[str, str] | None = None, body: bytes = b""
) -> tuple[int, bytes]:
    address = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=5)
    target = address.path + (f"?{address.query}" if address.query else "")
    connection.request(method, target or "/", body=body, headers=given or {})
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def signed(
    url: str, service: str, given: dict[str, str], body: bytes = b"", **change: Any
) -> dict[str, str]:
    keys = Keys(change.get("access", KEYS.access), change.get("secret", KEYS.secret),
                change.get("token", KEYS.token))  # fmt: skip
    scope = Scope(change.get("at", time.time()), change.get("region", "us-east-1"), service)
    return headers(keys, scope, change.get("method", "PUT"), url, given, body)


@pytest.fixture
def s3(started: Started) -> tuple[S3, str]:
    service = S3("b", credentials=[KEYS])
    return service, f"{started(service)}/b/k"


def test_what_is_signed_well_is_taken(s3: tuple[S3, str]) -> None:
    assert send(s3[1], "PUT", signed(s3[1], "s3", OWNER, b"x"), b"x")[0] == 200
    assert s3[0].objects == {"k": b"x"}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"secret": "another"}, b"SignatureDoesNotMatch"),
        ({"access": "ASIAUNKNOWN"}, b"InvalidClientTokenId"),
        ({"token": "another"}, b"InvalidToken"),
        ({"region": "eu-west-1"}, b"SignatureDoesNotMatch"),
        ({"method": "GET"}, b"SignatureDoesNotMatch"),
        ({"at": time.time() - 1200}, b"RequestTimeTooSkewed"),
    ],
)
def test_a_wrong_signature_is_refused(s3: tuple[S3, str], change: Any, code: bytes) -> None:
    status, body = send(s3[1], "PUT", signed(s3[1], "s3", OWNER, b"x", **change), b"x")
    assert (status, s3[0].objects) == (403, {})
    assert code in body


def test_what_is_not_signed_is_refused(s3: tuple[S3, str]) -> None:
    service, url = s3
    assert b"MissingAuthenticationToken" in send(url, "PUT", OWNER, b"x")[1]
    right = signed(url, "s3", {}, b"x")
    assert b"not signed" in send(url, "PUT", {**right, **OWNER}, b"x")[1]
    right = signed(url, "s3", OWNER, b"x")
    status, body = send(url, "PUT", right, b"y")
    assert (status, b"XAmzContentSHA256Mismatch" in body) == (400, True)
    forged = {**right, "X-Amz-Content-SHA256": hashlib.sha256(b"y").hexdigest()}
    assert b"SignatureDoesNotMatch" in send(url, "PUT", forged, b"y")[1]
    assert b"SignatureDoesNotMatch" in send(f"{url}2", "PUT", right, b"x")[1]
    assert service.objects == {}


@pytest.mark.parametrize(
    ("owner", "status"), [({}, 400), ({"x-amz-expected-bucket-owner": "9"}, 403)]
)
def test_the_owner_has_to_be_named_and_right(
    s3: tuple[S3, str], owner: dict[str, str], status: int
) -> None:
    assert send(s3[1], "PUT", signed(s3[1], "s3", owner, b"x"), b"x")[0] == status


def test_credentials_end(started: Started) -> None:
    service = S3("b", credentials=[Credentials(until=time.time() - 1)])
    url = f"{started(service)}/b/k"
    assert b"ExpiredToken" in send(url, "PUT", signed(url, "s3", OWNER))[1]


def test_no_token_no_metadata(started: Started) -> None:
    service = metadata.Aws()
    url = started(service)
    assert send(f"{url}/latest/meta-data/instance-id")[0] == 401
    assert send(f"{url}/latest/api/token", "PUT")[0] == 400
    assert send(f"{url}/latest/api/token", "PUT", {**IMDS, "X-Forwarded-For": "1.2.3.4"})[0] == 403
    _, token = send(f"{url}/latest/api/token", "PUT", IMDS)
    given = {"X-aws-ec2-metadata-token": token.decode()}
    assert send(f"{url}/latest/meta-data/instance-id", given=given)[0] == 200
    assert b"instance-id" in send(f"{url}/2021-03-23/meta-data/", given=given)[1]
    service.forget_tokens()
    assert send(f"{url}/latest/meta-data/instance-id", given=given)[0] == 401


def test_google_and_azure_want_their_headers(started: Started) -> None:
    google = f"{started(metadata.Gcp())}/computeMetadata/v1/instance/zone"
    assert send(google)[0] == 403
    assert send(google, given={"Metadata-Flavor": "Google"})[0] == 200
    azure = f"{started(metadata.Azure())}/metadata/instance/compute"
    assert send(f"{azure}?api-version=1")[0] == 400
    assert send(azure, given={"Metadata": "true"})[0] == 400
    assert send(f"{azure}?api-version=1", given={"Metadata": "true"})[0] == 200


def query(url: str, **found: str) -> tuple[int, bytes]:
    body = urllib.parse.urlencode({"Version": "2011-01-01", **found}).encode()
    return send(f"{url}/", "POST", signed(f"{url}/", "autoscaling", {}, body, method="POST"), body)


RIGHT = {"AutoScalingGroupName": "tuner", "LifecycleHookName": "tuner-launch", "InstanceId": "i-1"}


@pytest.mark.parametrize(
    "found",
    [
        {"Action": "CompleteLifecycleAction", **RIGHT},
        {"Action": "CompleteLifecycleAction", **RIGHT, "LifecycleActionResult": "X", "Extra": "1"},
        {"Action": "NoSuchAction"},
        {"Action": "RecordLifecycleActionHeartbeat", **RIGHT, "Version": "2010-01-01"},
        {"Action": "SuspendProcesses", "AutoScalingGroupName": "another"},
        {"Action": "SetInstanceHealth", "InstanceId": "i-9", "HealthStatus": "Unhealthy"},
        {"Action": "RecordLifecycleActionHeartbeat", **RIGHT, "InstanceId": "i-9"},
        {"Action": "RecordLifecycleActionHeartbeat", **RIGHT, "LifecycleHookName": "other"},
    ],
    ids=["result", "parameter", "action", "version", "group", "health", "node", "hook"],
)  # fmt: skip
def test_a_query_that_aws_would_refuse_is_refused(started: Started, found: dict[str, str]) -> None:
    service = Autoscaling(credentials=[KEYS])
    service.launch("i-1")
    assert query(started(service), **found)[0] == 400
    assert service.nodes["i-1"].state == "Pending:Wait"


def test_a_hook_runs_out_and_abandons(started: Started) -> None:
    service = Autoscaling(credentials=[KEYS], timeout=0.0)
    service.launch("i-1")
    time.sleep(0.01)
    status, body = query(started(service), Action="RecordLifecycleActionHeartbeat", **RIGHT)
    assert (status, b"No active Lifecycle Action" in body) == (400, True)
    assert service.nodes["i-1"].results == ("ABANDON",)


def test_google_wants_a_token_and_members_only(started: Started) -> None:
    compute = Compute()
    url = f"{started(compute)}/compute/v1/projects/stand-in-project/{compute.group}"
    given = {"Authorization": "Bearer stand-in-bearer-token"}
    body = json.dumps({"instances": ["zones/us-central1-a/instances/nobody"]}).encode()
    assert send(f"{url}/deleteInstances", "POST", {}, body)[0] == 401
    assert send(f"{url}/deleteInstances", "POST", given, body)[0] == 400
    assert send(f"{url}/resize", "POST", given, b"{}")[0] == 404
    assert send(f"{started(Gcs('b'))}/storage/v1/b/b/o/k")[0] == 401
    assert compute.size == 4


def test_faults_are_counted_and_choose_their_requests(started: Started) -> None:
    service = metadata.Gcp(faults=[Fault("zone", status=503, times=2)])
    url = f"{started(service)}/computeMetadata/v1/instance"
    given = {"Metadata-Flavor": "Google"}
    assert [send(f"{url}/zone", given=given)[0] for _ in range(3)] == [503, 503, 200]
    service.faults.append(Fault(method="PUT", status=500))
    assert send(f"{url}/id", given=given)[0] == 200
    service.faults.append(Fault(lost=True, times=1))
    with pytest.raises((http.client.HTTPException, OSError)):
        send(f"{url}/id", given=given)


@pytest.mark.parametrize("kind", KINDS)
def test_each_is_made_from_the_command_line(kind: str) -> None:
    config = {"bucket": "b"} if kind in ("s3", "storage") else {}
    assert isinstance(make(kind, config), StandIn)


@pytest.mark.parametrize("cloud", metadata.CLOUDS)
def test_one_in_another_process_is_driven_by_http(root: Path, cloud: str) -> None:
    config = {"cloud": cloud, "faults": [{"path": "/nothing", "status": 500}]}
    with subprocess.Popen(
        [sys.executable, "-m", "tests.standins", "metadata", "--config", json.dumps(config)],
        cwd=root, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout
        url = process.stdout.readline().strip()
        assert send(f"{url}/nothing")[0] == 500
        told = json.dumps({"path": "/later", "status": 418}).encode()
        assert send(f"{url}/_standin/fault", "POST", body=told)[0] == 200
        assert send(f"{url}/later")[0] == 418
        assert send(f"{url}/_standin/set", "POST", body=b'{"a/b": "c"}')[0] == 200
        seen = json.loads(send(f"{url}/_standin/seen")[1])
        process.terminate()
    assert [row["path"] for row in seen] == ["/nothing", "/later"]
