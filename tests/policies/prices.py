"""What the pack's prices.json holds, from the catalogue: `make docs` writes it again.

The pack imports nothing of ours, so that it starts fast and stands alone; prices are those that
`gputier plan` and `gputier review` reckon with, one for each region in which a machine is listed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from gputier.catalog import Catalog, Gpu, InstanceType
from gputier.plan.machine import Machine
from gputier.plan.price import LISTED, machine_price

CLOUDS = ("aws", "gcp")
BOUGHT = ("on_demand", "spot")


def text(catalog: Catalog) -> str:
    """The whole file: a line for each GPU and machine, so that a change of prices can be read."""
    head = {"catalog": catalog.id, "as_of": catalog.as_of}
    parts: dict[str, Mapping[str, Any]] = {
        "gpus": {model: gpu(one) for model, one in sorted(catalog.gpus.items())},
        **{cloud: dict(machines(catalog, cloud)) for cloud in CLOUDS},
        "hosts": dict(hosts(catalog)),
        "accelerators": dict(accelerators(catalog)),
    }
    blocks = [f'"{key}": {json.dumps(value)}' for key, value in head.items()]
    for name, rows in parts.items():
        lines = [f'  "{key}": {json.dumps(row)}' for key, row in rows.items()]
        blocks.append(f'"{name}": {{\n' + ",\n".join(lines) + "\n}")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def gpu(one: Gpu) -> dict[str, Any]:
    """`ended`: the newest CUDA toolkit does not support the card any more."""
    return {
        "memory_gib": one.vram_gib,
        "memory_gb_s": one.memory_bandwidth_gb_s,
        "fp32_tflops": one.fp32_tflops,
        "fp16_tflops": one.fp16_tflops,
        "fp64_tflops": one.fp64_tflops,
        "generation": one.generation,
        "ended": one.cuda_toolkit_last is not None,
        "consumer": one.consumer,
    }


def machines(catalog: Catalog, cloud: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for row in catalog.rows((cloud,)):
        if row.accelerator is None:
            yield row.name, {**about(row), **prices(catalog, row)}


def about(row: InstanceType) -> dict[str, Any]:
    return {
        "family": row.family,
        "gpu": row.gpu_model,
        "gpus": row.gpu_count,
        "vcpus": row.vcpus,
        "memory_gib": row.memory_gib,
        "cpu": row.cpu_arch,
        "lifecycle": row.lifecycle,
        "placement": row.placement_group,
        "fabric": row.interconnect,
        "spot": row.spot,
    }


def prices(catalog: Catalog, row: InstanceType) -> dict[str, dict[str, Any]]:
    """Region → USD an hour; with its basis where it is not the region's own list price."""
    found: dict[str, dict[str, Any]] = {}
    machine = Machine(row, None, 0, 1, None, 0.0)
    for bought in BOUGHT:
        listed = catalog.prices(row.cloud, row.name, bought)
        asked = {
            region: machine_price(catalog, machine, region, bought)
            for region in sorted({*listed, *catalog.zones(row.cloud, row.name)})
        }
        found[f"{bought}_usd"] = {
            region: price.usd if price.basis == LISTED else [round(price.usd, 6), price.basis]
            for region, price in asked.items()
            if price.usd is not None
        }
    return found


def _plain(catalog: Catalog, name: str) -> dict[str, dict[str, float]]:
    return {
        f"{bought}_usd": {r: p.usd_per_hour for r, p in catalog.prices("gcp", name, bought).items()}
        for bought in BOUGHT
    }


def hosts(catalog: Catalog) -> Iterator[tuple[str, dict[str, Any]]]:
    """The N1 machines that GPUs are attached to."""
    for host in catalog.hosts():
        about = {"vcpus": host.vcpus, "memory_gib": host.memory_gib}
        yield host.name, {**about, **_plain(catalog, host.name)}


def accelerators(catalog: Catalog) -> Iterator[tuple[str, dict[str, Any]]]:
    """The GPUs that can be attached, by one."""
    models = {r.accelerator: r for r in catalog.rows(("gcp",)) if r.accelerator}
    for name, row in sorted(models.items()):
        about = {"family": row.family, "gpu": row.gpu_model, "lifecycle": row.lifecycle}
        yield name, {**about, **_plain(catalog, f"accelerator:{name}")}
