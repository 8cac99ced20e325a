"""Read declarations: from stack config, plain files, standard input and `pulumi config --json`."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from gputier import errors
from gputier.errors import Problem
from gputier.workload import model, project, yaml12
from gputier.workload.complaints import listed
from gputier.workload.declare import Declaration, Origin, Parts, declaration
from gputier.workload.nodes import Node, Positions

STDIN = "<stdin>"
_PREFIX = "gputier:"
_REGION_KEYS = {"aws:region": "aws", "gcp:region": "gcp"}
_FILE_ENDINGS = (".yaml", ".yml", ".json")


def is_file(argument: str) -> bool:
    """Whether a command-line argument names a file (else it names a stack)."""
    has_separator = "/" in argument or os.sep in argument
    return argument == "-" or has_separator or argument.endswith(_FILE_ENDINGS)


def resolve(argument: str | None, start: Path) -> tuple[Declaration, ...]:
    """The declarations an argument names: a file, `-`, a stack, or (None) every stack.

    Stacks that have no `gputier:` key are passed over when every stack is meant. Raises
    `InvalidInput` with the problems of all of them.
    """
    if argument == "-":
        return (read_text(_stdin(), STDIN),)
    if argument is not None:
        return (read_file(Path(argument)) if is_file(argument) else read_stack(argument, start),)
    found: list[Declaration] = []
    wrong: list[Problem] = []
    here = project.require(start)
    for name, path in here.stacks().items():
        try:
            document = yaml12.read(yaml12.load(path), project.shown_path(path))
            if _ours(_config(document, here)):
                found.append(_declare_stack(document, name, path, here))
        except errors.InvalidInput as error:
            wrong += error.problems
    if wrong:
        raise errors.InvalidInput(wrong)
    if not found:
        raise errors.InvalidInput(_no_stacks(here))
    return tuple(found)


def _no_stacks(here: project.Project) -> Problem:
    names = here.stacks()
    folder = project.shown_path(here.stack_folder)
    if not names:
        return Problem("", f"no stack has settings in {folder}", "add Pulumi.dev.yaml there")
    return Problem(
        "",
        f"no stack of {folder} declares workloads: {listed(names)}",
        "add `gputier:workloads` below `config:` of a stack's file",
    )


def find_stacks(start: Path) -> tuple[str, ...]:
    """Names of the stacks of the project at or above `start`, sorted; empty without a project."""
    here = project.find(start)
    return tuple(here.stacks()) if here else ()


def read_stack(name: str, start: Path) -> Declaration:
    """The declaration of a stack of the project at or above `start`."""
    here = project.require(start)
    path = here.stacks().get(name)
    if path is None:
        raise errors.InvalidInput(_unknown_stack(name, here))
    document = yaml12.read(yaml12.load(path), project.shown_path(path))
    return _declare_stack(document, name, path, here)


def _unknown_stack(name: str, here: project.Project) -> Problem:
    names = here.stacks()
    if not names:
        return _no_stacks(here)
    if Path(name).is_file():
        hint = f"to read the file of that name: ./{name}"
    else:
        hint = errors.spelling_hint(name, names, otherwise=f"stacks here: {listed(names)}")
        if hint.startswith("did"):
            hint += f" stacks here: {listed(names)}"
    return Problem("", f"no stack `{name}` in {project.shown_path(here.stack_folder)}", hint)


def read_file(path: Path) -> Declaration:
    """A plain file, or a stack's own file when it is called `Pulumi.<stack>.yaml`."""
    if path.name in project.PROJECT_FILES and (here := project.find(path.parent)):
        raise errors.InvalidInput(
            Problem(
                "",
                f"{project.shown_path(path)} is the project's own file",
                f"name a stack ({listed(here.stacks(), 'or')}), or a file with `workloads`",
            )
        )
    if not path.exists():
        name = project.shown_path(path)
        raise errors.InvalidInput(Problem("", f"there is no file {name}", _like(path)))
    text = yaml12.load(path)
    document = yaml12.read(text, project.shown_path(path))
    stack = project.stack_of(path)
    if stack and "workloads" not in (document.root.entries or {}):
        return _declare_stack(document, stack, path, project.find(path.parent))
    return _declare_plain(document, path.stem, str(path.parent))


def _like(path: Path) -> str:
    """A hint for a file that is not there."""
    with contextlib.suppress(errors.InvalidInput):  # a broken project is not today's question
        if path.name in find_stacks(Path.cwd()):
            return f"for the stack of that name: {path.name}"
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    names = [p.name for p in sorted(path.parent.iterdir())[:1000] if p.name.endswith(_FILE_ENDINGS)]
    close = errors.did_you_mean(path.name, names)
    return f"did you mean `{project.shown_path(path.parent / close)}`?" if close else ""


def read_text(text: str | bytes, name: str) -> Declaration:
    """A plain file's content. Paths in it count from the current folder."""
    if isinstance(text, bytes):
        text = yaml12.decode(text, name)
    return _declare_plain(yaml12.read(text, name), _stem(name), ".")


def _stem(name: str) -> str:
    return "stdin" if name == STDIN else Path(name).stem


def _declare_plain(document: yaml12.Document, name: str, folder: str) -> Declaration:
    return declaration(_map(document), Origin(name, document, folder))


def _map(document: yaml12.Document) -> Parts:
    root = document.root
    if root.entries is None and (root.items is not None or root.scalar is not None):
        document.refuse(root.span, "a declaration is a map with the key `workloads`")
    if root.faults:
        raise errors.InvalidInput(document.positions.problems(Node(root.span, faults=root.faults)))
    return root.entries or {}


def _declare_stack(
    document: yaml12.Document, name: str, path: Path, here: project.Project | None
) -> Declaration:
    config = _config(document, here)
    regions, warnings = _regions(config)
    warnings += _warnings(document, config, here, path)
    origin = Origin(name, document, str(path.parent), _PREFIX, regions, tuple(warnings))
    return declaration(_ours(config), origin)


def _config(document: yaml12.Document, here: project.Project | None) -> Parts:
    """The stack's config, keys with their namespace."""
    entries = _map(document)
    config = entries["config"][1] if "config" in entries else Node(document.root.span, entries={})
    if config.entries is None:
        if config.items is None and config.scalar is None:
            return {}
        document.refuse(config.span, "`config` must be a map")
    if config.faults:
        ours = [f for f in config.faults if _PREFIX in _line_of(document.positions, f.span.line)]
        if ours:
            raise errors.InvalidInput(document.positions.problems(Node(config.span, faults=ours)))
    project_name = here.name if here else ""
    return {project.qualified(key, project_name): pair for key, pair in config.entries.items()}


def _line_of(positions: Positions, line: int) -> str:
    return positions.lines[line] if line < len(positions.lines) else ""


def _ours(config: Parts) -> Parts:
    """What is this product's own in a stack's config, keys without their namespace."""
    return {k.removeprefix(_PREFIX): v for k, v in config.items() if k.startswith(_PREFIX)}


def _regions(config: Parts) -> tuple[dict[str, str], list[str]]:
    """Default regions from the providers' own config, and what could not be used of it."""
    regions: dict[str, str] = {}
    warnings: list[str] = []
    for key, cloud in _REGION_KEYS.items():
        if key in config:
            try:
                regions[cloud] = model.region_name(config[key][1].plain())
            except ValueError:
                warnings.append(
                    f"`{key}` is no plain region's name, so it does not limit where {cloud}"
                    " machines are looked for"
                )
    return regions, warnings


def _warnings(
    document: yaml12.Document, config: Parts, here: project.Project | None, path: Path
) -> list[str]:
    found: list[str] = []
    file = project.shown_path(path)
    entries = document.root.entries or {}
    way_out = "to plan with everything: pulumi config --json --open | gputier plan --config -"
    if "environment" in entries and entries["environment"][1].plain():
        found.append(
            f"{file} takes config from ESC environments, which are not read here; {way_out}"
        )
    if here is not None:
        keys = [
            key
            for key in here.config_keys
            if (key.startswith(_PREFIX) or key in _REGION_KEYS) and key not in config
        ]
        if keys:
            found.append(
                f"{project.shown_path(here.file)} sets {listed(f'`{k}`' for k in keys)} for every"
                f" stack; only the stack's own file is read here; {way_out}"
            )
    return found


def read_config_json(text: str | bytes, name: str = STDIN) -> Declaration:
    """What `pulumi config --json` prints: `{key: {value, objectValue, secret}}`."""
    if isinstance(text, bytes):
        text = yaml12.decode(text, name)
    document = yaml12.read(text, name)
    config: Parts = {}
    for key, (key_node, entry) in _map(document).items():
        fields = entry.entries
        if fields is None or not fields.keys() & {"value", "objectValue", "secret"}:
            document.refuse(
                key_node.span,
                "this is not what `pulumi config --json` prints: a map of keys to value,"
                " objectValue and secret",
            )
        config[key.replace(":config:", ":", 1)] = (key_node, _config_value(fields, entry))
    regions, warnings = _regions(config)
    return declaration(
        _ours(config), Origin(_stem(name), document, ".", _PREFIX, regions, tuple(warnings))
    )


def _config_value(fields: Parts, entry: Node) -> Node:
    secret = fields["secret"][1].scalar is True if "secret" in fields else False
    if secret:  # shown or not, it is meant to stay one: as if it were `{secure: …}`
        hidden = Node(entry.span, scalar="")
        return Node(entry.span, entries={"secure": (hidden, hidden)})
    if "objectValue" in fields:
        return fields["objectValue"][1]
    return fields["value"][1] if "value" in fields else Node(entry.span)


def _stdin() -> str:
    data = sys.stdin.buffer.read(yaml12.MAX_BYTES + 1)
    return yaml12.decode(data, STDIN)
