"""Reading a resource: what is there, what is not, and what nobody knows yet."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE, UnknownValueError, unknown_checking_proxy

from gputier_policies.values import UNKNOWN, Resource, at, is_list, is_map, known, plain, yes

PROPS = {
    "options": {"tokens": "required", "hop": UNKNOWN},
    "disks": [{"size": 8}, UNKNOWN, {"ebs": {"encrypted": "true"}}],
    "later": UNKNOWN,
    "nothing": None,
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("options.tokens", "required"),
        ("options.hop", UNKNOWN),
        ("options.missing", None),
        ("disks[0].size", 8),
        ("disks[1].size", UNKNOWN),
        ("disks[2].ebs.encrypted", "true"),
        ("disks[3].size", None),
        ("disks.size", None),
        ("later", UNKNOWN),
        ("later.deeper[2].still", UNKNOWN),
        ("nothing.at.all", None),
        ("options.tokens.further", None),
    ],
)
def test_a_path_finds_a_value_nothing_or_an_unknown_one(path: str, value: object) -> None:
    assert at(PROPS, path) == value
    assert Resource("t", "n", "urn", PROPS).at(path) == value


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("disks", PROPS["disks"]),
        ("later", [UNKNOWN]),
        ("nothing", []),
        ("missing", []),
        ("options", [PROPS["options"]]),
    ],
)
def test_a_list_may_be_one_thing_nothing_or_unknown(path: str, found: list[Any]) -> None:
    assert Resource("t", "n", "urn", PROPS).each(path) == found


def test_an_unknown_value_is_no_value_that_a_rule_could_mistake_it_for() -> None:
    assert not UNKNOWN
    assert UNKNOWN not in (None, False, "", 0, True)
    assert repr(UNKNOWN) == "unknown"


@pytest.mark.parametrize(
    ("value", "whole"),
    [(PROPS, False), ([1, {"a": UNKNOWN}], False), ([1, {"a": [None]}], True), (UNKNOWN, False)],
)
def test_a_value_is_known_when_everything_in_it_is(value: object, whole: bool) -> None:
    assert known(value) is whole


@pytest.mark.parametrize(
    ("value", "is_set"),
    [(True, True), ("true", True), ("True", True), (False, False), ("false", False), (1, False)],
)
def test_a_flag_may_be_written_as_a_text(value: object, is_set: bool) -> None:
    assert yes(value) is is_set


LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3), st.just(UNKNOWN))
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)


def _marked(value: Any) -> Any:
    """As the engine sends it: a text stands for what is unknown."""
    if value is UNKNOWN:
        return UNKNOWN_STRING_VALUE
    if is_list(value):
        return [_marked(item) for item in value]
    if is_map(value):
        return {key: _marked(item) for key, item in value.items()}
    return value


@given(st.dictionaries(st.text(max_size=3), TREES))
def test_what_the_sdk_hides_behind_proxies_comes_back_whole(tree: dict[str, Any]) -> None:
    proxy = unknown_checking_proxy(_marked(tree))
    assert plain(proxy, UnknownValueError, lambda leaf: leaf) == tree


@given(TREES, st.text(alphabet="ab.[]01", max_size=8))
def test_no_path_into_anything_raises(tree: Any, path: str) -> None:
    at(tree, path)
