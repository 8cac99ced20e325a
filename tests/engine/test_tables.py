"""The tables that the engine tests rest on agree with the SDK that is installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from tests.engine import combinations, replacement, schema, wire
from tests.engine.aws.types import TYPES
from tests.engine.changes import Change, Kind, changes
from tests.engine.replacement import Unverified, replaces

GROUP = "aws:autoscaling/group:Group"
INSTANCE = "aws:ec2/instance:Instance"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
VPC = "aws:ec2/vpc:Vpc"


def change(path: str, old: Any = "a", new: Any = "b") -> Change:
    kind = Kind.ADD if old is None else Kind.DELETE if new is None else Kind.UPDATE
    return Change(path, kind, old, new)


def known_paths(token: str, paths: list[str]) -> list[str]:
    """Those whose first part is no input of the type."""
    return [path for path in paths if path.split(".")[0] not in schema.inputs(token)]


@pytest.mark.parametrize("token", sorted(replacement.table()))
def test_every_input_of_the_table_exists_in_the_sdk(token: str) -> None:
    row = replacement.table()[token]
    listed = ("replace", "on_count", "conditional")
    paths = [path for name in listed for path in row.get(name, ())]
    groups = ("conflicts", "exactly_one_of", "at_least_one_of", "required_with")
    paths += [path for name in groups for names in row.get(name, ()) for path in names]
    assert known_paths(token, paths) == []
    assert row["source"], "where it was read"
    assert row["source_date"]


def test_a_name_that_is_no_input_would_be_found() -> None:
    assert known_paths(VPC, ["cidrBlock", "cidrBlok"]) == ["cidrBlok"]


@pytest.mark.parametrize("token", sorted(TYPES))
def test_every_type_of_the_stand_in_has_its_replacements_looked_up(token: str) -> None:
    assert token in replacement.table()
    kind = TYPES[token]
    names = {*kind.apart, *kind.in_place, *kind.chosen, *kind.defaults} - {""}
    assert names <= schema.inputs(token) | schema.outputs(token)
    assert set(kind.restless) <= schema.outputs(token)


@pytest.mark.parametrize(
    ("token", "found", "news", "replaced"),
    [
        (VPC, change("cidrBlock"), {}, True),
        (VPC, change("tags.owner"), {}, False),
        (VPC, change("enableDnsHostnames", False, True), {}, False),
        (VPC, change("instanceTenancy", "dedicated", "default"), {}, False),
        (VPC, change("instanceTenancy", "default", "dedicated"), {}, True),
        (VPC, change("region", "us-east-1", "us-west-2"), {}, True),
        (VPC, change("region", None, "us-east-1"), {}, False),
        (GROUP, change("launchTemplate.version"), {}, False),
        (GROUP, change("initialLifecycleHooks[0].heartbeatTimeout", 1, 2), {}, True),
        (GROUP, change("initialLifecycleHooks[1]", None, {"name": "h"}), {}, True),
        (TEMPLATE, change("instanceType", "g5.xlarge", "g6.xlarge"), {}, False),
        (INSTANCE, change("instanceType", "g5.xlarge", "g6.xlarge"), {}, False),
        (INSTANCE, change("instanceType", "g5.xlarge", "g5g.xlarge"), {}, True),
        (INSTANCE, change("userData"), {}, False),
        (INSTANCE, change("userData"), {"userDataReplaceOnChange": True}, True),
        (INSTANCE, change("ebsBlockDevices[0].volumeSize", 1, 2), {}, True),
        (INSTANCE, change("rootBlockDevice.volumeSize", 1, 2), {}, False),
        (INSTANCE, change("rootBlockDevice", None, {"encrypted": True}), {}, True),
        (INSTANCE, change("rootBlockDevice", None, {"volumeSize": 9}), {}, False),
        (
            "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
            change("cidrIpv4", "10.0.0.0/8", "10.0.0.0/9"),
            {},
            False,
        ),
        (
            "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
            change("cidrIpv4", "10.0.0.0/8", None),
            {},
            True,
        ),
        ("aws:ssm/parameter:Parameter", change("tier", "Advanced", "Standard"), {}, True),
        ("aws:ssm/parameter:Parameter", change("tier", "Standard", "Advanced"), {}, False),
        ("pulumi:providers:aws", change("region"), {}, True),
    ],
)
def test_a_change_replaces(token: str, found: Change, news: wire.Props, replaced: bool) -> None:
    assert replaces(token, found, {}, news) == replaced


@pytest.mark.parametrize(
    ("token", "found"),
    [
        ("aws:eks/cluster:Cluster", change("name")),
        (TEMPLATE, change("cpuOptions.nestedVirtualization")),
        (TEMPLATE, change("cpuOptions", None, {"nestedVirtualization": "enabled"})),
        (INSTANCE, change("enablePrimaryIpv6", True, False)),
    ],
)
def test_a_change_that_nobody_looked_up_is_no_guess(token: str, found: Change) -> None:
    with pytest.raises(Unverified):
        replaces(token, found, {}, {})


def test_a_difference_is_named_by_its_deepest_path() -> None:
    old = {"a": 1, "b": {"c": [1, 2]}, "d": [{"e": 1}], "gone": 1, "__defaults": 1}
    new = {"a": 1, "b": {"c": [1, 3, 4]}, "d": [{"e": 2}], "new": wire.UNKNOWN, "__defaults": 2}
    assert {(c.path, c.kind) for c in changes(old, new)} == {
        ("b.c[1]", Kind.UPDATE),
        ("b.c[2]", Kind.ADD),
        ("d[0].e", Kind.UPDATE),
        ("gone", Kind.DELETE),
        ("new", Kind.ADD),
    }
    hidden, shown = {"x": wire.secret(1)}, {"x": wire.secret(2)}
    assert [c.path for c in changes(hidden, shown)] == ["x"], "a secret is one value"


def test_empty_values_are_as_good_as_none_in_a_combination() -> None:
    token = "aws:ec2/vpc:Vpc"
    assert list(combinations.check(token, {"cidrBlock": "10.0.0.0/16", "ipv6CidrBlock": ""})) == []


def test_the_schema_knows_what_the_sdk_does() -> None:
    encryption = (
        "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"
    )
    assert {"bucket", "rules"} <= schema.inputs(encryption), "a nested block took the plain name"
    assert "arn" in schema.outputs(VPC) - schema.inputs(VPC)
    assert schema.check(VPC, {"cidrBlok": "x"}) == [
        ("cidrBlok", "unknown property of VpcArgs; did you mean 'cidrBlock'?")
    ]
    assert schema.check(VPC, {"tags": ["a"]}) == [("tags", "expected a map, got ['a']")]
    assert schema.check(VPC, {"cidrBlock": wire.secret(1)}) == [
        ("cidrBlock", "expected a text, got 1")
    ]
    assert schema.check(VPC, {"tags": {"a": wire.UNKNOWN}, "cidrBlock": wire.UNKNOWN}) == []


def test_what_the_sdk_cannot_read_is_not_returned() -> None:
    seen = {"arn": "a", "tags": {"a": "b"}, "ownerId": ["no", "text"], "nothing": 1}
    assert schema.returnable(VPC, seen) == {"arn": "a", "tags": {"a": "b"}}
    machine = {"securityGroups": [{"groupId": "sg-1"}], "rootBlockDevice": {"volumeSize": 1}}
    assert schema.returnable(INSTANCE, machine) == {"rootBlockDevice": {"volumeSize": 1}}


def test_the_protocol_s_marks_are_the_sdk_s() -> None:
    rpc: Any = import_module("pulumi.runtime.rpc")
    known: dict[str, Any] = rpc.__dict__
    assert known["UNKNOWN"] == wire.UNKNOWN
    assert known["_special_sig_key"] == wire.SIGNATURE
    assert known["_special_secret_sig"] == wire.SECRET
    assert known["_special_asset_sig"] == wire.ASSET
    assert known["_special_archive_sig"] == wire.ARCHIVE


def test_numbers_and_nesting_survive_the_wire() -> None:
    value = {"a": 1, "b": [1.5, True, None, {"c": "x"}]}
    assert wire.to_dict(wire.to_struct(value)) == value
    assert wire.has_unknown({"a": [{"b": wire.UNKNOWN}]})
    assert not wire.has_unknown({"a": [{"b": "known"}]})
