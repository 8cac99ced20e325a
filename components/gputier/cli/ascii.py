"""Text for streams that cannot show all of Unicode."""

from __future__ import annotations

LOOK_ALIKES = {
    "×": "x",
    "·": "|",
    "≥": ">=",
    "≤": "<=",
    "≈": "~",
    "±": "+/-",
    "−": "-",
    "–": "-",
    "—": "-",
    "→": "->",
    "…": "...",
    "█": "#",
    "▌": "#",
    "✓": "+",
    "✗": "-",
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
    "²": "2",
    "\u00a0": " ",
    "\u202f": " ",
}


def plain(text: str, encoding: str) -> str:
    """`text` as `encoding` can write it; columns stay where they were when there is room."""
    if _writable(text, encoding):
        return text
    return "\n".join(_plain_line(line, encoding) for line in text.split("\n"))


def _writable(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    except LookupError:  # an encoding nobody knows: ASCII is in all of them
        return text.isascii()
    return True


def _plain_line(line: str, encoding: str) -> str:
    made: list[str] = []
    owed = 0
    for place, char in enumerate(line):
        # `≥` grows to `>=`: the next run of spaces gives the column back, but for one space.
        if owed and char == " " and line[place + 1 : place + 2] == " ":
            owed -= 1
            continue
        if _writable(char, encoding):
            made.append(char)
            continue
        instead = LOOK_ALIKES.get(char, "?")
        owed += len(instead) - 1
        made.append(instead)
    return "".join(made)
