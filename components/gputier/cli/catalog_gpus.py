"""`gputier catalog gpus`: the GPU models, and one of them whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from gputier.catalog import CLOUDS, Catalog, Gpu, InstanceType
from gputier.cli import catalog_words as words
from gputier.cli import console
from gputier.cli.command import Command
from gputier.cli.inputs import json_text, load_catalog
from gputier.cli.options import catalog_option, json_option
from gputier.cli.text import Column, flow, labelled, plural, table
from gputier.errors import ExitCode

SCHEMA_LIST = "gputier/catalog-gpus/1"
SCHEMA_ONE = "gputier/catalog-gpu/1"
HANG = 14


@click.command(
    cls=Command,
    examples=(
        ("gputier catalog gpus", "every model, largest memory last"),
        ("gputier catalog show A100-80GB", "one model whole"),
    ),
)
@json_option("the list")
@catalog_option
def gpus(as_json: bool, catalog_directory: str | None) -> int:
    """The GPU models.

    Memory, usable memory, bandwidth and tensor rates of each model, and who sells it.
    """
    catalog = load_catalog(catalog_directory)
    models = sorted(catalog.gpus.values(), key=lambda gpu: (gpu.marketed_gb, gpu.model))
    if as_json:
        document = {
            "schema": SCHEMA_LIST,
            "catalog": {"id": catalog.id, "as_of": catalog.as_of},
            "gpus": [gpu_document(catalog, gpu)["gpu"] for gpu in models],
        }
        console.out(json_text(document))
    else:
        console.out("\n".join(_screen(catalog, models, console.width())))
    return ExitCode.OK


_COLUMNS = (
    Column("model"),
    Column("memory", right=True),
    Column("usable", right=True, drop=4),
    Column("GB/s", right=True, drop=5),
    Column("capability", right=True, drop=3),
    Column("architecture", drop=6),
    Column("bf16", right=True, drop=7),
    Column("fp8", right=True, drop=8),
    Column("fp64", right=True, drop=9),
    Column("graphics", drop=10),
    Column("MIG", drop=11),
    Column("sold by", wraps=True),
)


def _screen(catalog: Catalog, models: Sequence[Gpu], width: int) -> list[str]:
    head = (
        plural(len(models), "GPU model"),
        "rates in dense TFLOPS",
        words.catalogue(catalog),
    )
    rows = [_cells(catalog, gpu) for gpu in models]
    return [*flow(head, width, 0), "", *table(_COLUMNS, rows, width)]


def _cells(catalog: Catalog, gpu: Gpu) -> list[str]:
    return [
        gpu.model,
        f"{gpu.marketed_gb:g} GB",
        "?" if gpu.usable_gib is None else f"{gpu.usable_gib:.1f} GiB",
        _figure(gpu.memory_bandwidth_gb_s),
        f"{gpu.compute_capability:.1f}",
        gpu.architecture,
        _figure(gpu.bf16_tflops),
        _figure(gpu.fp8_tflops),
        _figure(gpu.fp64_tflops),
        words.graphics(gpu),
        words.yes_no(gpu.mig_supported),
        ", ".join(f"{cloud} {len(rows)}" for cloud, rows in _sellers(catalog, gpu)) or "nobody",
    ]


def _figure(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:g}"


def _sellers(catalog: Catalog, gpu: Gpu) -> Iterator[tuple[str, list[InstanceType]]]:
    for cloud in CLOUDS:
        rows = [row for row in catalog.rows([cloud]) if row.gpu_model == gpu.model]
        if rows:
            yield cloud, rows


def gpu_document(catalog: Catalog, gpu: Gpu) -> dict[str, object]:
    """Schema `gputier/catalog-gpu/1`."""
    facts = gpu._asdict() | {"mig_profiles": dict(gpu.mig_profiles)}
    sellers = {cloud: [row.name for row in rows] for cloud, rows in _sellers(catalog, gpu)}
    return {
        "schema": SCHEMA_ONE,
        "catalog": {"id": catalog.id, "as_of": catalog.as_of},
        "gpu": {**facts, "instance_types": sellers},
    }


def gpu_lines(catalog: Catalog, gpu: Gpu, width: int) -> list[str]:
    """One model whole."""
    lines = [
        *flow(
            (gpu.model, gpu.display_name, f"{gpu.marketed_gb:g} GB", words.catalogue(catalog)),
            width,
            0,
        ),
        *labelled("  facts", [f"{words.sources(gpu.source)} ({gpu.confidence})"], width, HANG),
        "",
    ]
    for label, parts in _facts(gpu):
        lines += labelled(f"  {label}", parts, width, HANG)
    for cloud, rows in _sellers(catalog, gpu):
        lines += labelled(f"  {cloud}", [", ".join(row.name for row in rows)], width, HANG)
    return lines


def _facts(gpu: Gpu) -> Iterator[tuple[str, Sequence[str]]]:
    usable = words.UNKNOWN if gpu.usable_gib is None else f"{gpu.usable_gib:.1f} GiB"
    origin = f" ({gpu.usable_source})" if gpu.usable_source else ""
    yield (
        "memory",
        (
            f"{gpu.vram_gib:g} GiB",
            f"usable {usable}{origin}",
            gpu.memory_type or f"type {words.UNKNOWN}",
            f"ECC {words.yes_no(gpu.ecc)}",
        ),
    )
    bandwidth = gpu.memory_bandwidth_gb_s
    yield (
        "rates",
        (
            f"{bandwidth:,.0f} GB/s" if bandwidth else f"bandwidth {words.UNKNOWN}",
            *words.rates(gpu),
        ),
    )
    yield (
        "kind",
        (
            f"{gpu.architecture}, compute capability {gpu.compute_capability:.1f}",
            gpu.form_factor,
            f"{gpu.tdp_w:g} W" if gpu.tdp_w else f"power {words.UNKNOWN}",
            "consumer card" if gpu.consumer else "",
        ),
    )
    yield from _abilities(gpu)


def _abilities(gpu: Gpu) -> Iterator[tuple[str, Sequence[str]]]:
    speed = gpu.nvlink_gb_s_per_gpu
    yield "NVLink", (words.UNKNOWN if speed is None else (f"{speed:g} GB/s" if speed else "none"),)
    yield (
        "MIG",
        (
            [f"{count} × {name}" for name, count in gpu.mig_profiles]
            or [words.yes_no(gpu.mig_supported)]
        ),
    )
    yield (
        "graphics",
        (
            words.graphics(gpu),
            f"encoders {_count(gpu.nvenc_count)}",
            f"decoders {_count(gpu.nvdec_count)}",
            f"vGPU {words.yes_no(gpu.vgpu_supported)}",
        ),
    )
    yield (
        "CUDA",
        (
            f"toolkit from {gpu.cuda_toolkit_min or words.UNKNOWN}",
            f"last {gpu.cuda_toolkit_last}" if gpu.cuda_toolkit_last else "",
            f"driver branch ends with {gpu.driver_branch_last}" if gpu.driver_branch_last else "",
        ),
    )
    yield "notes", [gpu.notes] if gpu.notes else []


def _count(value: int | None) -> str:
    return words.UNKNOWN if value is None else str(value)
