"""Every stage looks at the machine: run again it changes nothing, whatever ended the first run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from tests.node.stages.box import EBS, Box, Python, changes, done, work
from tests.node.stages.test_network import mega, verbs, with_efa
from tests.node.stages.test_services import CLOUDWATCH, CONTAINER, HOOK, OPS, agent
from tests.node.stages.test_software import KEY, PROXY, TORCH, UBUNTU

from gputier.node import gate
from gputier.node.stages import (
    BY_NAME,
    StageResult,
    Work,
    collectives,
    container_toolkit,
    data,
    fabric,
    framework,
    metrics,
    mirrors,
    packages_extra,
    proxy,
    scratch,
    services,
    ssh_keys,
    workload,
)


class Case(NamedTuple):
    """A stage on a machine that it has work on. `again`: what a reboot brings back to be done."""

    run: Callable[[Work], StageResult]
    box: Callable[[], Box]
    declared: dict[str, Any]
    again: bool = False


def scratch_box() -> Box:
    box = Box()
    box.attach(4)
    return box


def data_box() -> Box:
    box = Box()
    box.attach(1, EBS, 500)
    return box


def sources_box() -> Box:
    box = Box()
    box.files["/etc/apt/sources.list.d/ubuntu.sources"] = UBUNTU
    box.commands |= {"docker", "dnf"}
    return box


def packages_box() -> Box:
    box = Box()
    box.offers["libaio1"] = ()
    return box


def roce_box() -> Box:
    box = verbs(Box(), 8)
    box.files["/usr/local/gib/lib64/libnccl-net.so"] = ""
    return box


def horovod_box() -> Box:
    box = Box()
    box.files["/opt/pytorch/bin/python3"] = ""
    box.pythons["/opt/pytorch/bin/python3"] = Python(packages={"torch": ("2.9.0+cu128", "12.8")})
    return box


def late_efa() -> Box:
    box = with_efa()
    box.modules -= {"efa", "ib_uverbs"}
    return box


def agent_box(name: str) -> Callable[[], Box]:
    def make() -> Box:
        box = Box()
        agent(box, name)
        return box

    return make


def admitted() -> Box:
    box = Box()
    box.commands |= {"docker", "/usr/bin/docker"}
    box.registry.add(str(CONTAINER["image"]))
    done(services.run, work(box, workload="chat", gate=HOOK, container=CONTAINER))
    box.files[gate.READY] = "healthy\n"
    return box


MIRRORS = {"apt": "https://m.corp/ubuntu", "pip": "http://p.corp/simple", "container": "https://h"}
CASES = {
    "scratch": Case(
        scratch.run, scratch_box, {"scratch": {"mount": "/scratch", "count": 4}}, again=False
    ),
    "data": Case(data.run, data_box, {"data": {"mount": "/data", "gib": 500}}),
    "proxy": Case(proxy.run, sources_box, {"proxy": PROXY}),
    "mirrors": Case(mirrors.run, sources_box, {"mirrors": MIRRORS}),
    "packages-extra": Case(packages_extra.run, packages_box, {"packages": ["libaio1"]}),
    "ssh-keys": Case(ssh_keys.run, Box, {"ssh_keys": [KEY]}),
    "container-toolkit": Case(container_toolkit.run, Box, {"container_toolkit": True}, again=True),
    "framework": Case(framework.run, Box, {"framework": TORCH}),
    "collectives": Case(
        collectives.run, horovod_box,
        {"nccl": {"NCCL_DEBUG": "WARN"}, "mpi": "horovod", "framework": TORCH},
    ),
    "fabric": Case(fabric.run, late_efa, {"fabric": {"kind": "efa", "interfaces": 8}}),
    "fabric, roce": Case(
        fabric.run, roce_box, {"cloud": "gcp", "fabric": {"kind": "roce", "interfaces": 8}}
    ),
    "fabric, gpudirect-tcpxo": Case(
        fabric.run, mega,
        {"cloud": "gcp", "fabric": {"kind": "gpudirect-tcpxo", "interfaces": 8}}, again=True,
    ),
    "metrics": Case(metrics.run, agent_box("cloudwatch"), {"metrics": CLOUDWATCH}),
    "metrics, gcp": Case(metrics.run, agent_box("ops-agent"), {"cloud": "gcp", "metrics": OPS}),
    "services": Case(
        services.run, Box,
        {"workload": "chat", "gate": {"kind": "health-endpoint"}, "run": "x", "before_stop": "y"},
        again=True,
    ),
    "workload": Case(
        workload.run, admitted, {"workload": "chat", "gate": HOOK, "container": CONTAINER},
        again=True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_second_run_changes_nothing(case: Case) -> None:
    box = case.box()
    first = done(case.run, work(box, 900.0, **case.declared))
    assert first.ok, first.evidence
    assert first.changed, "the case shows nothing where nothing had to be done"
    since = len(box.calls)
    second = done(case.run, work(box, 900.0, **case.declared))
    assert second.ok, second.evidence
    assert changes(box, since) == []
    assert not second.changed


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_reboot_needs_only_what_a_boot_takes_away(case: Case) -> None:
    box = case.box()
    done(case.run, work(box, 900.0, **case.declared))
    box.reboot()
    if case.run is workload.run:
        box.files[gate.READY] = "healthy\n"
    found = done(case.run, work(box, 900.0, **case.declared))
    assert found.ok, found.evidence
    assert found.changed is case.again


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_command_that_hangs_ends_with_the_stage(case: Case) -> None:
    """Whichever command it is: the stage says what did not end, within its own time."""
    seen = case.box()
    done(case.run, work(seen, 900.0, **case.declared))
    start = len(case.box().calls)
    for call in dict.fromkeys(seen.calls[start:]):
        if call.startswith(("write ", "remove ")):
            continue
        box = case.box()
        box.hangs(call)
        found = done(case.run, work(box, 200.0, **case.declared))
        assert box.clock <= 200.0 + 1.0, call
        assert found.ok or found.evidence, call
        assert found.outcome != "reboot", call


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_command_that_fails_never_leaves_a_stage_without_words(case: Case) -> None:
    seen = case.box()
    done(case.run, work(seen, 900.0, **case.declared))
    start = len(case.box().calls)
    for call in dict.fromkeys(seen.calls[start:]):
        if call.startswith(("write ", "remove ")):
            continue
        box = case.box()
        box.says(call, 1, "", "it went wrong")
        found = done(case.run, work(box, 900.0, **case.declared))
        assert found.evidence, call
        assert found.ok or found.remedy, call


def test_every_stage_of_this_half_has_its_case() -> None:
    mine = {"scratch", "data", "fabric", "proxy", "mirrors", "packages-extra", "ssh-keys",
            "container-toolkit", "framework", "collectives", "metrics", "services",
            "workload"}  # fmt: skip
    assert {name.split(",")[0] for name in CASES} == mine
    assert mine <= set(BY_NAME)
    for name, case in CASES.items():
        module = BY_NAME[name.split(",")[0]].module
        assert case.run.__module__ == f"gputier.node.stages.{module}"
