"""AWS as one provider sees it: an account and a region."""

from __future__ import annotations

from typing import Any, Protocol

from tests.engine.wire import Props

ACCOUNT = "123456789012"  # moto's
REGION = "us-east-1"


class Holder(Protocol):
    """Whoever holds the state: boto3's clients, and what moto has no place for."""

    def client(self, service: str, region: str = ...) -> Any: ...

    def kept(self, kind: str, region: str) -> dict[str, Props]: ...


class Session:
    account = ACCOUNT

    def __init__(self, holder: Holder, region: str) -> None:
        self._holder, self.region = holder, region

    def client(self, service: str) -> Any:
        return self._holder.client(service, self.region)

    def kept(self, kind: str) -> dict[str, Props]:
        """Things such as placement groups, which moto does not have: by name."""
        return self._holder.kept(kind, self.region)
