"""Which ways of placing and buying machines go together: the tables are in placement_aws and
placement_gcp."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from gputier_policies.fleets import Fleet, fleets
from gputier_policies.links import Links
from gputier_policies.parts import given
from gputier_policies.placement_aws import COMBINATIONS as AWS
from gputier_policies.placement_aws import traits as of_aws
from gputier_policies.placement_gcp import COMBINATIONS as GCP
from gputier_policies.placement_gcp import traits as of_gcp
from gputier_policies.rule import Config, Finding, Findings, Rule, Undecided, Violation
from gputier_policies.traits import Combination, Traits
from gputier_policies.values import UNKNOWN, Stack


def fleet_requires_legal_placement(stack: Stack, _config: Config) -> Findings:
    """What a cloud refuses, it refuses when the machines are asked for, hours after the preview."""
    stack = given(stack)
    links = Links(stack)
    for fleet in fleets(stack, links):
        if fleet.gpu is False:
            continue
        cloud = fleet.runner.type.split(":", 1)[0]
        read, table = _CLOUDS[cloud]
        # What a fleet breaks whose machines are not known, it breaks with any machine.
        yield from broken(read(fleet, links), table, fleet.runner.urn)


class _Cloud(NamedTuple):
    traits: Callable[[Fleet, Links], Traits]
    table: tuple[Combination, ...]


_CLOUDS: Mapping[str, _Cloud] = {"aws": _Cloud(of_aws, AWS), "gcp": _Cloud(of_gcp, GCP)}


def broken(found: Traits, table: tuple[Combination, ...], urn: str) -> Iterator[Finding]:
    """The combinations that a fleet has all parts of, and those that it may have."""
    for one in table:
        parts: list[tuple[Any, str]] = [found[name] for name in one.traits]
        values = [value for value, _ in parts]
        if all(value is True for value in values):
            yield Violation(f"{one.message} ({', '.join(path for _, path in parts)})", urn)
        elif False not in values:
            yield Undecided(next(path for value, path in parts if value is UNKNOWN), urn)


LEGAL_PLACEMENT = Rule(
    check_stack=fleet_requires_legal_placement,
    description="Zones, placement groups, capacity blocks, spot, queues and reservations are"
    " combined only as the clouds allow it.",
    remediation="Drop one of the two; `gputier plan` never combines what a cloud refuses.",
    severity="medium",
    url="https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/placement-strategies.html",
)

RULES = (LEGAL_PLACEMENT,)
