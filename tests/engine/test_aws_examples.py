"""The example stacks on a real engine, each from its first preview to nothing."""

from __future__ import annotations

import pytest
from tests.conftest import ROOT
from tests.engine import ours
from tests.engine.stack import Engine

BUCKETS = {
    "dev": "gputier-gputier-dev-123456789012-us-east-1",
    "staging": "gputier-gputier-staging-123456789012-eu-central-1",
    "prod": "gputier-gputier-prod-123456789012-us-east-1",
}


@pytest.mark.parametrize("name", BUCKETS)
def test_an_example_stack_comes_up_stays_as_it_is_and_goes_but_for_its_reports(
    engine: Engine, name: str
) -> None:
    stack = ours.locked(engine, ROOT, name)
    if name == "prod":
        # Its file has a placeholder, which no `up` takes; the next test says so.
        ours.pin(stack, ours.AMI)
    planned = stack.preview()
    assert engine.aws.inventory() == [], "a preview makes nothing"
    made = stack.up()
    assert made.changed == planned.changed, "the preview told what happens"
    assert set(made.changed.values()) == {"create"}
    assert stack.up().changed == {}, "a second deployment has nothing to do"
    assert stack.refresh().changed == {}, "AWS has what was asked for"

    bucket = BUCKETS[name]
    assert made.outputs["kept"] == [f"bucket {bucket}: reports are kept"]
    for workload, entry in ours.read(stack).entries.items():
        shown = made.outputs[workload]
        assert (shown["machine"], shown["usd_per_hour"]) == (
            entry.instance_type,
            pytest.approx(entry.usd_per_hour),
        )
    stack.destroy()
    assert engine.aws.inventory() == [f"bucket {bucket}"], "only what the stack said is kept"


def test_the_placeholder_of_the_production_example_is_previewed_and_deployed_never(
    engine: Engine,
) -> None:
    stack = ours.locked(engine, ROOT, "prod")
    previewed = stack.preview()
    for workload in ours.read(stack).entries:
        assert f"{workload}: ami-00000000000000000 is a placeholder" in previewed.said
    refused = stack.up(fails=True)
    assert "Traceback" not in refused.said
    assert refused.said.count("ami-00000000000000000 is a placeholder") == 4
    assert "--images` pins today's" in refused.said
    assert engine.calls("Create") == []
