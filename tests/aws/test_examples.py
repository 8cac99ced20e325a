"""The example stacks as they are deployed: every resource, its name and its user data."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from typing import Any, cast

import pulumi
import pytest
from tests.aws import world

from gputier import testing
from gputier.lock import current_bundle

STACKS = ("dev", "staging", "prod")
#: What moves with the node's code, and not with a stack.
MOVES = current_bundle().sha256


def plain(value: Any) -> Any:
    """Inputs as the expected output holds them: user data as its digest, the bundle unnamed."""
    if isinstance(value, dict):
        return {key: _of(key, item) for key, item in sorted(cast(dict[str, Any], value).items())}
    if isinstance(value, list):
        return [plain(item) for item in cast(list[Any], value)]
    if isinstance(value, pulumi.AssetArchive):
        return sorted(value.assets)
    return value.replace(MOVES, "BUNDLE") if isinstance(value, str) else value


def _of(key: str, value: Any) -> Any:
    if key in ("userData", "userDataBase64"):
        text = base64.b64decode(value).decode().replace(MOVES, "BUNDLE")
        return f"sha256 {hashlib.sha256(text.encode()).hexdigest()}"
    if key in ("source", "sourceHash"):
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


@pytest.mark.parametrize("stack", STACKS)
def test_an_example_is_deployed_as_expected(stack: str, golden: Callable[[str, str], None]) -> None:
    golden(f"aws/{stack}.json", shown(world.example(stack)))


@pytest.mark.parametrize("stack", STACKS)
def test_no_two_resources_of_a_type_have_the_same_name(stack: str) -> None:
    seen: set[tuple[str, str]] = set()
    for record in world.example(stack).records:
        where = (record.type, record.inputs.get("name") or record.name)
        assert where not in seen
        seen.add(where)


@pytest.mark.parametrize("stack", STACKS)
def test_nothing_secret_and_nothing_unfilled_is_deployed(stack: str) -> None:
    text = shown(world.example(stack))
    assert not any(f"{{{word}}}" in text for word in ("group", "instance", "bucket", "account"))
    assert "Secret" not in text
