"""A node's own calls, against the group that our program made: the names in its user data are
those that AWS has, and what it says has its effect there."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.engine import ours
from tests.engine.ours import JOB, group_of, locked, project, template_of
from tests.engine.stack import Engine
from tests.engine.wire import Props
from tests.node.clouds import CONFIG, HEALTHY, World
from tests.standins.autoscaling import Autoscaling
from tests.standins.object_store import S3
from tests.standins.server import Reply
from tests.standins.signature import error

from gputier.node import gates
from gputier.node import settings as boot

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])
GROUP = "gputier-dev-job"


class InFrontOfMoto(Autoscaling):
    """Auto Scaling's address for a node: signatures and parameters are checked here, and the call
    acts on moto. What moto lacks is that a machine waits for a hook; who waits is known here."""

    def __init__(self, engine: Engine, **more: Any) -> None:
        super().__init__(group=GROUP, **more)
        self.moto: Any = engine.aws.client("autoscaling")

    def _waiting(self, form: Mapping[str, str]) -> Any:
        hooks = self.moto.describe_lifecycle_hooks(
            AutoScalingGroupName=form["AutoScalingGroupName"],
            LifecycleHookNames=[form["LifecycleHookName"]],
        )["LifecycleHooks"]
        if not hooks:
            return error(400, "ValidationError", "no such hook", wrapped=True)
        self.hook = form["LifecycleHookName"]
        return super()._waiting(form)

    def _complete(self, form: Mapping[str, str]) -> Reply | None:
        refusal = super()._complete(form)
        if refusal is None and form["LifecycleActionResult"] == "ABANDON":
            self.moto.terminate_instance_in_auto_scaling_group(
                InstanceId=form["InstanceId"], ShouldDecrementDesiredCapacity=False
            )
        return refusal

    def _suspend(self, form: Mapping[str, str]) -> Reply | None:
        self.moto.suspend_processes(
            AutoScalingGroupName=form["AutoScalingGroupName"],
            ScalingProcesses=[form["ScalingProcesses.member.1"]],
        )
        return super()._suspend(form)


class Node(World):
    """A machine of the deployed group, with the settings that its user data holds."""

    def __init__(self, root: Path, engine: Engine) -> None:
        group = group_of(engine, GROUP)
        instance: str = group["Instances"][0]["InstanceId"]
        super().__init__(root, "aws", instance)
        self.bucket = f"gputier-gputier-dev-{ours.ACCOUNT}-us-east-1"
        self.store = S3(self.bucket, credentials=[self.keys])
        self.autoscaling = InFrontOfMoto(engine, credentials=[self.keys])
        self.autoscaling.launch(instance)
        self.instance = instance
        self.settings = _settings(template_of(engine, group))

    def settle(self, report: dict[str, Any]) -> Any:
        return gates.of(self.settings, self.identity(), self.host).settle(report)


def _settings(template: Props) -> boot.Settings:
    """`/etc/gputier/boot.json` as the machine's first script writes it."""
    script = base64.b64decode(template["UserData"]).decode()
    written = r"^put '?/etc/gputier/boot\.json'?[^\n]*<<'?(\w+)'?\n(.*?)\n\1$"
    found = re.search(written, script, re.MULTILINE | re.DOTALL)
    assert found, "the user data holds no settings"
    return boot.read(found[2])


@pytest.fixture
def node(engine: Engine, tmp_path: Path) -> Iterator[Node]:
    job = {**JOB, "validation": {"gate": "enforce"}}
    stack = locked(engine, project(tmp_path, {"dev": {"workloads": {"job": job}}}))
    stack.up()
    made = Node(tmp_path / "node", engine)
    with ExitStack() as until:
        for service in made.services.values():
            service.start()
            until.callback(service.stop)
        made.write()
        yield made


def test_a_healthy_node_joins_the_group_by_the_names_in_its_user_data(node: Node) -> None:
    settled = node.settle(HEALTHY)
    assert (settled.open, settled.failed, settled.notes) == (True, (), ())
    (said,) = node.autoscaling.calls("CompleteLifecycleAction")
    assert (said["AutoScalingGroupName"], said["InstanceId"]) == (GROUP, node.instance)
    assert said["LifecycleActionResult"] == "CONTINUE"


def test_bad_nodes_are_replaced_by_the_group_until_the_breaker_stops_its_launches(
    node: Node, engine: Engine
) -> None:
    assert node.settle(CONFIG).open is False
    group = group_of(engine, GROUP)
    (second,) = [machine["InstanceId"] for machine in group["Instances"]]
    assert second != node.instance, "another one came in its place"
    assert group["SuspendedProcesses"] == []

    node.new_node(second)
    assert node.settle(CONFIG).open is False
    group = group_of(engine, GROUP)
    assert [found["ProcessName"] for found in group["SuspendedProcesses"]] == ["Launch"]
    assert second not in {machine["InstanceId"] for machine in group["Instances"]}
