"""No error type of pydantic's is left without words of ours."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gputier.errors import Position, Problem
from gputier.workload import Defaults, Discount, Model, Workload, base, problems
from gputier.workload.complaints import TYPE

# Schema node → the error types that pydantic-core can raise there (pydantic-core's own
# documentation of its error types); nodes that only wrap another add none.
ERRORS_OF_NODE: dict[str, set[str]] = {
    "model": {"model_type"},
    "model-fields": {"missing", "extra_forbidden", "model_attributes_type", "invalid_key"},
    "model-field": set(),
    "default": {"default_factory_not_called"},
    "nullable": set(),
    "function-before": set(),
    "function-after": set(),
    "function-wrap": set(),
    "definitions": set(),
    "definition-ref": {"recursion_loop"},
    "union": set(),
    "int": {"int_type", "int_parsing", "int_parsing_size", "int_from_float"},
    "float": {"float_type", "float_parsing"},
    "str": {"string_type", "string_unicode"},
    "bool": {"bool_type", "bool_parsing"},
    "literal": {"literal_error"},
    "tuple": {"tuple_type", "iteration_error"},
    "dict": {"dict_type", "mapping_type", "iteration_error"},
}
ALL: dict[str, str] = {
    entry["type"]: entry["message_template_python"]
    for entry in importlib.import_module("pydantic_core._pydantic_core").list_all_errors()
}


def nodes(schema: Any) -> Iterator[str]:
    """The type of every node of a core schema."""
    waiting: list[Any] = [schema]
    while waiting:
        here: Any = waiting.pop()
        if not isinstance(here, dict):
            continue
        node = cast("dict[str, Any]", here)
        yield node["type"]
        for key in ("schema", "items_schema", "keys_schema", "values_schema", "choices"):
            inner = node.get(key, [])
            waiting += inner if isinstance(inner, list) else [inner]
        waiting += [*node.get("fields", {}).values(), *node.get("definitions", [])]


@pytest.mark.parametrize("kind", [Workload, Defaults, Discount])
def test_every_error_the_schema_can_raise_has_words_of_its_own(kind: type[base.Spec]) -> None:
    kind.model_rebuild(force=True)
    found = set(nodes(kind.__pydantic_core_schema__))
    assert {"model", "model-fields", "function-wrap", "literal", "tuple"} <= found
    assert found <= set(ERRORS_OF_NODE), "a new kind of node: which errors can it raise?"
    possible = {error for node in found for error in ERRORS_OF_NODE[node]}
    assert possible <= set(ALL), "our table names an error that pydantic does not have"
    assert possible <= set(problems.PLAIN), possible - set(problems.PLAIN)


@pytest.mark.parametrize("kind", sorted(ALL))
def test_no_error_type_ever_shows_pydantics_wording(kind: str) -> None:
    for value in ("x", 5, None, {"a": 1}, [1], float("nan"), object):
        error = problems.of_pydantic(kind, value)
        context = error.context or {}
        text = f"{context['before']}`gpu.count`{context['after']}"
        assert error.type == TYPE
        assert not any(template in text for template in ALL.values())
        assert "{" not in text.replace("{'a'", "")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.frozensets(st.integers(), max_size=2)
        | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.data())
def test_any_value_in_any_field_ends_in_our_words(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([Workload, Defaults, Discount]))
    name = data.draw(st.sampled_from(sorted(kind.model_fields)))
    value = data.draw(VALUES)
    with base.collected():
        try:
            kind.model_validate({name: value})
        except ValidationError as error:
            lines = error.errors()
        else:
            lines = []
    assert {line["type"] for line in lines} <= {TYPE}
    assert "pydantic" not in json.dumps([line.get("ctx") for line in lines], default=str)


def test_steps_that_only_normalisation_made_are_left_out() -> None:
    cases: list[tuple[tuple[str | int, ...], Any, tuple[str | int, ...]]] = [
        (("capacity", 0, "use"), {"capacity": "spot"}, ("capacity",)),
        (("capacity", 0, "count"), {"capacity": {"count": 0}}, ("capacity", "count")),
        (("capacity", 1, "use"), {"capacity": ["a", "b"]}, ("capacity", 1)),
        (
            ("model", "training", "lora_rank"),
            {"model": Model(name="a")},
            ("model", "training", "lora_rank"),
        ),
        (("regions", "azur", "[key]"), {"regions": {"azur": 1}}, ("regions", "azur")),
        (("gpu", "cont"), {"gpu": {}}, ("gpu", "cont")),
        (("budget", "usd_per_month"), {"budget": {}}, ("budget", "usd_per_month")),
    ]
    for loc, data, kept in cases:
        assert problems.written(loc, data)[0] == kept


def test_paths_read_as_a_person_writes_them() -> None:
    assert problems.join("workloads.chat", ("schedule", 0, "start")) == (
        "workloads.chat.schedule[0].start"
    )
    assert problems.join("", ("gpu", "models", 1)) == "gpu.models[1]"
    assert problems.join("discounts[0]", ()) == "discounts[0]"


def test_what_is_told_is_kept_within_reason() -> None:
    short = [Problem("", str(n)) for n in range(500)]
    told = problems.within_reason(short)
    assert len(told) == 101
    assert told[-1].message == "and 400 more problems"
    long = [Problem("", str(n), position=Position("f", 1, 1, "x" * 400_000)) for n in range(9)]
    assert [p.message for p in problems.within_reason(long)] == ["0", "1", "and 7 more problems"]
    assert problems.within_reason(short[:3]) == short[:3]
