"""Asking AWS as the stack does: its profile, its assumed roles, its region; and giving up soon.

No stubs come with boto3, and nothing of it is imported before something is asked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from gputier.account.answers import (
    BUSY,
    CREDENTIALS,
    MISSING,
    RIGHT,
    WAY,
    CannotAsk,
)
from gputier.account.stack import AwsAccount, Role

INSTALL = "pip install 'gputier[aws]'"
HOW_CREDENTIALS = (
    "credentials are found as the AWS command line finds them: AWS_PROFILE, SSO, a role"
)
HOW_WAY = "AWS has to be reached from here; AWS_ENDPOINT_URL and HTTPS_PROXY are honoured"
#: Seconds to connect and to wait for an answer, and how often in all.
CONNECT, READ, ATTEMPTS = 5, 15, 3
#: Where STS is asked when a stack has no region.
ANYWHERE = "us-east-1"
SESSION_NAME = "gputier"

#: Names that services give to what a person may not do (each has its own spelling).
_DENIED = (
    "AccessDenied",
    "AccessDeniedException",
    "UnauthorizedOperation",
    "UnauthorizedException",
    "NotAuthorized",
    "AuthorizationError",
    "OptInRequired",
)
_NOBODY = (
    "AuthFailure",
    "ExpiredToken",
    "ExpiredTokenException",
    "IncompleteSignature",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "RequestExpired",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
)
_TOO_MANY = (
    "RequestLimitExceeded",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
)

Clients = Callable[[str, str], Any]
"""A boto3 client: (service, region)."""


class AwsSession:
    """Clients of one identity. Threads may share it.

    `errors` is `botocore.exceptions`; `clients` makes a client of a service in a region."""

    def __init__(self, clients: Clients, errors: Any, region: str = "") -> None:
        self.region = region or ANYWHERE
        self._clients, self._errors = clients, errors
        self._made: dict[tuple[str, str], Any] = {}
        self._lock = threading.Lock()  # a session makes one client at a time

    def client(self, service: str, region: str = "") -> Any:
        """A boto3 client. Raises `CannotAsk`."""
        key = (service, region or self.region)
        with self._lock:
            if key not in self._made:
                try:
                    self._made[key] = self._clients(*key)
                except self._errors.BotoCoreError as error:
                    raise plain(error, self._errors, service) from None
            return self._made[key]

    def ask(self, service: str, call: str, region: str = "", **parameters: Any) -> dict[str, Any]:
        """One call, such as `describe_images`. Raises `CannotAsk`, with the service's own code."""
        client = self.client(service, region)
        try:
            return getattr(client, call)(**parameters)
        except (self._errors.ClientError, self._errors.BotoCoreError) as error:
            raise plain(error, self._errors, permission(service, call)) from None

    def every(
        self, service: str, call: str, key: str, region: str = "", **parameters: Any
    ) -> list[dict[str, Any]]:
        """The items below `key` over all pages of a call. Raises `CannotAsk`."""
        client = self.client(service, region)
        try:
            if not client.can_paginate(call):
                return list(getattr(client, call)(**parameters).get(key, ()))
            pages = client.get_paginator(call).paginate(**parameters)
            return [item for page in pages for item in page.get(key, ())]
        except (self._errors.ClientError, self._errors.BotoCoreError) as error:
            raise plain(error, self._errors, permission(service, call)) from None


def session(account: AwsAccount, clients: Clients | None = None) -> AwsSession:
    """A session of the stack's identity: profile, then each role in turn. Raises `CannotAsk`: boto3
    is not there, no such profile, or a role that may not be assumed."""
    boto3, errors = _load("boto3"), _load("botocore.exceptions")
    if clients is not None:
        return AwsSession(clients, errors, account.region)
    try:
        core: Any = _load("botocore.session").Session()
        for option, files in (
            ("config_file", account.config_files),
            ("credentials_file", account.credentials_files),
        ):
            if files:  # several are the provider's; botocore reads one
                core.set_config_variable(option, files[0])
        own = boto3.Session(
            botocore_session=core,
            profile_name=account.profile or None,
            region_name=account.region or None,
        )
        for role in account.roles:
            own = _assumed(own, role, account.region)
    except (errors.ClientError, errors.BotoCoreError) as error:
        raise plain(error, errors, "sts:AssumeRole") from None
    return AwsSession(_clients_of(own), errors, own.region_name or "")


def _assumed(own: Any, role: Role, region: str) -> Any:
    """A session of a role that `own` assumes, and assumes again when its time is over."""
    sts = _clients_of(own)("sts", own.region_name or ANYWHERE)
    asked = {"RoleArn": role.arn, "RoleSessionName": role.session_name or SESSION_NAME}
    if role.external_id:
        asked["ExternalId"] = role.external_id

    def refresh() -> dict[str, Any]:
        found: Mapping[str, Any] = sts.assume_role(**asked)["Credentials"]
        return {
            "access_key": found["AccessKeyId"],
            "secret_key": found["SecretAccessKey"],
            "token": found["SessionToken"],
            "expiry_time": found["Expiration"].isoformat(),
        }

    made = _load("botocore.credentials").RefreshableCredentials.create_from_metadata(
        metadata=refresh(), refresh_using=refresh, method="sts-assume-role"
    )
    core: Any = _load("botocore.session").Session()
    core._credentials = made  # what its own constructor has no argument for
    return _load("boto3").Session(
        botocore_session=core, region_name=region or own.region_name or None
    )


def _clients_of(own: Any) -> Clients:
    patience = _load("botocore.config").Config(
        connect_timeout=CONNECT,
        read_timeout=READ,
        retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
    )

    def make(service: str, region: str) -> Any:
        return own.client(service, region_name=region, config=patience)

    return make


def _load(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        message = "AWS is asked by boto3, which is not installed"
        raise CannotAsk(message, INSTALL, MISSING) from None


#: Calls whose action is called otherwise (service authorization reference).
_ACTIONS = {("budgets", "describe_budget"): "budgets:ViewBudget"}


def permission(service: str, call: str) -> str:
    """The action that a policy has to allow: `ec2:DescribeImages`."""
    if (service, call) in _ACTIONS:
        return _ACTIONS[service, call]
    prefix = {"service-quotas": "servicequotas"}.get(service, service)
    return f"{prefix}:{''.join(part.capitalize() for part in call.split('_'))}"


def plain(error: Any, errors: Any, needs: str) -> CannotAsk:
    """What botocore says, in plain words. `needs` is the right that the call takes."""
    if isinstance(error, errors.ClientError):
        return _of_service(error, needs)
    said = " ".join(str(error).split())
    if isinstance(error, (errors.EndpointConnectionError, errors.HTTPClientError)):
        return CannotAsk(said, HOW_WAY, WAY)
    if isinstance(error, (errors.NoCredentialsError, errors.ProfileNotFound)) or (
        "SSO" in type(error).__name__ or "Credential" in type(error).__name__
    ):
        return CannotAsk(said, HOW_CREDENTIALS, CREDENTIALS)
    return CannotAsk(said)


def _of_service(error: Any, needs: str) -> CannotAsk:
    said: Mapping[str, Any] = error.response.get("Error", {})
    code = str(said.get("Code", ""))
    message = f"{code}: {' '.join(str(said.get('Message', '')).split())}".removesuffix(": ")
    if code in _DENIED:
        return CannotAsk(message, f"allow {needs} to whoever asks", RIGHT, code)
    if code in _NOBODY:
        return CannotAsk(message, HOW_CREDENTIALS, CREDENTIALS, code)
    if code in _TOO_MANY:
        return CannotAsk(message, "try again in a minute", BUSY, code)
    return CannotAsk(message, code=code)
