"""An AWS account that answers what it was told to: botocore checks each request and answer."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from gputier.account.session_aws import AwsSession

errors: Any = import_module("botocore.exceptions")
Session: Any = import_module("botocore.session").Session
Validator: Any = import_module("botocore.validate").ParamValidator
Stubber: Any = import_module("botocore.stub").Stubber

KEYS = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
#: One session, and one client of a service in a region: loading models takes most of a second.
_SESSION = Session()
_MADE: dict[tuple[str, str], Any] = {}
_LOCK = threading.Lock()


class Amazon:
    """What each call answers, by service and call, in any order and any number of times.

    Stubber checks an answer against the service's model, and each call's parameters too. `asked`
    are the calls that were made, with where and what of."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], Any] = {}
        self.asked: list[tuple[str, str, str, Mapping[str, Any]]] = []

    def has(self, service: str, call: str, answer: Any) -> None:
        """A dict, an exception, or the code of a refusal. A function is given the parameters."""
        self.answers[service, call] = answer

    def session(self, region: str = "us-east-1") -> AwsSession:
        return AwsSession(self.client, errors, region)

    def client(self, service: str, region: str) -> Any:
        with _LOCK:
            if (service, region) not in _MADE:
                _MADE[service, region] = _SESSION.create_client(service, region_name=region, **KEYS)
        return _Client(_MADE[service, region], self, service, region)


class _Client:
    """A client whose calls are stubbed when they are made."""

    def __init__(self, client: Any, account: Amazon, service: str, region: str) -> None:
        self._client, self._account = client, account
        self._service, self._region = service, region

    def can_paginate(self, call: str) -> bool:
        return self._client.can_paginate(call)

    def get_paginator(self, call: str) -> Any:
        return _Pages(self, call)

    def __getattr__(self, call: str) -> Any:
        def ask(**parameters: Any) -> Any:
            return self.stubbed(call, parameters)

        return ask

    def stubbed(self, call: str, parameters: Mapping[str, Any]) -> Any:
        account = self._account
        account.asked.append((self._service, call, self._region, parameters))
        answer = account.answers.get((self._service, call), "AccessDenied")
        if callable(answer):
            answer = answer(parameters)
        with _LOCK, Stubber(self._client) as stub:
            if isinstance(answer, str):
                stub.add_client_error(call, answer, "no")
            elif isinstance(answer, Exception):
                stub.add_response(call, {})
                getattr(self._client, call)(**parameters)  # its parameters are checked as well
                raise answer
            else:
                stub.add_response(call, answer)
            return getattr(self._client, call)(**parameters)


class _Pages:
    """One page of a call that has several."""

    def __init__(self, client: _Client, call: str) -> None:
        self._client, self._call = client, call

    def paginate(self, **parameters: Any) -> list[Any]:
        return [self._client.stubbed(self._call, parameters)]
