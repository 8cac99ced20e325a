"""The comment on a pull request, in Markdown; never longer than the platform takes."""

from __future__ import annotations

import functools
import html
import re
from importlib import resources
from typing import NamedTuple

import jinja2

from gputier.review import words
from gputier.review.review import Review, Row

#: What a comment may be: GitHub 65,536 characters (its API refuses more: "body is too long"),
#: GitLab 1,000,000. Ours is for either.
LIMIT = 65_536
#: Rows, warnings and details that are shown; more of them are counted.
MOST_ROWS, MOST_WARNINGS, MOST_DETAILS = 40, 30, 60
#: What one cell or line may be.
MOST_CHARACTERS = 240
_MARKS = re.compile(r"([\\`*_{}\[\]|~#>])")


class Detail(NamedTuple):
    """A priced resource with its arithmetic."""

    name: str
    parts: list[str]


def marker(project: str, stack: str) -> str:
    """What the comment is found again by; people do not see it."""
    safe = re.sub(r"[^A-Za-z0-9._/-]", "-", f"{project}/{stack}")
    return f"<!-- gputier review {safe} -->"


def comment(found: Review) -> str:
    """The comment. What does not fit is left out, and counted."""
    for rows, details in ((MOST_ROWS, MOST_DETAILS), (20, 20), (10, 0), (0, 0)):
        text = _rendered(found, rows, details)
        if len(text) <= LIMIT:
            return text
    raise ValueError("a comment without rows and details is longer than the platform takes")


def _rendered(found: Review, most_rows: int, most_details: int) -> str:
    lines, warned = words.lines(found), words.warnings(found)
    small = words.by_size(found)[1]
    details = [_detail(row) for row in found.rows if row not in small]
    other = [f"{safe(one.text)}" for one in words.remarks(found)]
    unpriced = [
        f"{code(_name(one.urn))} ({safe(one.type)}): {safe(one.why)}" for one in found.unpriced
    ]
    return _template().render(
        marker=marker(found.project, found.stack),
        stack=safe(found.stack),
        headline=safe(words.headline(found)),
        incomplete=found.incomplete,
        lines=[(code(one.name), *map(safe, one[1:])) for one in lines[:most_rows]],
        more_lines=max(0, len(lines) - most_rows),
        warnings=[safe(one.text) for one in warned[:MOST_WARNINGS]],
        more_warnings=max(0, len(warned) - MOST_WARNINGS),
        violations=[
            f"{code(one.policy)} ({safe(one.level)}): {safe(one.message)}"
            for one in found.violations[:MOST_WARNINGS]
        ],
        left_out=words.left_out(found),
        range=words.range_of(found),
        summary=words.summary(found),
        details=[d for d in details if d.parts][:most_details],
        unpriced=unpriced[:most_details],
        more_unpriced=max(0, len(unpriced) - most_details),
        notes=other[:most_details],
        more_notes=max(0, len(other) - most_details),
        catalog=found.catalog,
        as_of=found.catalog_as_of,
    )


def _name(urn: str) -> str:
    return urn.rsplit("::", 1)[-1]


def _detail(row: Row) -> Detail:
    parts = [
        f"{safe(name)} {words.money(part.usd_per_month)} = {safe(part.text)}"
        + ("" if part.basis == "listed" else f" ({safe(part.basis)})")
        for name, part in row.priced.parts.items()
    ]
    return Detail(code(row.change.state.name), [*parts, *map(safe, row.priced.notes)])


def safe(text: str) -> str:
    """Text of anybody as text: no markup, no table, no mention of a person, no line of its own."""
    short = " ".join(text.split())
    if len(short) > MOST_CHARACTERS:
        short = f"{short[: MOST_CHARACTERS - 1]}…"
    parts = short.split("`")
    if len(parts) % 2 == 0:  # one that nothing ends is a character like others
        parts[-2:] = [f"{parts[-2]}`{parts[-1]}"]
    # What stands between two is code, as we wrote it ourselves, and nothing in it ends that.
    return "".join(code(part) if n % 2 else _plain(part) for n, part in enumerate(parts))


def _plain(text: str) -> str:
    escaped = _MARKS.sub(r"\\\1", html.escape(text, quote=False).replace("&gt;", ">"))
    return escaped.replace("@", "@\u2060").replace("://", ":\u2060//")


def code(text: str) -> str:
    """A name as code: nothing in it ends the code or the table's cell."""
    short = " ".join(text.replace("`", "'").replace("|", "¦").split())[:MOST_CHARACTERS]
    return f"`{short}`" if short else ""


@functools.cache
def _template() -> jinja2.Template:
    return environment().get_template("comment.md.j2")


@functools.cache
def environment() -> jinja2.Environment:
    """The templates of a review. A name that is not given is an error."""
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        undefined=jinja2.StrictUndefined,
        autoescape=jinja2.select_autoescape(("html.j2",)),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _source(name: str) -> str:
    return (resources.files("gputier.templates") / "review" / name).read_text(encoding="utf-8")
