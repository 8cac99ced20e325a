"""Whatever a file holds, reading it ends in a declaration or in `InvalidInput`, and soon."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputier import errors
from gputier.workload import declare, model, read_config_json, read_text, yaml12

PYDANTIC = ("pydantic", "Input should", "Field required", "Extra inputs", "validation error")
FIELDS = st.sampled_from(
    [
        *model.Workload.model_fields,
        *model.Model.model_fields,
        *model.Gpu.model_fields,
        *model.CapacityChoice.model_fields,
        *model.ScheduleEntry.model_fields,
        *model.Discount.model_fields,
        *declare.KEYS,
        *("secure", "chat", "software"),
    ]
)
WORDS = st.sampled_from(
    [
        *("entry", "aws", "us-east-1", "24GB", "7B", "spot", "H100", "true", "yes", "null", "~"),
        *("0o7", "1e999", "-1", "''", '"0 25 * * *"', "*x", "&x", "<<", "!!int", "!foo", "{}"),
        *("[]", "|", ">", "#", ":", "-", ","),
    ]
)
# What JSON may hold and YAML may not, even in quotes, and what YAML folds as a line break.
PLAIN_TEXT = st.text(
    st.characters(
        exclude_categories=("Cs", "Cc", "Zl", "Zp"), exclude_characters="\ufeff\ufffe\uffff"
    ),
    max_size=60,  # a YAML key has at most 1024 characters, escapes included
).filter(lambda text: text != "<<")
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | PLAIN_TEXT
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(PLAIN_TEXT, inner, max_size=4),
    max_leaves=20,
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | WORDS
NESTED: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(FIELDS | st.text(max_size=8), inner, max_size=5)
    ),
    max_leaves=25,
)


def line(parts: tuple[int, str, str, str]) -> str:
    indent, key, colon, value = parts
    return f"{' ' * indent}{key}{colon}{value}"


LINES = st.lists(
    st.tuples(
        st.integers(0, 8),
        FIELDS | st.text(max_size=5),
        st.sampled_from([": ", ":", " ", "- ", "\t"]),
        WORDS | FIELDS | st.text(max_size=10),
    ).map(line),
    max_size=12,
).map("\n".join)


def survives(read: Callable[[], object]) -> None:
    began = time.process_time()
    problems: tuple[errors.Problem, ...] = ()
    text = ""
    try:
        read()
    except errors.InvalidInput as error:
        problems, text = error.problems, str(error)
    assert time.process_time() - began < 1
    assert not any(word in text for word in PYDANTIC), text
    assert all(problem.message.strip() for problem in problems)


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_any_bytes_are_a_declaration_or_a_problem(data: bytes) -> None:
    survives(lambda: read_text(data, "f.yaml"))


@given(LINES)
def test_any_yaml_like_lines_are_a_declaration_or_a_problem(text: str) -> None:
    survives(lambda: read_text(text, "f.yaml"))


@given(LINES.map(lambda text: text.replace("\t", " ")))
def test_both_parsers_agree_on_what_is_yaml_and_what_it_says(text: str) -> None:
    def outcome(*, pure: bool) -> object:
        try:
            document = yaml12.read(text, "f.yaml", pure=pure)
        except errors.InvalidInput:
            return "no YAML"
        return repr(document.root.plain()), len(document.positions.problems(document.root))

    assert outcome(pure=False) == outcome(pure=True)


@given(st.dictionaries(FIELDS, NESTED, max_size=6))
def test_any_json_is_a_declaration_or_a_problem(value: dict[str, Any]) -> None:
    survives(lambda: read_text(json.dumps(value), "f.json"))


@given(st.dictionaries(FIELDS, NESTED, max_size=8))
def test_any_workload_is_checked_without_a_crash(value: dict[str, Any]) -> None:
    survives(lambda: read_text(json.dumps({"workloads": {"chat": value}}), "f.json"))


@given(NESTED)
def test_any_config_json_is_a_declaration_or_a_problem(value: Any) -> None:
    survives(lambda: read_config_json(json.dumps(value)))
    wrapped = {"gputier:workloads": {"objectValue": value, "secret": False}}
    survives(lambda: read_config_json(json.dumps(wrapped)))


@given(JSON)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_json_reads_as_json(ascii_only: bool, value: Any) -> None:
    document = yaml12.read(json.dumps(value, ensure_ascii=ascii_only), "f.json")
    assert document.positions.problems(document.root) == []
    assert document.root.plain() == value
