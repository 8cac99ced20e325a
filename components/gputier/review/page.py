"""A review as a page by itself: nothing is loaded, everything is escaped."""

from __future__ import annotations

from gputier.review import words
from gputier.review.comment import environment
from gputier.review.review import Review


def page(found: Review) -> str:
    """HTML of one file."""
    rendered = (
        environment()
        .get_template("page.html.j2")
        .render(
            title=f"{found.project}/{found.stack}",
            stack=found.stack,
            headline=words.headline(found),
            incomplete=found.incomplete,
            not_whole=words.NOT_WHOLE,
            summary=words.summary(found),
            lines=words.lines(found),
            warnings=[risk.text for risk in words.warnings(found)],
            violations=found.violations,
            notes=[risk.text for risk in words.remarks(found)],
            left_out=words.left_out(found),
            range=words.range_of(found),
            rows=found.rows,
            money=words.money,
            unpriced=found.unpriced,
            catalog=found.catalog,
            as_of=found.catalog_as_of,
        )
    )
    return "\n".join(map(words.shown, rendered.split("\n")))
