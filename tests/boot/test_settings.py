"""From a plan to the settings of a boot: what is declared and chosen, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.boot.examples import BUNDLE, STACK, catalog, examples, planned

from gputier.boot import Stack
from gputier.boot.metrics import metrics
from gputier.boot.nccl import BY_FABRIC, P2P_LEVEL, nccl
from gputier.boot.settings import settings
from gputier.boot.stage0 import lines
from gputier.node import fields
from gputier.node import settings as node
from gputier.node.stages import applying
from gputier.plan import WorkloadPlan
from gputier.plan.names import names_of


def of(plan: WorkloadPlan, inline: bool = False) -> dict[str, Any]:
    return json.loads(lines(settings(plan, STACK, BUNDLE, inline)))


def example(name: str) -> dict[str, Any]:
    return of(examples()[name].plan)


def stages(found: dict[str, Any]) -> set[str]:
    return {stage.name for stage in applying(node.read(json.dumps(found)))}


def test_a_group_is_named_as_the_deployment_names_it() -> None:
    gate = example("prod-foundation")["gate"]
    names = names_of("aws", *STACK, "foundation")
    assert (gate["group"], gate["hook"]) == (names.of("group"), names.of("hook"))
    assert (gate["kind"], gate["mode"]) == ("lifecycle-hook", "enforce")


def test_a_lone_machine_has_no_group_to_name() -> None:
    gate = example("aws-alone")["gate"]
    assert gate == {"kind": "file", "mode": "report", "depth": "quick"}


def test_on_google_the_endpoint_has_its_port() -> None:
    gate = example("gcp-one")["gate"]
    assert (gate["kind"], gate["port"]) == ("health-endpoint", node.HEALTH_PORT)


def test_a_burn_in_comes_after_joining() -> None:
    """Before it, the machine is looked at as deep as at standard (docs/boot.md)."""
    plan = planned(gpu={"models": ["L4"]}, clouds=["aws"], validation={"depth": "burn-in"})
    assert of(plan)["gate"]["depth"] == "standard"


@pytest.mark.parametrize("name", examples())
def test_preparing_may_reboot_once(name: str) -> None:
    """An image that brings its driver may have half upgraded it, too."""
    assert example(name)["reboots"] == 1


def test_what_was_declared_arrives_whole() -> None:
    found = example("aws-software")
    assert found["framework"]["name"] == "pytorch"
    assert found["framework"]["version"].startswith("2.9")
    assert found["packages"] == ["htop", "jq"]
    assert found["run"].startswith("set -e\n")
    assert found["proxy"]["http"] == found["proxy"]["https"] == "http://proxy.internal:3128"
    assert "10.0.0.0/8" in found["proxy"]["no_proxy"].split(",")
    assert found["mirrors"]["pip"] == "https://pip.internal/simple"
    assert stages(found) >= {"proxy", "mirrors", "packages-extra", "framework", "ssh-keys",
                             "workload"}  # fmt: skip


def test_a_container_brings_its_toolkit_and_loses_no_argument() -> None:
    plan = planned(
        gpu={"models": ["L4"]}, clouds=["aws"],
        software={"container": {"image": "nginx:1", "args": ["-g", "", "a b"]}},
    )  # fmt: skip
    found = of(plan)
    assert found["container"] == {"image": "nginx:1", "args": ["-g", "", "a b"]}
    assert stages(found) >= {"container-toolkit", "workload"}


def test_a_mirror_of_containers_is_an_address() -> None:
    plan = planned(
        gpu={"models": ["L4"]}, clouds=["aws"],
        software={"mirrors": {"container": "mirror.internal:5000"}},
    )  # fmt: skip
    assert of(plan)["mirrors"] == {"container": "https://mirror.internal:5000"}


def test_disks_are_told_with_what_finds_them() -> None:
    assert example("prod-foundation")["scratch"] == {
        "mount": "/scratch", "filesystem": "xfs", "count": 8,
    }  # fmt: skip
    assert example("gcp-n1")["data"]["mount"] == "/data"
    assert "data" not in example("gcp-one")


def test_a_machine_without_any_of_it_is_asked_for_none_of_it() -> None:
    absent = {"run", "container", "packages", "proxy", "mirrors", "mpi", "framework", "ssh_keys",
              "mig", "fabric", "nccl", "data", "before_stop", "container_toolkit"}  # fmt: skip
    assert not absent & set(example("gcp-one"))


@pytest.mark.parametrize("name", examples())
def test_every_key_is_one_that_a_machine_reads(name: str) -> None:
    found = example(name)
    assert set(found) <= set(node.FIELDS) | fields.sections(node.FIELDS)
    assert not node.read(json.dumps(found)).warnings


def test_an_organisation_before_the_stack_is_dropped() -> None:
    plan = examples()["dev-chat"].plan
    found = settings(plan, Stack("web", "acme/web/dev"), BUNDLE)
    assert found["stack"] == "dev"


def test_inline_says_so() -> None:
    assert of(examples()["gcp-n1"].plan, inline=True)["bundle"]["delivery"] == "inline"


def test_nothing_is_set_for_a_machine_that_was_not_chosen() -> None:
    with pytest.raises(ValueError, match="no machine was chosen"):
        of(planned(gpu={"memory": "80GB"}, max_usd_per_hour=0.1))


# --- NCCL ----------------------------------------------------------------------------------------


def test_every_fabric_that_is_planned_on_a_deployed_cloud_has_its_variables() -> None:
    kinds = {
        row.interconnect for (cloud, _), row in catalog().types.items() if cloud in ("aws", "gcp")
    }
    assert kinds - {"none"} == set(BY_FABRIC)


def test_machines_that_work_alone_are_told_nothing() -> None:
    assert not nccl("none", "p5", 8)
    assert "nccl" not in example("aws-mig")


def test_the_fabric_is_named_so_that_nothing_falls_back_to_tcp_unseen() -> None:
    assert nccl("efa", "p5", 8)["FI_PROVIDER"] == "efa"
    assert nccl("roce", "a4", 8)["NCCL_NET"] == "gIB"
    assert nccl("gpudirect-tcpx", "a3", 8)["NCCL_NET"].startswith("GPUDirectTCPX")
    assert "NCCL_FASTRAK_IFNAME" in nccl("gpudirect-tcpxo", "a3", 8)


def test_device_rdma_of_efa_is_left_to_libfabric() -> None:
    """On types without RDMA read, which g5 is, setting it aborts every rank."""
    assert "FI_EFA_USE_DEVICE_RDMA" not in nccl("efa", "g5", 8)


@pytest.mark.parametrize(("gpus", "level"), [(1, None), (2, "PHB"), (4, "PHB"), (8, "SYS")])
def test_gpus_across_pcie_are_told_how_far_they_may_be_apart(gpus: int, level: str | None) -> None:
    assert nccl("none", "g4", gpus).get("NCCL_P2P_LEVEL") == level == P2P_LEVEL.get(gpus)


# --- metrics -------------------------------------------------------------------------------------


def test_a_group_is_rolled_up_so_that_scaling_can_go_by_it() -> None:
    sent = metrics("aws", grouped=True)["config"]["metrics"]
    assert ["AutoScalingGroupName"] in sent["aggregation_dimensions"]
    assert sent["append_dimensions"]["AutoScalingGroupName"] == "${aws:AutoScalingGroupName}"


def test_a_lone_machine_has_no_group_to_send_for() -> None:
    assert "AutoScalingGroupName" not in json.dumps(metrics("aws", grouped=False))


@pytest.mark.parametrize("cloud", ["aws", "gcp"])
def test_utilisation_temperature_and_memory_of_each_gpu_are_sent(cloud: str) -> None:
    config = json.dumps(metrics(cloud, grouped=True)["config"])
    if cloud == "aws":
        assert all(word in config for word in ("utilization_gpu", "temperature_gpu", "memory_used"))
    else:  # the agent sends utilisation and memory by itself; temperature comes from DCGM alone
        assert '"dcgm"' in config
        assert "gpu.dcgm.temperature" not in config


def test_series_per_process_are_left_out() -> None:
    config = json.dumps(metrics("gcp", grouped=True)["config"])
    assert "agent.googleapis.com/gpu/processes/*" in config


def test_a_cloud_without_an_agent_sends_nothing() -> None:
    assert metrics("azure", grouped=True) == {"agent": "none"}
