"""Who asks Google, what is sent, and each way it is not answered."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.account import discovery
from tests.account.google_account import FORBIDDEN, GONE, PROJECT, Google, Nobody, Refusal

from gputier.account import answers, session_gcp
from gputier.account.answers import CannotAsk
from gputier.account.session_gcp import APIS, Reply
from gputier.account.stack import GcpAccount

exceptions: Any = import_module("google.auth.exceptions")
urllib3: Any = import_module("urllib3")
VARIABLES = (*session_gcp.PROJECT_FROM, *session_gcp.CREDENTIALS_FROM, session_gcp.ACCOUNT_FROM,
             session_gcp.TOKEN_FROM, "GOOGLE_APPLICATION_CREDENTIALS", "HTTPS_PROXY",
             "https_proxy")  # fmt: skip


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No credentials of the machine that tests run on."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "gcloud"))
    monkeypatch.setenv("NO_GCE_CHECK", "true")


def token_service(
    url: str,
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> Reply:
    """Answers every request with what it was sent, as Google's token service and its APIs would."""
    if "generateAccessToken" in url:
        found = {"accessToken": f"of {url.split('/')[-1]}", "expireTime": "2099-01-01T00:00:00Z"}
        return Reply(200, {}, json.dumps(found).encode())
    return Reply(200, {}, json.dumps({"url": url, "sent": dict(headers or {})}).encode())


def test_every_api_begins_where_its_document_says() -> None:
    for base in APIS.values():
        api = discovery.document(discovery.DOCUMENTS[base])
        root = api["rootUrl"].replace("www.", "compute.") + api["servicePath"]
        assert base in (root, f"{root}{api['version']}/")


def test_a_project_is_the_stacks_own_then_the_environments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(session_gcp.TOKEN_FROM, "mine")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "of-the-environment")
    assert session_gcp.session(GcpAccount(), token_service).project == "of-the-environment"
    found = session_gcp.session(GcpAccount(project="own"), token_service)
    assert found.project == "own"
    answer = found.get("compute", "projects/{project}/regions/europe-west4", fields="quotas")
    assert answer["url"] == f"{APIS['compute']}projects/own/regions/europe-west4?fields=quotas"
    assert answer["sent"]["authorization"] == "Bearer mine"


def test_an_account_is_impersonated_when_the_stack_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(session_gcp.TOKEN_FROM, "mine")
    account = GcpAccount(project="own", service_account="deploy@own.iam.gserviceaccount.com")
    sent = session_gcp.session(account, token_service).get("compute", "projects/{project}")["sent"]
    assert sent["authorization"] == (
        "Bearer of deploy@own.iam.gserviceaccount.com:generateAccessToken"
    )


def test_another_project_is_billed_when_the_stack_says_so() -> None:
    google = Google()
    google.has("compute", "projects/{project}", {})
    session = session_gcp.GcpSession(PROJECT, Nobody(), google.carry, "billed")
    session.get("compute", "projects/{project}")
    assert google.sent[0][1]["X-Goog-User-Project"] == "billed"


def test_all_pages_of_a_list_are_read() -> None:
    def pages(query: Mapping[str, str]) -> dict[str, Any]:
        if "pageToken" in query:
            return {"items": [{"name": "b"}]}
        return {"items": [{"name": "a"}], "nextPageToken": "more"}

    google = Google()
    google.has("compute", "projects/{project}/zones", pages)
    found = google.session().every("compute", "projects/{project}/zones")
    assert [zone["name"] for zone in found] == ["a", "b"]
    assert google.asked == ["compute.zones.list", "compute.zones.list"]


REFUSALS: dict[str, tuple[Any, str, str, str]] = {
    "no right": (FORBIDDEN, answers.RIGHT, "Required permission is missing", "grant it"),
    "gone": (GONE, answers.OTHER, "NOT_FOUND: The resource was not found", ""),
    "not enabled": (
        Refusal(403, "PERMISSION_DENIED", "off", "SERVICE_DISABLED", "compute.googleapis.com"),
        answers.OFF,
        f"compute.googleapis.com is not enabled in {PROJECT}",
        f"gcloud services enable compute.googleapis.com --project {PROJECT}",
    ),
    "nobody": (Refusal(401, "UNAUTHENTICATED"), answers.CREDENTIALS, "UNAUTHENTICATED", "gcloud"),
    "too many": (Refusal(429, "RESOURCE_EXHAUSTED"), answers.BUSY, "RESOURCE_EXHAUSTED", "minute"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_is_in_plain_words_with_a_way_out(name: str) -> None:
    refusal, kind, message, fix = REFUSALS[name]
    google = Google()
    google.has("compute", "projects/{project}", refusal)
    with pytest.raises(CannotAsk) as raised:
        google.session().get("compute", "projects/{project}")
    assert raised.value.kind == kind
    assert message in raised.value.message
    assert fix in raised.value.fix


def test_what_is_no_json_is_no_traceback() -> None:
    def broken(*_: Any, **__: Any) -> Reply:
        return Reply(502, {}, b"<html>bad gateway</html>")

    session = session_gcp.GcpSession(PROJECT, Nobody(), broken)
    with pytest.raises(CannotAsk, match="502"):
        session.get("compute", "projects/{project}")


def test_without_credentials_the_way_to_them_is_named() -> None:
    with pytest.raises(CannotAsk) as raised:
        session_gcp.session(GcpAccount(project=PROJECT), token_service)
    assert raised.value.kind == answers.CREDENTIALS
    assert "gcloud auth application-default login" in raised.value.fix


def test_a_key_that_is_none_is_no_traceback(tmp_path: Path) -> None:
    for key in (str(tmp_path / "none.json"), '{"type": "service_account"}', "{"):
        with pytest.raises(CannotAsk) as raised:
            session_gcp.session(GcpAccount(PROJECT, credentials=key), token_service)
        assert raised.value.kind == answers.CREDENTIALS


def test_without_a_project_the_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(session_gcp.TOKEN_FROM, "mine")
    with pytest.raises(CannotAsk) as raised:
        session_gcp.session(GcpAccount(), token_service)
    assert raised.value.fix == "pulumi config set gcp:project PROJECT"


@pytest.mark.parametrize(
    ("error", "kind"),
    [(exceptions.RefreshError("expired"), answers.CREDENTIALS),
     (exceptions.TransportError("no way"), answers.WAY)],
)  # fmt: skip
def test_a_token_that_cannot_be_had_is_no_traceback(error: Exception, kind: str) -> None:
    class Expired:
        def before_request(self, *_: Any) -> None:
            raise error

    session = session_gcp.GcpSession(PROJECT, Expired(), token_service)
    with pytest.raises(CannotAsk) as raised:
        session.get("compute", "projects/{project}")
    assert raised.value.kind == kind


@pytest.mark.parametrize("name", ["google.auth", "urllib3"])
def test_without_a_package_the_way_to_it_is_named(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [one for one in sys.modules if one == name or one.startswith(f"{name}.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(CannotAsk) as raised:
        session_gcp.session(GcpAccount(project=PROJECT))
    assert (raised.value.kind, raised.value.fix) == (
        answers.MISSING, "pip install 'gputier[gcp]'",
    )  # fmt: skip


def test_the_network_gives_up_soon_and_says_which_host(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class Pool:
        def __init__(self, *arguments: Any, **patience: Any) -> None:
            made.append((arguments, patience))

        def request(self, *_: Any, **__: Any) -> Any:
            raise urllib3.exceptions.ConnectTimeoutError

    monkeypatch.setattr(urllib3, "PoolManager", Pool)
    monkeypatch.setattr(urllib3, "ProxyManager", Pool)
    with pytest.raises(CannotAsk) as raised:
        session_gcp.carrier()(f"{APIS['compute']}projects/x")
    assert raised.value.message == "compute.googleapis.com: ConnectTimeoutError"
    assert raised.value.kind == answers.WAY
    ((_, patience),) = made
    assert patience["timeout"].connect_timeout == session_gcp.CONNECT
    assert patience["retries"].total == session_gcp.ATTEMPTS - 1
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    session_gcp.carrier()
    assert made[1][0] == ("http://proxy.example:3128",)


@pytest.mark.parametrize(
    ("method", "url", "body", "answer"),
    [
        ("GET", "projects/x/regionz/y", None, {}),
        ("POST", "projects/x/regions/y", b"{}", {}),
        ("GET", "projects/x/regions/y?filtr=z", None, {}),
        ("GET", "projects/x/regions/y", b"{}", {}),
        ("GET", "projects/x/regions/y", None, {"quota": []}),
        ("GET", "projects/x/regions/y", None, {"quotas": [{"limit": "8"}]}),
        ("GET", "projects/x/regions/y", None, {"status": "SIDEWAYS"}),
    ],
)
def test_what_google_does_not_describe_fails_a_test(
    method: str, url: str, body: bytes | None, answer: Any
) -> None:
    with pytest.raises(discovery.Undescribed):
        discovery.check(method, APIS["compute"] + url, body, answer)
