"""A YAML document as values that remember where they stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gputier.errors import Position, Problem
from gputier.workload.scalars import Scalar


class Span(NamedTuple):
    """Where something stands: lines and columns from 0; `width` 0 when it spans lines."""

    line: int
    column: int
    width: int


class Fault(NamedTuple):
    """Something wrong with the YAML itself that matters only to whoever reads this part."""

    span: Span
    message: str
    hint: str = ""


@dataclass(slots=True, eq=False)
class Node:
    """A value, its place, and how much of the document hangs below it (aliases counted in full)."""

    span: Span
    flow: bool = True
    scalar: Scalar = None
    items: list[Node] | None = None
    entries: dict[str, tuple[Node, Node]] | None = None
    faults: list[Fault] = field(default_factory=list[Fault])
    size: int = 1
    height: int = 1

    def plain(self) -> Any:
        """dicts, lists and scalars."""
        if self.entries is not None:
            return {key: value.plain() for key, (_, value) in self.entries.items()}
        if self.items is not None:
            return [item.plain() for item in self.items]
        return self.scalar

    def nodes(self) -> Iterator[Node]:
        """This node and all below it, each once; keys included."""
        seen: set[int] = set()
        waiting = [self]
        while waiting:
            node = waiting.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            yield node
            waiting += node.items or []
            for pair in (node.entries or {}).values():
                waiting += pair


def tree(entries: Mapping[str, tuple[Node, Node]]) -> Node:
    """A map node made of parts of a document, for a reader that re-roots them."""
    return Node(Span(0, 0, 0), entries=dict(entries))


@dataclass(frozen=True, slots=True)
class Positions:
    """Looks up where a dotted path (`workloads.chat.schedule[0].start`) stands in a file."""

    file: str
    lines: tuple[str, ...]
    root: Node

    def at(self, path: str) -> Position | None:
        """The value at `path`, or its nearest known ancestor; None when nothing of it is there."""
        found = self._find(path)
        if found is None:
            return None
        key, value, _ = found
        # The start of a block map is its first key, which would accuse the wrong line.
        block = (value.items is not None or value.entries is not None) and not value.flow
        return self.of(key.span if block and key is not None else value.span)

    def key(self, path: str) -> Position | None:
        """The key at `path`, or its nearest known ancestor."""
        found = self._find(path)
        if found is None:
            return None
        key, value, _ = found
        return self.of(value.span if key is None else key.span)

    def has(self, path: str) -> bool:
        """Whether `path` itself is written, not just an ancestor of it."""
        found = self._find(path)
        return found is not None and not found[2]

    def of(self, span: Span) -> Position:
        """A span as a position for people."""
        source = self.lines[span.line] if span.line < len(self.lines) else ""
        return Position(self.file, span.line + 1, span.column + 1, source, max(1, span.width))

    def problems(self, node: Node) -> list[Problem]:
        """The faults of a part of the document, in the order of the file."""
        faults = [fault for below in node.nodes() for fault in below.faults]
        faults.sort(key=lambda fault: (fault.span.line, fault.span.column))
        return [Problem("", f.message, f.hint, self.of(f.span)) for f in faults]

    def trail(self, path: str) -> list[Node]:
        """The values on the way to `path`, as far as it is there."""
        found: list[Node] = []
        node, rest = self.root, path
        while rest and (step := _step(node, rest)) is not None:
            node, rest = step[1], step[2]
            found.append(node)
        return found

    def _find(self, path: str) -> tuple[Node | None, Node, str] | None:
        """The key and value deepest on the path, and what of the path is not there."""
        found: tuple[Node | None, Node, str] | None = None
        node, rest = self.root, path
        while rest and (step := _step(node, rest)) is not None:
            found = step
            node, rest = step[1], step[2]
        return found


def _step(node: Node, path: str) -> tuple[Node | None, Node, str] | None:
    """One step down: the key (None in a list), the value, and what is left of the path."""
    if path.startswith("[") and node.items is not None:
        digits, _, rest = path[1:].partition("]")
        index = int(digits) if digits.isdigit() else len(node.items)
        return (None, node.items[index], rest.lstrip(".")) if index < len(node.items) else None
    ends = [end for end, c in enumerate(path) if c in ".["]
    for end in (len(path), *reversed(ends)):  # the longest first: a key may itself hold dots
        if pair := (node.entries or {}).get(path[:end]):
            return *pair, path[end:].removeprefix(".")
    return None
