"""All resources of one side of a preview, and how they point at each other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from gputier.catalog import Catalog
from gputier.review.preview import Hidden, State, Value
from gputier.workload import Discount

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
Source = Callable[[str], Value]
#: Properties that a reference may name a resource by, beside its id.
_NAMES = ("name", "arn", "selfLink", "selfLinkUnique", "instanceGroup", "bucket")


def at(value: Value, path: str) -> Value:
    """What stands at a path such as `mixedInstancesPolicy.overrides[0].instanceType`; None where
    there is nothing, the hidden value where the way leads through one."""
    for name, number in _STEP.findall(path):
        if isinstance(value, Hidden):
            return value
        if name:
            value = cast("Mapping[str, Any]", value).get(name) if _is_map(value) else None
        else:
            value = value[int(number)] if _is_list(value) and int(number) < len(value) else None
    return value


def _nothing(_name: str) -> Value:
    return None


def _is_map(value: Value) -> bool:
    return isinstance(value, Mapping)


def _is_list(value: Value) -> bool:
    return isinstance(value, list | tuple)


class World:
    """One side: every resource that is known of it, by URN, with what prices are reckoned from.

    `config` is the stack's, keyed `project:key`; `discounts` are those that it declares.
    """

    def __init__(
        self,
        states: Mapping[str, State],
        config: Mapping[str, Value],
        catalog: Catalog,
        discounts: Sequence[Discount] = (),
    ) -> None:
        self.states = states
        self.config = config
        self.catalog = catalog
        self.discounts = tuple(discounts)

    def of_type(self, *types: str) -> Iterator[State]:
        """The resources of these types, by their whole tokens (`aws:ec2/instance:Instance`)."""
        for type_ in types:
            yield from self._by_type.get(type_, ())

    def follow(self, state: State, path: str, *types: str) -> State | None:
        """The resource of one of these types that a property points at; None when it is not here.

        A known value is an id, a name, an ARN, a self link or the last part of one. An unknown one
        is followed by what its top-level property was made from, where exactly one resource of
        these types is among that.
        """
        top = path.split(".")[0].split("[")[0]
        value = at({top: state.get(top)}, path)
        if isinstance(value, str):
            return self._named(value, types)
        if not isinstance(value, Hidden):
            return None
        made_from = [self.states[u] for u in state.dependencies.get(top, ()) if u in self.states]
        fitting = [found for found in made_from if found.type in types]
        return fitting[0] if len(fitting) == 1 else None

    def pointing_at(self, target: State, path: str, *types: str) -> Iterator[State]:
        """The resources of these types whose property `path` points at `target`."""
        for state in self.of_type(*types):
            if self.follow(state, path, target.type) is target:
                yield state

    def region(self, state: State) -> str | None:
        """Where it is, as the cloud names regions; None when nothing says.

        Its own `region`, else that of its zone (`availabilityZone`, `zone`) or ARN, its provider's,
        the stack's config (`aws:region`, `gcp:region`, `gcp:zone`), and what every other resource
        of the same provider says, if they say the same.
        """
        return self._told(state) or self._neighbours.get(state.provider or "")

    def _told(self, state: State) -> str | None:
        for source in (state.get, self._provider(state), self._configured(state)):
            region = source("region")
            if isinstance(region, str) and region:
                return region.rsplit("/", 1)[-1]
            zone = source("zone") or source("availabilityZone")
            if isinstance(zone, str) and zone:
                return region_of_zone(zone)
            arn = source("arn")
            if isinstance(arn, str) and arn.count(":") >= 5 and arn.split(":")[3]:
                return arn.split(":")[3]
        return None

    def _provider(self, state: State) -> Source:
        urn = (state.provider or "").rpartition("::")[0]
        found = self.states.get(urn)
        return found.get if found else _nothing

    def _configured(self, state: State) -> Source:
        cloud = state.type.split(":")[0].removesuffix("-native")

        def configured(name: str) -> Value:
            return self.config.get(f"{cloud}:{name}")

        return configured

    def _named(self, value: str, types: Sequence[str]) -> State | None:
        for key in dict.fromkeys((value, value.rsplit("/", 1)[-1], value.rsplit(":", 1)[-1])):
            for found in self._by_name.get(key, ()):
                if found.type in types:
                    return found
        return None

    @cached_property
    def _neighbours(self) -> Mapping[str, str]:
        """Provider → the region that all of its resources that say one are in."""
        said: dict[str, set[str]] = {}
        for state in self.states.values():
            region = self._told(state) if state.provider else None
            if state.provider and region:
                said.setdefault(state.provider, set()).add(region)
        return {provider: min(found) for provider, found in said.items() if len(found) == 1}

    @cached_property
    def _by_type(self) -> Mapping[str, list[State]]:
        found: dict[str, list[State]] = {}
        for state in self.states.values():
            found.setdefault(state.type, []).append(state)
        return found

    @cached_property
    def _by_name(self) -> Mapping[str, list[State]]:
        found: dict[str, list[State]] = {}
        for state in self.states.values():
            named = (key for key in (state.id, *map(state.get, _NAMES)) if isinstance(key, str))
            for key in dict.fromkeys(filter(None, named)):
                found.setdefault(key, []).append(state)
        return found


def region_of_zone(zone: str) -> str:
    """`us-east-1a`, `us-west-2-lax-1a` and `us-central1-a` → their region; a link's last part is
    the zone."""
    name = zone.rsplit("/", 1)[-1]
    aws = re.match(r"[a-z]{2}(?:-[a-z]+)+-\d(?=[a-z]$|-)", name)
    return aws[0] if aws else name.rsplit("-", 1)[0]
