"""Files of a plan that this bundle cannot read: wrong on every new node, so the cloud is told.

A launch hook that hears nothing gives the node back after its timeout, and the next one comes: for
money, without a report, and without a count that ever stops it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.node.clouds import INSTANCE, World
from tests.node.clouds import world as started
from tests.standins.autoscaling import TERMINATING

from gputier.node import settings

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])
SETTINGS: dict[str, Any] = {
    "schema": settings.SCHEMA,
    "project": "main",
    "stack": "prod",
    "workload": "tuner",
    "cloud": "aws",
    "gate": {"kind": "lifecycle-hook", "mode": "enforce", "group": "tuner", "hook": "tuner-launch"},
    "driver": {"source": "prebaked"},
}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with started(tmp_path, "aws") as made:
        yield made


def boot(world: World, expect: dict[str, Any], **more: Any) -> subprocess.CompletedProcess[str]:
    """A boot as systemd starts it, each stage a process of its own."""
    world.host.write("/etc/gputier/expect.json", json.dumps(expect))
    world.host.write("/etc/gputier/boot.json", json.dumps({**SETTINGS, **more}))
    environment = {**os.environ, "GPUTIER_SYSROOT": str(world.host.root)}
    argv = [sys.executable, "-m", "gputier.node", "boot"]
    return subprocess.run(
        argv, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize(
    ("expect", "more", "named"),
    [
        ({"gpu": {"count": "many"}}, {}, "gpu.count"),
        ({"gpu": {"count": 1}}, {"fabric": {"kind": "of-next-year"}}, "fabric.kind"),
        ({"gpu": {"count": "many"}}, {"fabric": {"kind": "of-next-year"}}, "fabric.kind"),
    ],
    ids=["expectation", "settings", "both"],
)
def test_what_cannot_be_read_is_reported_counted_and_given_up(
    world: World, expect: dict[str, Any], more: dict[str, Any], named: str
) -> None:
    done = boot(world, expect, **more)
    assert done.returncode == 30, done.stderr
    (key,) = world.store.keys("reports/tuner/")
    report = world.store.json(key)
    assert (report["outcome"], report["causes"]) == ("config", ["stage-settings"])
    assert named in report["checks"][0]["evidence"]
    (node,) = world.store.json("breaker/tuner.json")["nodes"]
    assert (node["instance"], node["reason"]) == (INSTANCE, "stage-settings@preparation")
    assert world.autoscaling.nodes[INSTANCE].state == TERMINATING
