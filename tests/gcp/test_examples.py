"""Whole stacks as they are deployed to Google: every resource, its name and its script."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, cast

import pytest
from tests.gcp import world

from gputier import testing
from gputier.lock import current_bundle

#: What moves with the node's code, and not with a stack.
MOVES = current_bundle().sha256


def plain(value: Any) -> Any:
    """Inputs as the expected output holds them: a script as its digest, the bundle unnamed."""
    if isinstance(value, dict):
        return {key: _of(key, item) for key, item in sorted(cast(dict[str, Any], value).items())}
    if isinstance(value, list):
        return [plain(item) for item in cast(list[Any], value)]
    return value.replace(MOVES, "BUNDLE") if isinstance(value, str) else value


def _of(key: str, value: Any) -> Any:
    if key == "startup-script":
        text = value.replace(MOVES, "BUNDLE")
        return f"sha256 {hashlib.sha256(text.encode()).hexdigest()}"
    if key == "source" and not isinstance(value, str):
        return "the bundle"
    if isinstance(value, str) and value[:1] == "{":
        return plain(json.loads(value))
    return plain(value)


def shown(run: testing.Run) -> str:
    """One block a resource, by type and name."""
    blocks = [
        {
            "type": record.type,
            "name": record.name.replace(MOVES[:12], "BUNDLE"),
            "parent": record.parent,
            "inputs": plain(record.inputs),
            **({"ignores": list(i)} if (i := record.options.ignore_changes) else {}),
            **({"stays": True} if record.options.retain_on_delete else {}),
        }
        for record in run.records
    ]
    return json.dumps(blocks, indent=1, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("stack", world.STACKS)
def test_a_stack_is_deployed_as_expected(stack: str, golden: Callable[[str, str], None]) -> None:
    golden(f"gcp/{stack}.json", shown(world.example(stack)))


@pytest.mark.parametrize("stack", world.STACKS)
def test_no_two_resources_of_a_type_have_the_same_name(stack: str) -> None:
    seen: set[tuple[str, str, str]] = set()
    for record in world.example(stack).records:
        place = record.inputs.get("zone") or record.inputs.get("bucket") or ""
        where = (record.type, record.inputs.get("name") or record.name, place)
        assert where not in seen
        seen.add(where)


@pytest.mark.parametrize("stack", world.STACKS)
def test_nothing_secret_and_nothing_unfilled_is_deployed(stack: str) -> None:
    text = shown(world.example(stack))
    assert not any(f"{{{word}}}" in text for word in ("fleet", "zone", "index", "bucket", "0"))
    assert "Secret" not in text


@pytest.mark.parametrize("stack", world.STACKS)
def test_every_component_says_that_it_is_done(stack: str) -> None:
    for record in world.example(stack).records:
        assert not record.component or record.outputs is not None, record.label


@pytest.mark.parametrize("stack", world.STACKS)
def test_every_part_belongs_to_a_component(stack: str) -> None:
    for record in world.example(stack).records:
        assert record.component or record.parent, record.label


def test_a_region_has_one_network_and_one_bucket_however_many_fleets() -> None:
    run = world.example("prod")
    assert len(run.of_type("gcp:storage/bucket:Bucket")) == 1
    assert len(run.of_type("BucketObject")) == 1
    assert [r.name for r in run.of_type("RouterNat")] == ["us-central1-nat"]


def test_names_are_what_google_takes() -> None:
    for stack in world.STACKS:
        for record in world.example(stack).records:
            name = record.inputs.get("name")
            if record.type.startswith("gcp:compute/") and name:
                assert len(name) <= 63
                assert name == name.lower()
