"""A guide's commands, to be typed one after the other: docs/first-half-hour.md.

In a ```console block a line with `$ ` is typed, `> ` goes on from it, and the lines below are in
what it prints, in that order. `# exits with N` after a command is the code it ends with, else 0.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EXITS = re.compile(r" +# exits with (\d+)\b.*")
MARK = "--- a step of the guide ended with "


class Typed(NamedTuple):
    """A command, the code it ends with, and the lines it prints among others."""

    command: str
    code: int
    prints: tuple[str, ...]


class Step(NamedTuple):
    """What became of a command."""

    typed: Typed
    code: int
    out: str

    @property
    def missing(self) -> list[str]:
        """The lines that were promised and not printed, in this order."""
        at, found = 0, list[str]()
        for line in self.typed.prints:
            place = self.out.find(line.strip(), at)
            if place < 0:
                found.append(line)
            else:
                at = place + len(line.strip())
        return found


def commands(page: str) -> Iterator[Typed]:
    for block in BLOCK.findall(page):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = part.splitlines()
            typed = [
                lines[0],
                *(line[1:].removeprefix(" ") for line in lines[1:] if line[:1] == ">"),
            ]
            exits = EXITS.search(typed[0])
            typed[0] = EXITS.sub("", typed[0])
            prints = tuple(line for line in lines[1:] if line[:1] != ">")
            yield Typed("\n".join(typed), int(exits[1]) if exits else 0, prints)


def walked(page: str, folder: Path, environment: Mapping[str, str]) -> list[Step]:
    """Every command in one shell, as a person has it."""
    todo = list(commands(page))
    script = "\n".join(f"{one.command}\ncode=$?; echo; echo '{MARK}'$code" for one in todo)
    done = subprocess.run(
        ["bash", "--noprofile", "--norc"],
        input=script,
        cwd=folder,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    parts = re.split(rf"^{MARK}(\d+)\n", done.stdout, flags=re.MULTILINE)
    outs, codes = parts[0::2], parts[1::2]
    return [Step(one, int(c), o) for one, c, o in zip(todo, codes, outs, strict=False)]
