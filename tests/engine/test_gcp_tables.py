"""The tables of the stand-in Google Cloud agree with the SDK and with Google's documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
from tests.engine import replacement, schema
from tests.engine.changes import Change, Kind
from tests.engine.gcp import documents
from tests.engine.gcp.direct import Direct
from tests.engine.gcp.lookups import LOOKUPS
from tests.engine.gcp.resource import Resource
from tests.engine.gcp.sample import SETTINGS
from tests.engine.gcp.session import Session
from tests.engine.gcp.types import TYPES
from tests.engine.provider import Refused
from tests.engine.replacement import Unverified, replaces
from tests.engine.wire import UNKNOWN, Props

# Inputs that the stand-in refuses when a program sets them: the API's body has no place for them,
# has them as outputs only, or has them in a form that nobody needed yet.
REFUSED = (
    "diskEncryptionKey.rawKeyWo",
    "diskEncryptionKey.rsaEncryptedKeyWo",
    "instanceFlexibilityPolicy.instanceSelections.disks",
    "networkInterfaces.ipv6AccessConfigs.externalIpv6PrefixLength",
    "networkInterfaces.ipv6AccessType",
    "networkInterfaces.securityPolicy",
    "partnerMetadata",
    "sensitiveLabels",
    "specificReservation.assuredCount",
    "specificReservation.inUseCount",
)
# What a text that stands for any other breaks: a value, not a name.
VALUES = ("is not one of", "does not match", "is no ")


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict):
        for key, item in cast(Props, value).items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        yield from leaves(cast(list[Any], value)[0], (*path, ""))
    else:
        yield path, value


def alone(path: tuple[str, ...], value: Any) -> Any:
    """A value with nothing but this leaf."""
    for part in reversed(path):
        value = {part: value} if part else [value]
    return value


def unplaced(kind: Resource) -> Iterator[tuple[str, str]]:
    """Every input that does not find its place in the body, with the reason."""
    cloud = Direct(base=False)
    for name, whole in schema.example(kind.token).items():
        if name in kind.not_sent():
            continue
        for path, value in leaves(whole, (name,)):
            yield from _problems(
                cloud, kind, ".".join(part for part in path if part), alone(path, value)
            )


def _problems(cloud: Direct, kind: Resource, path: str, inputs: Props) -> Iterator[tuple[str, str]]:
    try:
        body = kind.request(Session(cloud.gcp, SETTINGS, inputs), inputs)
    except Refused as refused:
        yield path, str(refused)
        return
    for _, why in documents.check(kind.method.document, kind.form, body, beta=kind.beta):
        if not any(word in why for word in VALUES):
            yield path, why


@pytest.mark.parametrize("token", sorted(set(TYPES) - {"gcp:monitoring/dashboard:Dashboard"}))
def test_every_input_of_the_sdk_finds_its_place_in_the_body_that_google_documents(
    token: str,
) -> None:
    found = {path: why for path, why in unplaced(TYPES[token]) if not path.startswith(REFUSED)}
    assert found == {}


def test_an_input_without_a_place_would_be_found() -> None:
    paths = {path for path, _ in unplaced(TYPES["gcp:compute/instance:Instance"])}
    assert "networkInterfaces.securityPolicy" in paths
    assert "networkInterfaces.ipv6AccessType" in paths


@pytest.mark.parametrize("token", sorted(TYPES))
def test_every_type_names_what_exists_and_has_its_replacements_looked_up(token: str) -> None:
    kind = TYPES[token]
    assert token in replacement.table()
    own = {*kind.in_place, *kind.chosen, *kind.defaults, *kind.filled}
    own |= {path.split(".")[0] for path in kind.names}
    assert own <= schema.inputs(token) | schema.outputs(token)
    assert {*kind.restless, *kind.outputs} <= schema.outputs(token)
    assert kind.method.id
    for member in kind.beta:
        assert documents.only_in_beta(*member.split(".")), f"{member} is in v1 too"


def test_a_look_up_of_another_kind_is_refused() -> None:
    cloud = Direct(base=False)
    assert len(LOOKUPS) == 6
    with pytest.raises(Refused, match="answers no gcp:kms/getKMSKeyRing"):
        cloud.gcp.invoke("gcp:kms/getKMSKeyRing:getKMSKeyRing", {}, SETTINGS)


@pytest.mark.parametrize(
    ("token", "args", "why"),
    [
        ("gcp:compute/getZones:getZones", {"region": "moon-1"}, "no zones of moon-1"),
        ("gcp:compute/getZones:getZones", {"status": "GONE"}, "neither UP nor DOWN"),
        ("gcp:compute/getImage:getImage", {}, "one of name, family or filter"),
        ("gcp:compute/getImage:getImage", {"filter": "x"}, "by its name or its family only"),
        ("gcp:compute/getImage:getImage", {"family": "gone"}, "family/gone' was not found"),
        ("gcp:compute/getNetwork:getNetwork", {"name": "gone"}, "networks/gone' was not found"),
        ("gcp:compute/getSubnetwork:getSubnetwork", {"selfLink": "x"}, "is no link"),
    ],
)
def test_look_ups_are_refused(token: str, args: Props, why: str) -> None:
    with pytest.raises(Refused, match=why):
        Direct(base=False).gcp.invoke(token, args, SETTINGS)


def test_look_ups_are_answered_from_what_is_there() -> None:
    cloud = Direct()
    cloud.gcp.publish("vendor", "gpu-v1", "gpu")
    cloud.gcp.publish("vendor", "gpu-v2", "gpu")
    asked = {"family": "gpu", "project": "vendor"}
    image = cloud.gcp.invoke("gcp:compute/getImage:getImage", asked, SETTINGS)
    assert image["name"] == "gpu-v2", "the newest of its family"
    found = cloud.gcp.invoke("gcp:compute/getNetwork:getNetwork", {"name": "base"}, SETTINGS)
    (subnet,) = found["subnetworksSelfLinks"]
    again = cloud.gcp.invoke(
        "gcp:compute/getSubnetwork:getSubnetwork", {"selfLink": subnet}, SETTINGS
    )
    assert again["network"] == found["selfLink"]
    me = cloud.gcp.invoke("gcp:organizations/getClientConfig:getClientConfig", {}, SETTINGS)
    assert (me["project"], me["region"], me["zone"]) == tuple(SETTINGS.values())


SUBNET = "gcp:compute/subnetwork:Subnetwork"
DISK = "gcp:compute/disk:Disk"
INSTANCE = "gcp:compute/instance:Instance"
TEMPLATE = "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate"
IMAGE = "disks[0].sourceImage"


@pytest.mark.parametrize(
    ("token", "path", "old", "new", "replaced"),
    [
        ("gcp:compute/network:Network", "mtu", 1460, 8896, False),
        ("gcp:compute/network:Network", "networkProfile", "a", "b", True),
        (SUBNET, "ipCidrRange", "10.0.0.0/24", "10.0.0.0/20", False),
        (SUBNET, "ipCidrRange", "10.0.0.0/20", "10.0.0.0/24", True),
        (DISK, "size", 10, 20, False),
        (DISK, "size", 20, 10, True),
        (INSTANCE, "machineType", "a", "b", False),
        (INSTANCE, "scheduling.provisioningModel", "SPOT", "STANDARD", True),
        (TEMPLATE, "machineType", "a", "b", True),
        (TEMPLATE, IMAGE, "p/i", "projects/x/p/i", False),
        (TEMPLATE, IMAGE, "p/i", "p/j", True),
        ("gcp:storage/bucket:Bucket", "location", "US", "EU", True),
        ("gcp:storage/bucket:Bucket", "labels.a", "b", "c", False),
        ("gcp:monitoring/alertPolicy:AlertPolicy", "combiner", "OR", "AND", False),
    ],
)
def test_a_change_replaces(token: str, path: str, old: Any, new: Any, replaced: bool) -> None:
    assert replaces(token, Change(path, Kind.UPDATE, old, new), {}, {}) == replaced


def test_a_script_that_moves_into_the_metadata_replaces_nothing() -> None:
    olds, news = {"metadataStartupScript": "a"}, {"metadata": {"startup-script": "a"}}
    gone = Change("metadataStartupScript", Kind.DELETE, "a", None)
    assert not replaces(INSTANCE, gone, olds, news)
    other = Change("metadataStartupScript", Kind.UPDATE, "a", "b")
    assert replaces(INSTANCE, other, olds, {"metadataStartupScript": "b"})


@pytest.mark.parametrize(
    ("token", "path", "new"),
    [
        (SUBNET, "ipCidrRange", UNKNOWN),
        (DISK, "size", UNKNOWN),
        ("gcp:logging/metric:Metric", "name", "b"),
        ("gcp:container/nodePool:NodePool", "nodeCount", 2),
    ],
)
def test_a_change_that_nobody_looked_up_is_no_guess(token: str, path: str, new: Any) -> None:
    with pytest.raises(Unverified):
        replaces(token, Change(path, Kind.UPDATE, "a", new), {}, {})
