"""A refresh reads inputs back in the form in which they were written."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.engine.aws.found import aligned, named, plain
from tests.engine.aws.request import Translation, problems, shape
from tests.engine.aws.rules import permission, singles
from tests.engine.provider import Refused
from tests.engine.wire import UNKNOWN


@pytest.mark.parametrize(
    ("old", "now", "expected"),
    [
        ("true", True, "true"),
        ("30", 30, "30"),
        (30, 31, 31),
        ("30", 31, "31"),
        (["b", "a"], ["a", "b"], ["b", "a"]),
        (["a"], ["a", "b"], ["a", "b"]),
        ('{"a": 1}', {"a": 1}, '{"a": 1}'),
        ('{"a": 1}', {"a": 2}, '{"a": 2}'),
        ({"a": 1, "only": 2}, {"a": 3, "more": 4}, {"a": 3, "only": 2}),
        ({"a": 1}, [{"a": 2}], {"a": 2}),
        ([{"name": "a", "x": 1}, {"name": "b"}], [{"name": "b"}, {"name": "a", "x": 2}], "by name"),
        ({"tags": {"a": "1"}}, {"tags": {"a": "1", "b": "2"}}, {"tags": {"a": "1", "b": "2"}}),
    ],
)
def test_a_value_keeps_its_form_and_takes_what_changed(old: Any, now: Any, expected: Any) -> None:
    if expected == "by name":
        expected = [{"name": "a", "x": 2}, {"name": "b"}]
    assert aligned(old, now) == expected


def test_a_map_whose_keys_are_data_is_taken_whole() -> None:
    assert aligned({"a": "1", "gone": "2"}, {"a": "1", "b": "3"}, free=True) == {"a": "1", "b": "3"}


def test_a_description_is_named_as_a_program_names_things() -> None:
    live = {"CidrBlock": "x", "GroupName": "g", "VpcIds": ["v"], "Left": 1}
    found = named(live, ["cidrBlock", "name", "vpcId", "ownerId"], {"name": "GroupName"})
    assert found == {"cidrBlock": "x", "name": "g", "vpcId": ["v"]}
    when = datetime(2026, 1, 2, tzinfo=UTC)
    tags = [{"Key": "a", "Value": "b"}]
    assert plain({"Tags": tags, "At": when, "Deep": [{"X": 1}]}) == {
        "tags": {"a": "b"},
        "at": "2026-01-02T00:00:00+00:00",
        "deep": [{"x": 1}],
    }


def test_inputs_go_to_the_members_that_they_mean() -> None:
    form = shape("ec2", "CreateVpc")
    translate = Translation("CreateVpc", {"assignGenerated": "AmazonProvidedIpv6CidrBlock"})
    made = translate.structure(form, {"cidrBlock": UNKNOWN, "assignGenerated": "true"})
    assert made == {"CidrBlock": UNKNOWN, "AmazonProvidedIpv6CidrBlock": True}
    with pytest.raises(Refused, match="colour: CreateVpc"):
        translate.structure(form, {"colour": "blue"})


@pytest.mark.parametrize(
    ("service", "operation", "request_", "why"),
    [
        ("ec2", "CreateVpc", {"CidrBlock": 1}, "Invalid type for parameter CidrBlock"),
        ("ec2", "CreateVpc", {"CidrBlok": "x"}, "Unknown parameter"),
        ("ec2", "CreateSubnet", {}, "Missing required parameter"),
        ("ec2", "CreateVolume", {"AvailabilityZone": "a", "VolumeType": "gp33"}, "'gp3'"),
        ("iam", "CreateRole", {"RoleName": "a b", "AssumeRolePolicyDocument": "{}"}, "match"),
    ],
)
def test_a_request_is_checked_against_the_service_s_model(
    service: str, operation: str, request_: dict[str, Any], why: str
) -> None:
    found = problems(request_, shape(service, operation))
    assert any(why in text for text in found), found


def test_a_request_with_values_that_are_not_known_yet_passes() -> None:
    values = {"AvailabilityZone": UNKNOWN, "VolumeType": UNKNOWN, "Size": UNKNOWN}
    assert problems(values, shape("ec2", "CreateVolume")) == []


def test_two_ways_to_write_the_same_rules_are_the_same() -> None:
    one = {"protocol": "tcp", "fromPort": 1, "toPort": 2, "cidrBlocks": ["a", "b"], "self": True}
    two = [
        {**one, "cidrBlocks": ["b"], "self": False},
        {**one, "cidrBlocks": ["a"]},
    ]
    assert set(singles([permission(one, "sg-1")])) == set(
        singles([permission(rule, "sg-1") for rule in two])
    )
    with pytest.raises(Refused, match="colour"):
        permission({**one, "colour": 1}, "sg-1")
