"""Our own fleets on the stand-in Google Cloud: they come up, stay and go."""

from __future__ import annotations

from pathlib import Path

from tests.engine.stack import Engine

IMAGES = (
    ("deeplearning-platform-release", "common-cu129-ubuntu-2404-nvidia-580"),
    ("ubuntu-os-accelerator-images", "ubuntu-accelerator-2404-amd64-with-nvidia-580"),
)
PROGRAM = """
import gputier
from gputier.catalog import load
from gputier.gcp import Deployment, deploy
from gputier.lock import current_bundle

FLEETS = {
    "chat": {"purpose": "inference", "gpu": {"models": ["L4"]}, "scale": {"min": 1, "max": 4}},
    "desk": {"purpose": "development", "gpu": {"models": ["L4"]}, "disk": {"data": "200GiB"}},
    "large": {
        "purpose": "training",
        "gpu": {"models": ["H200"], "count": 8},
        "nodes": 2,
        "fabric": "any",
        "capacity": "spot",
    },
}


def planned(name, fields):
    where = {"clouds": ["gcp"], "regions": {"gcp": ["us-central1"]}}
    return gputier.plan(gputier.Workload(**where, **fields), name=name)


bundle = current_bundle()
deploy([Deployment(planned(*fleet), bundle) for fleet in FLEETS.items()], load())
"""


def test_fleets_of_every_shape_come_up_stay_and_leave_their_reports(
    engine: Engine, tmp_path: Path
) -> None:
    folder = tmp_path / "fleets"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: fleets\nruntime: python\n", encoding="utf-8")
    (folder / "__main__.py").write_text(PROGRAM, encoding="utf-8")
    for project, family in IMAGES:
        engine.gcp.publish(project, f"{family}-v1", family)
    stack = engine.stack(folder, config={"gcp:project": "acme"})
    stack.up()
    machines = [machine["name"].rsplit("-", 1)[0] for machine in engine.gcp.found("instances")]
    assert sorted(machines) == ["fleets-dev", "fleets-dev-chat", *["fleets-dev-large"] * 2]
    assert stack.up().changed == {}
    assert stack.refresh().changed == {}
    stack.destroy()
    assert {key.split("/")[0] for key in engine.gcp.inventory()} == {"storage"}
