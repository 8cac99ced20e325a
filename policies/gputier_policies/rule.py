"""What a rule is: a plain function, and what a person has to know about it.

    def machine_requires_imdsv2(machine: Resource, config: Config) -> Findings:
        ...
        yield Violation("metadataOptions.httpTokens is `optional`; set it to `required`")

    IMDSV2 = Rule(machine_requires_imdsv2, description=..., ...)

The name is the function's, with dashes, `<resource>-<requires|forbids|limits>-<thing>`: people
write it in their configuration, so it never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from gputier_policies.values import Resource, Stack

#: AWS Well-Architected Framework, COST 6: cost targets when type, size and number are selected.
SIZING = "https://docs.aws.amazon.com/wellarchitected/latest/framework/cost-06.html"
Config = Mapping[str, Any]
Severity = Literal["low", "medium", "high", "critical"]


class Violation(NamedTuple):
    """A breach, in one sentence: which property, what it is, what it must be, how to set it. `urn`
    is the resource that it is about, where a rule judges a stack."""

    message: str
    urn: str = ""


class Undecided(NamedTuple):
    """A property that a rule needs and a preview does not know yet."""

    path: str
    urn: str = ""


Finding = Violation | Undecided
Findings = Iterable[Finding]
OfResource = Callable[[Resource, Config], Findings]
OfStack = Callable[[Stack, Config], Findings]
# Changes the properties in place and says whether it did. Only what is safe to fill in for anybody.
Remedy = Callable[[str, MutableMapping[str, Any], Config], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. `types` are the resource types that it judges; a rule without judges the stack.
    `settings` is its configuration: property -> JSON schema, each with a default."""

    description: str
    remediation: str
    severity: Severity
    url: str = ""  # a page that says why; each of ours has one
    check: OfResource | None = None
    check_stack: OfStack | None = None
    types: frozenset[str] = frozenset()
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    remedy: Remedy | None = None

    @property
    def name(self) -> str:
        function: Any = self.check or self.check_stack
        return function.__name__.replace("_", "-")

    def configured(self, given: Config | None = None) -> dict[str, Any]:
        """The configuration with its defaults filled in."""
        defaults = {name: schema["default"] for name, schema in self.settings.items()}
        return {**defaults, **(given or {})}

    def judge(self, subject: Resource | Stack, given: Config | None = None) -> list[Finding]:
        """What the rule finds, sorted: it is the same in every run."""
        found: Findings = ()
        if isinstance(subject, Stack):
            if self.check_stack:
                found = self.check_stack(subject, self.configured(given))
        elif self.check and subject.type in self.types:
            found = self.check(subject, self.configured(given))
        return sorted(set(found), key=lambda each: (each.urn, isinstance(each, Undecided), each[0]))
