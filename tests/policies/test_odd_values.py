"""No rule falls over what a program may give: nothing, the wrong kind, a part that is not known."""

from __future__ import annotations

import importlib
import pkgutil
import typing
from functools import cache
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engine import schema
from tests.policies import cases

import gputier_policies
from gputier_policies import RULES
from gputier_policies.rule import Finding, Rule, Undecided, Violation
from gputier_policies.values import UNKNOWN, Resource

#: What stands where something else was meant.
ODD: tuple[Any, ...] = (  # pyright: ignore[reportUnknownVariableType]
    None, UNKNOWN, True, False, 0, 1, -1, 2.5, float("inf"), float("nan"), 10**30, "", " ", "x",
    "true", "*", "0.0.0.0/0", "::/0", "1/2/3", "{", "[]", '{"Statement": 3}',
    '{"bindings": {"role": 1}}',
    "a:b:c:d:e:f:g", "99999999999999999999", "-", "g6.xlarge", "ami-", "é\x00\n", "[" * 3000,
    [], {}, [None],
    [UNKNOWN], [[]], [{}], {"": None}, {"a": UNKNOWN}, ["x", 1, None, UNKNOWN, {}], object(),
    b"bytes",
    {"Statement": [None, UNKNOWN, 3, {"Action": {}, "Resource": 1, "Principal": [UNKNOWN]}]},
)  # fmt: skip
DEEP = 3


@cache
def types() -> tuple[str, ...]:
    """Every type of either cloud that the rules name."""
    found = {name for rule in RULES for name in rule.types}
    for module in pkgutil.iter_modules(gputier_policies.__path__):
        if module.name == "pack":
            continue  # it asks for the SDK, and names no type
        for value in vars(importlib.import_module(f"gputier_policies.{module.name}")).values():
            for one in value if isinstance(value, tuple | frozenset | set) else (value,):  # pyright: ignore
                if isinstance(one, str) and one.startswith(("aws:", "gcp:")) and "/" in one:
                    found.add(one)
    return tuple(sorted(name for name in found if name.count(":") == 2 and known_to_the_sdk(name)))


def known_to_the_sdk(name: str) -> bool:
    try:
        return bool(schema.inputs(name))
    except KeyError:
        return False


@cache
def shape(name: str) -> dict[str, Any]:
    """The inputs of a type, blocks in blocks: texts at the ends."""
    return _block(schema._classes(name)[1], 0)  # pyright: ignore[reportPrivateUsage]


def _block(args: Any, depth: int) -> dict[str, Any]:
    fields = schema._fields(args)  # pyright: ignore[reportPrivateUsage]
    return {word: _input(kind, depth) for word, (kind, _) in fields.items()}


def _input(kind: Any, depth: int) -> Any:
    text = str(kind)
    inside = _args_in(kind)
    value = _block(inside, depth + 1) if inside and depth < DEEP else "x"
    return [value] if "Sequence[" in text else value


def _args_in(kind: Any) -> Any:
    waiting = [kind]
    while waiting:
        one = waiting.pop()
        if isinstance(one, type) and schema._sdk.is_input_type(one):  # pyright: ignore
            return one
        waiting += typing.get_args(one)
    return None


def mangled(value: Any, random: Random) -> Any:
    """A value with parts of it left out, and others replaced by what was not meant."""
    if random.random() < 0.25:
        return random.choice(ODD)
    if isinstance(value, dict):
        named = typing.cast(dict[str, Any], value)
        return {k: mangled(v, random) for k, v in named.items() if random.random() < 0.6}
    if isinstance(value, list):
        listed = typing.cast(list[Any], value)
        return [mangled(listed[0], random) for _ in range(random.randint(0, 2))]
    return random.choice(ODD) if random.random() < 0.7 else value


def made(name: str, random: Random, number: int) -> Resource:
    whole = {word: mangled(value, random) for word, value in shape(name).items()}
    props = {k: v for k, v in whole.items() if random.random() < 0.8}
    sources = {k: (cases.urn(name, "0"),) for k in props if random.random() < 0.1}
    return Resource(name, str(number), cases.urn(name, str(number)), props, cases.HERE,
                    sources=sources)  # fmt: skip


def sound(found: list[Finding]) -> bool:
    """Findings that a person can read."""
    return all(type(one) in (Violation, Undecided) and one[0] for one in found)


MANY = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


def test_the_types_of_both_clouds_are_there() -> None:
    assert len(types()) > 80
    assert {name.split(":")[0] for name in types()} == {"aws", "gcp"}


@pytest.mark.parametrize("rule", [r for r in RULES if r.check], ids=lambda rule: rule.name)
@MANY
@given(seed=st.integers(0, 2**32))
def test_a_rule_of_resources_takes_everything(rule: Rule, seed: int) -> None:
    random = Random(seed)  # noqa: S311 - a draw of hypothesis for each leaf takes minutes
    for name in sorted(rule.types):
        assert sound(rule.judge(made(name, random, 1)))


@pytest.mark.parametrize("rule", [r for r in RULES if r.check_stack], ids=lambda rule: rule.name)
@MANY
@given(seed=st.integers(0, 2**32))
def test_a_rule_of_stacks_takes_everything(rule: Rule, seed: int) -> None:
    random = Random(seed)  # noqa: S311 - a draw of hypothesis for each leaf takes minutes
    names = random.sample(types(), 12)
    chosen = [made(name, random, n) for n, name in enumerate(names)]
    assert sound(rule.judge(cases.stack(*chosen)))


@pytest.mark.parametrize("odd", ODD, ids=lambda value: str(value)[:20])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_resource_may_be_nothing_but_odd(rule: Rule, odd: Any) -> None:
    made = [
        Resource(name, "one", cases.urn(name, "one"), dict.fromkeys(shape(name), odd), cases.HERE)
        for name in (sorted(rule.types) or types())
    ]
    if rule.check:
        assert all(sound(rule.judge(one)) for one in made)
    else:
        assert sound(rule.judge(cases.stack(*made)))


@pytest.mark.parametrize("rule", [r for r in RULES if r.remedy], ids=lambda rule: rule.name)
@MANY
@given(seed=st.integers(0, 2**32))
def test_a_remedy_takes_everything(rule: Rule, seed: int) -> None:
    random = Random(seed)  # noqa: S311 - a draw of hypothesis for each leaf takes minutes
    assert rule.remedy
    for name in sorted(rule.types):
        props = dict(made(name, random, 1).props)
        assert rule.remedy(name, props, rule.configured()) in (True, False)
