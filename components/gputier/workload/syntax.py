"""What is wrong with a text that is no YAML, in words that say how to mend it.

The two parsers word the same mistake differently, so the judgement rests on the character and the
line where they stopped; their own words decide only what kind of thing was being read.
"""

from __future__ import annotations

from typing import NamedTuple


class Broken(NamedTuple):
    """Where a parser stopped. `last_line`: nothing follows, the file ended too early."""

    problem: str
    context: str
    line: str
    column: int
    last_line: bool


class Said(NamedTuple):
    """The message; `at_beginning` points at the start of what was being read."""

    message: str
    hint: str = ""
    at_beginning: bool = False


_OPENERS = {"flow sequence": ("[", "list"), "flow mapping": ("{", "map")}


def explain(broken: Broken) -> Said:
    """A message and hint for a syntax error."""
    character = broken.line[broken.column : broken.column + 1]
    indent = broken.line[: len(broken.line) - len(broken.line.lstrip())]
    if "nesting depth" in broken.problem:  # libyaml's own limit, met before ours
        return Said("this is nested more than 64 levels deep")
    if "\t" in indent or "tab character" in broken.problem:
        return Said("a tab indents this line; YAML takes only spaces", "replace each tab by spaces")
    if character == "\t":
        return Said("a tab stands where YAML takes only spaces", "replace each tab by spaces")
    if "quoted scalar" in broken.context:
        return _in_quotes(broken)
    for what, (opener, noun) in _OPENERS.items():
        if what in broken.context:
            return Said(
                f"the {noun} that begins with `{opener}` is not closed, or misses a comma",
                at_beginning=True,
            )
    if "mapping values are not allowed" in broken.problem:
        return Said(
            "`:` does not fit here: the line above is no map, or this line already has one",
            'indent the line like its neighbours; text that holds ": " needs quotes',
        )
    if "sequence entries are not allowed" in broken.problem:
        return Said("a list cannot begin on the line of its key", "put `- …` on the next line")
    if character and character in "@`%&*!|>" and "start any token" in broken.problem:
        named = "a backtick" if character == "`" else f"`{character}`"
        return Said(f"{named} cannot begin a value", "put the value in quotes")
    if character and character in "}],":
        return Said(f"`{character}` closes nothing that was opened")
    return _of_structure(broken)


def _in_quotes(broken: Broken) -> Said:
    if "escape" in broken.problem:
        return Said(
            "a backslash in double quotes begins an escape, and this is none",
            "write \\\\ for a backslash, or use single quotes",
        )
    return Said("a quotation mark is never closed", at_beginning=True)


def _of_structure(broken: Broken) -> Said:
    if "directive" in broken.context or "incompatible" in broken.problem:
        return Said("a line that begins with % is a YAML directive, and this one is not understood")
    if "tag" in broken.problem or "tag" in broken.context:
        return Said(
            "a tag is not understood here", "remove it; text that begins with ! needs quotes"
        )
    if "block scalar" in broken.context:
        return Said(
            "the text after `|` or `>` does not begin on a line of its own, indented by spaces"
        )
    if "anchor" in broken.context or "alias" in broken.context:
        return Said(
            "an anchor or alias is not understood", "text that begins with & or * needs quotes"
        )
    if "expected ':'" in broken.problem:
        return Said("this line is no `key: value`", "add the `:`, or put long text in quotes", True)
    if broken.last_line:
        return Said("the file ends too early")
    return Said(
        "this does not fit the lines above",
        "check its indentation; text after a closing quote, or a line without `:`, has the same"
        " effect",
    )
