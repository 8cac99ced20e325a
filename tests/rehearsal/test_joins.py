"""A healthy machine joins, behind each of the gates, and only then does its work begin."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.rehearsal.container import Container
from tests.rehearsal.image import Image
from tests.rehearsal.scene import Part, Scene, in_container
from tests.rehearsal.timeline import Timeline, measure

pytestmark = [pytest.mark.rehearsal(seconds=8), pytest.mark.enable_socket]
LIMIT = 120.0
RAN = "/var/lib/workload-ran"


def health(scene: Scene[Container]) -> int:
    """What the health check of a group is answered; 0 while nobody listens."""

    def ask() -> int:
        try:
            with urllib.request.urlopen("http://127.0.0.1:8080/healthz", timeout=5) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    return scene.machine.network.call(ask)


def test_a_machine_of_a_group_at_aws_says_continue_and_then_works(
    image: Image, tmp_path: Path, measured: Callable[[Timeline], None]
) -> None:
    with in_container(image, tmp_path, Part("group")) as scene:
        found = scene.ends("healthy", "CONTINUE", LIMIT)
        assert found.report["schema"] == "gputier/node/1"
        assert scene.machine.wait(lambda: scene.machine.read(RAN) is not None, 20)
        # Its stage looks on for some seconds, to see whether the workload stays up.
        assert scene.machine.wait(lambda: "workload" in [s.name for s in scene.stages()], 30)
        order = [stage.name for stage in scene.stages()]
        assert order.index("validate") < order.index("gate") < order.index("workload")
        assert scene.cloud.autoscaling
        assert scene.cloud.autoscaling.nodes[scene.part.instance].heartbeats >= 1
        assert json.loads(scene.machine.seen("/run/gputier/gate.json") or "{}")["open"]
        measured(measure(scene, scene.machine))


def test_a_machine_of_a_group_at_google_is_503_until_it_is_proved(
    image: Image, tmp_path: Path, measured: Callable[[Timeline], None]
) -> None:
    with in_container(
        image, tmp_path, Part("autohealed", instance="tuner-a1", by="startup-script")
    ) as scene:
        assert scene.machine.wait(lambda: health(scene) == 503, LIMIT), scene.account()
        scene.ends("healthy", "", LIMIT)
        assert scene.machine.wait(lambda: health(scene) == 200, 20), scene.account()
        assert scene.machine.wait(lambda: scene.machine.read(RAN) is not None, 20)
        measured(measure(scene, scene.machine))


def test_a_lone_machine_opens_its_own_gate(image: Image, tmp_path: Path) -> None:
    with in_container(image, tmp_path, Part("lone")) as scene:
        scene.ends("healthy", "", LIMIT)
        assert scene.machine.wait(lambda: scene.machine.read(RAN) is not None, 20), scene.account()
        assert scene.machine.seen("/run/gputier/ready") is not None
