"""The comment on a pull request, in Markdown; never longer than the platform takes."""

from __future__ import annotations

import functools
import html
import re
from importlib import resources
from typing import NamedTuple

import jinja2

from gputier.review import words
from gputier.review.preview import Violation
from gputier.review.review import Review, Row

#: What a comment may be: GitHub 65,536 characters (its API refuses more: "body is too long"),
#: GitLab 1,000,000. Ours is for either.
LIMIT = 65_536
#: What one cell or line may be.
MOST_CHARACTERS = 240
# What a rule says ends in the way out, which is the part that must not be cut off.
MOST_OF_A_RULE = 3 * MOST_CHARACTERS
_MARKS = re.compile(r"([\\`*_{}\[\]|~#>])")
#: What the platforms make a link or a message of, even behind a backslash: people, issues, merge
#: requests, milestones, addresses. A joiner that nobody sees, put behind it, is in their way.
_LINKS = re.compile(r"@|[#!&%](?=\d)|\bGH-(?=\d)|\bwww(?=\.)|:(?=//)", re.IGNORECASE)


class Most(NamedTuple):
    """Rows, details and warnings that are shown; more of them are counted."""

    rows: int
    details: int
    warnings: int


#: From all that a person would read to the headline alone, whatever its words are.
SIZES = (Most(40, 60, 30), Most(20, 20, 30), Most(10, 0, 30), Most(5, 0, 5), Most(0, 0, 0))


class Detail(NamedTuple):
    """A priced resource with its arithmetic."""

    name: str
    parts: list[str]


def marker(project: str, stack: str) -> str:
    """What the comment is found again by; people do not see it."""
    safe = re.sub(r"[^A-Za-z0-9._/-]", "-", f"{project}/{stack}")
    return f"<!-- gputier review {safe[:MOST_CHARACTERS]} -->"


def comment(found: Review) -> str:
    """The comment. What does not fit is left out, and counted."""
    for most in SIZES:
        text = rendered(found, most)
        if len(text) <= LIMIT:
            return text
    raise ValueError("a headline alone is longer than the platform takes")


def rendered(found: Review, most: Most) -> str:
    """The comment with so much in it, however long that is."""
    lines, warned = words.lines(found), words.warnings(found)
    small = words.by_size(found)[1]
    small_urns = {row.change.urn for row in small}
    priced = [row for row in found.rows if row.change.urn not in small_urns and row.priced.parts]
    notes = words.remarks(found)
    return _template().render(
        marker=marker(found.project, found.stack),
        stack=safe(found.stack),
        headline=safe(words.headline(found)),
        incomplete=found.incomplete,
        lines=[_cells(one) for one in lines[: most.rows]],
        more_lines=max(0, len(lines) - most.rows),
        warnings=[safe(one.text) for one in warned[: most.warnings]],
        more_warnings=max(0, len(warned) - most.warnings),
        violations=[_broken(one) for one in found.violations[: most.warnings]],
        more_violations=max(0, len(found.violations) - most.warnings),
        left_out=words.left_out(found),
        range=words.range_of(found),
        summary=words.summary(found),
        details=[_detail(row) for row in priced[: most.details]],
        more_details=max(0, len(priced) - most.details),
        unpriced=[
            f"{code(_name(one.urn))} ({safe(one.type)}): {safe(one.why)}"
            for one in found.unpriced[: most.details]
        ],
        more_unpriced=max(0, len(found.unpriced) - most.details),
        notes=[safe(one.text) for one in notes[: most.details]],
        more_notes=max(0, len(notes) - most.details),
        folds=bool(found.changes or found.risks or found.unpriced) and not found.incomplete,
        not_whole=words.NOT_WHOLE,
        catalog=found.catalog,
        as_of=found.catalog_as_of,
    )


def _broken(one: Violation) -> str:
    about = f" on {code(one.resource)}" if one.resource else ""
    said = safe(one.message, MOST_OF_A_RULE)
    return f"{one.mark} {code(one.policy)}{about} ({safe(one.level)}): {said}"


def _cells(line: words.Line) -> tuple[str, ...]:
    change = f"{line.change} ({line.why})" if line.why else line.change
    return (code(line.name), *map(safe, (line.what, line.before, line.after, change)))


def _name(urn: str) -> str:
    return urn.rsplit("::", 1)[-1]


def _detail(row: Row) -> Detail:
    parts = [
        f"{safe(name)} {words.money(part.usd_per_month)} = {safe(part.text)}"
        + ("" if part.basis == "listed" else f" ({safe(part.basis)})")
        for name, part in row.priced.parts.items()
    ]
    return Detail(code(row.change.state.name), [*parts, *map(safe, row.priced.notes)])


def safe(text: str, most: int = MOST_CHARACTERS) -> str:
    """Text of anybody as text: no markup, no table, no mention of a person, no line of its own."""
    short = words.plain(text)
    if len(short) > most:
        short = f"{short[: most - 1]}…"
    parts = short.split("`")
    if len(parts) % 2 == 0:  # one that nothing ends is a character like others
        parts[-2:] = [f"{parts[-2]}`{parts[-1]}"]
    # What stands between two is code, as we wrote it ourselves, and nothing in it ends that.
    return "".join(code(part) if n % 2 else _plain(part) for n, part in enumerate(parts))


def _plain(text: str) -> str:
    apart = _LINKS.sub(lambda found: f"{found[0]}\u2060", text)
    return _MARKS.sub(r"\\\1", html.escape(apart, quote=False).replace("&gt;", ">"))


def code(text: str) -> str:
    """A name as code: nothing in it ends the code or the table's cell."""
    short = words.plain(text.replace("`", "'").replace("|", "¦"))[:MOST_CHARACTERS]
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
