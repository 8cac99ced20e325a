"""Texts that systemd reads: unit files, command lines in them, environment files.

systemd undoes four things to a command line, in this order: quotes and backslashes, `%` specifiers,
`;` as a separator, `$` variables (systemd.service(5), COMMAND LINES; systemd.unit(5), SPECIFIERS).
A value from a declaration passes through here, so that it arrives as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gputier.node import gate
from gputier.node.stages import Work

FOLDER = "/etc/systemd/system"
WORKLOAD = "gputier-workload.service"
# Arguments that no reader of a unit file takes for anything else. These are asked by `fullmatch`:
# `$` would let a line's end through.
_PLAIN = re.compile(r"[A-Za-z0-9_@+=:,./-]+")
_PROGRAM = re.compile(r"/[A-Za-z0-9_+./-]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# systemd drops an assignment with any other control character in it (env_value_is_valid).
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class Unit(NamedTuple):
    """A unit's file: its name with the suffix, and its text."""

    name: str
    text: str

    @property
    def path(self) -> str:
        return f"{FOLDER}/{self.name}"


def unit(name: str, **sections: Sequence[tuple[str, str]]) -> Unit:
    """A unit of sections, each a list of keys and values that are already written for systemd."""
    parts = (
        f"[{section}]\n" + "".join(f"{key}={value}\n" for key, value in lines)
        for section, lines in sections.items()
        if lines
    )
    return Unit(name, "# Written by gputier-node at every boot.\n" + "\n".join(parts))


def command(argv: Sequence[str], quiet: bool = False) -> str:
    """The value of an Exec line that runs exactly this. `quiet`: it may fail. Raises ValueError.

    The program is an absolute path: systemd gives a meaning to `-@+!:|` in front of it.
    """
    if not _PROGRAM.fullmatch(argv[0]):
        raise ValueError(f"not a plain absolute path: {argv[0]!r}")
    return ("-" if quiet else "") + " ".join((argv[0], *map(argument, argv[1:])))


def argument(value: str) -> str:
    """One argument as systemd hands it on. Raises ValueError for what no process takes."""
    if _PLAIN.fullmatch(value):
        return value
    return '"' + _escaped(value).replace("$", "$$") + '"'


def assignment(name: str, value: str) -> str:
    """The value of an `Environment=` line; `$` has no meaning there. Raises ValueError."""
    _check(name, value)
    return '"' + _escaped(f"{name}={value}") + '"'


def text(value: str) -> str:
    """A description or a path: the rest of the line, `%` doubled. Raises ValueError."""
    if "\n" in value or "\0" in value or value.endswith("\\"):
        raise ValueError(f"not one line: {value!r}")
    return value.replace("%", "%%")


def environment_file(values: Mapping[str, str]) -> str:
    """What `EnvironmentFile=` reads, and a shell with `.` the same way. Raises ValueError.

    In double quotes both undo a backslash before these four only, and a line may go on.
    """
    lines: list[str] = []
    for name, value in sorted(values.items()):
        _check(name, value)
        lines.append(f'{name}="' + re.sub(r'(["\\`$])', r"\\\1", value) + '"\n')
    return "".join(lines)


def _check(name: str, value: str) -> None:
    if not _NAME.fullmatch(name):
        raise ValueError(f"not the name of a variable: {name!r}")
    if _CONTROL.search(value):
        raise ValueError(f"a control character in {name}")
    value.encode("utf-8")


def _escaped(value: str) -> str:
    """For double quotes in a unit file, specifiers doubled."""
    if "\0" in value:
        raise ValueError("a NUL in an argument")
    value.encode("utf-8")  # half a surrogate pair: systemd would drop the line
    shown = value.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return re.sub(r"[\x01-\x1f\x7f]", lambda found: f"\\x{ord(found[0]):02x}", shown)


def joined(values: Iterable[str]) -> str:
    """Names of units in one line."""
    return " ".join(values)


def install(work: Work, *made: Unit) -> bool:
    """Have the units' files, and systemd know them; whether any had to be written. Raises Halt."""
    written = [work.put(one.path, one.text) for one in made]
    if any(written):
        reload(work)
    return any(written)


def reload(work: Work) -> None:
    """Have systemd read its units again. Raises Halt.

    Never below a workload: a container whose devices systemd does not know loses its GPUs with it
    (github.com/NVIDIA/nvidia-container-toolkit/issues/48).
    """
    if work.host.exists(gate.READY) and is_active(work, WORKLOAD):
        work.warnings.append("units changed while the workload runs: they count from the next boot")
        return
    work.must("read the units again", "systemctl", "daemon-reload", limit=60.0)


def is_active(work: Work, name: str) -> bool:
    return work.run("systemctl", "is-active", name, limit=10.0).out.strip() == "active"


def enable(work: Work, *names: str) -> bool:
    """Have units start by themselves at what they are wanted by; whether any did not. Raises Halt.

    Asked first: `systemctl enable` reads all units again, each time.
    """
    wanted = [
        name
        for name in names
        if work.run("systemctl", "is-enabled", name, limit=10.0).out.strip() != "enabled"
    ]
    if wanted:
        work.must(f"enable {joined(wanted)}", "systemctl", "enable", *wanted, limit=30.0)
    return bool(wanted)


def start(work: Work, name: str, again: bool = False) -> bool:
    """Have a unit run, started again where it changed; whether it had to be. Raises Halt."""
    if is_active(work, name) and not again:
        return False
    work.must(f"start {name}", "systemctl", "restart" if again else "start", name, limit=120.0)
    return True
