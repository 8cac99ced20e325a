"""What `gputier review` reads is what a real engine writes: one change, in all of its formats."""

from __future__ import annotations

import json
from pathlib import Path

from tests.engine.ours import DESK, JOB, declare, locked, project
from tests.engine.stack import Engine, Stack

from gputier.review.merge import with_base
from gputier.review.preview import Preview
from gputier.review.read import read


def exported(stack: Stack) -> Preview:
    done = stack.engine.run(stack.project, "stack", "export", "-s", stack.name)
    return read(done.stdout.encode(), "export")


def told(preview: Preview) -> dict[str, tuple[str, str]]:
    """URN → operation and type of what is not left as it is, the engine's own left out."""
    return {
        urn: (change.op, change.type)
        for urn, change in preview.changes.items()
        if change.op not in ("same", "read") and not change.type.startswith("pulumi:")
    }


def test_one_change_reads_alike_from_every_format(engine: Engine, tmp_path: Path) -> None:
    folder = project(tmp_path, {"dev": {"workloads": {"job": JOB}}})
    stack = locked(engine, folder)
    empty = read(json.dumps(stack.preview_json()).encode(), "digest")
    assert {op for op, _ in told(empty).values()} == {"create"}
    stack.up()
    before = exported(stack)

    declare(stack, {"job": {**JOB, "scale": {**JOB["scale"], "max": 5}}, "desk": DESK})
    saved = tmp_path / "plan.json"
    result = stack.preview("--save-plan", str(saved))
    events = read("\n".join(map(json.dumps, result.events)).encode(), "events")
    digest = read(json.dumps(stack.preview_json()).encode(), "digest")
    plan = with_base(read(saved.read_bytes(), "plan"), before)

    (group,) = [urn for urn in digest.changes if urn.endswith(":Group::job-group")]
    assert told(digest)[group] == ("update", "aws:autoscaling/group:Group")
    assert told(events) == told(digest) == told(plan)
    for found in (events, digest, plan):
        assert found.incomplete is None
        change = found.changes[group]
        assert change.before is not None
        assert (change.before.get("maxSize"), change.state.get("maxSize")) == (3, 5)
        assert list(change.changed) == ["maxSize"]
    assert with_base(digest, before).unlisted == 0
    steps = [urn for urn, change in before.changes.items() if "providers" not in change.type]
    assert digest.unlisted == len([urn for urn in steps if urn not in digest.changes])
    stack.up()
    assert len(exported(stack).changes) > len(before.changes)
