"""The boot of a machine: what is declared arrives, what is left open is decided, and how it
proves itself."""

from __future__ import annotations

from typing import Any

import pytest
from tests.plan.world import of, planned

from gputier.catalog import load
from gputier.plan import BootPlan, FrameworkPlan
from gputier.plan.boot import plan_boot

AWS: dict[str, Any] = {"clouds": ["aws"], "regions": {"aws": ["us-east-1"]}}
G6: dict[str, Any] = {**AWS, "capacity": {"use": "on_demand", "instance_type": "g6.xlarge"}}


def boot(fields: dict[str, Any], environment: str = "dev") -> BootPlan:
    plan = planned(fields, environment=environment)
    assert plan.chosen
    return plan.chosen.boot


def on(name: str, cloud: str = "aws", **software: Any) -> BootPlan:
    """The boot of one type, whether or not it is sold today."""
    plan = planned({"clouds": [cloud], "software": software, "hours_per_month": 100})
    return plan_boot(load(), plan.need, of(plan, cloud, name))


def test_nothing_declared_is_an_image_with_a_driver_and_a_gate() -> None:
    found = boot(G6)
    assert found.image.family
    assert found.image.id is None
    assert (found.image.os, found.image.pinned, found.image.source) == (
        "ubuntu-24.04", False, "catalogue",
    )  # fmt: skip
    assert (found.driver.source, found.driver.branch) == ("prebaked", "595")
    empty = (found.framework, found.container, found.run, found.before_stop, found.proxy)
    assert empty == (None, None, None, None, None)
    assert (found.mirrors, found.packages, found.ssh_keys, found.mpi) == (None, (), (), "none")


@pytest.mark.parametrize(
    ("image", "name", "pinned"),
    [
        ("ami-0abc12345678def00", "id", True),
        ("/aws/service/canonical/ubuntu/x/ami-id", "family", False),
    ],
)
def test_only_an_id_is_the_same_image_every_time(image: str, name: str, pinned: bool) -> None:
    found = boot({**G6, "software": {"image": image}}).image
    assert getattr(found, name) == image
    assert (found.pinned, found.source) == (pinned, "declared")


def test_a_family_of_gcp_moves_and_an_image_does_not() -> None:
    path = "projects/p/global/images/"
    assert on("g2-standard-4", "gcp", image=f"{path}mine-1").image.pinned
    assert on("g2-standard-4", "gcp", image=f"{path}family/mine").image.family


def test_what_is_installed_is_an_exact_version_and_what_an_image_holds_is_not() -> None:
    assert on("p3.2xlarge").driver.version == "580.159.04"
    assert on("g7.8xlarge").driver.version == "595.91.07"
    exact = on("p3.2xlarge", image={"driver": "580.95.05"}).driver
    assert (exact.source, exact.branch, exact.version) == ("install", "580", "580.95.05")
    held = on("g6.xlarge", image={"id": "ami-0abc12345678def00", "driver": "580.95.05"}).driver
    assert (held.source, held.branch, held.version) == ("prebaked", "580", None)


@pytest.mark.parametrize(
    ("name", "cloud", "fabric_manager", "imex"),
    [
        ("g6.xlarge", "aws", False, False),
        ("p3.16xlarge", "aws", False, False),  # NVLink without switches
        ("a2-highgpu-4g", "gcp", False, False),  # four of a host's sixteen
        ("p4d.24xlarge", "aws", True, False),
        ("p5.48xlarge", "aws", True, False),
        ("g2-standard-96", "gcp", False, False),
        ("a4-highgpu-8g", "gcp", True, False),
        ("a4x-highgpu-4g", "gcp", False, True),
    ],
)
def test_fabric_manager_is_for_switches_and_imex_for_racks(
    name: str, cloud: str, fabric_manager: bool, imex: bool
) -> None:
    found = on(name, cloud).driver
    assert (found.fabric_manager, found.imex) == (fabric_manager, imex)


def test_the_framework_comes_from_the_index_that_the_driver_allows() -> None:
    assert on("g6.xlarge", framework="pytorch==2.12").framework == FrameworkPlan(
        "pytorch", "2.12", "13.0", "https://download.pytorch.org/whl/cu130"
    )
    assert on("p3.2xlarge", framework="pytorch==2.12").framework == FrameworkPlan(
        "pytorch", "2.12", "12.6", "https://download.pytorch.org/whl/cu126"
    )


def test_a_build_is_named_where_the_index_does_not() -> None:
    mirrors = {"pip": "https://m.internal/simple"}
    own = on("g6.xlarge", framework="pytorch==2.12+cu126").framework
    assert own
    assert own.version == "2.12+cu126"
    plain = on("g6.xlarge", framework="pytorch==2.12", mirrors=mirrors).framework
    assert plain == FrameworkPlan("pytorch", "2.12", "13.0", mirrors["pip"])
    other = on("p3.2xlarge", framework="pytorch==2.12", mirrors=mirrors).framework
    assert other == FrameworkPlan("pytorch", "2.12+cu126", "12.6", mirrors["pip"])
    jax = on("p3.2xlarge", framework="jax==0.10", mirrors=mirrors).framework
    assert jax
    assert jax.version == "0.10"


def test_https_goes_the_way_of_http_unless_it_has_its_own() -> None:
    one = boot({**G6, "software": {"proxy": "http://p:1"}}).proxy
    two = boot({**G6, "software": {"proxy": {"http": "http://p:1", "https": "http://q:2"}}}).proxy
    assert one
    assert two
    assert (one.https, two.https) == ("http://p:1", "http://q:2")


GATES: dict[str, tuple[str, dict[str, Any], tuple[str, str, str]]] = {
    "a group in dev": ("dev", G6, ("lifecycle-hook", "report", "quick")),
    "a group in prod": ("prod", G6, ("lifecycle-hook", "enforce", "quick")),
    "a group on gcp": ("prod", {"clouds": ["gcp"]}, ("health-endpoint", "enforce", "quick")),
    "a tier's depth": ("dev", {**AWS, "tier": "mid"}, ("lifecycle-hook", "report", "standard")),
    "a declared depth": (
        "dev", {**AWS, "tier": "entry", "validation": {"depth": "burn-in"}},
        ("lifecycle-hook", "report", "burn-in")),
    "a lone machine": ("prod", {**G6, "purpose": "development"}, ("file", "report", "quick")),
    "a desktop": (
        "prod", {**AWS, "purpose": "vdi", "gpu": {"fractional": "forbid"}},
        ("file", "report", "quick")),
    "two for development": (
        "dev", {**G6, "purpose": "development", "nodes": 2}, ("lifecycle-hook", "report", "quick")),
    "one that scales": (
        "dev", {**G6, "purpose": "development", "scale": {"max": 2}},
        ("lifecycle-hook", "report", "quick")),
    "declared on a lone machine": (
        "dev", {**G6, "purpose": "development", "validation": {"gate": "enforce"}},
        ("file", "enforce", "quick")),
    "none": ("prod", {**G6, "validation": {"gate": "off"}}, ("lifecycle-hook", "off", "quick")),
}  # fmt: skip


@pytest.mark.parametrize(("environment", "fields", "gate"), GATES.values(), ids=GATES.keys())
def test_the_gate_is_what_is_declared_else_what_environment_and_tier_ask(
    environment: str, fields: dict[str, Any], gate: tuple[str, str, str]
) -> None:
    assert tuple(boot(fields, environment).gate) == gate


def test_a_slice_without_an_image_of_ones_own_is_said_to_lack_its_driver() -> None:
    found = planned({**AWS, "purpose": "vdi", "gpu": {"models": ["L4"], "memory": "12GB"},
                     "capacity": {"use": "on_demand", "instance_type": "g6f.4xlarge"}})  # fmt: skip
    assert found.chosen
    assert found.chosen.boot.driver.branch == ""
    assert any("GRID driver" in note for note in found.chosen.boot.notes)


def test_a_driver_that_nobody_names_is_a_note() -> None:
    image = "ami-0abc12345678def00"
    assert any(image in note for note in on("g6.xlarge", image=image).notes)
    assert not on("g6.xlarge", image={"id": image, "driver": "580"}).notes


def test_a_framework_beside_a_container_is_said_to_be_the_machines() -> None:
    notes = on("g6.xlarge", framework="pytorch==2.9", container="a").notes
    assert notes == ("the framework is installed on the machine; the container brings its own",)
