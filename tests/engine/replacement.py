"""Whether a changed input replaces its resource, from replacement.json: verified, or refused.

The engine has no opinion of its own: it replaces what the provider's diff says. So this table is
what every statement of a test about replacing rests on, and what is not in it is an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, cast

from tests.engine.changes import Change, Kind
from tests.engine.wire import Props

DATA = Path(__file__).with_suffix(".json")
Rule = Callable[[Change, Props, Props], bool]


class Unverified(Exception):
    """Nobody has looked up what a change of this input does."""


@cache
def table() -> dict[str, Any]:
    return json.loads(DATA.read_text(encoding="utf-8"))["types"]


def replaces(token: str, change: Change, olds: Props, news: Props) -> bool:
    """Whether the change replaces the resource. Unverified when the table cannot say."""
    if token.startswith("pulumi:providers:"):
        return change.top == "region"
    if token not in table():
        raise Unverified(f"{token}: what a change of {change.path} does has not been looked up")
    row, path = table()[token], re.sub(r"\[[^\]]*\]", "", change.path)
    if change.top == "region" and row.get("regional"):
        return change.old is not None and change.new is not None
    if rule := _rule(token, path):
        return rule(change, olds, news)
    # A read flag wins over the list of inputs that the read source lacks.
    if any(_covers(flag, path, change) for flag in row["replace"]):
        return True
    if change.kind != Kind.UPDATE and path in row.get("on_count", ()):
        return True
    doubtful = [*row.get("unverified", ()), *row.get("conditional", ())]
    if any(_covers(known, path, change) for known in doubtful):
        raise Unverified(f"{token}: what a change of {path} does is known in part only")
    return False


def _covers(flag: str, path: str, change: Change) -> bool:
    """At or under the flag; or a whole block around it that came or went, and sets it."""
    if path == flag or path.startswith(f"{flag}."):
        return True
    if not flag.startswith(f"{path}."):
        return False
    block = change.new if change.kind == Kind.ADD else change.old
    return _sets(block, flag.removeprefix(f"{path}.").split("."))


def _sets(block: Any, keys: list[str]) -> bool:
    if isinstance(block, list):
        return any(_sets(item, keys) for item in cast(list[Any], block))
    if not keys:
        return block is not None
    return isinstance(block, dict) and _sets(cast(Props, block).get(keys[0]), keys[1:])


def _rule(token: str, path: str) -> Rule | None:
    for known in (path, path.split(".")[0]):
        if found := RULES.get((token, known)):
            return found
    return None


def _user_data(_change: Change, _olds: Props, news: Props) -> bool:
    return bool(news.get("userDataReplaceOnChange"))


def _architecture(change: Change, _olds: Props, _news: Props) -> bool:
    """Types whose families end in a `g` are Arm's; every other GPU machine is x86."""
    arm = [bool(re.match(r"[a-z]+\d+g[a-z]*\.", str(side))) for side in (change.old, change.new)]
    return arm[0] != arm[1]


def _tenancy(change: Change, _olds: Props, _news: Props) -> bool:
    return (change.old, change.new) != ("dedicated", "default")


def _kind_of_source(change: Change, _olds: Props, _news: Props) -> bool:
    return change.kind != Kind.UPDATE


def _first_address(change: Change, olds: Props, news: Props) -> bool:
    return (olds.get(change.top) or [None])[0] not in (news.get(change.top) or [])


# The conditional rows of the table that a test needs; the words are in the table.
RULES: dict[tuple[str, str], Rule] = {
    ("aws:ec2/instance:Instance", "userData"): _user_data,
    ("aws:ec2/instance:Instance", "userDataBase64"): _user_data,
    ("aws:ec2/instance:Instance", "instanceType"): _architecture,
    ("aws:ec2/networkInterface:NetworkInterface", "privateIps"): _first_address,
    ("aws:ec2/vpc:Vpc", "cidrBlock"): lambda _change, _olds, news: "ipv4NetmaskLength" not in news,
    ("aws:ec2/vpc:Vpc", "instanceTenancy"): _tenancy,
    ("aws:ssm/parameter:Parameter", "tier"): lambda change, _olds, _news: (
        (change.old, change.new) == ("Advanced", "Standard")
    ),
    **{
        (f"aws:vpc/securityGroup{way}Rule:SecurityGroup{way}Rule", source): _kind_of_source
        for way in ("Ingress", "Egress")
        for source in ("cidrIpv4", "cidrIpv6", "prefixListId", "referencedSecurityGroupId")
    },
}
