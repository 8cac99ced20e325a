"""From the parts of a file to a checked `Declaration`; every problem of every part at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from gputier import errors
from gputier.errors import Position, Problem
from gputier.workload import base, fields, model, problems, yaml12
from gputier.workload.complaints import complaint, shown
from gputier.workload.nodes import Node, Positions, tree
from gputier.workload.shapes import as_items, as_map

KEYS = ("workloads", "environment", "defaults", "discounts", "max_price_age_days")
MOST_WORKLOADS = 200
MOST_DISCOUNTS = 100

_EXAMPLE = "such as  chat: {model: {name: llama-3.1-8b}}"
_FILLED = ("clouds", "zones", "capacity", "prefer")
_NAME = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")
_FROM_DEFAULTS = re.compile(
    r"workloads\.[a-z0-9-]+\.(?P<field>clouds|regions|zones|capacity|prefer)\b"
)
#: Environments that are production.
PRODUCTION = ("prod", "production")

Parts = dict[str, tuple[Node, Node]]
S = TypeVar("S", bound=base.Spec)


@dataclass(frozen=True, slots=True)
class Places:
    """Finds paths of a declaration in its file; what `defaults` filled in is found there."""

    positions: Positions

    def at(self, path: str) -> Position | None:
        """The value at `path`, or its nearest known ancestor."""
        return self.positions.at(self._home(path))

    def key(self, path: str) -> Position | None:
        """The key at `path`, or its nearest known ancestor."""
        return self.positions.key(self._home(path))

    def _home(self, path: str) -> str:
        filled = _FROM_DEFAULTS.match(path)
        if filled and not self.positions.has(filled[0]):
            default = f"defaults.{filled['field']}"
            rest = path[filled.end() :]
            if not self.positions.has(default + rest):
                rest = rest.removeprefix("[0]")  # one alone stands for a list of one
            if self.positions.has(default):
                return default + rest
        return path


@dataclass(frozen=True, slots=True)
class Declaration:
    """What one stack or file declares, checked, with defaults filled in.

    `source` is the file as people read it, `folder` its folder. `warnings` are sentences about
    what could not be read here (ESC environments, project-level config).
    """

    name: str
    source: str
    environment: str
    discounts: tuple[model.Discount, ...]
    max_price_age_days: int | None
    workloads: Mapping[str, model.Workload]
    positions: Places
    warnings: tuple[str, ...] = ()
    folder: str = "."

    @property
    def is_production(self) -> bool:
        """Whether `environment` is prod or production."""
        return self.environment in PRODUCTION


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the parts come from, and what is known besides them."""

    name: str
    document: yaml12.Document
    folder: str = "."
    prefix: str = ""
    regions: dict[str, str] = field(default_factory=dict[str, str])
    warnings: tuple[str, ...] = ()


def declaration(parts: Parts, origin: Origin) -> Declaration:
    """The declaration. Raises `InvalidInput` with everything that is wrong in it."""
    return _Declaring(parts, origin).made()


class _Declaring:
    """One pass over the parts of a file, gathering problems."""

    def __init__(self, parts: Parts, origin: Origin) -> None:
        self.origin = origin
        self.problems: list[Problem] = []
        self.refused: set[int] = set()
        self.parts = {key: (pair[0], self._spelt_out(key, pair[1])) for key, pair in parts.items()}
        positions = origin.document.positions
        self.positions = Positions(positions.file, positions.lines, tree(self.parts))
        self.places = Places(self.positions)

    def made(self) -> Declaration:
        self._look_over()
        usable = self._part("defaults", model.Defaults) is not None
        defaults: Mapping[str, Any] = self._plain("defaults") if usable else {}
        environment = self._word("environment", _environment)
        age = self._word("max_price_age_days", _age)
        discounts = self._discounts()
        workloads = self._workloads(defaults)
        if self.problems:
            raise errors.InvalidInput(problems.within_reason(self.problems))
        return Declaration(
            name=self.origin.name,
            source=self.positions.file,
            environment=environment or _default_environment(self.origin.name),
            discounts=discounts,
            max_price_age_days=age,
            workloads=workloads,
            positions=self.places,
            warnings=self.origin.warnings,
            folder=self.origin.folder,
        )

    def _say(self, path: str, message: str, hint: str = "", *, key: bool = True) -> None:
        position = self.places.key(path) if key else self.places.at(path)
        self.problems.append(Problem(path, message, hint, position))

    def _spelt_out(self, key: str, node: Node) -> Node:
        """A part that `pulumi config set` stored as JSON text, as what the text says."""
        text = node.scalar
        if key not in ("workloads", "defaults", "discounts") or not isinstance(text, str):
            return node
        if not text.lstrip().startswith(("{", "[")):
            return node
        try:
            inner = yaml12.read(text, f"{self.origin.prefix}{key}").root
        except errors.InvalidInput as error:
            self.problems += [
                Problem(key, f"in the text of `{self.origin.prefix}{key}`: {p.message}", p.hint,
                        self.origin.document.positions.of(node.span))
                for p in error.problems
            ]  # fmt: skip
            self.refused.add(id(node))
            return node
        for below in inner.nodes():
            below.span = node.span
            below.flow = True
        return inner

    def _look_over(self) -> None:
        """Faults of the YAML, encrypted values, and keys that are none."""
        told: set[tuple[str, Position | None]] = set()
        for key, (_, node) in self.parts.items():
            for fault in self.positions.problems(node):
                if (fault.message, fault.position) not in told:
                    told.add((fault.message, fault.position))
                    self.problems.append(fault)
            self._refuse_encrypted(key, node)
        prefix = self.origin.prefix
        for key in self.parts:
            if key not in KEYS:
                close = errors.did_you_mean(key.removeprefix("gputier:"), KEYS)
                self._say(
                    key,
                    f"unknown key `{prefix}{key}`",
                    f"did you mean `{prefix}{close}`?"
                    if close
                    else f"gputier reads {', '.join(f'`{prefix}{k}`' for k in KEYS)}",
                )

    def _refuse_encrypted(self, key: str, part: Node) -> None:
        for node in part.nodes():
            entries = node.entries or {}
            if set(entries) == {"secure"} and isinstance(entries["secure"][1].scalar, str):
                self.problems.append(
                    Problem(
                        key,
                        f"an encrypted value in `{self.origin.prefix}{key}`",
                        "a declaration holds no secrets: name them by reference, and write this in"
                        " plain",
                        self.positions.of(entries["secure"][0].span),
                    )
                )
                self.refused.add(id(node))

    def _plain(self, key: str) -> Any:
        return self.parts[key][1].plain() if key in self.parts else None

    def _word(self, key: str, check: Callable[[object], Any]) -> Any:
        value = self._plain(key)
        if value is None or self._told(key):
            return None
        try:
            return check(value)
        except PydanticCustomError as error:
            context = error.context or {}
            message = f"{context['before']}`{self.origin.prefix}{key}`{context['after']}"
            self._say(key, message, context["hint"], key=False)
            return None

    def _part(self, key: str, kind: type[S]) -> S | None:
        value = self._plain(key)
        if value is None or self._told(key):
            return None
        root = problems.Root(
            key, f"`{self.origin.prefix}{key}`", f" of `{self.origin.prefix}{key}`"
        )
        return self._checked(kind, value, root)

    def _checked(self, kind: type[S], value: object, root: problems.Root) -> S | None:
        try:
            with base.collected():
                return kind.model_validate(value, context={"directory": self.origin.folder})
        except ValidationError as error:
            found = problems.translate(error, value, root, self.places)
            self.problems += [problem for problem in found if not self._told(problem.path)]
            return None

    def _told(self, path: str) -> bool:
        """Whether a value on the way to `path` was already refused as a whole."""
        return any(id(node) in self.refused for node in self.positions.trail(path))

    def _discounts(self) -> tuple[model.Discount, ...]:
        value = self._plain("discounts")
        if value is None or self._told("discounts"):
            return ()
        items = as_items(value)
        if items is not None and len(items) > MOST_DISCOUNTS:
            key = f"{self.origin.prefix}discounts"
            self._say(
                "discounts",
                f"`{key}` holds {len(items):,} entries; at most {MOST_DISCOUNTS} make sense",
            )
            return ()
        found = [
            self._checked(
                model.Discount,
                item,
                problems.Root(
                    "discounts" if items is None else f"discounts[{n}]",
                    f"discount {n + 1}",
                    f" of discount {n + 1}",
                ),
            )
            for n, item in enumerate((value,) if items is None else items)
        ]
        return tuple(discount for discount in found if discount is not None)

    def _workloads(self, defaults: Mapping[str, Any]) -> dict[str, model.Workload]:
        key = f"`{self.origin.prefix}workloads`"
        if "workloads" not in self.parts:
            self._miss_workloads(key)
            return {}
        value = self._plain("workloads")
        raws = as_map(value)
        if self._told("workloads"):
            return {}
        if raws is None:
            what = f"must be a map from names to workloads, not {shown(value)}"
        elif not raws:
            what = "is empty"
        elif len(raws) > MOST_WORKLOADS:
            what = f"holds {len(raws):,} workloads; at most {MOST_WORKLOADS} make sense"
        else:
            made = {name: self._workload(name, raw, defaults) for name, raw in raws.items()}
            return {name: workload for name, workload in made.items() if workload is not None}
        self._say("workloads", f"{key} {what}", _EXAMPLE)
        return {}

    def _workload(self, name: str, raw: Any, defaults: Mapping[str, Any]) -> Any:
        self._check_name(name)
        filled = _filled({} if raw is None else raw, defaults, self.origin.regions)
        return self._checked(model.Workload, filled, problems.of_workload(name))

    def _miss_workloads(self, key: str) -> None:
        if any(p.message.startswith("unknown key") for p in self.problems):
            return  # most likely `workloads` itself, misspelt
        empty = not self.origin.document.root.entries
        what = "is empty" if empty else "declares no workloads"
        self.problems.append(Problem("", f"{self.positions.file} {what}", f"add {key}, {_EXAMPLE}"))

    def _check_name(self, name: str) -> None:
        if _NAME.fullmatch(name):
            return
        close = re.sub(r"[^a-z0-9]+", "-", name.lower())[:40].strip("-")
        self._say(
            f"workloads.{name}",
            f"workload name {shown(name)} must be lower-case letters, digits and dashes, begin"
            " with a letter, not end in a dash, and have at most 40 characters: it becomes part"
            " of names in the cloud",
            f"such as `{close}`" if _NAME.fullmatch(close) else "",
        )


def _filled(raw: Any, defaults: Mapping[str, Any], regions: Mapping[str, str]) -> Any:
    """A workload as written, with defaults, as they are written, where it is silent."""
    fields = as_map(raw)
    if fields is None:
        return raw
    filled = dict(fields)
    for name in _FILLED:
        if filled.get(name) is None:
            filled[name] = defaults.get(name)
    own = as_map({} if filled.get("regions") is None else filled["regions"])
    if own is not None:
        if filled.get("clouds") is None:
            asked = {**(as_map(defaults.get("regions")) or {}), **own}
            # `aws:region` is where a stack deploys by itself; it does not name the clouds.
            filled["clouds"] = model.clouds_of(asked)
        if filled.get("clouds") is None and regions:
            filled["clouds"] = list(model.DEFAULT_CLOUDS)
        written = filled.get("clouds")
        clouds = model.DEFAULT_CLOUDS if written is None else as_items(written) or (written,)
        others: dict[Any, Any] = {**regions, **(as_map(defaults.get("regions")) or {})}
        more = {c: r for c, r in others.items() if c in clouds and r and own.get(c) is None}
        if more:
            filled["regions"] = {**own, **more}
    return filled


def _default_environment(name: str) -> str:
    return name if name in PRODUCTION else "dev"


_is_environment = fields.is_text(
    r"[a-z]([a-z0-9-]{0,30}[a-z0-9])?", "a word such as dev, staging or prod, in lower case"
)


def _environment(value: object) -> str:
    name = _is_environment(value)
    # `prdo` would quietly be planned without what production demands.
    close = errors.did_you_mean(name, PRODUCTION, cutoff=0.7)
    if name not in PRODUCTION and close:
        raise complaint(f" is {shown(name)}, almost `{close}`", f"did you mean `{close}`?")
    return name


def _age(value: object) -> int:
    return fields.is_whole(1, 3650, "days")(value)
