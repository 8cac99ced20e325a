"""/etc/fstab, edited by line: what is ours is replaced, every other byte stays.

A line is ours by an option that mount ignores (`x-…`, mount(8)); a line of somebody else for the
same mount point is in the way, and is said rather than overwritten.
"""

from __future__ import annotations

import re
from typing import NamedTuple

PATH = "/etc/fstab"
MARK = "x-gputier"
# The form of earlier versions, by label: it is replaced.
OLD_SOURCE = "LABEL=gputier"


class Taken(Exception):
    """Another line of the file claims the mount point; the message is that line."""


class Entry(NamedTuple):
    """What one of our lines says. `wait`: seconds that a boot waits for the device, not longer."""

    uuid: str
    point: str
    kind: str
    wait: int = 10

    @property
    def line(self) -> str:
        # nofail: a machine whose disks a stop wiped must still boot, and make them again.
        options = f"defaults,noatime,nofail,x-systemd.device-timeout={self.wait}s,{MARK}"
        return f"UUID={self.uuid} {escaped(self.point)} {self.kind} {options} 0 0\n"


def with_entry(content: str, entry: Entry) -> str:
    """The file with our line for this mount point, and only one of them. Raises Taken."""
    kept: list[str] = []
    placed = False
    for line in content.splitlines(keepends=True):
        cells = line.split()
        if _is_comment(line) or len(cells) < 2 or unescaped(cells[1]) != entry.point:
            kept.append(line)
        elif not is_ours(cells):
            raise Taken(line.strip())
        elif not placed:
            kept.append(entry.line)
            placed = True
    found = "".join(kept)
    if placed:
        return found
    return found + ("" if found.endswith("\n") or not found else "\n") + entry.line


def without(content: str, point: str) -> str:
    """The file without our line for this mount point."""
    return "".join(
        line
        for line in content.splitlines(keepends=True)
        if _is_comment(line)
        or len(line.split()) < 2
        or unescaped(line.split()[1]) != point
        or not is_ours(line.split())
    )


def is_ours(cells: list[str]) -> bool:
    """Whether a line's cells are one of our own lines."""
    return cells[0] == OLD_SOURCE or (len(cells) > 3 and MARK in cells[3].split(","))


def escaped(value: str) -> str:
    """A mount point as one cell: blanks, tabs, newlines and backslashes in octal (fstab(5))."""
    return re.sub(r"[\s\\#]", lambda found: f"\\{ord(found[0]):03o}", value)


def unescaped(cell: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), cell)


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")
