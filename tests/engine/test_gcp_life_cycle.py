"""A small fleet on Google Cloud: created, unchanged, drifted, updated, replaced, deleted."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.engine.conftest import PROGRAMS
from tests.engine.stack import Engine, PulumiFailed, Stack
from tests.engine.wire import Props

GROUP = "RegionInstanceGroupManager machines"
TEMPLATE = "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate"


def fleet(engine: Engine, config: dict[str, str] | None = None) -> Stack:
    google = {"gcp:project": "acme", "gcp:region": "us-central1"}
    return engine.stack(PROGRAMS / "google", config={**google, **(config or {})})


def only(engine: Engine, kind: str) -> Props:
    (found,) = engine.gcp.found(kind)
    return found


def test_a_fleet_is_made_stays_as_it_is_and_leaves_nothing(engine: Engine) -> None:
    stack = fleet(engine)
    planned = stack.preview()
    assert set(planned.changed.values()) == {"create"}
    assert planned.outputs["zones"] == [f"us-central1-{letter}" for letter in "abcf"]
    assert engine.gcp.inventory() == [], "a preview makes nothing"

    made = stack.up()
    assert made.changed == planned.changed
    group = only(engine, "instanceGroupManagers")
    assert made.outputs["group"] == group["instanceGroup"]
    assert group["targetSize"] == 1, "the autoscaler's least"
    (machine,) = [m for m in engine.gcp.found("instances") if m["name"].startswith("gpu-")]
    assert machine["labels"]["goog-pulumi-provisioned"] == "true"
    assert made.outputs["address"] == "198.51.100.1"
    assert made.outputs["project"] == "acme"
    assert made.outputs["image"].endswith("/debian-12-bookworm-v20260114")

    assert stack.up().changed == {}
    assert stack.refresh().changed == {}
    assert stack.up("--refresh").changed == {}
    stack.destroy()
    assert engine.gcp.inventory() == []


def test_a_refresh_finds_what_was_changed_by_hand_and_up_puts_it_back(engine: Engine) -> None:
    stack = fleet(engine)
    stack.up()
    firewall, group = only(engine, "firewalls"), only(engine, "instanceGroupManagers")
    engine.gcp.set(firewall["selfLink"], {"sourceRanges": ["0.0.0.0/0"]})
    engine.gcp.set(group["selfLink"], {"updatePolicy": {"type": "OPPORTUNISTIC"}})
    engine.gcp.remove(only(engine, "autoscalers")["selfLink"])
    assert stack.up().changed == {}, "without a refresh the record is what counts"
    found = stack.refresh()
    assert found.changed == {
        "Firewall inside": "update",
        GROUP: "update",
        "RegionAutoscaler load": "delete",
    }
    assert found.step(GROUP).diff == {"updatePolicy.type": "update"}
    assert stack.up().changed == {**found.changed, "RegionAutoscaler load": "create"}
    assert only(engine, "firewalls")["sourceRanges"] == ["35.235.240.0/20"]


def test_a_size_that_the_autoscaler_set_is_left_alone(engine: Engine) -> None:
    stack = fleet(engine)
    stack.up()
    group = only(engine, "instanceGroupManagers")
    engine.gcp.set(group["selfLink"], {"targetSize": 3})
    stack.refresh()
    stack.configure({"most": "6"})
    assert stack.up().changed == {"RegionAutoscaler load": "update"}
    assert only(engine, "instanceGroupManagers")["targetSize"] == 3


def test_a_new_template_is_made_before_the_old_one_goes(engine: Engine) -> None:
    stack = fleet(engine)
    stack.up()
    before = only(engine, "instanceTemplates")["name"]
    stack.configure({"disk": "100"})
    planned = stack.preview()
    step = planned.step("RegionInstanceTemplate machine")
    assert (step.op, step.replaced_for) == ("replace", ("disks",))
    assert planned.changed == {"RegionInstanceTemplate machine": "replace", GROUP: "update"}
    assert stack.up().changed == planned.changed
    after = only(engine, "instanceTemplates")
    assert after["name"] != before
    assert after["properties"]["disks"][0]["initializeParams"]["diskSizeGb"] == "100"
    version, *_ = only(engine, "instanceGroupManagers")["versions"]
    assert version["instanceTemplate"] == after["selfLink"]
    deleted = [rpc.token for rpc in engine.calls("Delete")]
    assert deleted == [TEMPLATE]


def test_a_name_that_the_program_chose_is_taken_until_the_old_one_is_gone(engine: Engine) -> None:
    stack = fleet(engine, {"name": "fixed"})
    stack.up()
    stack.configure({"disk": "100"})
    with pytest.raises(PulumiFailed, match=r"is already being used by .*instanceGroupManagers"):
        stack.up()


def test_what_google_alone_can_tell_fails_when_it_is_made(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "wrong"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: wrong\nruntime: python\n", encoding="utf-8")
    (folder / "__main__.py").write_text(
        """
import pulumi_gcp as gcp

where = {"region": "us-central1"}
gcp.compute.Subnetwork("s", network="gone", ip_cidr_range="10.0.0.0/24", **where)
gcp.storage.BucketObject("o", bucket="gone", content="x")
""",
        encoding="utf-8",
    )
    stack = engine.stack(folder, config={"gcp:project": "acme"})
    stack.preview()
    said = stack.up("--continue-on-error", fails=True).said
    for why in ("networks/gone' was not found", "b/gone' was not found"):
        assert why in said, said


def test_a_failure_that_a_test_asks_for_is_google_s_and_the_next_run_makes_the_rest(
    engine: Engine,
) -> None:
    stack = fleet(engine)
    engine.fail_once("gcp:compute/router:Router", "create", "Quota 'ROUTERS' exceeded")
    with pytest.raises(PulumiFailed, match="Quota 'ROUTERS' exceeded"):
        stack.up()
    assert "Router out" in stack.up().changed
    assert stack.up().changed == {}
