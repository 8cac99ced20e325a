"""The bucket's name is derived alike wherever it is needed, and always one that clouds take."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputier.node.bucket import LONGEST, bucket_name

WORDS = st.text(min_size=1, max_size=40)
ALLOWED = re.compile(r"^gputier-[a-z0-9-]*$")


def test_the_name_reads_as_what_it_is_for() -> None:
    name = bucket_name("chat", "prod", "123456789012", "us-east-1")
    assert name == "gputier-chat-prod-123456789012-us-east-1"


def test_the_organisation_of_a_stack_is_dropped() -> None:
    plain = bucket_name("chat", "prod", "1", "eu-west-1")
    assert bucket_name("chat", "acme/chat/prod", "1", "eu-west-1") == plain
    assert bucket_name("chat", "acme/prod", "1", "eu-west-1") == plain


def test_a_long_name_is_cut_and_told_apart_by_its_digest() -> None:
    one = bucket_name("a" * 60, "prod", "123456789012", "us-east-1")
    other = bucket_name("a" * 60, "prod", "123456789012", "us-east-2")
    assert len(one) == len(other) == LONGEST
    assert one[:54] == other[:54]
    assert one != other
    assert re.search(r"-[0-9a-f]{8}$", one)


@pytest.mark.parametrize(
    ("text", "plain"), [("My_App", "my-app"), ("äö", "--"), ("example.com:p", "example-com-p")]
)
def test_other_characters_become_hyphens(text: str, plain: str) -> None:
    assert bucket_name(text, "s", "1", "r") == f"gputier-{plain}-s-1-r"


@given(WORDS, WORDS, WORDS, WORDS)
def test_every_name_is_one_that_the_clouds_take(
    project: str, stack: str, account: str, region: str
) -> None:
    name = bucket_name(project, stack, account, region)
    assert len(name) <= LONGEST
    assert ALLOWED.match(name)
    assert name == bucket_name(
        project, f"org/{project}/{stack.rsplit('/', 1)[-1]}", account, region
    )


@given(st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=60))
def test_what_differs_behind_the_cut_still_differs(project: str) -> None:
    one = bucket_name(project, "prod", "123456789012", "us-east-1")
    assert one != bucket_name(project + "x", "prod", "123456789012", "us-east-1")
