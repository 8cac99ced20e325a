"""docs/boot.md lists what the tables hold, and each incident has its test or its reason."""

# ruff: noqa: E501 (tables, one row a line)
from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.schemas import Schemas
from tests.node.booting import Booting, passes
from tests.node.test_docs import table

from gputier.node import settings, stages, timeline
from gputier.node.stages import ok

Generated = Callable[[str, str, str], None]
PAGE = "docs/boot.md"

# Number → thread, what happened. 1 to 9 are about disks, 10 to 25 packages and drivers, 26 to 40
# NVSwitch, MIG and containers, 41 to 49 the network, 50 to 65 hardware and what judges it, 66 to 70
# gates.
INCIDENTS: dict[int, tuple[str, str]] = {
    1: ("awslabs/amazon-eks-ami#2755", "a stop wiped the local disks, and a marker said that the array exists"),
    2: ("awslabs/amazon-eks-ami#2386", "making the array hangs"),
    3: ("scylladb/scylladb#6184", "a set-up that runs once, guarded by a file"),
    4: ("aws/opsworks-cookbooks#188", "the array comes back as md127"),
    5: ("elastic/ansible-elastic-cloud-enterprise#105", "no mdadm; data silently on the root disk"),
    6: ("projectatomic/container-storage-setup#278", "names moved, and the wrong disk was wiped"),
    7: ("NixOS/nixops-aws#45", "volumes swap names at a reboot"),
    8: ("DataBiosphere/toil#2252", "the root volume taken for scratch"),
    9: ("hashicorp/terraform-provider-aws#4864", "another order of devices each time"),
    10: ("danvk/mapsnap#443", "three tries of apt inside one unattended upgrade"),
    11: ("Azure/aks-engine#1538", "the same while a driver is installed"),
    12: ("skypilot-org/skypilot#554", "the same; on by default on AWS and Azure"),
    13: ("forseti-security/terraform-google-forseti#286", "the same in a start-up script"),
    14: ("lyulyul/shine-cluster#30", "driver/library version mismatch days after the boot"),
    15: ("pando85/homelab#4110", "the same on a Kubernetes node"),
    16: ("NVIDIA/nvidia-docker#804", "the driver is gone after the reboot that an upgrade asked for"),
    17: ("GoogleCloudPlatform/compute-gpu-installation#10", "a driver taken for present because its file exists"),
    18: ("PierreBeucher/cloudypad#179", "no /dev/nvidia* after an unattended kernel upgrade"),
    19: ("NVIDIA/nvidia-docker#137", "nouveau took the card first"),
    20: ("NVIDIA/gpu-driver-container#44", "Secure Boot and an unsigned module"),
    21: ("linux-surface/linux-surface#906", "Key was rejected by service"),
    22: ("negativo17/nvidia-driver#158", "the open module on a card before Turing"),
    23: ("Start9Labs/start-technologies#3465", "the proprietary module on Blackwell"),
    24: ("skypilot-org/skypilot#9639", "one image for V100 and B200"),
    25: ("anomixer/proxmox-vgpu-installer#29", "a branch that forgot the card"),
    26: ("pytorch/pytorch#35710", "CUDA error 802: no Fabric Manager"),
    27: ("aws-samples/aws-deep-learning-ami-ubuntu-dcv-desktop#33", "the set-up script did not install it"),
    28: ("huggingface/huggingface_hub#4128", "802 on every job: the host's fabric"),
    29: ("wilicc/gpu-burn#92", "versions mixed by driver swaps"),
    30: ("jax-ml/jax#34113", "an error that does not name Fabric Manager"),
    31: ("NVIDIA/gpu-operator#544", "Fabric Manager and driver of two versions"),
    32: ("NVIDIA/gpu-driver-container#735", "a version pattern took a newer branch"),
    33: ("NVIDIA/gpu-driver-container#908", "Fabric Manager down and nobody looks"),
    34: ("Azure/azhpc-images#365", "Fabric Manager loses a race at the start"),
    35: ("NVIDIA/gpu-operator#610", "Fabric Manager where there is no NVSwitch"),
    36: ("NVIDIA/mig-parted#181", "in use by another client, and no process to be seen"),
    37: ("NVIDIA/gpu-operator#118", "the persistence daemon holds the GPU"),
    38: ("NVIDIA/mig-parted#9", "applied successfully, but nothing changed"),
    39: ("Azure/AgentBaker#2508", "no MIG layout, and the job ran on the CPU"),
    40: ("NVIDIA/nvidia-container-toolkit#48", "containers lose their GPUs after a daemon-reload"),
    41: ("aws/aws-ofi-nccl#663", "EFA between machines of a security group that does not name itself"),
    42: ("gardener/gardener-extension-provider-aws#1832", "the same, although all egress is allowed"),
    43: ("awslabs/awsome-distributed-ai#546", "why: EFA's packets are not IP"),
    44: ("ofiwg/libfabric#11256", "the same in fi_pingpong"),
    45: ("ofiwg/libfabric#12708", "NCCL silently on TCP: one mlx5 device takes EFA's provider away"),
    46: ("amzn/amzn-drivers#308", "efa built against Mellanox OFED"),
    47: ("NVIDIA/nccl#229", "sockets although the fabric works: no plugin"),
    48: ("canonical/cloud-init#4085", "metadata.google.internal cannot be resolved yet"),
    49: ("Mirantis/ceph-lcm#50", "work that begins before the network"),
    50: ("NVIDIA/open-gpu-kernel-modules#446", "the card's own processor (GSP) hangs, and every tool with it"),
    51: ("Azure/azurehpc#714", "the health check itself hung, and the cause was never known"),
    52: ("NVIDIA/open-gpu-kernel-modules#507", "Xid 79: a GPU fell off the bus"),
    53: ("aws/eks-node-monitoring-agent#245", "a failed row remap that nobody watched; jobs came out wrong"),
    54: ("awslabs/awsome-distributed-ai#1190", "Xid 64 was reset, and is a reason to give the card back"),
    55: ("NVIDIA/NVSentinel#1826", "DCGM's codes copied by hand, and wrongly"),
    56: ("leptonai/gpud#987", "healthy nodes condemned for errors that were repaired"),
    57: ("NVIDIA/DCGM#198", "level 2 passes with every NVLink down"),
    58: ("NVIDIA/DCGM#284", "no memory for the memory test, and a pass"),
    59: ("NVIDIA/DCGM#272", "DCGM's own bandwidth test fails right behind its burn"),
    60: ("aws/aws-k8s-tester#806", "DCGM fails a type whose link is narrow by design"),
    61: ("pytorch/pytorch#162531", "green for months: the driver was too old, and all ran on the CPU"),
    62: ("sgl-project/sglang#11395", "a driver older than the wheel, and the CPU instead"),
    63: ("pytorch/pytorch#167244", "CUDA is there, and the first kernel has no image for the card"),
    64: ("Comfy-Org/ComfyUI#16438", "the same: CUDA 13 has forgotten the V100"),
    65: ("NVIDIA/nccl-tests#212", "a bandwidth judged with messages that are too small"),
    66: ("runatlantis/terraform-gce-atlantis#208", "an autohealer with less patience than a boot needs"),
    67: ("convox/rack#1389", "in service before its set-up had ended"),
    68: ("PrairieLearn/PrairieLearn#15586", "the hook's answer was lost once, and the node hung until its timeout"),
    69: ("GoogleCloudPlatform/cluster-toolkit#5917", "NVML waited for, without a limit"),
    70: ("GoogleCloudPlatform/cluster-toolkit#3673", "DCGM left out by accident"),
}  # fmt: skip
# What no boot script can prevent or name.
WHY_NOT: dict[int, str] = {
    59: "DCGM's bandwidth test is of level 3, which decides about no node: what a plan wants as a burn-in is judged as `standard` before joining, and bandwidth by a test of our own, run alone",
}


def named(name: str) -> set[int]:
    """The incidents that a test's name is about: `incidents_10_to_13_…`, `incident_16_…`."""
    found = re.search(r"incidents?_(\d+(?:_(?:to_)?\d+)*)_", name)
    if not found:
        return set()
    first, *rest = found[1].split("_")
    numbers, upto = {int(first)}, False
    for word in rest:
        if word == "to":
            upto = True
            continue
        numbers |= set(range(max(numbers) if upto else int(word), int(word) + 1))
        upto = False
    return numbers


def tried(root: Path) -> dict[int, list[str]]:
    """The tests of each incident, by the file they are in."""
    found: dict[int, list[str]] = {}
    for path in sorted((root / "tests").rglob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                for number in named(node.name):
                    found.setdefault(number, []).append(f"{path.stem}: {node.name[5:]}")
    return found


def rows(root: Path) -> Iterator[tuple[str, ...]]:
    known = tried(root)
    for number, (thread, words) in INCIDENTS.items():
        where = "<br>".join(f"`{name}`" for name in known.get(number, ()))
        yield str(number), thread, words, where or WHY_NOT[number]


def test_every_incident_has_a_test_or_a_reason(root: Path) -> None:
    known = tried(root)
    assert [n for n in INCIDENTS if n not in known and n not in WHY_NOT] == []
    assert [n for n in WHY_NOT if n in known] == []


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("test_incident_16_x", {16}),
        ("test_incidents_10_to_13_a_lock", {10, 11, 12, 13}),
        ("test_incidents_26_27_31_32_all", {26, 27, 31, 32}),
        ("test_nothing_16_of_it", set[int]()),
    ],
)
def test_the_numbers_are_read_from_the_names(name: str, numbers: set[int]) -> None:
    assert named(name) == numbers


def test_the_incidents_are_listed(generated: Generated, root: Path) -> None:
    head = ("", "thread", "what happened", "tried in")
    generated(PAGE, "incidents", table(head, *rows(root)))


def test_the_settings_are_documented(generated: Generated) -> None:
    found = [(f"`{path}`", kind.phrase, words) for path, (kind, words) in settings.FIELDS.items()]
    generated(PAGE, "settings", table(("key", "value", "meaning"), *found))


def test_the_stages_are_documented(generated: Generated) -> None:
    found = [
        (
            f"`{stage.name}`" if not i else "",
            stage.title if not i else "",
            f"{limit.seconds:g} s" + (f", {limit.words}" if limit.words else ""),
            limit.why,
        )
        for stage in stages.STAGES
        for i, limit in enumerate(stage.limits)
    ]
    generated(PAGE, "stages", table(("stage", "what it brings about", "limit", "why"), *found))


def example() -> Booting:
    machine = Booting(driver={"source": "prebaked"}, run="python3 serve.py")
    words = "nothing upgrades unattended, 14 packages newly held"
    machine.scripts["packages"] = passes(12.0, ok(words, changed=True))
    machine.scripts["driver"] = passes(
        2.0, ok("driver 535.183.01, proprietary module, 1 GPUs answer")
    )
    machine.scripts["persistence"] = ok("on already")
    machine.scripts["workload"] = ok("gputier-workload.service runs", changed=True)
    assert machine.boot() == 0
    return machine


def test_the_timeline_is_shown(generated: Generated) -> None:
    text = timeline.text(timeline.read(example()))
    generated(PAGE, "timeline", f"```\n{text}```")


def test_what_the_timeline_prints_is_what_is_documented(root: Path) -> None:
    schemas = Schemas(root / "docs" / "schemas.json")
    document: Any = json.loads(timeline.to_json(timeline.read(example())))
    assert not list(schemas.problems(document, schemas.documents[timeline.SCHEMA]))
