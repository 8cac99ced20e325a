"""Whether a changed input replaces its resource, from replacement.json (AWS) and
replacement_gcp.json: verified, or refused.

The engine has no opinion of its own: it replaces what the provider's diff says. So this table is
what every statement of a test about replacing rests on, and what is not in it is an error.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, cast

from tests.engine.changes import Change, Kind
from tests.engine.wire import Props, is_unknown

DATA = tuple(
    Path(__file__).with_name(f"{name}.json") for name in ("replacement", "replacement_gcp")
)
Rule = Callable[[Change, Props, Props], bool]


class Unverified(Exception):
    """Nobody has looked up what a change of this input does."""


@cache
def table() -> dict[str, Any]:
    read = (json.loads(path.read_text(encoding="utf-8")) for path in DATA)
    return {token: row for found in read for token, row in found["types"].items()}


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


def _outgrown(change: Change, _olds: Props, _news: Props) -> bool:
    """A subnetwork's range may grow around the old one."""
    if is_unknown(change.new):
        raise Unverified("whether a range that is not known contains the old one")
    old, new = (ipaddress.ip_network(str(side)) for side in (change.old, change.new))
    return not (old.version == new.version and old.subnet_of(new))  # type: ignore[arg-type]


def _smaller(change: Change, _olds: Props, _news: Props) -> bool:
    if is_unknown(change.new):
        raise Unverified("whether a size that is not known is a smaller one")
    return bool(change.old and change.new and change.new < change.old)


def _not_hyperdisk(_change: Change, _olds: Props, news: Props) -> bool:
    return "hyperdisk" not in str(news.get("type"))


def _another_image(change: Change, _olds: Props, _news: Props) -> bool:
    """The same image by a longer or shorter name is none; which image a family has is not asked."""
    texts = sorted((str(change.old), str(change.new)), key=len)
    return not texts[1].endswith(f"/{texts[0]}")


def _script(_change: Change, olds: Props, news: Props) -> bool:
    """Not where the same text moves between metadata and the input of its own."""
    scripts: list[Any] = []
    for side in (olds, news):
        metadata: Props = side.get("metadata") or {}
        scripts.append(side.get("metadataStartupScript") or metadata.get("startup-script"))
    return bool(scripts[0] != scripts[1])


def _moved_in_its_network(change: Change, olds: Props, news: Props) -> bool:
    """A new address of an interface that stays where it is."""
    places: list[list[tuple[Any, ...]]] = []
    for side in (olds, news):
        cards: list[Props] = side.get("networkInterfaces") or []
        places.append([tuple(card.get(name) for name in PLACE) for card in cards])
    return bool(change.new) and places[0] == places[1]


PLACE = ("network", "subnetwork", "subnetworkProject")


def _taken_away(change: Change, _olds: Props, _news: Props) -> bool:
    return not change.new


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
    ("gcp:compute/disk:Disk", "size"): _smaller,
    ("gcp:compute/disk:Disk", "provisionedIops"): _not_hyperdisk,
    ("gcp:compute/regionDisk:RegionDisk", "size"): _smaller,
    ("gcp:compute/regionDisk:RegionDisk", "provisionedIops"): _not_hyperdisk,
    ("gcp:compute/instance:Instance", "metadataStartupScript"): _script,
    ("gcp:compute/instance:Instance", "networkInterfaces.networkIp"): _moved_in_its_network,
    ("gcp:compute/subnetwork:Subnetwork", "ipCidrRange"): _outgrown,
    ("gcp:storage/bucket:Bucket", "retentionPolicy.isLocked"): _taken_away,
    **{
        (f"gcp:compute/{kind[0].lower()}{kind[1:]}:{kind}", "disks.sourceImage"): _another_image
        for kind in ("InstanceTemplate", "RegionInstanceTemplate")
    },
    **{
        (f"gcp:compute/{kind[0].lower()}{kind[1:]}:{kind}", "resourcePolicies"): _taken_away
        for kind in ("InstanceGroupManager", "RegionInstanceGroupManager")
    },
    **{
        (f"aws:vpc/securityGroup{way}Rule:SecurityGroup{way}Rule", source): _kind_of_source
        for way in ("Ingress", "Egress")
        for source in ("cidrIpv4", "cidrIpv6", "prefixListId", "referencedSecurityGroupId")
    },
}
