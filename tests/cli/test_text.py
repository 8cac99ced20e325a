"""Columns, wrapping and bars."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputier.cli import money
from gputier.cli.text import (
    Column,
    Letters,
    bar,
    columns_of,
    flow,
    labelled,
    listed,
    plural,
    table,
    table_widths,
    wrap,
)

WORDS = st.lists(
    st.text(st.characters(codec="utf-8", categories=("L", "N", "P")), min_size=1, max_size=40),
    max_size=12,
).map(" ".join)


def test_columns_are_aligned_money_to_the_right() -> None:
    rows = [["g6.xlarge", "$0.80"], ["p5", "$55.04"]]
    columns = (Column("type"), Column("$/h", right=True))
    assert table(columns, rows, 80) == [
        "type          $/h",
        "g6.xlarge   $0.80",
        "p5         $55.04",
    ]


def test_colour_does_not_move_columns() -> None:
    red = "\x1b[31mab\x1b[0m"
    assert table((Column(), Column()), [[red, "x"], ["abc", "y"]], 80) == [f"{red}   x", "abc  y"]


def test_an_empty_column_is_left_out() -> None:
    columns = (Column("a"), Column("b"), Column("c"))
    assert table(columns, [["1", "", "3"]], 80) == ["a  c", "1  3"]


def test_a_cell_that_may_wrap_gives_way_first() -> None:
    columns = (Column(), Column(wraps=True))
    assert table(columns, [["name", "a long reason that does not fit"]], 26) == [
        "name  a long reason that",
        "      does not fit",
    ]


def test_the_least_needed_column_is_dropped_before_a_line_grows_too_long() -> None:
    columns = (Column("type"), Column("memory", drop=1), Column("network", drop=2))
    rows = [["x" * 10, "y" * 10, "z" * 10]]
    assert list(table_widths(columns, rows, 40)) == [0, 1, 2]
    assert list(table_widths(columns, rows, 33)) == [0, 1]
    assert list(table_widths(columns, rows, 12)) == [0]


def test_parts_flow_and_hang_below_their_label() -> None:
    assert labelled("  needs", ["aaaa", "bbbb", "cccc dddd eeee"], 30, 10) == [
        "  needs   aaaa   bbbb",
        "          cccc dddd eeee",
    ]
    assert labelled("  needs", ["", ""], 30, 10) == []


@given(st.lists(WORDS, max_size=8), st.integers(60, 160), st.integers(0, 20))
def test_no_line_that_flows_is_wider_than_the_terminal(
    parts: list[str], width: int, hang: int
) -> None:
    lines = flow(parts, width, hang)
    assert all(len(line) <= width for line in lines[1:])
    assert all(len(line) <= width - hang for line in lines[:1])
    assert "".join("".join(lines).split()) == "".join("".join(parts).split())


@given(WORDS, st.integers(5, 120))
def test_wrapping_keeps_every_word_and_the_width(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert lines
    assert all(len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=5), st.integers(60, 160))
def test_no_table_is_wider_than_the_terminal(rows: list[tuple[str, str, str]], width: int) -> None:
    columns = (Column(wraps=True), Column(right=True, drop=1), Column(wraps=True))
    assert all(columns_of(line) <= width for line in table(columns, rows, width, "  "))


def test_a_bar_is_as_long_as_its_share_and_never_absent_for_something() -> None:
    assert [bar(value, 10, 8) for value in (0, 0.001, 5, 10)] == ["", "█", "████", "████████"]
    assert bar(1, 0, 8) == ""


def test_long_names_become_letters_with_a_legend() -> None:
    letters = Letters(["tsaol", "karpenter", "tsaol"])
    assert letters.of(["tsaol"]) == "b"
    assert letters.of(["tsaol", "karpenter", "tsaol"]) == "ab"
    assert letters.legend == ["a karpenter", "b tsaol"]
    assert re.fullmatch(r"\(27\)", Letters(f"{n:02}" for n in range(27)).of(["26"]))


def test_lists_and_counts_read_as_sentences() -> None:
    assert [listed(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
    assert [plural(n, "type") for n in (0, 1, 1234)] == ["0 types", "1 type", "1,234 types"]
    assert plural(2, "fits", "fit") == "2 fit"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "$0"), (45.1, "$45.10"), (99.994, "$99.99"), (99.996, "$100"), (22698.4, "$22,698"),
     (-3.5, "−$3.50")],
)  # fmt: skip
def test_money_shows_cents_only_where_they_matter(value: float, shown: str) -> None:
    assert money.amount(value) == shown


def test_an_unknown_price_is_never_a_number() -> None:
    assert money.per_hour(None) == money.per_month(None) == "price unknown"
    assert money.per_hour(1.32) == "$1.32/h"
    assert money.per_month(966.2) == "$966/month"
