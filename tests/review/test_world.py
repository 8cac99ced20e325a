"""How resources point at each other, and where they are: nothing is guessed."""

from __future__ import annotations

from typing import Any

import pytest

from gputier.review.preview import SECRET, UNKNOWN
from gputier.review.world import World, at, region_of_zone
from tests.review.worlds import catalog, known, made_from, state, world

TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
GROUP = "aws:autoscaling/group:Group"
SUBNET = "aws:ec2/subnet:Subnet"
EAST, WEST = (f"urn:pulumi:dev::shop::pulumi:providers:aws::{name}::1" for name in ("e", "w"))


@pytest.mark.parametrize(
    "value",
    ["lt-1", "my-template", "arn:aws:ec2:us-east-1:1:launch-template/lt-1",
     "https://x/y/my-template"],
)  # fmt: skip
def test_a_value_that_is_known_is_an_id_a_name_or_the_end_of_one(value: str) -> None:
    template = known(state(TEMPLATE, "lt", namePrefix="x"), "lt-1", name="my-template")
    group = state(GROUP, "asg", launchTemplate={"id": value})
    assert world(template, group).follow(group, "launchTemplate.id", TEMPLATE) == template
    assert world(template, group).follow(group, "launchTemplate.id", SUBNET) is None


def test_a_value_that_is_not_known_is_followed_by_what_it_was_made_from() -> None:
    one, other = state(TEMPLATE, "one"), state(TEMPLATE, "other")
    group = state(GROUP, "asg", launchTemplate={"id": UNKNOWN})
    alone = made_from(group, launchTemplate=[one, state(SUBNET, "s")])
    assert world(one, other, alone).follow(alone, "launchTemplate.id", TEMPLATE) == one
    either = made_from(group, launchTemplate=[one, other])
    assert world(one, other, either).follow(either, "launchTemplate.id", TEMPLATE) is None


def test_what_points_at_a_resource_is_found_from_it() -> None:
    template = known(state(TEMPLATE, "lt"), "lt-1")
    ours = state(GROUP, "ours", launchTemplate={"id": "lt-1"})
    theirs = state(GROUP, "theirs", launchTemplate={"id": "lt-2"})
    found = world(template, ours, theirs).pointing_at(template, "launchTemplate.id", GROUP)
    assert list(found) == [ours]


Place = tuple[dict[str, Any], dict[str, str], str | None]
PLACES: dict[str, Place] = {
    "its own word": ({"region": "us-west-2"}, {"aws:region": "us-east-1"}, "us-west-2"),
    "its zone": ({"availabilityZone": "eu-west-1a"}, {"aws:region": "us-east-1"}, "eu-west-1"),
    "its ARN": ({"arn": "arn:aws:ec2:ap-south-1:1:vpc/v"}, {}, "ap-south-1"),
    "an ARN of no region": ({"arn": "arn:aws:iam::1:role/r"}, {"aws:region": "x-1"}, "x-1"),
    "the stack's config": ({}, {"aws:region": "us-east-1"}, "us-east-1"),
    "nothing": ({}, {}, None),
    "one not known yet": ({"region": UNKNOWN}, {"aws:region": "us-east-1"}, "us-east-1"),
}


@pytest.mark.parametrize(("inputs", "config", "region"), PLACES.values(), ids=PLACES)
def test_a_resource_is_where_the_first_word_about_it_says(
    inputs: dict[str, Any], config: dict[str, str], region: str | None
) -> None:
    one = state(SUBNET, **inputs)
    assert world(one, config=config).region(one) == region


def of_provider(urn: str, name: str, **inputs: Any) -> Any:
    return state(SUBNET, name, **inputs)._replace(provider=urn)


def test_a_provider_and_then_its_other_resources_say_where_one_is() -> None:
    silent = of_provider(EAST, "silent")
    provider = state("pulumi:providers:aws", "e", region="eu-west-3")
    assert world(silent, provider, config={}).region(silent) == "eu-west-3"
    east = of_provider(EAST, "a", availabilityZone="us-east-1a")
    west = of_provider(WEST, "b", availabilityZone="us-west-2a")
    assert world(silent, east, west, config={}).region(silent) == "us-east-1"
    also = of_provider(EAST, "c", availabilityZone="us-west-2a")
    assert world(silent, east, also, config={}).region(silent) is None, "they differ"


@pytest.mark.parametrize(
    ("zone", "region"),
    [("us-east-1a", "us-east-1"), ("us-gov-west-1b", "us-gov-west-1"),
     ("us-west-2-lax-1a", "us-west-2"), ("us-east-1-wl1-bos-wlz-1", "us-east-1"),
     ("us-central1-a", "us-central1"), ("europe-west4-b", "europe-west4"),
     ("https://x/zones/us-central1-a", "us-central1"), ("cn-hangzhou-h", "cn-hangzhou")],
)  # fmt: skip
def test_a_zone_is_in_its_region(zone: str, region: str) -> None:
    assert region_of_zone(zone) == region


@pytest.mark.parametrize(
    ("path", "found"),
    [("a.b[1].c", 3), ("a.b[9].c", None), ("a.x", None), ("a.h.deep", UNKNOWN), ("s[0]", SECRET)],
)
def test_a_way_that_leads_nowhere_is_nothing_and_through_what_is_hidden_is_hidden(
    path: str, found: Any
) -> None:
    assert at({"a": {"b": [{}, {"c": 3}], "h": UNKNOWN}, "s": SECRET}, path) == found


def test_a_world_of_nothing_is_one() -> None:
    assert list(World({}, {}, catalog()).of_type(GROUP)) == []
