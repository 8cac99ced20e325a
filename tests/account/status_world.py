"""Stacks to ask for: a declaration, a lock that fits it, and a cloud that answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from tests.account.status_amazon import NOW

from gputier.account.answers import CannotAsk
from gputier.account.stack import StackAccount
from gputier.account.status import Fleet, Stack
from gputier.account.status_ask import Asked, Clouds, Sessions, ask_stack
from gputier.cli.console import Paint
from gputier.cli.status_text import Screen
from gputier.lock import Entry, Lock
from gputier.lock.entries import digest_of
from gputier.workload import Declaration, read_text

CHAT = """\
workloads:
  chat:
    purpose: inference
    gpu: {memory: 16GB}
    scale: {min: 1, max: 8, metric: gpu_utilization, target: 70}
"""
ENTRY = Entry(
    digest="",
    cloud="aws",
    region="us-east-1",
    zones=("use1-az4", "use1-az6"),
    instance_type="g6.4xlarge",
    catalog_type="g6.4xlarge",
    attached=None,
    attached_ssds=0,
    nodes=1,
    machines=1,
    capacity="on_demand",
    availability="confirmed",
    usd_per_hour=1.32,
    hours_per_month=730,
    price_basis="listed",
    price_as_of="2026-07-20",
    catalog="5eed5eed5eed5eed",
    catalog_as_of="2026-08-26",
    bundle="f44dd2013c4df64ec9d8e8788e9f18526534530736a7a763029c2c93e6965dde",
)
ON_GOOGLE: Mapping[str, Any] = {
    "cloud": "gcp",
    "region": "us-central1",
    "zones": ("us-central1-a",),
    "instance_type": "g2-standard-8",
    "catalog_type": "g2-standard-8",
}


def declared(text: str = CHAT) -> Declaration:
    return replace(read_text(text, "prod"), name="prod")


def stack(text: str = CHAT, **entries: Mapping[str, Any]) -> Asked:
    """A declaration with an entry for each workload; `chat={"capacity": "spot"}` changes one."""
    found = declared(text)
    made = {
        name: replace(ENTRY, **{"digest": digest_of(found, name), **entries.get(name, {})})
        for name in found.workloads
    }
    return Asked(found, Lock("prod", made), "demo", StackAccount("prod"))


def cannot(message: str = "no credentials", fix: str = "aws sso login") -> Any:
    """A cloud that nobody can ask."""

    def session(_account: StackAccount) -> Any:
        raise CannotAsk(message, fix, "credentials")

    return session


def asking(cloud: Any) -> Any:
    """A cloud that anybody can ask."""

    def session(_account: StackAccount) -> Any:
        return cloud.session()

    return session


def ask(asked: Asked, aws: Any = None, gcp: Any = None, now: datetime = NOW) -> Stack:
    """What there is to say, one fleet after the other."""
    sessions = Sessions(
        aws=cannot() if aws is None else asking(aws),
        gcp=cannot() if gcp is None else asking(gcp),
    )
    return ask_stack(asked, Clouds(asked.account, sessions), now.timestamp(), together=1)


def only(found: Stack) -> Fleet:
    (fleet,) = found.fleets
    return fleet


def text(found: Stack, width: int = 100) -> str:
    return Screen(found, width, Paint(None)).text() + "\n"
