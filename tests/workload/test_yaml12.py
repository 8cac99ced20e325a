"""YAML as Pulumi's engine reads it, with positions, and nothing that a file could do to us.

The readings in ENGINE were recorded from pulumi 3.276 (`workspace.LoadProjectStackBytes`, which
reads stack files with Go's yaml.v3) by putting each scalar into a stack's config and printing the
JSON that a program receives.
"""

from __future__ import annotations

import functools
import gc
import time
from collections.abc import Callable
from typing import Any

import pytest

from gputier import errors
from gputier.errors import Position
from gputier.workload import scalars, yaml12

PARSERS = pytest.mark.parametrize("pure", [False, True], ids=["libyaml", "python"])

ENGINE: dict[str, Any] = {
    "0o17": 15,
    "0O17": 15,
    "0b11": 3,
    "1_000": 1000,
    "1__0": 10,
    "1e3": 1000.0,
    "2.50": 2.5,
    "yes": "yes",
    "no": "no",
    "on": "on",
    "off": "off",
    "y": "y",
    "~": None,
    "": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "nULL": "nULL",
    "true": True,
    "True": True,
    "TRUE": True,
    "tRUE": "tRUE",
    "false": False,
    "False": False,
    "FALSE": False,
    "18446744073709551615": 18446744073709551615,
    "18446744073709551616": 1.8446744073709552e19,
    "-9223372036854775808": -9223372036854775808,
    "-9223372036854775809": -9.223372036854775808e18,
    '"on"': "on",
    '"5"': "5",
    "'true'": "true",
    "!!str 5": "5",
    "!!int 5": 5,
    "!!float 5": 5.0,
    "! 5": "5",
    ".5": 0.5,
    "1.": 1.0,
    "+5": 5,
    "-0x10": -16,
    "0x1F": 31,
    "7e9": 7000000000.0,
    "12345678901234567890123": 1.2345678901234568e22,
    "1:30": "1:30",
    "=": "=",
    "1.2.3": "1.2.3",
    "us-east-1": "us-east-1",
    "-": "-",
    "1e400": "1e400",
    "._5": "._5",
    "0x1p-2": "0x1p-2",
    "24GB": "24GB",
    "2026-11-01": "2026-11-01",
}


def read(text: str, *, pure: bool = False) -> yaml12.Document:
    return yaml12.read(text, "f.yaml", pure=pure)


def refused(text: str, *, pure: bool = False) -> errors.Problem:
    with pytest.raises(errors.InvalidInput) as caught:
        read(text, pure=pure)
    (problem,) = caught.value.problems
    return problem


@PARSERS
@pytest.mark.parametrize(("written", "value"), ENGINE.items())
def test_scalars_mean_what_they_mean_to_the_engine(written: str, value: Any, pure: bool) -> None:
    document = read(f"a: {written}\n" if written != "-" else 'a: "-"\n', pure=pure)
    found = document.root.plain()["a"]
    assert (found, type(found)) == (value, type(value))
    assert document.positions.problems(document.root) == []


@pytest.mark.parametrize("word", [".inf", "-.Inf", "+.INF"])
def test_infinity_is_a_float_so_that_a_field_can_refuse_it(word: str) -> None:
    assert abs(float(str(scalars.resolve(word)))) == float("inf")


@pytest.mark.parametrize(
    ("word", "plain"), [("010", "10"), ("0777", "777"), ("-08", "8"), ("0_9", "9"), ("00", "0")]
)
def test_a_leading_zero_is_refused_because_readers_differ_on_it(word: str, plain: str) -> None:
    document = read(f"a: {word}\n")
    (problem,) = document.positions.problems(document.root)
    assert "octal" in problem.message
    assert problem.hint == f'write {plain}, or "{word}" in quotes for text'
    assert problem.position is not None
    assert (problem.position.line, problem.position.column) == (1, 4)


def test_numbers_of_a_million_digits_cost_nothing() -> None:
    began = time.process_time()
    assert isinstance(read(f"a: {'9' * 500_000}\n").root.plain()["a"], str)
    assert time.process_time() - began < 1


@PARSERS
def test_merge_keys_fill_in_and_never_overrule_what_is_written(pure: bool) -> None:
    text = "b: &b {x: 1, y: 2}\nd:\n  <<: *b\n  y: 3\ne:\n  <<: [*b, {z: 9, x: 7}]\n"
    plain = read(text, pure=pure).root.plain()
    assert plain["d"] == {"x": 1, "y": 3}
    assert plain["e"] == {"x": 1, "y": 2, "z": 9}


def test_merging_something_that_is_no_map_is_a_fault() -> None:
    document = read("a:\n  <<: 5\n")
    (problem,) = document.positions.problems(document.root)
    assert problem.message == "`<<` merges a map, or a list of maps, and this is neither"


@PARSERS
def test_json_is_yaml_with_tabs_escapes_and_characters_beyond_16_bits(pure: bool) -> None:
    text = '{\n\t"a":\t"\\ud83d\\ude00 \\/ \\u00e9",\n\t"b": [1, 2.0, true, null, "x\\ty"]\n}\n'
    assert read(text, pure=pure).root.plain() == {
        "a": "😀 / é",
        "b": [1, 2.0, True, None, "x\ty"],
    }


def test_an_empty_file_holds_nothing() -> None:
    for text in ("", "\n", "# only a comment\n", "---\n", "---\n..."):
        assert read(text).root.plain() is None


@PARSERS
def test_positions_of_keys_and_values_are_those_of_the_file(pure: bool) -> None:
    text = "w:\n  chat:\n    gpu: {count: 1, models: [H100,\n      L4]}\n    tags:\n      - a: 1\n"
    positions = read(text, pure=pure).positions
    line = "    gpu: {count: 1, models: [H100,"
    assert positions.key("w.chat.gpu") == Position("f.yaml", 3, 5, line, 3)
    assert positions.at("w.chat.gpu") == Position("f.yaml", 3, 10, line, 1)
    assert positions.at("w.chat.gpu.count") == Position("f.yaml", 3, 18, line, 1)
    assert positions.at("w.chat.gpu.models[1]") == Position("f.yaml", 4, 7, "      L4]}", 2)
    assert positions.at("w.chat.tags[0].a") == Position("f.yaml", 6, 12, "      - a: 1", 1)


def test_a_missing_path_is_placed_at_its_nearest_ancestor() -> None:
    positions = read("w:\n  chat:\n    gpu:\n      count: 1\n").positions
    assert positions.at("w.chat.gpu.memory") == Position("f.yaml", 3, 5, "    gpu:", 3)
    assert positions.at("w.other") == Position("f.yaml", 1, 1, "w:", 1)
    assert positions.at("nothing") is None
    assert positions.has("w.chat.gpu.count")
    assert not positions.has("w.chat.gpu.memory")


def test_keys_with_dots_and_brackets_are_found() -> None:
    positions = read("a.b:\n  c[0]: {d: 1}\na: {b: 2}\n").positions
    assert positions.at("a.b.c[0].d") == Position("f.yaml", 2, 13, "  c[0]: {d: 1}", 1)


def test_a_value_that_came_by_alias_or_merge_is_placed_where_it_is_written() -> None:
    positions = read("x: &x\n  gpu: bad\nw:\n  <<: *x\nv: *x\n").positions
    for path in ("w.gpu", "v.gpu"):
        assert positions.at(path) == Position("f.yaml", 2, 8, "  gpu: bad", 3)


FAULTS: dict[str, tuple[str, str, str]] = {
    "a doubled key": ("a: 1\nb: 2\na: 3\n", "3:1", "key `a` is given twice, first in line 1"),
    "a doubled key in flow": ("x: {a: 1, a: 2}\n", "1:11", "key `a` is given twice"),
    "a number as key": ("1: x\n", "1:1", "key `1` is not text"),
    "true as key": ("true: x\n", "1:1", "key `true` is not text"),
    "nothing as key": ("~: x\n", "1:1", "key `null` is not text"),
    "a custom tag": ("a: !secret x\n", "1:4", "tag `!secret` is not known here"),
    "a custom tag on a map": ("a: !x {b: 1}\n", "1:4", "tag `!x` is not known here"),
    "binary": ("a: !!binary aGk=\n", "1:4", "tag `!!binary` is not known here"),
    "a python object": (
        "a: !!python/object/apply:os.system [ls]\n",
        "1:4",
        "tag `!!python/object/apply:os.system` is not known here",
    ),
    "a tag that does not fit": ("a: !!int five\n", "1:4", "`five` is no int"),
    "a bool that is none": ("a: !!bool yes\n", "1:4", "`yes` is no bool"),
}


@PARSERS
@pytest.mark.parametrize(("text", "where", "message"), FAULTS.values(), ids=FAULTS.keys())
def test_faults_stay_with_the_part_they_stand_in(
    text: str, where: str, message: str, pure: bool
) -> None:
    document = read(text, pure=pure)
    (problem,) = document.positions.problems(document.root)
    assert problem.position is not None
    assert f"{problem.position.line}:{problem.position.column}" == where
    assert message in problem.message


BROKEN: dict[str, tuple[str, str, str]] = {
    "a tab": ("a:\n\tb: 1\n", "2:1", "a tab indents this line; YAML takes only spaces"),
    "a second colon": ("a: b: c\n", "1:5", "`:` does not fit here"),
    "an open list": ("a: [1, 2\nb: 3\n", "1:4", "the list that begins with `[` is not closed"),
    "an open map": ("a: {x: 1\n", "1:4", "the map that begins with `{` is not closed"),
    "an open quote": ('a: "foo\nb: 1\n', "1:4", "a quotation mark is never closed"),
    "an open single quote": ("a: 'foo\n", "1:4", "a quotation mark is never closed"),
    "less indentation": (" a: 1\nb: 2\n", "2:1", "this does not fit the lines above"),
    "a list and a map": ("- a\nb: 1\n", "2:1", "this does not fit the lines above"),
    "text after a quote": ("a: 'x' y\n", "1:8", "this does not fit the lines above"),
    "an at sign": ("a: @x\n", "1:4", "`@` cannot begin a value"),
    "a backtick": ("a: `x`\n", "1:4", "a backtick cannot begin a value"),
    "a closing brace": ("{a: 1}}\n", "1:7", "`}` closes nothing that was opened"),
    "a list on the key's line": ("a: - b\n", "1:4", "a list cannot begin on the line of its key"),
    "a block that is none": ("a: >x\n", "1:5", "the text after `|` or `>`"),
    "an unknown tag handle": ("!t!x a\n", "1:1", "a tag is not understood here"),
    "an alias without anchor": ("a: *x\n", "1:4", "alias `*x` has no anchor"),
    "an alias in its anchor": ("a: &x [*x]\n", "1:8", "alias `*x` stands inside its own anchor"),
    "a list as key": ("? [1]\n: 2\n", "1:3", "a key must be text, not a list or a map"),
    "a second document": ("a: 1\n---\nb: 2\n", "2:1", "a second document begins here"),
    "a version to come": ("%YAML 2.0\n---\na\n", "1:1", "a line that begins with %"),
}


@PARSERS
@pytest.mark.parametrize(("text", "where", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_what_is_no_yaml_is_refused_in_our_words_by_both_parsers(
    text: str, where: str, message: str, pure: bool
) -> None:
    problem = refused(text, pure=pure)
    assert problem.position is not None
    assert f"{problem.position.line}:{problem.position.column}" == where
    assert message in problem.message


def test_half_a_character_is_replaced_and_refused_where_it_stands() -> None:
    document = read('a: "x\\ud800y"', pure=True)
    (problem,) = document.positions.problems(document.root)
    assert document.root.plain() == {"a": "x�y"}
    assert problem.message == "an escape here is half a character"


@PARSERS
@pytest.mark.parametrize("text", ['a: "\\q"', 'a: "\\ud800"', 'a: "\\UFFFFFFFF"', "%FOO\n"])
def test_odd_escapes_and_directives_are_a_problem_and_no_crash(text: str, pure: bool) -> None:
    try:
        document = read(text, pure=pure)
    except errors.InvalidInput:
        return
    assert document.positions.problems(document.root)


def test_text_that_is_no_utf8_is_refused_with_the_byte_and_its_place() -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        yaml12.decode("a: 1\nb: 'é'\n".encode("latin-1"), "f.yaml")
    (problem,) = caught.value.problems
    assert problem.message == "byte 0xe9 does not belong in a text file"
    assert problem.position is not None
    assert (problem.position.line, problem.position.column) == (2, 5)


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert yaml12.decode(b"\xef\xbb\xbfa: 1\n", "f") == "a: 1\n"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-16-le"])
def test_utf16_is_refused(encoding: str) -> None:
    data = "a: 1\n".encode(encoding)
    with pytest.raises(errors.InvalidInput, match=r"UTF-16|control character U\+0000"):
        yaml12.read(yaml12.decode(data, "f"), "f")


@pytest.mark.parametrize("character", ["\0", "\x07", "\x1b", "\x7f", "\ufffe"])
def test_control_characters_are_refused_with_their_place(character: str) -> None:
    problem = refused(f"a: 1\nb: x{character}y\n")
    assert problem.message.startswith(f"control character U+{ord(character):04X}")
    assert problem.position is not None
    assert (problem.position.line, problem.position.column) == (2, 5)


def laughs(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    for n in range(1, levels):
        refs = ", ".join([f"*a{n - 1}"] * 9)
        lines.append(f"a{n}: &a{n} [{refs}]")
    return "\n".join(lines)


HEAVY: dict[str, tuple[Callable[[], str], str]] = {
    "a billion laughs": (lambda: laughs(30), "more than 20,000 values, its aliases counted"),
    "too many values": (lambda: f"[{'1,' * 30_000}1]", "more than 20,000 values"),
    "too deep in flow": (lambda: "[" * 100_000, "nested more than 64 levels deep"),
    "too deep in maps": (lambda: "{a: " * 100_000, "nested more than 64 levels deep"),
    "too deep in blocks": (
        lambda: "".join(f"{' ' * n}a:\n" for n in range(1000)),
        "nested more than 64 levels deep",
    ),
    "too deep by aliases": (
        lambda: "\n".join(["a0: &a0 [x]"] + [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 90)]),
        "nested more than 64 levels deep",
    ),
    "too many bytes": (lambda: "a: " + "x" * 2**20, "at most 1 MiB"),
    "too many bytes in few characters": (lambda: "a: " + "😀" * 2**18, "at most 1 MiB"),
}


def seconds(work: Callable[[], object]) -> float:
    """CPU time, the least of three: a collection of what other tests left is not this one's."""
    found: list[float] = []
    gc.disable()
    for _ in range(3):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    gc.enable()
    return min(found)


@functools.cache
def seconds_of_the_largest_file_allowed(pure: bool) -> float:
    """What is measured against: a bound in seconds would be about the machine and its tracing."""
    text = f"[{'1,' * 19_900}1]"
    return seconds(lambda: yaml12.read(text, "f", pure=pure))


@PARSERS
@pytest.mark.parametrize(("make", "message"), HEAVY.values(), ids=HEAVY.keys())
def test_a_file_made_to_hurt_is_refused_at_once(
    make: Callable[[], str], message: str, pure: bool
) -> None:
    text, allowed = make(), seconds_of_the_largest_file_allowed(pure)
    taken = seconds(lambda: refused(text, pure=pure))
    assert taken < 3 * allowed + 0.5, "a hostile file must not hold anybody up"
    assert message in refused(text, pure=pure).message


def test_depth_is_counted_exactly() -> None:
    assert read("[" * 63 + "1" + "]" * 63).root.height == 64
    assert read("[" * 64 + "]" * 64).root.height == 64
    assert "64 levels" in refused("[" * 64 + "1" + "]" * 64).message
    assert "64 levels" in refused("[" * 65 + "]" * 65).message
