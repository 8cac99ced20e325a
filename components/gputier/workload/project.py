"""Where stacks live: the Pulumi project above a folder, and its stack files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from gputier import errors
from gputier.workload import yaml12

PROJECT_FILES = ("Pulumi.yaml", "Pulumi.yml", "Pulumi.json")
_STACK_FILE = re.compile(r"Pulumi\.(?P<stack>.+)\.(?:yaml|yml|json)")


class Project(NamedTuple):
    """A Pulumi project: its file, name, folder of stack files, and what it sets for every stack."""

    file: Path
    name: str
    stack_folder: Path
    config_keys: tuple[str, ...]

    def stacks(self) -> dict[str, Path]:
        """Stack files by stack name, sorted."""
        if not self.stack_folder.is_dir():
            return {}
        found: dict[str, Path] = {}
        for path in sorted(self.stack_folder.iterdir()):
            if (stack := stack_of(path)) and path.is_file():
                found.setdefault(stack, path)
        return dict(sorted(found.items()))


def stack_of(path: Path) -> str | None:
    """The stack whose settings a file of this name holds."""
    match = _STACK_FILE.fullmatch(path.name)
    return match["stack"] if match else None


def find(start: Path) -> Project | None:
    """The project of the nearest `Pulumi.yaml` at or above `start`."""
    for folder in (start.absolute(), *start.absolute().parents):
        for name in PROJECT_FILES:
            if (folder / name).is_file():
                return _read(folder / name)
    return None


def require(start: Path) -> Project:
    """`find`, or `InvalidInput` when there is none."""
    project = find(start)
    if project is None:
        raise errors.InvalidInput(
            errors.Problem(
                "",
                f"no Pulumi.yaml in {start.absolute()} or above it, so there are no stacks here",
                "go to the project's folder, or name a file: gputier plan workloads.yaml",
            )
        )
    return project


def _read(path: Path) -> Project:
    document = yaml12.read(yaml12.load(path), shown_path(path))
    entries = document.root.entries or {}

    def text(key: str) -> str:
        value = entries[key][1].scalar if key in entries else ""
        return value if isinstance(value, str) else ""

    # `config: <folder>` is how projects spelt stackConfigDir before config became a map.
    folder = text("stackConfigDir") or text("config")
    config = entries["config"][1].entries if "config" in entries else None
    name = text("name")
    return Project(
        file=path,
        name=name,
        stack_folder=path.parent / folder,
        config_keys=tuple(qualified(key, name) for key in config or {}),
    )


def qualified(key: str, project: str) -> str:
    """A config key with its namespace: a bare key belongs to the project; `a:config:b` is `a:b`."""
    if ":" not in key:
        return f"{project}:{key}"
    return key.replace(":config:", ":", 1)


def shown_path(path: Path) -> str:
    """A path as people read it: from the current folder when it lies below."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)
