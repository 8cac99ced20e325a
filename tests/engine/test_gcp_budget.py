"""A workload over its budget on Google, on a real engine: it is stopped, stays stopped, and is
resumed.

What Google would run is run: the text and the environment of the deployed workflow, against the
same stand-in as the deployment.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.engine.gcp import documents, links
from tests.engine.stack import Engine, Stack
from tests.gcp.workflow import Workflow, message

IMAGES = (
    ("deeplearning-platform-release", "common-cu129-ubuntu-2404-nvidia-580"),
    ("ubuntu-os-accelerator-images", "ubuntu-accelerator-2404-amd64-with-nvidia-580"),
)
PROGRAM = """
import gputier
from gputier.catalog import load
from gputier.gcp import Deployment, deploy
from gputier.lock import current_bundle

BUDGET = {
    "usd_per_month": 500, "action": "scale-to-zero", "billing_account": "012345-6789AB-CDEF01",
}
NIGHTS = {"start": "0 20 * * *", "stop": "0 6 * * *", "timezone": "UTC"}
L4 = {"gpu": {"models": ["L4"]}, "budget": BUDGET}
FLEETS = {
    "chat": {**L4, "purpose": "inference", "scale": {"min": 1, "max": 4}, "schedule": [NIGHTS]},
    "fixed": {**L4, "purpose": "inference", "zones": ["us-central1-a"]},
    "desk": {**L4, "purpose": "development", "schedule": [NIGHTS]},
}


def planned(name, fields):
    where = {"clouds": ["gcp"], "regions": {"gcp": ["us-central1"]}}
    return gputier.plan(gputier.Workload(**where, **fields), name=name)


bundle = current_bundle()
deploy([Deployment(planned(*fleet), bundle) for fleet in FLEETS.items()], load())
"""
AT = "projects/acme"
CHAT = f"{AT}/regions/us-central1/instanceGroupManagers/fleets-dev-chat"
FIXED = f"{AT}/zones/us-central1-a/instanceGroupManagers/fleets-dev-fixed"
SCALER = f"{AT}/regions/us-central1/autoscalers/fleets-dev-chat"
DESK = f"{AT}/zones/us-central1-a/instances/fleets-dev-desk"


@pytest.fixture
def stack(engine: Engine, tmp_path: Path) -> Stack:
    folder = tmp_path / "fleets"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: fleets\nruntime: python\n", encoding="utf-8")
    (folder / "__main__.py").write_text(PROGRAM, encoding="utf-8")
    for project, family in IMAGES:
        engine.gcp.publish(project, f"{family}-v1", family)
    return engine.stack(folder, config={"gcp:project": "acme"})


def spend(engine: Engine, workload: str, usd: float) -> str:
    """The budget of a workload tells its topic, which starts its workflow; says what that did."""
    (budget,) = [
        found
        for found in engine.gcp.found("budgets", "billingbudgets")
        if found["displayName"] == f"fleets-dev-{workload}"
    ]
    topic = budget["notificationsRule"]["pubsubTopic"]
    (trigger,) = [
        found
        for found in engine.gcp.found("triggers", "eventarc")
        if found["transport"]["pubsub"]["topic"] == topic
    ]
    deployed = engine.gcp.get(trigger["destination"]["workflow"], "workflows")
    now = datetime(2026, 12, 15, tzinfo=UTC)
    parts = budget["name"].split("/")
    told = message(usd, budget=parts[-1], account=parts[1])
    text, settings = deployed["sourceContents"], deployed["userEnvVars"]
    return Workflow(text, settings, partial(answered, engine), now).run(told)


def answered(engine: Engine, method: str, args: Mapping[str, Any]) -> Any:
    """What Google does when it is called: the objects of the stand-in."""
    at = documents.method(method).url(args)
    kind, _, verb = method.rpartition(".")
    if verb == "get":
        return engine.gcp.get(at)
    if verb == "patch" and kind.endswith("utoscalers"):
        engine.gcp.set(f"{at}/{args['autoscaler']}", args["body"])
        return None
    does: Mapping[str, Mapping[str, Any]] = {
        "resize": {"targetSize": args.get("size")},
        "stop": {"status": "TERMINATED"},
        "removeResourcePolicies": {"resourcePolicies": []},
    }
    engine.gcp.set(at.rpartition("/")[0], dict(does[verb]))
    return None


def size(engine: Engine, group: str) -> int:
    return engine.gcp.get(group)["targetSize"]


def mode(engine: Engine) -> str:
    return engine.gcp.get(SCALER)["autoscalingPolicy"]["mode"]


def test_fleets_over_their_budgets_are_stopped_stay_so_and_are_resumed_by_a_deployment_that_looks(
    engine: Engine, stack: Stack
) -> None:
    planned = stack.preview()
    assert planned.changed["Workflow chat-stop"] == "create"
    assert stack.up().changed == planned.changed
    assert stack.up().changed == {}
    assert stack.refresh().changed == {}, "what is read back is what was written"
    fixed = size(engine, FIXED)

    for workload in ("chat", "fixed", "desk"):
        assert spend(engine, workload, 500) == "no more is spent than declared"
    assert (mode(engine), engine.gcp.get(DESK)["status"]) == ("ON", "RUNNING")

    hours = engine.gcp.get(DESK)["resourcePolicies"]
    assert [links.name(one) for one in hours]
    for said in ("it is stopped", "it is stopped already"):
        for workload in ("chat", "fixed", "desk"):
            assert spend(engine, workload, 500.01) == said
        assert (size(engine, CHAT), mode(engine), size(engine, FIXED)) == (0, "OFF", 0)
        desk = engine.gcp.get(DESK)
        assert (desk["status"], desk["resourcePolicies"]) == ("TERMINATED", [])

    assert stack.up().changed == {}
    assert (size(engine, CHAT), mode(engine), size(engine, FIXED)) == (0, "OFF", 0)
    assert engine.gcp.get(DESK)["resourcePolicies"] == []

    stack.up("--refresh")
    assert (mode(engine), size(engine, FIXED)) == ("ON", fixed)
    assert engine.gcp.get(DESK)["resourcePolicies"] == hours
    assert stack.up().changed == {}
    stack.destroy()
    assert {key.split("/")[0] for key in engine.gcp.inventory()} == {"storage"}
