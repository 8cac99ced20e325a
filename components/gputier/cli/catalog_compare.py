"""`gputier catalog compare`: machines side by side, facts as rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from gputier import units
from gputier.catalog import Catalog, InstanceType
from gputier.cli import catalog_words as words
from gputier.cli import console
from gputier.cli.catalog_prices import Listed, cheapest, listed_prices
from gputier.cli.catalog_show import document, find
from gputier.cli.command import Command
from gputier.cli.inputs import json_text, load_catalog
from gputier.cli.money import per_hour
from gputier.cli.options import catalog_option, complete_types, json_option
from gputier.cli.text import Column, columns_of, flow, table
from gputier.errors import ExitCode, InvalidInput, Problem

SCHEMA = "gputier/catalog-compare/1"


@click.command(
    cls=Command,
    examples=(
        ("gputier catalog compare g6.xlarge g5.xlarge g2-standard-4", "cheapest listed prices"),
        ("gputier catalog compare p5.48xlarge a3-highgpu-8g --json", "for programs"),
    ),
)
@click.argument(
    "names", metavar="TYPE TYPE...", nargs=-1, required=True, shell_complete=complete_types
)
@json_option("the machines")
@catalog_option
def compare(names: tuple[str, ...], as_json: bool, catalog_directory: str | None) -> int:
    """Machines side by side.

    Prices are the cheapest listed ones of any commercial region, with their date and source.
    """
    catalog = load_catalog(catalog_directory)
    rows = _rows(catalog, names)
    if as_json:
        found = [document(catalog, row) for row in rows]
        for one in found:
            del one["schema"], one["catalog"]
        head = {"id": catalog.id, "as_of": catalog.as_of}
        console.out(json_text({"schema": SCHEMA, "catalog": head, "types": found}))
    else:
        console.out("\n".join(screen(catalog, rows, console.width())))
    return ExitCode.OK


def _rows(catalog: Catalog, names: Sequence[str]) -> list[InstanceType]:
    rows: list[InstanceType] = []
    problems: list[Problem] = []
    for name in dict.fromkeys(names):
        try:
            rows.append(find(catalog, name))
        except InvalidInput as error:
            problems += error.problems
    if problems:
        raise InvalidInput(problems)
    if len(rows) < 2:
        hint = f"name another type, or `gputier catalog show {names[0]}`"
        raise InvalidInput(Problem("", "one machine cannot be compared", hint))
    return rows


Fact = Callable[[Catalog, InstanceType], str]

_FACTS: tuple[tuple[str, Fact], ...] = (
    ("cloud", lambda _c, r: r.cloud),
    ("GPUs", lambda _c, r: words.gpus(r)),
    ("memory per GPU", lambda _c, r: f"{r.memory_class_gb:g} GB"),
    ("usable per GPU", lambda _c, r: f"{r.usable_gib:.1f} GiB"),
    ("GPU memory", lambda _c, r: f"{r.memory_class_gb * r.gpu_devices:g} GB"),
    ("bandwidth", lambda c, r: _figure(c.gpus[r.gpu_model].memory_bandwidth_gb_s, "GB/s")),
    ("bf16 dense", lambda c, r: _figure(c.gpus[r.gpu_model].bf16_tflops, "TFLOPS")),
    ("fp8 dense", lambda c, r: _figure(c.gpus[r.gpu_model].fp8_tflops, "TFLOPS")),
    ("fp64", lambda c, r: _figure(c.gpus[r.gpu_model].fp64_tflops, "TFLOPS")),
    ("capability", lambda c, r: f"{c.gpus[r.gpu_model].compute_capability:.1f}"),
    ("graphics", lambda c, r: words.graphics(c.gpus[r.gpu_model], r)),
    ("NVLink", lambda _c, r: words.nvlink(r)),
    ("vCPU", lambda _c, r: words.vcpu(r)),
    ("CPU", lambda _c, r: r.cpu_arch),
    ("host memory", lambda _c, r: words.host_memory(r)),
    ("local NVMe", lambda _c, r: words.scratch(r)),
    (
        "volumes",
        lambda _c, r: words.UNKNOWN if r.volume_mb_s is None else units.mb_s(r.volume_mb_s),
    ),
    ("network", lambda _c, r: words.network(r)),
    ("fabric", lambda _c, r: words.fabric(r)),
    ("placement", lambda _c, r: r.placement_group),
    ("lifecycle", lambda _c, r: r.lifecycle),
    ("offered in", lambda c, r: words.offered(c, r)),
    ("facts as of", lambda _c, r: r.as_of),
)
_PURCHASES = (
    ("on demand", "on_demand"),
    ("spot", "spot"),
    ("1 year", "reserved_1y"),
    ("3 years", "reserved_3y"),
)


def _figure(value: float | None, unit: str) -> str:
    return (
        words.UNKNOWN
        if value is None
        else f"{value:,.0f} {unit}"
        if value >= 10
        else f"{value:g} {unit}"
    )


def screen(catalog: Catalog, rows: Sequence[InstanceType], width: int) -> list[str]:
    """Facts as rows, machines as columns; as many machines to a table as fit."""
    head = (f"{len(rows)} machines", words.catalogue(catalog))
    lines = list(flow(head, width, 0))
    facts = _cells(catalog, rows)
    sizes = [max(columns_of(cells[n]) for cells in facts) + 2 for n in range(len(rows) + 1)]
    place = 1
    while place <= len(rows):
        end, used = place, sizes[0]
        while end <= len(rows) and (end == place or used + sizes[end] <= width):
            used += sizes[end]
            end += 1
        part = [[cells[0], *cells[place:end]] for cells in facts]
        columns = (Column(), *(Column(right=True) for _ in range(place, end)))
        lines += ["", *table(columns, part, width)]
        place = end
    return lines


def _cells(catalog: Catalog, rows: Sequence[InstanceType]) -> list[list[str]]:
    cells = [["", *(row.name for row in rows)]]
    cells += [[title, *(fact(catalog, row) for row in rows)] for title, fact in _FACTS]
    for title, purchase in _PURCHASES:
        found = [cheapest(row, listed_prices(catalog, row, purchase), None) for row in rows]
        cells.append([title, *(_money(one) for one in found)])
        if any(found):
            cells.append(["  in", *(one.region if one else "" for one in found)])
            cells.append(["  as of", *(one.as_of if one else "" for one in found)])
            cells.append(["  source", *(one.source if one else "" for one in found)])
    return cells


def _money(price: Listed | None) -> str:
    return per_hour(price.usd_per_hour if price else None)
