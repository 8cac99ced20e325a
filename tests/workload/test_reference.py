"""docs/workload.md is the schema, in words."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from gputier import workload
from gputier.workload import base, declare, reference

KINDS = [kind for _, _, kind in reference.SECTIONS]


def test_every_model_has_a_section() -> None:
    public = [getattr(workload, name) for name in workload.__all__]
    specs = {kind for kind in public if isinstance(kind, type) and issubclass(kind, base.Spec)}
    assert set(KINDS) == specs


def test_the_page_is_what_the_schema_says(generated: Callable[[str, str, str], None]) -> None:
    generated("docs/workload.md", "workload", reference.markdown())


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_field_is_on_the_page(kind: type[base.Spec]) -> None:
    page = reference.markdown()
    for name in kind.model_fields:
        assert re.search(rf"\| `([a-z\[\].]+\.)?{name}` \|", page), name


def test_every_row_says_what_the_field_takes_and_means() -> None:
    rows = [line for line in reference.markdown().splitlines() if line.startswith("| `")]
    assert len(rows) > 90
    for row in rows:
        _, name, takes, _, meaning, _ = re.split(r"(?<!\\)\|", row)
        assert takes.strip(), name
        assert len(meaning.strip()) > 10, name


def test_every_top_level_key_is_on_the_page() -> None:
    for key in declare.KEYS:
        assert f"| `{key}` |" in reference.markdown()


def test_links_lead_to_headings_of_the_page() -> None:
    page = reference.markdown()
    headings = {
        re.sub(r"[^a-z0-9-]", "", h.lower().replace(" ", "-"))
        for h in re.findall(r"^## (.*)$", page, re.MULTILINE)
    }
    assert set(re.findall(r"\]\(#([^)]*)\)", page)) <= headings
