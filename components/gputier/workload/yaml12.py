"""Read YAML (and so JSON) into plain values with positions, as Pulumi's engine reads it.

Built on PyYAML's *events*: its own loaders follow YAML 1.1 (`on` is true there), forget where
things stood, and let duplicate keys pass. libyaml's parser is used when PyYAML has it, else the one
in Python; they give the same answers, but the second refuses more tabs.

A file cannot make the program hang, crash or swell: size, nodes, depth and alias expansion are
limited, and what is wrong ends as `errors.InvalidInput` with file, line and column. Faults that
only matter to who reads a part (a doubled key, a custom tag) are kept on the nodes: the parts of a
stack file that belong to other projects are not ours to judge.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from gputier import errors
from gputier.workload import scalars, syntax
from gputier.workload.complaints import shown
from gputier.workload.nodes import Fault, Node, Positions, Span

if TYPE_CHECKING:
    import yaml

MAX_BYTES = 2**20
MAX_NODES = 20_000
MAX_DEPTH = 64

_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_UNPRINTABLE = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_SURROGATES = re.compile(r"\\u[dD]([89abAB][0-9a-fA-F]{2})\\u[dD]([c-fC-F][0-9a-fA-F]{2})")
_QUOTED_OR_TAB = re.compile(r'"(?:[^"\\]|\\.)*"|\t')
_CORE = "tag:yaml.org,2002:"


class Document(NamedTuple):
    """One file: its root node, and positions of paths from the root."""

    root: Node
    positions: Positions

    def refuse(self, span: Span, message: str, hint: str = "") -> NoReturn:
        """Raise `InvalidInput` pointing at `span`."""
        raise errors.InvalidInput(errors.Problem("", message, hint, self.positions.of(span)))


def decode(data: bytes, name: str) -> str:
    """The text of a file. Raises `InvalidInput` for what is too large or no UTF-8 text."""
    too_large(len(data), name)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise errors.InvalidInput(
            errors.Problem("", f"{name} is UTF-16 text", "save it as UTF-8", _top_of(name))
        )
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        _refuse_character(
            before, _rest_of_line(data[error.start :]), name, f"byte 0x{data[error.start]:02x}"
        )


def too_large(size: int, name: str) -> None:
    """Refuse a file of `size` bytes that no hand wrote, before it is read."""
    if size > MAX_BYTES:
        raise errors.InvalidInput(
            errors.Problem(
                "",
                f"{name} is {size / 2**20:,.1f} MiB; a declaration is at most {MAX_BYTES >> 20}"
                " MiB",
                "is this the right file?",
            )
        )


def read(text: str, name: str, *, pure: bool = False) -> Document:
    """Parse one document. Raises `InvalidInput` for what is no YAML or is beyond the limits.

    `pure` forces the parser written in Python.
    """
    too_large(len(text.encode("utf-8", "surrogatepass")), name)
    bad = _UNPRINTABLE.search(text)
    if bad:
        _refuse_character(text[: bad.start()], "", name, f"control character U+{ord(bad[0]):04X}")
    text = _json_as_yaml(text)
    empty = Node(Span(0, 0, 0))
    document = Document(empty, Positions(name, tuple(_BREAK.split(text)), empty))
    root = _build(text, document, pure=pure)
    return Document(root, Positions(name, document.positions.lines, root))


def _top_of(name: str) -> errors.Position:
    return errors.Position(name, 1, 1, "")


def _rest_of_line(data: bytes) -> str:
    return re.split(rb"[\r\n]", data[:200])[0].decode("utf-8", "replace")


def _refuse_character(before: str, rest: str, name: str, what: str) -> NoReturn:
    lines = _BREAK.split(before)
    position = errors.Position(name, len(lines), len(lines[-1]) + 1, lines[-1] + rest)
    raise errors.InvalidInput(
        errors.Problem(
            "", f"{what} does not belong in a text file", "save it as UTF-8 text", position
        )
    )


def _json_as_yaml(text: str) -> str:
    """JSON's two liberties that YAML lacks, taken out of text that is JSON: tabs and 😀."""
    if text.lstrip()[:1] not in ("{", "[", '"') or not ("\t" in text or _SURROGATES.search(text)):
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    text = _QUOTED_OR_TAB.sub(lambda m: " " if m[0] == "\t" else m[0], text)
    return _SURROGATES.sub(_one_character, text)


def _one_character(match: re.Match[str]) -> str:
    high, low = int(match[1], 16) & 0x3FF, int(match[2], 16) & 0x3FF
    return f"\\U{0x10000 + (high << 10) + low:08X}"


@dataclass(slots=True)
class _Frame:
    """A collection being built."""

    node: Node
    anchor: str | None
    pairs: list[tuple[Node, Node]] | None
    key: Node | None = None


@dataclass(slots=True)
class _Builder:
    """Turns events into nodes, without recursion."""

    document: Document
    root: Node | None = None
    frames: list[_Frame] = field(default_factory=list[_Frame])
    anchors: dict[str, Node | None] = field(default_factory=dict[str, Node | None])
    count: int = 0

    def add(self, node: Node, anchor: str | None = None) -> None:
        if anchor:
            self.anchors[anchor] = node
        if len(self.frames) + node.height > MAX_DEPTH:
            self.document.refuse(node.span, f"this is nested more than {MAX_DEPTH} levels deep")
        if not self.frames:
            self.root = node
            return
        frame = self.frames[-1]
        if frame.pairs is None:
            if frame.node.items is not None:
                frame.node.items.append(node)
        elif frame.key is None:
            if node.items is not None or node.entries is not None:
                self.document.refuse(node.span, "a key must be text, not a list or a map")
            frame.key = node
        else:
            frame.pairs.append((frame.key, node))
            frame.key = None
        frame.node.size += node.size
        frame.node.height = max(frame.node.height, node.height + 1)
        if frame.node.size > MAX_NODES:
            self.document.refuse(
                node.span,
                f"this file holds more than {MAX_NODES:,} values, its aliases counted in full",
            )

    def open(self, node: Node, anchor: str | None, *, is_map: bool) -> None:
        if len(self.frames) + 1 > MAX_DEPTH:
            self.document.refuse(node.span, f"this is nested more than {MAX_DEPTH} levels deep")
        if anchor:
            self.anchors[anchor] = None
        if is_map:
            node.entries = {}
        else:
            node.items = []
        self.frames.append(_Frame(node, anchor, [] if is_map else None))

    def close(self) -> None:
        frame = self.frames.pop()
        if frame.pairs is not None:
            _fill(frame.node, frame.pairs)
        self.add(frame.node, frame.anchor)

    def alias(self, name: str, span: Span) -> None:
        if name not in self.anchors:
            self.document.refuse(
                span,
                f"alias `*{name}` has no anchor",
                errors.spelling_hint(
                    name, self.anchors, otherwise="text that begins with * needs quotes"
                ),
            )
        node = self.anchors[name]
        if node is None:
            self.document.refuse(span, f"alias `*{name}` stands inside its own anchor")
        self.add(node)


def _fill(node: Node, pairs: list[tuple[Node, Node]]) -> None:
    """Enter keys, then what `<<` merges in; what is written wins over what is merged."""
    entries: dict[str, tuple[Node, Node]] = {}
    merged: list[Node] = []
    for key, value in pairs:
        name = key.scalar
        if name == "<<":
            merged += _merge_sources(value, key, node)
            continue
        if not isinstance(name, str):
            name = "null" if name is None else shown(name).strip("`")
            node.faults.append(
                Fault(key.span, f"key {shown(name)} is not text", f'put it in quotes: "{name}"')
            )
        if name in entries:
            line = entries[name][0].span.line + 1
            node.faults.append(
                Fault(
                    key.span, f"key {shown(name)} is given twice, first in line {line}", "keep one"
                )
            )
            continue
        entries[name] = (key, value)
    for source in merged:
        for name, pair in (source.entries or {}).items():
            entries.setdefault(name, pair)
    node.entries = entries


def _merge_sources(value: Node, key: Node, node: Node) -> list[Node]:
    sources = [value] if value.items is None else value.items
    if any(source.entries is None for source in sources):
        node.faults.append(
            Fault(key.span, "`<<` merges a map, or a list of maps, and this is neither")
        )
        return []
    return sources


def _build(text: str, document: Document, *, pure: bool) -> Node:
    import yaml  # a workload made in Python needs none

    fast = getattr(yaml, "CSafeLoader", None)
    loader: Any = yaml.SafeLoader(text) if pure or fast is None else fast(text)
    builder = _Builder(document)
    last = Span(0, 0, 1)
    try:
        while True:
            event: yaml.Event | None = loader.get_event()
            if event is None or isinstance(event, yaml.StreamEndEvent):
                break
            last = _span(event)
            _take(event, last, builder)
    except yaml.MarkedYAMLError as error:
        _refuse_syntax(error, document)
    except (yaml.YAMLError, ValueError, OverflowError):
        document.refuse(last, "from here on this cannot be read as YAML")
    finally:
        loader.dispose()
    return builder.root or Node(Span(0, 0, 1))


def _span(event: yaml.Event) -> Span:
    start, end = event.start_mark, event.end_mark
    width = end.column - start.column if end.line == start.line else 0
    return Span(start.line, start.column, width)


def _take(event: yaml.Event, span: Span, builder: _Builder) -> None:
    import yaml

    if isinstance(event, yaml.ScalarEvent):
        builder.add(_scalar(event, span), event.anchor)
    elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
        node = Node(Span(span.line, span.column, 1), flow=bool(event.flow_style))
        is_map = isinstance(event, yaml.MappingStartEvent)
        _check_tag(event.tag, ("map",) if is_map else ("seq",), node)
        builder.open(node, event.anchor, is_map=is_map)
    elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
        builder.close()
    elif isinstance(event, yaml.AliasEvent):
        builder.alias(event.anchor, span)
    elif isinstance(event, yaml.DocumentStartEvent) and builder.root is not None:
        builder.document.refuse(
            Span(span.line, span.column, max(1, span.width)),
            "a second document begins here; one file holds one",
            "put it in a file of its own",
        )


def _scalar(event: yaml.ScalarEvent, span: Span) -> Node:
    text = event.value
    node = Node(span, scalar=text)
    if any("\ud800" <= c <= "\udfff" for c in text):
        node.scalar = "".join("�" if "\ud800" <= c <= "\udfff" else c for c in text)
        node.faults.append(
            Fault(span, "an escape here is half a character", "write the character itself")
        )
    elif event.tag not in (None, "!"):
        _check_tag(event.tag, ("str", "int", "float", "bool", "null"), node)
        if event.tag != f"{_CORE}str" and not node.faults:
            _convert(event.tag, node)
    elif event.tag is None and not event.style:
        node.scalar = scalars.resolve(text)
        if scalars.ambiguous(text):
            decimal = text.replace("_", "").lstrip("+-0") or "0"
            node.faults.append(
                Fault(
                    span,
                    f"{shown(text)} begins with 0: an octal number to some readers",
                    f'write {decimal}, or "{text}" in quotes for text',
                )
            )
    return node


def _check_tag(tag: str | None, known: tuple[str, ...], node: Node) -> None:
    if tag not in (None, "!", *(f"{_CORE}{word}" for word in known)):
        short = str(tag).replace(_CORE, "!!")
        node.faults.append(Fault(node.span, f"tag {shown(short)} is not known here", "remove it"))


def _convert(tag: str, node: Node) -> None:
    """An explicit `!!int` and the like: the text must be one, as the engine demands."""
    value = scalars.resolve(str(node.scalar))
    word = tag.removeprefix(_CORE)
    if word == "float" and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value).__name__.replace("NoneType", "null") == word:
        node.scalar = value
    else:
        node.faults.append(
            Fault(node.span, f"{shown(str(node.scalar))} is no {word}", "remove the tag")
        )


def _refuse_syntax(error: yaml.MarkedYAMLError, document: Document) -> NoReturn:
    mark = error.problem_mark or error.context_mark
    begin = error.context_mark or mark
    if mark is None or begin is None:
        document.refuse(Span(0, 0, 1), "this cannot be read as YAML")
    lines = document.positions.lines
    line = lines[mark.line] if mark.line < len(lines) else ""
    said = syntax.explain(
        syntax.Broken(
            problem=str(error.problem or ""),
            context=str(error.context or ""),
            line=line,
            column=mark.column,
            last_line=mark.line >= len(lines) - 1 and not line[mark.column :].strip(),
        )
    )
    where = begin if said.at_beginning else mark
    document.refuse(Span(where.line, where.column, 1), said.message, said.hint)


def load(path: Path) -> str:
    """A file's text, or `InvalidInput` that says why there is none. Never reads a huge file."""
    name = str(path)
    try:
        with path.open("rb") as file:
            too_large(os.fstat(file.fileno()).st_size, name)
            return decode(file.read(MAX_BYTES + 1), name)
    except FileNotFoundError:
        what = f"there is no file {name}"
    except IsADirectoryError:
        what = f"{name} is a folder; name a file in it"
    except PermissionError:
        what = f"{name} may not be read by you"
    except OSError as error:
        what = f"{name} cannot be read: {error.strerror or error}"
    raise errors.InvalidInput(errors.Problem("", what))
