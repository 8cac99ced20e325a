"""What the command line's tests share: a small catalogue, a project, and what a run gives back."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from gputier.catalog import Catalog
from gputier.catalog.tables import DATA, KEYS, Source, Table, parse

HERE = Path(__file__).parent
ID = "5eed5eed5eed5eed"


class Ran(NamedTuple):
    """What a command line did."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]


def small_tables() -> dict[str, Table]:
    """The packaged tables' columns with the rows of tests/cli/catalog."""
    tables: dict[str, Table] = {}
    for name in KEYS:
        with (DATA / f"{name}.csv").open(encoding="utf-8") as file:
            columns = parse(name, file.readline()).columns
        own = HERE / "catalog" / f"{name}.csv"
        rows: list[list[str]] = []
        if own.is_file():
            table = parse(str(own), own.read_text(encoding="utf-8"))
            assert set(table.columns) <= set(columns), f"{own} has columns the catalogue lost"
            places = [table.columns.get(column) for column in columns]
            rows = [["" if p is None else row[p] for p in places] for row in table.rows]
        tables[name] = Table(str(own), columns, rows)
    return tables


SMALL = Catalog(Source(ID, {name: (table,) for name, table in small_tables().items()}))


PROD = """\
config:
  aws:region: us-east-1
  gputier:defaults: {clouds: [aws]}
  gputier:workloads:
    chat:
      tier: entry
      purpose: inference
      model: {name: llama-3.1-8b, precision: fp8, context_tokens: 8192, concurrent_sequences: 4}
      scale: {min: 1, max: 6, metric: gpu_utilization, target: 70}
      budget: {usd_per_month: 600}
    tuner:
      tier: mid
      purpose: fine-tuning
      model:
        parameters: 7B
        precision: bf16
        context_tokens: 2048
        training: {method: qlora, batch_per_gpu: 1, gradient_checkpointing: full}
      capacity: spot
      schedule: [{start: "0 20 * * mon-fri", stop: "0 6 * * tue-sat", timezone: Europe/Berlin}]
    foundation:
      tier: high-end
      purpose: training
      gpu: {models: [H100], count: 8}
      nodes: 4
      fabric: any
"""
DEV = """\
config:
  gputier:workloads:
    both:
      gpu: {memory: 24GB}
      regions: {aws: [eu-central-1], gcp: [europe-west4]}
    never:
      purpose: rendering
      gpu: {memory: 96GB}
      clouds: [aws]
    plain:
      purpose: hpc
      clouds: [aws, azure, gcp]
      regions: {aws: [us-east-1]}
"""

RICH = """\
environment: staging
discounts: [{cloud: aws, families: [g6], percent: 27, reason: a savings plan}]
workloads:
  chat:
    tier: entry
    purpose: inference
    model: {name: llama-3.1-8b, precision: fp8, context_tokens: 8192}
    gpu: {memory: 16GB}
    disk: {data: 500GB, persist: true, scratch: 100GB}
    network: {egress: endpoints}
    clouds: [aws]
    scale: {min: 0, max: 3}
    budget: {usd_per_month: 100, alerts: [50, 100], action: scale-to-zero,
      anomalies: create}
    schedule: [{start: "0 8 * * mon-fri", stop: "0 18 * * mon-fri", timezone: Europe/Berlin}]
    capacity: [{use: spot, max_usd_per_hour: 0.01}, on_demand]
  desk: {purpose: vdi, model: {seats: 2}, clouds: [gcp]}
  image: {model: {name: stable-diffusion-xl, image: {resolution: 1024x1024, batch: 2}}}
  fast: {gpu: {count: 2}, prefer: speed, clouds: [aws], max_usd_per_hour: 30}
  own: {model: {measured_gib: 18.5}, clouds: [aws], hours_per_month: 200}
  held:
    capacity: {use: reservation, instance_type: p5.48xlarge, zone: use1-az4, count: 2}
    nodes: 2
    gpu: {nvlink: true}
  block:
    capacity: {use: capacity_block, instance_type: p5.48xlarge, zone: use1-az4, count: 1}
  azure: {gpu: {memory: 16GB}, clouds: [azure]}
"""


def too_wide(text: str, columns: int) -> list[str]:
    """Lines beyond the terminal's edge."""
    return [
        line for line in text.splitlines() if len(re.sub(r"\x1b\[[0-9;]*m", "", line)) > columns
    ]
