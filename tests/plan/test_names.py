"""Names: from stable words alone, within what every cloud allows, and never two alike."""

from __future__ import annotations

import re
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputier.plan.names import KINDS, names_of

SHAPES = {"aws": r"[A-Za-z0-9-]+", "gcp": r"[a-z]([-a-z0-9]*[a-z0-9])?"}
# What Pulumi allows: letters, digits, `-`, `_` and `.`, up to 100 (project and stack names).
words = st.from_regex(r"[A-Za-z0-9._-]{1,100}", fullmatch=True)
workloads = st.from_regex(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?", fullmatch=True)
scopes = st.tuples(words, words, workloads)


def test_short_words_make_the_name_that_anybody_would_guess() -> None:
    names = names_of("aws", "web", "prod", "fine-tuner")
    assert names.of("group") == "web-prod-fine-tuner"
    assert names.of("hook") == "web-prod-fine-tuner-prove"
    assert names.logical("group") == "fine-tuner-group"


def test_the_organisation_of_a_stack_is_no_part_of_a_name() -> None:
    short, whole = (names_of("aws", "web", stack, "chat") for stack in ("prod", "acme/web/prod"))
    assert short.all() == whole.all()


@pytest.mark.parametrize("cloud", KINDS)
@given(scope=scopes)
def test_every_name_is_one_that_the_cloud_takes(cloud: str, scope: tuple[str, str, str]) -> None:
    names = names_of(cloud, *scope)
    for kind, name in names.all().items():
        assert 3 <= len(name) <= KINDS[cloud][kind].longest, kind
        assert re.fullmatch(SHAPES[cloud], name), name
    account = names.all().get("service-account", "long-enough")
    assert len(account) >= 6


@pytest.mark.parametrize("cloud", KINDS)
@given(found=st.lists(scopes, min_size=2, max_size=4, unique=True))
def test_two_workloads_never_share_a_name(cloud: str, found: list[tuple[str, str, str]]) -> None:
    for one, other in combinations(found, 2):
        first, second = names_of(cloud, *one).all(), names_of(cloud, *other).all()
        assert not [kind for kind in first if first[kind] == second[kind]]


ALIKE = [
    (("a-b", "c", "d"), ("a", "b-c", "d")),
    (("a", "b-c", "d"), ("a", "b", "c-d")),
    (("a", "prod.eu", "d"), ("a", "prod_eu", "d")),
    (("a", "Prod", "d"), ("a", "prod", "d")),
    (("a" * 90, "b", "c"), ("a" * 91, "b", "c")),
]


@pytest.mark.parametrize("cloud", KINDS)
@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_words_that_look_alike_once_joined_stay_apart(
    cloud: str, one: tuple[str, str, str], other: tuple[str, str, str]
) -> None:
    first, second = names_of(cloud, *one).all(), names_of(cloud, *other).all()
    assert not [kind for kind in first if first[kind] == second[kind]]


def test_names_of_one_workload_differ_where_the_cloud_keeps_them_together() -> None:
    """A hook and its group, a role and its profile are in tables of their own."""
    for cloud in KINDS:
        logical = [names_of(cloud, "a", "b", "c").logical(kind) for kind in KINDS[cloud]]
        assert len(set(logical)) == len(logical)


def test_an_unknown_cloud_and_an_unknown_kind_are_bugs() -> None:
    with pytest.raises(KeyError):
        names_of("azure", "a", "b", "c")
    with pytest.raises(KeyError):
        names_of("aws", "a", "b", "c").of("cluster")
    with pytest.raises(KeyError):
        names_of("aws", "a", "b", "c").logical("cluster")


def test_every_limit_says_where_it_comes_from() -> None:
    for kinds in KINDS.values():
        assert all(kind.source for kind in kinds.values())
