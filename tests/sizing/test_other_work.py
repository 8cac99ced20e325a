"""Beyond language models: published figures, simulations, scenes, desktops, offloaded pipelines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gputier.errors import InvalidInput
from gputier.sizing import Sizing, figures, published
from gputier.workload import Workload

GIB = 2**30
Sized = Callable[..., Sizing]


# --- data/other.csv ------------------------------------------------------------------------------


def test_each_figure_has_its_source_and_a_card_that_is_nvidias() -> None:
    rows = published.load().rows
    assert len(rows) == 121
    assert all(row.source and row.gb > 0 and row.measure for row in rows)
    assert {row.category for row in rows} == {"speech", "3d", "hpc", "vision", "rendering", "vdi"}
    assert not any("Radeon" in row.gpu for row in rows)


@pytest.mark.parametrize(
    ("name", "gib"),
    [
        ("TRELLIS", 16), ("TripoSR", 6), ("Bark", 12), ("Riva ASR NIM", 16), ("nerfacto", 6),
        ("nerfstudio nerfacto-huge", 24), ("splatfacto", 6), ("AlphaFold 3", 80),
        ("Hunyuan3D-2", 24.5), ("Hunyuan3D-2 shape only", 6), ("Hunyuan3D-2.1", 29),
        ("nnU-Net ResEnc L", 22.7), ("Mask R-CNN R50-FPN", 3.4), ("Isaac Sim", 48),
        ("Audio2Face-3D", 12), ("Protenix 2000 tokens 20000 atoms", 66.6),
    ],
)  # fmt: skip
def test_a_workload_has_its_published_figure(sized: Sized, name: str, gib: float) -> None:
    found = sized(name=name)
    assert found.needed_gib == pytest.approx(gib)
    assert found.per_gpu_gib > gib


def test_several_figures_are_said_and_the_largest_counts(sized: Sized) -> None:
    found = sized(name="Isaac Sim")
    assert any("2 other figures published, from 8 GB" in warning for warning in found.warnings)
    assert found.confidence == "fair"
    measured = sized(name="nnU-Net ResEnc L")
    assert measured.confidence == "good"
    assert "MIC-DKFZ/nnUNet" in measured.parts[0].formula


def test_every_workload_of_the_figures_can_be_named(sized: Sized) -> None:
    for name in published.all_names():
        assert sized(name=name).per_gpu_gib > 0, name


def test_an_offloaded_run_is_not_the_answer_to_a_plain_name(sized: Sized) -> None:
    assert sized(name="Bark").needed_gib == 12
    assert sized(name="Bark text to speech small models CPU offload").needed_gib == 2


def test_desktops_by_name_count_their_seats() -> None:
    model = {"name": "NVIDIA vPC knowledge worker", "seats": 10}
    workload = Workload.model_validate({"model": model, "purpose": "vdi"})
    from gputier.sizing import size

    found = size(workload, gpus=2)
    assert found
    assert found.needed_gib == pytest.approx(5 * 2)


# --- simulations ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("precision", "each"), [("fp64", 344), ("fp32", 93), ("fp16", 55), (None, 93)]
)
def test_a_fluid_is_cells_times_bytes(sized: Sized, precision: str | None, each: int) -> None:
    found = sized(2, cells=1_000_000_000, precision=precision)
    assert found.needed_gib == pytest.approx(1e9 * each / 2 / GIB)


def test_19_million_cells_in_fp16_are_the_published_gigabyte(sized: Sized) -> None:
    """FluidX3D's README: 19 million cells a GB."""
    assert sized(cells=19_000_000, precision="fp16").needed_gib == pytest.approx(1.0, rel=0.03)


@pytest.mark.parametrize(("precision", "each"), [(None, 16), ("fp64", 16), ("fp32", 8)])
def test_a_state_vector_doubles_with_each_qubit(
    sized: Sized, precision: str | None, each: int
) -> None:
    assert sized(qubits=30, precision=precision).needed_gib == each
    assert sized(qubits=31, precision=precision).needed_gib == 2 * each


def test_a_state_vector_is_split_over_a_power_of_two(sized: Sized) -> None:
    six = sized(6, qubits=33)
    assert six.needed_gib == pytest.approx(128 / 4)
    assert any("4 of 6 GPUs hold it" in warning for warning in six.warnings)
    assert sized(8, qubits=33).needed_gib == pytest.approx(128 / 8)


def test_a_precision_that_a_simulation_has_not_is_said(sized: Sized) -> None:
    found = sized(qubits=20, precision="fp8")
    assert any("sized for fp64" in warning for warning in found.warnings)


def test_molecular_dynamics_is_an_upper_bound_and_says_so(sized: Sized) -> None:
    found = sized(atoms=100_000)
    assert found.needed_gib == pytest.approx(100_000 * 16_822 / GIB, rel=1e-3)
    assert found.confidence == "weak"
    assert any("need less for a large system" in warning for warning in found.warnings)
    assert any("whole system" in warning for warning in sized(2, atoms=100_000).warnings)


def test_a_scene_has_a_renderer_beside_it(sized: Sized) -> None:
    assert sized(4, scene="20GiB").needed_gib == pytest.approx(21)


@pytest.mark.parametrize(("profile", "gib"), [(None, 8), ("12GB", 12), ("2GB", 2)])
def test_a_seat_is_as_large_as_its_profile(sized: Sized, profile: str | None, gib: float) -> None:
    found = sized(seats=3, profile=profile)
    assert found.per_gpu_gib == pytest.approx(3 * gib * 0.91)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ({"cells": 10, "qubits": 3}, "one workload is one job"),
        ({"name": "llama-3.1-8b", "atoms": 10}, "one workload is one job"),
        ({"cells": 10, "training": {}}, "does not go with `cells`"),
        ({"name": "sdxl", "profile": "8GB"}, "frame buffer of each of `seats`"),
        ({"qubits": 61}, "from 1 to 60"),
    ],
)
def test_what_does_not_go_together_is_refused(model: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        Workload.model_validate({"model": model})


# --- image pipelines, offloaded ------------------------------------------------------------------


def test_model_offload_keeps_one_component_on_the_gpu(sized: Sized) -> None:
    whole = sized(name="flux-dev")
    one = sized(name="flux-dev", image={"offload": "model"})
    sequential = sized(name="flux-dev", image={"offload": "sequential"})
    assert sequential.needed_gib < one.needed_gib < whole.needed_gib
    assert "the largest component" in one.parts[0].formula
    assert sequential.parts[0].gib == pytest.approx(one.parts[0].gib / 10)


def test_prompts_encoded_elsewhere_leave_the_encoders_out(sized: Sized) -> None:
    pipeline = figures.load().find("sdxl")
    assert pipeline
    whole = sized(name="sdxl").parts[0].gib
    without = sized(name="sdxl", image={"text_encoders": "precomputed"}).parts[0].gib
    assert whole - without == pytest.approx(pipeline.text_encoders * 2 / GIB)


def test_a_published_figure_with_that_offload_counts(sized: Sized) -> None:
    held = figures.load()
    figure = next(
        f for f in held.figures if f.waits == "model" and f.form == "16-bit" and held.find(f.model)
    )
    image = {
        "resolution": figure.resolution.split(" ")[0], "frames": figure.frames,
        "batch": figure.batch, "offload": "model",
    }  # fmt: skip
    found = sized(name=figure.model, image=image)
    assert found.needed_gib >= figure.gb
    assert any("offload" in part.formula or "published" in part.formula for part in found.parts)
