"""What goes together on a machine, and what is refused before it is bought."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.world import declared, of, planned, row

from gputier.catalog import Catalog, InstanceType, load, parse_version
from gputier.errors import InvalidInput
from gputier.plan import plan_declaration
from gputier.plan.contract import OS_ORDER, Agreed, Contract
from gputier.plan.reasons import Reason
from gputier.workload import Software

DLAMI = "/aws/service/deeplearning/ami/{}/base-oss-nvidia-driver-gpu-{}/latest/ami-id"
OWN = "ami-0abc12345678def00"


def ask(on: str, cloud: str = "aws", **software: Any) -> Agreed | Reason:
    return Contract(load(), Software(**software)).ask(row(cloud, on))


def agreed(on: str, cloud: str = "aws", **software: Any) -> Agreed:
    found = ask(on, cloud, **software)
    assert isinstance(found, Agreed), found
    return found


def refused(on: str, cloud: str = "aws", **software: Any) -> tuple[str, str, str]:
    found = ask(on, cloud, **software)
    assert isinstance(found, Reason), found
    assert found.rule == "software"
    return found.needed, found.has, found.relax


def build(on: str, framework: str, cloud: str = "aws", **image: Any) -> str:
    software: dict[str, Any] = {"image": image} if image else {}
    wheel = agreed(on, cloud=cloud, framework=framework, **software).wheel
    assert wheel
    return wheel.build


@pytest.mark.parametrize(
    ("on", "framework", "wanted"),
    [
        ("g6.xlarge", "pytorch==2.9", "cu128"),  # its own default
        ("g6.xlarge", "pytorch==2.12", "cu130"),
        ("g6.xlarge", "pytorch==2.15", "cu132"),
        ("p3.2xlarge", "pytorch==2.12", "cu126"),  # CUDA 13 has no Volta
        ("p3.2xlarge", "pytorch==2.10", "cu128"),
        ("p3.2xlarge", "pytorch==2.11", "cu126"),  # 2.11 took Volta out of cu128
        ("g3.8xlarge", "pytorch==2.9", "cu126"),  # Maxwell
        ("p6-b200.48xlarge", "pytorch==2.9", "cu128"),
        ("p6-b200.48xlarge", "pytorch==2.12", "cu130"),  # and not cu126
        ("p6-b200.48xlarge", "pytorch==2.7", "cu128"),  # 2.7's default, cu126, has no Blackwell
        ("p6e-gb200.36xlarge", "pytorch==2.12", "cu130"),
        ("p6e-gb200.36xlarge", "pytorch==2.9", "cu130"),  # no default on arm64: the newest
        ("p3.2xlarge", "jax==0.10", "cuda12"),
        ("g6.xlarge", "jax==0.10", "cuda13"),
        ("g5g.xlarge", "jax==0.10", "cuda13"),
        ("g6.xlarge", "jax==0.7", "cuda12"),
        ("g6.xlarge", "tensorflow==2.20", "and-cuda"),
        ("g6.xlarge", "pytorch==2.9.1", "cu128"),  # a row speaks of every patch of its version
        ("g6.xlarge", "pytorch==2.12+cu126", "cu126"),  # as asked
    ],
)
def test_the_wheel_is_the_frameworks_default_where_the_card_has_code_in_it(
    on: str, framework: str, wanted: str
) -> None:
    assert build(on, framework) == wanted


@pytest.mark.parametrize(
    ("driver", "wanted"), [("570", "cu126"), ("580", "cu130"), ("550.54.14", "cu126")]
)
def test_the_wheel_is_one_that_the_declared_driver_runs(driver: str, wanted: str) -> None:
    assert build("g6.xlarge", "pytorch==2.12", driver=driver) == wanted


REFUSALS: dict[str, tuple[str, dict[str, Any], tuple[str, str, str]]] = {
    "no code for an old card": ("p3.2xlarge", {"framework": "pytorch==2.15"}, (
        "pytorch==2.15: compute capability 7.5 8.0 8.6 9.0 10.0 12.0+PTX", "V100-16GB is 7.0",
        "software.framework: pytorch==2.14")),
    "no code for a new card": ("p6-b200.48xlarge", {"framework": "pytorch==2.6"}, (
        "pytorch==2.6: compute capability 5.0 6.0 7.0 7.5 8.0 8.6 9.0", "B200 is 10.0",
        "software.framework: pytorch==2.7")),
    "a build without the card": ("p6-b200.48xlarge", {"framework": "pytorch==2.12+cu126"}, (
        "pytorch==2.12+cu126: compute capability 5.0 6.0 7.0 7.5 8.0 8.6 9.0", "B200 is 10.0",
        "software.framework: pytorch==2.13")),
    "a framework that no version of which will do": (
        "p6-b200.48xlarge", {"framework": "tensorflow==2.20"}, (
        "tensorflow==2.20: compute capability 6.0 7.0 8.0 8.9 9.0", "B200 is 10.0",
        "software.container: one built for this card")),
    "no wheel for the processor": ("g5g.xlarge", {"framework": "tensorflow==2.20"}, (
        "a CUDA wheel of tensorflow==2.20", "arm64, for which there is none",
        "cpu.architecture: x86_64, or a container")),
    "a wheel for the processor and not for its card": (
        "g5g.xlarge", {"framework": "pytorch==2.12"}, (
        "pytorch==2.12: compute capability 8.0 9.0 10.0 11.0 12.0+PTX", "T4G is 7.5",
        "software.container: one built for this card")),
    "a driver too old for the only wheel": (
        "p6-b200.48xlarge", {"framework": "pytorch==2.12", "image": {"driver": "570"}}, (
        "pytorch==2.12: driver ≥ 580", "driver 570",
        "software.image.driver: 580, or another framework")),
    "a driver too old for the card": ("p6-b300.48xlarge", {"image": {"driver": "570"}}, (
        "B300: driver ≥ 580", "B300, with driver 570 declared", "software.image.driver: 580")),
    "a driver too new for the card": ("p3.2xlarge", {"image": {"driver": "595"}}, (
        "V100-16GB: a driver from 396 to branch 580", "V100-16GB, with driver 595 declared",
        "software.image.driver: 580")),
    "a driver too old for the CUDA": ("g6.xlarge", {"image": {"driver": "570", "cuda": "13.0"}}, (
        "driver ≥ 580", "`software.image.driver` is 570", "software.image.driver: 580")),
    "CUDA that left the card": ("p3.2xlarge", {"image": {"cuda": "13.0"}}, (
        "V100-16GB: CUDA ≤ 12.9", "CUDA 13.0 declared", "software.image.cuda: 12.9")),
    "CUDA from before the card": ("p6-b200.48xlarge", {"image": {"cuda": "12.6"}}, (
        "B200: CUDA ≥ 12.8", "CUDA 12.6 declared", "software.image.cuda: 12.8")),
    "a system that the cloud has not": ("g6.xlarge", {"image": {"os": "rocky-9"}}, (
        "an image with rocky-9", "aws has ubuntu-24.04, ubuntu-22.04, amazon-linux-2023 for x86_64",
        "software.image.os: ubuntu-24.04")),
    "an image of another cloud": (
        "g6.xlarge", {"image": "projects/p/global/images/mine"}, (
        "gcp, whose image is declared", "aws",
        "software.image: one of aws, or clouds: [gcp]")),
    "a slice": ("g6f.xlarge", {"framework": "pytorch==2.9"}, (
        "a card that takes NVIDIA's public driver", "a vGPU slice",
        "software.image: your own with the provider's GRID driver, or gpu.fractional: forbid")),
}  # fmt: skip


@pytest.mark.parametrize(("on", "software", "says"), REFUSALS.values(), ids=REFUSALS.keys())
def test_what_cannot_work_is_refused_with_what_is_needed_what_there_is_and_the_way_out(
    on: str, software: dict[str, Any], says: tuple[str, str, str]
) -> None:
    assert refused(on, **software) == says


def test_what_a_refusal_proposes_is_accepted() -> None:
    for on, software, (_needed, _has, relax) in REFUSALS.values():
        changed: dict[str, Any]
        field, _, value = relax.partition(": ")
        if field == "software.framework":
            changed = software | {"framework": value}
            agreed(on, **changed)
        elif field in ("software.image.cuda", "software.image.driver", "software.image.os"):
            name = field.rpartition(".")[2]
            image: dict[str, Any] = {**software["image"], name: value.split(",")[0]}
            changed = software | {"image": image}
            agreed(on, **changed)


@pytest.mark.parametrize(
    ("cloud", "on", "image", "driver", "prebaked", "module"),
    [
        ("aws", "g6.xlarge", DLAMI.format("x86_64", "ubuntu-24.04"), "595.71.05", True, "open"),
        ("aws", "g5g.xlarge", DLAMI.format("arm64", "ubuntu-24.04"), "595.91.07", True, "open"),
        ("aws", "p3.2xlarge", "/aws/service/canonical/", "580.159.04", False, "proprietary"),
        ("aws", "g7.8xlarge", "/aws/service/canonical/", "595.91.07", False, "open"),
        ("gcp", "g2-standard-4", "/ubuntu-2404-lts-amd64", "580.159.04", False, "open"),
        ("gcp", "a3-highgpu-8g", "2404-amd64-with-nvidia-580", "580", True, "open"),
        ("gcp", "a3-highgpu-1g", "/ubuntu-2404-lts-amd64", "580.159.04", False, "open"),
        ("gcp", "a4x-highgpu-4g", "2404-arm64-with-nvidia-580", "580", True, "open"),
        # The card needs 580.95.05, and of the image the branch alone is known.
        ("gcp", "a4x-maxgpu-4g-metal", "2404-arm64-with-nvidia-580", "580", True, "open"),
        ("gcp", "n1+nvidia-tesla-p100x1", "/ubuntu-2404-lts-amd64", "580.159.04", False,
         "proprietary"),
    ],
)  # fmt: skip
def test_an_image_with_a_driver_is_taken_where_there_is_one_for_the_machine(
    cloud: str, on: str, image: str, driver: str, prebaked: bool, module: str
) -> None:
    found = agreed(on, cloud)
    assert found.image
    assert image in found.image.name
    assert (found.driver, found.prebaked, found.module) == (driver, prebaked, module)


def test_a_declared_driver_takes_an_image_that_has_it_else_a_plain_one_to_install_on() -> None:
    held = agreed("a3-highgpu-8g", "gcp", image={"driver": "570"})
    assert held.image
    assert held.image.name.endswith("2404-amd64-with-nvidia-570")
    exact = agreed("a3-highgpu-8g", "gcp", image={"driver": "580.95.05"})
    assert exact.image
    assert exact.image.driver is None
    assert (exact.driver, exact.prebaked) == ("580.95.05", False)
    branch = agreed("g6.xlarge", image={"driver": "580"})
    assert (branch.driver, branch.prebaked) == ("580.159.04", False), "its release with packages"


def test_a_branch_that_no_repository_has_is_refused_here_and_not_found_out_on_the_machine() -> None:
    needed, has, relax = refused("p2.xlarge")
    assert needed == "K80: a driver from 375 to branch 470"
    assert has == "no packages of branch 470"
    assert relax == "software.image: your own, which has the driver"
    assert refused("g4dn.xlarge", image={"driver": "470"})[1] == has
    # Somebody's own repository may have it: a version is taken as it is declared.
    assert agreed("p2.xlarge", image={"driver": "470.256.02"}).driver == "470.256.02"


def test_whatever_is_installed_is_one_exact_version() -> None:
    """A branch's newest release moves, and machines that start later would have another."""
    count = 0
    for system in (None, *OS_ORDER):
        image: Any = {"os": system} if system else None
        contract = Contract(load(), Software(image=image))
        for one in everything():
            found = contract.ask(one)
            if isinstance(found, Agreed) and not found.prebaked:
                assert found.driver
                assert "." in found.driver, one.name
                count += 1
    assert count > 100


def test_a_driver_from_before_open_modules_has_the_proprietary_one() -> None:
    assert agreed("g4dn.xlarge", image={"driver": "470.256.02"}).module == "proprietary"
    assert agreed("g4dn.xlarge", image={"driver": "535"}).module == "open"


def test_types_of_a_family_that_images_tell_apart_are_not_mixed_up() -> None:
    contract = Contract(load(), Software())
    first, second = (contract.ask(row("gcp", f"a3-highgpu-{n}g")) for n in (8, 1))
    assert isinstance(first, Agreed)
    assert isinstance(second, Agreed)
    assert (first.prebaked, second.prebaked) == (True, False)


def test_ones_own_image_brings_its_driver_and_its_silence_is_not_taken_for_an_answer() -> None:
    silent = agreed("g6.xlarge", image=OWN, framework="pytorch==2.12")
    assert (silent.image, silent.driver, silent.prebaked) == (None, None, True)
    told = agreed("g6.xlarge", image={"id": OWN, "driver": "570"}, framework="pytorch==2.12")
    assert told.wheel
    assert told.wheel.build == "cu126"
    slice_ = agreed("g6f.xlarge", image=OWN)
    assert slice_.prebaked


def test_a_listed_image_says_its_driver_itself() -> None:
    name = DLAMI.format("x86_64", "amazon-linux-2023")
    found = agreed("g6.xlarge", image=name)
    assert (found.driver, found.prebaked) == ("595.64", True)
    needed, has, _relax = refused("p3.2xlarge", image=name)
    assert needed == "V100-16GB: a driver from 396 to branch 580"
    assert has == "V100-16GB, with driver 595.64 declared"


def test_the_bounds_are_the_cards_and_the_wheels_together() -> None:
    assert agreed("g6.xlarge").driver_min == "525"
    assert agreed("g6.xlarge", framework="pytorch==2.12").driver_min == "580"
    assert agreed("g7.8xlarge", framework="pytorch==2.12").driver_min == "590"
    volta = agreed("p3.2xlarge", framework="pytorch==2.12")
    assert (volta.driver_min, volta.driver_max) == ("525.60.13", "580")


def test_what_rests_on_no_source_is_said() -> None:
    assert agreed("g6.xlarge").doubts == ()
    assert "the image's name or driver" in agreed("p3.2xlarge").doubts
    assert "the oldest driver for V100-16GB" in agreed("p3.2xlarge").doubts
    assert (
        "the cards that pytorch==2.6 serves" in agreed("g6.xlarge", framework="pytorch==2.6").doubts
    )


def everything() -> list[InstanceType]:
    return [t for t in load().types.values() if t.cloud in ("aws", "gcp") and not t.fractional]


def test_every_whole_machine_of_a_deployed_cloud_has_an_image_and_a_driver_within_its_bounds() -> (
    None
):
    contract = Contract(load(), Software())
    for one in everything():
        found = contract.ask(one)
        if one.gpu_model == "K80":
            continue  # whose last branch has no packages any more
        assert isinstance(found, Agreed), (one.name, found)
        assert found.image, one.name
        assert found.driver
        if found.driver_max:
            assert parse_version(found.driver)[0] <= parse_version(found.driver_max)[0], one.name
        architecture = load().gpus[one.gpu_model].architecture
        if architecture.startswith("Blackwell"):
            assert found.module == "open", one.name
        if architecture in ("Kepler", "Maxwell", "Pascal", "Volta"):
            assert found.module == "proprietary", one.name


FRAMEWORKS = sorted({(w.framework, w.version) for w in load().software.wheels})


@given(
    framework=st.sampled_from(FRAMEWORKS),
    on=st.sampled_from(everything()),
    driver=st.sampled_from([None, *(b.branch for b in load().software.branches)]),
)
def test_whatever_is_agreed_holds_the_contract(
    framework: tuple[str, str], on: InstanceType, driver: str | None
) -> None:
    """The contract again, from the tables and in other words."""
    name = "==".join(framework)
    image: dict[str, Any] = {"image": {"driver": driver}} if driver else {}
    found = Contract(load(), Software(framework=name, **image)).ask(on)
    if isinstance(found, Reason):
        assert found.needed != found.has
        assert found.relax
        return
    card = load().gpus[on.gpu_model]
    assert found.wheel
    assert found.wheel.cpu_arch == on.cpu_arch
    assert any(
        (c.major, c.minor) <= divmod(round(card.compute_capability * 10), 10)
        and (c.ptx or c.major == int(card.compute_capability))
        for c in found.wheel.capabilities
    )
    assert found.driver
    branch = parse_version(found.driver)[0]
    least = load().software.cuda[found.wheel.cuda_major].driver_min
    assert branch >= parse_version(least)[0]
    assert branch >= parse_version(load().software.cards[card.model].driver_min)[0]
    if card.driver_branch_last:
        assert branch <= int(card.driver_branch_last.removeprefix("R"))
    if driver:
        assert branch == int(driver)


def test_a_machine_that_cannot_run_what_is_declared_is_rejected_in_the_ledger() -> None:
    plan = planned({"software": {"framework": "pytorch==2.15"}, "clouds": ["aws"]})
    reasons = [r for r in of(plan, "aws", "p3.2xlarge").reasons if r.rule == "software"]
    assert [r.relax for r in reasons] == ["software.framework: pytorch==2.14"]
    assert plan.chosen
    silent = planned({"clouds": ["aws"]})
    assert not [r for r in of(silent, "aws", "p3.2xlarge").reasons if r.rule == "software"]


def test_a_version_that_no_table_has_is_a_mistake_in_the_file() -> None:
    for software, message, hint in (
        ({"framework": "pytorch==9.9"}, "pytorch 9.9 is not in the catalogue", "2.15"),
        ({"framework": "pytorch==2.12+cu128"}, "has no build cu128", "cu126, cu130, cu132"),
        ({"image": {"driver": "999"}}, "no driver branch 999", "known are 470"),
    ):
        with pytest.raises(InvalidInput) as caught:
            plan_declaration(declared({"job": {"software": software}}), load())
        (problem,) = caught.value.problems
        assert message in problem.message
        assert hint in problem.hint
        assert problem.position


def test_an_own_image_may_have_any_driver() -> None:
    image = {"id": OWN, "driver": "999.1"}
    assert planned({"clouds": ["aws"], "software": {"image": image}}).chosen


def test_rows_of_an_overlay_are_asked_too(tmp_path: Any) -> None:
    (tmp_path / "wheels.csv").write_text(
        "framework,version,build,cuda,default,cpu_arch,architectures,index_url,source,as_of,status\n"
        "pytorch,3.0,cu140,14.0,true,x86_64,9.0+PTX,https://w.example,mine,2026-11,sourced\n"
    )
    catalog: Catalog = load(tmp_path)
    contract = Contract(catalog, Software(framework="pytorch==3.0"))
    found = contract.ask(row("aws", "p5.48xlarge"))
    assert isinstance(found, Agreed)
    assert found.wheel
    assert found.wheel.index_url == "https://w.example"
    assert isinstance(contract.ask(row("aws", "g6.xlarge")), Reason)


def test_a_cloud_without_images_here_is_planned_without_one() -> None:
    azure = row("aws", "g6.xlarge")._replace(cloud="azure")
    found = Contract(load(), Software()).ask(azure)
    assert isinstance(found, Agreed)
    assert (found.image, found.prebaked) == (None, False)
