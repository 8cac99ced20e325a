"""docs/boot.md shows sizes and deadlines as they are."""

from __future__ import annotations

from collections.abc import Callable

from tests.boot.examples import examples, rendered

from gputier.boot.deadlines import table

Generated = Callable[[str, str, str], None]


def test_the_page_shows_the_size_of_every_example(generated: Generated) -> None:
    found = {name: rendered(example) for name, example in examples().items()}
    parts = list(dict.fromkeys(part for one in found.values() for part in one.parts))
    lines = [
        f"| example | bytes | of | {' | '.join(parts)} |",
        f"| --- | --- | --- | {' | '.join('---' for _ in parts)} |",
    ]
    for name, one in found.items():
        each = " | ".join(f"{one.parts.get(part, 0):,}" for part in parts)
        lines.append(f"| {name} | {one.size:,} | {one.limit:,} | {each} |")
    generated("docs/boot.md", "sizes", "\n".join(lines))


def test_the_page_shows_a_table_of_deadlines(generated: Generated) -> None:
    found = rendered(examples()["prod-foundation"]).deadline
    generated("docs/boot.md", "deadline", "\n".join(["```", *table(found), "```"]))
