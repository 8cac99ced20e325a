"""Asking Google as the stack does: its credentials, the account it impersonates, its project.

Plain REST: google-auth finds who asks, urllib3 carries it. Nothing of either is imported before
something is asked.
"""

from __future__ import annotations

import json
import os
import threading
import urllib.request
import warnings
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast
from urllib.parse import quote, urlencode

from gputier.account.answers import (
    BUSY,
    CREDENTIALS,
    MISSING,
    OFF,
    RIGHT,
    WAY,
    CannotAsk,
)
from gputier.account.stack import GcpAccount

#: Where each API begins (`rootUrl` and `servicePath` of its discovery document).
APIS = {
    "billing": "https://cloudbilling.googleapis.com/v1/",
    "budgets": "https://billingbudgets.googleapis.com/v1/",
    "compute": "https://compute.googleapis.com/compute/v1/",
    "logging": "https://logging.googleapis.com/v2/",
    "monitoring": "https://monitoring.googleapis.com/v3/",
    "projects": "https://cloudresourcemanager.googleapis.com/v3/",
    "services": "https://serviceusage.googleapis.com/v1/",
    "storage": "https://storage.googleapis.com/storage/v1/",
    "quotas": "https://serviceusage.googleapis.com/v1beta1/",
}
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
INSTALL = "pip install 'gputier[gcp]'"
HOW_CREDENTIALS = (
    "gcloud auth application-default login; or name a key in GOOGLE_APPLICATION_CREDENTIALS"
)
HOW_WAY = "Google has to be reached from here; HTTPS_PROXY is honoured"
HOW_PROJECT = "pulumi config set gcp:project PROJECT"
#: Seconds to connect and to wait for an answer, how often in all, and pages of one list.
CONNECT, READ, ATTEMPTS, PAGES = 5.0, 15.0, 3, 50
#: Where the provider looks for a project, and for whom to act as, when the stack names none.
PROJECT_FROM = ("GOOGLE_PROJECT", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT")
ACCOUNT_FROM = "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT"
CREDENTIALS_FROM = ("GOOGLE_CREDENTIALS", "GOOGLE_CLOUD_KEYFILE_JSON", "GCLOUD_KEYFILE_JSON")
TOKEN_FROM = "GOOGLE_OAUTH_ACCESS_TOKEN"  # noqa: S105 (the name of a variable)


class Reply(NamedTuple):
    """What came back over HTTP, in the form that google-auth reads too."""

    status: int
    headers: Mapping[str, str]
    data: bytes


class Carry(Protocol):
    """One request over the network, as google-auth makes it. Raises `CannotAsk`."""

    def __call__(
        self,
        url: str,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> Reply: ...


class Credentials(Protocol):
    """What google-auth calls credentials: they put a token into a request's headers."""

    def before_request(self, request: Any, method: str, url: str, headers: Any, /) -> None: ...


class GcpSession:
    """Requests of one identity in one project. Threads may share it."""

    def __init__(
        self, project: str, credentials: Credentials, carry: Carry, billing_project: str = ""
    ) -> None:
        self.project = project
        #: The service account that asks, "" where it is a person or not known.
        self.caller = _account_of(credentials)
        self._credentials, self._carry, self._billed = credentials, carry, billing_project
        self._lock = threading.Lock()  # a token is fetched once

    def get(self, api: str, path: str, **query: Any) -> dict[str, Any]:
        """The answer to a GET of `path` below an API of `APIS`. `{project}` in it is the session's.
        Raises `CannotAsk`, with Google's own status as code (`NOT_FOUND`)."""
        return self._asked("GET", self._url(api, path, query), None)

    def post(
        self, api: str, path: str, body: Mapping[str, Any] | None, **query: Any
    ) -> dict[str, Any]:
        """The same for a POST, which must be one that changes nothing. Some take no body."""
        return self._asked("POST", self._url(api, path, query), body)

    def every(self, api: str, path: str, key: str = "items", **query: Any) -> list[Any]:
        """The items below `key` over all pages. Raises `CannotAsk`."""
        found: list[Any] = []
        for _ in range(PAGES):
            page = self.get(api, path, **query)
            found += page.get(key, ())
            token = page.get("nextPageToken")
            if not token:
                break
            query["pageToken"] = token
        return found

    def _url(self, api: str, path: str, query: Mapping[str, Any]) -> str:
        named = path.replace("{project}", quote(self.project, safe=":."))
        asked = [(key, value) for key, value in query.items() if value is not None]
        return APIS[api] + named + (f"?{urlencode(asked, doseq=True)}" if asked else "")

    def _asked(self, method: str, url: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        headers = {"Accept": "application/json"}
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        if self._billed:
            headers["X-Goog-User-Project"] = self._billed
        with self._lock:
            _authorized(self._credentials, self._carry, method, url, headers)
        reply = self._carry(url, method, data, headers)
        document = _json(reply.data)
        if reply.status >= 400:
            raise refused(reply.status, document, self.project)
        return document


def session(account: GcpAccount, carry: Carry | None = None) -> GcpSession:
    """A session of the stack's identity. Raises `CannotAsk`: google-auth is not there, no
    credentials, no project."""
    google, errors = _load("google.auth"), _load("google.auth.exceptions")
    over = carry or carrier()
    try:
        credentials, own_project = _found(account, google, over)
    except (errors.GoogleAuthError, OSError, ValueError) as error:
        raise CannotAsk(_one_line(error), HOW_CREDENTIALS, CREDENTIALS) from None
    except ModuleNotFoundError as error:  # some kinds of credentials need more than google-auth
        message = f"these credentials need {error.name}, which is not installed"
        raise CannotAsk(message, f"pip install {error.name}", MISSING) from None
    project = account.project or _environment(*PROJECT_FROM) or own_project or ""
    if not project:
        message = "no project is named, and the credentials name none"
        raise CannotAsk(message, HOW_PROJECT, CREDENTIALS)
    acts_as = account.service_account or _environment(ACCOUNT_FROM)
    if acts_as:
        credentials = _load("google.auth.impersonated_credentials").Credentials(
            credentials, acts_as, [SCOPE], delegates=list(account.delegates) or None
        )
    return GcpSession(project, credentials, over, account.billing_project)


def _found(account: GcpAccount, google: Any, carry: Carry) -> tuple[Any, str | None]:
    """Credentials and the project that they name: the stack's own, else the environment's."""
    token = _environment(TOKEN_FROM)
    key = account.credentials or _environment(*CREDENTIALS_FROM)
    if token:
        return _load("google.oauth2.credentials").Credentials(token), None
    with warnings.catch_warnings():
        # Of keys from strangers, and of a person's own login; this one is the user's own.
        warnings.simplefilter("ignore")
        if key.lstrip().startswith("{"):
            return google.load_credentials_from_dict(json.loads(key), scopes=[SCOPE], request=carry)
        if key:
            path = str(Path(key).expanduser())
            return google.load_credentials_from_file(path, scopes=[SCOPE], request=carry)
        return google.default(scopes=[SCOPE], request=carry)


def _authorized(
    credentials: Credentials, carry: Carry, method: str, url: str, headers: dict[str, str]
) -> None:
    errors = _load("google.auth.exceptions")
    try:
        credentials.before_request(carry, method, url, headers)
    except errors.TransportError as error:
        raise CannotAsk(_one_line(error), HOW_WAY, WAY) from None
    except errors.GoogleAuthError as error:
        raise CannotAsk(_one_line(error), HOW_CREDENTIALS, CREDENTIALS) from None


def carrier() -> Carry:
    """Requests over the network, through a proxy where the environment names one. Raises
    `CannotAsk` when urllib3 is not there."""
    urllib3 = _load("urllib3")
    patience = {
        "timeout": urllib3.Timeout(connect=CONNECT, read=READ),
        "retries": urllib3.Retry(
            total=ATTEMPTS - 1,
            backoff_factor=0.3,
            status_forcelist=(429, 500, 502, 503, 504),
            allowed_methods=None,  # nothing asked here changes anything
            raise_on_status=False,
            redirect=0,
        ),
    }
    proxy = urllib.request.getproxies().get("https")
    pool = urllib3.ProxyManager(proxy, **patience) if proxy else urllib3.PoolManager(**patience)

    def carry(
        url: str,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        **_more: Any,  # google-auth's own patience: ours is shorter
    ) -> Reply:
        try:
            found = pool.request(method, url, body=body, headers=dict(headers or {}))
        except urllib3.exceptions.HTTPError as error:
            host = url.split("/")[2]
            raise CannotAsk(f"{host}: {type(error).__name__}", HOW_WAY, WAY) from None
        return Reply(found.status, found.headers, found.data)

    return carry


def refused(status: int, document: Mapping[str, Any], project: str) -> CannotAsk:
    """Google's refusal in plain words."""
    error: Mapping[str, Any] = document.get("error") or {}
    if not isinstance(error, dict):  # of the token's own service
        return CannotAsk(str(error), HOW_CREDENTIALS, CREDENTIALS)
    code = str(error.get("status") or status)
    message = f"{code}: {_one_line(error.get('message', ''))}".removesuffix(": ")
    reasons = {str(one.get("reason", "")) for one in _reasons(error)}
    if reasons & {"SERVICE_DISABLED", "accessNotConfigured"}:
        api = next((name for one in _reasons(error) if (name := _service(one))), "the API")
        fix = f"gcloud services enable {api} --project {project}"
        return CannotAsk(f"{api} is not enabled in {project}", fix, OFF, code)
    if status == 401:
        return CannotAsk(message, HOW_CREDENTIALS, CREDENTIALS, code)
    if status == 403:
        return CannotAsk(message, "grant it to whoever asks", RIGHT, code)
    if status == 429:
        return CannotAsk(message, "try again in a minute", BUSY, code)
    return CannotAsk(message, code=code)


def _reasons(error: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [
        one for key in ("details", "errors") for one in error.get(key, ()) if isinstance(one, dict)
    ]


def _service(reason: Mapping[str, Any]) -> str:
    named: Mapping[str, Any] = reason.get("metadata") or {}
    return str(named.get("service", ""))


def _json(data: bytes) -> dict[str, Any]:
    try:
        found: Any = json.loads(data)
    except ValueError:
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _load(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name and not name.startswith(error.name):
            raise
        package = "urllib3" if name == "urllib3" else "google-auth"
        message = f"Google is asked with {package}, which is not installed"
        raise CannotAsk(message, INSTALL, MISSING) from None


def _account_of(credentials: Credentials) -> str:
    named = str(getattr(credentials, "service_account_email", "") or "")
    return named if "@" in named else ""  # a machine's own is `default` until it is asked


def _environment(*names: str) -> str:
    return next((os.environ[name] for name in names if os.environ.get(name)), "")


def _one_line(said: object) -> str:
    return " ".join(str(said).split())
