"""Image and video models: published figures are looked up, and estimates say that they are."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gputier.sizing import Sizing, figures

Sized = Callable[..., Sizing]
GIB = 2**30

# SDXL: 2,567,463,684 + 817,720,320 + 83,653,863 parameters at 2 B.
SDXL_WEIGHTS = (2_567_463_684 + 123_060_480 + 694_659_840 + 83_653_863) * 2 / GIB


def activations(found: Sizing) -> float:
    return next(part.gib for part in found.parts if part.name == "activations")


@pytest.mark.parametrize(
    "name",
    ["sdxl", "SDXL", "stable-diffusion-xl", "stabilityai/stable-diffusion-xl-base-1.0", "sd-xl"],
)
def test_sdxl_needs_its_largest_published_figure_at_one_image(sized: Sized, name: str) -> None:
    """Four figures are published for one image at 16 bit, 8.8 to 10.47 GiB."""
    found = sized(name=name)
    assert found.parts[0].gib == pytest.approx(SDXL_WEIGHTS)
    assert found.parts[0].gib + activations(found) == pytest.approx(10.47)
    assert found.needed_gib == pytest.approx(11.47)
    assert found.per_gpu_gib == pytest.approx(11.47 * 1.10)
    assert found.confidence == "good"
    assert found.warnings == ()


def test_sdxl_fits_a_24_gb_card_with_thirty_percent_kept_free(sized: Sized) -> None:
    assert sized(kept_free=0.3, name="sdxl").fits(22.0)


def test_the_nearest_figure_at_or_above_the_request_counts(sized: Sized) -> None:
    four = sized(name="sdxl", image={"batch": 4})
    assert four.parts[0].gib + activations(four) == pytest.approx(21.73)
    two = sized(name="sdxl", image={"batch": 2})
    assert two.parts == four.parts
    assert any("2 times the pixels" in warning for warning in two.warnings)
    assert two.confidence == "fair"


def test_beyond_the_largest_figure_activations_grow_with_the_pixels(sized: Sized) -> None:
    found = sized(name="sdxl", image={"batch": 8})
    assert activations(found) == pytest.approx((21.73 - SDXL_WEIGHTS) * 2)
    assert found.confidence == "weak"
    assert any("beyond the largest published figure" in warning for warning in found.warnings)
    assert found.per_gpu_gib == pytest.approx(found.needed_gib * 1.25)


def test_a_smaller_figure_for_more_pixels_does_not_lower_the_answer(
    sized: Sized, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two sources with different pipelines: 12 GB for one image, 11 GB for four."""
    held = figures.load()
    one = next(f for f in held.figures if f.serves and f.model.endswith("xl-base-1.0"))
    runs = [one._replace(batch=n, pixels=n * 1024.0**2, gb=gb) for n, gb in ((1, 12), (4, 11))]
    runs = [run._replace(form=figures.SIXTEEN_BIT) for run in runs]
    monkeypatch.setattr(figures, "load", lambda: held._replace(figures=tuple(runs)))
    assert sized(name="sdxl").needed_gib == pytest.approx(13)
    assert sized(name="sdxl", image={"batch": 4}).needed_gib == pytest.approx(13)


def test_a_published_precision_has_its_own_figure(sized: Sized) -> None:
    found = sized(name="sdxl", precision="fp32")
    assert found.parts[0].gib + activations(found) == pytest.approx(16.827)


def test_an_unpublished_precision_keeps_the_16_bit_activations(sized: Sized) -> None:
    found = sized(name="sdxl", precision="fp8")
    assert activations(found) == pytest.approx(10.47 - SDXL_WEIGHTS)
    weights = (2_567_463_684 + 817_720_320) * 1 + 83_653_863 * 2
    assert found.parts[0].gib == pytest.approx(weights / GIB)
    assert found.confidence == "weak"


def test_a_model_without_figures_borrows_from_its_makers_nearest(sized: Sized) -> None:
    found = sized(name="flux-schnell")
    assert any("estimated from black-forest-labs/FLUX.1-dev" in w for w in found.warnings)
    assert found.needed_gib == pytest.approx(sized(name="flux-dev").needed_gib, rel=0.01)


def test_a_video_models_own_resolution_and_length_are_the_default(sized: Sized) -> None:
    found = sized(name="cogvideox-5b")
    assert "720x480 × 49 frames" in found.basis
    assert found.parts == sized(name="cogvideox-5b", image={"resolution": "720x480"}).parts
    short = sized(name="cogvideox-5b", image={"frames": 9})
    assert any("published figure is for" in warning for warning in short.warnings)


def test_each_gpu_holds_a_whole_copy(sized: Sized) -> None:
    one, four = sized(1, name="sdxl"), sized(4, name="sdxl")
    assert four.per_gpu_gib == one.per_gpu_gib
    assert "each GPU holds a whole copy" in four.basis


@pytest.mark.parametrize("kind", ["image", "video"])
def test_more_pixels_never_need_less(sized: Sized, kind: str) -> None:
    table = figures.load()
    for row, pipeline in zip(table.names, table.pipelines, strict=True):
        name = next((n for n in reversed(row) if "(" not in n), None)
        if pipeline.kind != kind or name is None:
            continue
        last = 0.0
        for side in (256, 512, 768, 1024, 1328, 2048):
            found = sized(name=name, image={"resolution": f"{side}x{side}", "frames": 1})
            assert found.needed_gib >= last - 1e-9, (name, side)
            last = found.needed_gib


def test_every_figure_has_its_source_and_a_known_model() -> None:
    table = figures.load()
    assert len(table.figures) == 247
    names = {pipeline.name for pipeline in table.pipelines}
    for figure in table.figures:
        assert figure.source, figure
        assert figure.model in names
        assert figure.gb > 0
        assert figure.pixels >= 256 * 256 or figure.task == "load only"
        assert not (figure.serves and figure.trains)


@pytest.mark.parametrize(
    ("precision", "form"),
    [
        ("fp32", "fp32"),
        ("fp32/fp16", "16-bit"),
        ("bf16", "16-bit"),
        ("fp32 weights, bf16 autocast", "16-bit"),
        ("fp8 DiT + fp8 T5", "fp8"),
        ("bnb 4-bit", "4-bit"),
        ("nf4 DiT and text encoder", "4-bit"),
        ("GGUF Q8_0 DiT", "int8"),
        ("int8 torchao", "int8"),
    ],
)
def test_published_precisions_fall_into_classes(precision: str, form: str) -> None:
    assert figures.form_of(precision) == form


def test_offloaded_runs_and_lower_bounds_are_no_answer() -> None:
    for figure in figures.load().figures:
        if figure.serves:
            assert "offload" not in figure.offload.replace("none", "")
            assert figure.measure not in ("minimum", "more than")


def test_a_published_training_run_is_used(sized: Sized) -> None:
    job = {"method": "lora", "gradient_checkpointing": "full"}
    found = sized(name="hunyuan-dit", training=job)
    assert found.needed_gib == pytest.approx(11 + 1)
    without = sized(name="hunyuan-dit", training={"method": "lora"})
    assert without.needed_gib == pytest.approx(24 + 1)


def test_an_unpublished_training_run_is_an_estimate_part_by_part(sized: Sized) -> None:
    found = sized(name="sdxl", training={"method": "lora", "gradient_checkpointing": "full"})
    parts = {part.name: part.gib for part in found.parts}
    assert parts["weights"] == pytest.approx(SDXL_WEIGHTS)
    assert parts["adapters"] == pytest.approx(2_567_463_684 * 0.02 * 16 / GIB)
    assert parts["activations"] == pytest.approx(10.47 - SDXL_WEIGHTS)
    kept = sized(name="sdxl", training={"method": "lora"})
    assert activations(kept) == pytest.approx(4 * (10.47 - SDXL_WEIGHTS))
    full = sized(name="sdxl", training={"method": "full", "gradient_checkpointing": "full"})
    state = {part.name: part.gib for part in full.parts}
    assert state["optimizer"] == pytest.approx(2_567_463_684 * 12 / GIB)
    assert state["gradients"] == pytest.approx(2_567_463_684 * 4 / GIB)
    assert full.confidence == "weak"
    assert any("no training run" in warning for warning in full.warnings)
