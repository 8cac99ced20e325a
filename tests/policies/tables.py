"""One way to check a rule: an example that passes, and one thing that is broken in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.engine import schema
from tests.policies import cases

from gputier_policies.rule import Rule
from gputier_policies.values import Resource, Stack, known

ELSEWHERE = cases.urn("pulumi:pulumi:StackReference", "elsewhere")


def awaited(one: Resource) -> Resource:
    """A resource whose unknown properties the program gave: they are made from something."""
    made = {k: (ELSEWHERE,) for k, value in one.props.items() if not known(value)}
    return replace(one, sources={**made, **one.sources})


@dataclass(frozen=True)
class Case:
    """`good` is what a resource of the type is given and may be; with `bad` at `path` it breaks the
    rule, which then says `says`. `also` are paths that the verdict needs besides, and `others` the
    resources that are in the stack with it."""

    type: str
    good: Mapping[str, Any]
    path: str
    bad: Any
    says: str
    also: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    others: tuple[Resource, ...] = ()
    sources: Mapping[str, tuple[Resource, ...]] = field(
        default_factory=dict[str, tuple[Resource, ...]]
    )

    def __str__(self) -> str:
        return f"{self.type.rsplit(':', 1)[-1]} {self.path} {self.bad}"

    def subject(self, rule: Rule, props: Mapping[str, Any]) -> Resource | Stack:
        one = cases.resource(self.type, sources=self.sources, **props)
        return one if rule.check else cases.stack(awaited(one), *self.others)


def misspelt(type_: str, props: Mapping[str, Any]) -> list[str]:
    """What the SDK does not take in these inputs: a rule that reads a path which no program can
    write would pass everything. What a case leaves out is left out on purpose."""
    return [
        f"{path}: {why}"
        for path, why in schema.check(type_, dict(props))
        if "missing" not in why and "required" not in why
    ]


def check(rule: Rule, case: Case) -> None:
    """The example passes and breaks; what is known decides alone; what is not known is waited
    for."""
    bad = cases.changed(case.good, case.path, case.bad)
    assert misspelt(case.type, case.good) == []
    assert misspelt(case.type, bad) == []
    assert cases.found(rule, case.subject(rule, case.good), **case.config) == []
    told = cases.violations(rule, case.subject(rule, bad), **case.config)
    assert len(told) == 1, told
    assert case.says in told[0]
    partly = cases.only(bad, case.path, *case.also)
    still = cases.violations(rule, case.subject(rule, partly), **case.config)
    assert any(case.says in one for one in still), "what is known breaks it already"
    nothing = case.subject(rule, cases.unknown(case.good))
    assert cases.violations(rule, nothing, **case.config) == []
    assert cases.waits(rule, nothing, **case.config), "it is decided when the values are known"
