"""`gputier catalog show`: one machine whole, with dates and sources."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import click

from gputier import units
from gputier.catalog import PURCHASES, Catalog, Gpu, InstanceType
from gputier.cli import catalog_words as words
from gputier.cli import console
from gputier.cli.catalog_google import facts_of, google_lines
from gputier.cli.catalog_gpus import gpu_document, gpu_lines
from gputier.cli.catalog_list import type_document
from gputier.cli.catalog_prices import Listed, cheapest, listed_prices
from gputier.cli.command import Command
from gputier.cli.inputs import json_text, load_catalog
from gputier.cli.money import per_hour
from gputier.cli.options import catalog_option, complete_types, json_option
from gputier.cli.text import Column, Letters, flow, labelled, plural, table
from gputier.errors import ExitCode, InvalidInput, Problem, spelling_hint

SCHEMA = "gputier/catalog-type/1"
HANG = 14


@click.command(
    cls=Command,
    examples=(
        ("gputier catalog show p5.48xlarge", "hardware, prices per region, offerings, EFA layout"),
        ("gputier catalog show L40S", "a GPU model, and the machines that carry it"),
    ),
)
@click.argument("name", metavar="TYPE", shell_complete=complete_types)
@json_option("it")
@catalog_option
def show(name: str, as_json: bool, catalog_directory: str | None) -> int:
    """Everything known about one machine or GPU.

    What the catalogue does not know is printed as unknown.
    """
    catalog = load_catalog(catalog_directory)
    rows = catalog.find_type(name)
    if not rows and name in catalog.gpus:
        gpu = catalog.gpus[name]
        if as_json:
            console.out(json_text(gpu_document(catalog, gpu)))
        else:
            console.out("\n".join(gpu_lines(catalog, gpu, console.width())))
        return ExitCode.OK
    rows = rows or (find(catalog, name, catalog.gpus),)
    if as_json:
        for row in rows:
            console.out(json_text(document(catalog, row)))
    else:
        screens = ["\n".join(screen(catalog, row, console.width())) for row in rows]
        console.out("\n\n".join(screens))
    return ExitCode.OK


def find(catalog: Catalog, name: str, also: Collection[str] = ()) -> InstanceType:
    """The type of that name. Raises InvalidInput with the nearest names, `also` among them."""
    found = catalog.find_type(name)
    if found:
        return found[0]
    names = {one for _cloud, one in catalog.types}
    models = catalog.match_gpus(name)
    otherwise = "`gputier catalog` lists the types"
    if models:
        otherwise = f"`gputier catalog --gpu {models[0]}` lists the machines that carry it"
    raise InvalidInput(
        Problem(
            "",
            f"`{name}` is not an instance type in the catalogue",
            otherwise
            if models and not also
            else spelling_hint(name, names.union(also), otherwise=otherwise),
        )
    )


def document(catalog: Catalog, row: InstanceType) -> dict[str, object]:
    """Schema `gputier/catalog-type/1`: the list's fields and everything else."""
    prices = {purchase: listed_prices(catalog, row, purchase) for purchase in PURCHASES}
    return {
        "schema": SCHEMA,
        "catalog": {"id": catalog.id, "as_of": catalog.as_of},
        **type_document(catalog, row),
        "facts": {name: value for name, value in row._asdict().items() if name not in _ELSEWHERE}
        | {"zone_caps": [cap._asdict() for cap in row.zone_caps]},
        "gpu": gpu_document(catalog, catalog.gpus[row.gpu_model])["gpu"],
        "offerings": {region: list(z) for region, z in catalog.zones(row.cloud, row.name).items()},
        "prices": {purchase: _price_rows(found) for purchase, found in prices.items()},
        "network_layout": _layout(catalog, row) or None,
    }


#: Facts that the document's own fields say already.
_ELSEWHERE = frozenset({"cloud", "name", "zone_caps"})


def _price_rows(prices: Mapping[str, Listed]) -> list[dict[str, object]]:
    return [
        {
            "region": p.region,
            "usd_per_hour": round(p.usd_per_hour, 6),
            "host": p.host or None,
            "as_of": p.as_of,
            "source": p.source,
            "note": p.note or None,
        }
        for p in prices.values()
    ]


def screen(catalog: Catalog, row: InstanceType, width: int) -> list[str]:
    """One machine whole."""
    head = (row.name, row.cloud, words.card(row), row.lifecycle, _cheapest(catalog, row))
    head = (*head, words.catalogue(catalog))
    lines = [
        *flow(head, width, 0),
        *labelled("  facts", [f"{words.sources(row.source)}, as of {row.as_of}"], width, HANG),
        "",
    ]
    for label, parts in _facts(catalog, row):
        lines += labelled(f"  {label}", parts, width, HANG)
    lines += _layout_lines(catalog, row, width)
    lines += google_lines(catalog, row, width)
    lines += _price_lines(catalog, row, width)
    return lines


def _cheapest(catalog: Catalog, row: InstanceType) -> str:
    prices = listed_prices(catalog, row, "on_demand")
    best = cheapest(row, prices, None)
    return f"from {per_hour(best.usd_per_hour)} in {best.region}" if best else "price unknown"


def _facts(catalog: Catalog, row: InstanceType) -> Iterator[tuple[str, Iterable[str]]]:
    gpu = catalog.gpus[row.gpu_model]
    yield "GPU", (words.gpus(row), gpu.display_name, *_gpu_facts(row, gpu))
    yield "GPU memory", _gpu_memory(row)
    yield "rates", _rates(gpu)
    yield "NVLink", (words.nvlink(row),)
    yield "CPU", _cpu(row)
    yield "host memory", (words.host_memory(row),)
    yield "local NVMe", _nvme(row)
    yield "volumes", _volumes(row)
    yield "network", _network(row)
    yield "fabric", _fabric(row)
    yield "placement", (row.placement_group,)
    yield "sold as", _sold_as(row)
    yield "offered in", _offered(catalog, row)
    yield (
        "zone limits",
        [f"{cap.zone}: up to {cap.vcpus} vCPU, {cap.memory_gib:g} GiB" for cap in row.zone_caps],
    )
    yield "unverified", [", ".join(row.unverified)] if row.unverified else []
    yield "notes", [row.notes] if row.notes else []


def _gpu_facts(row: InstanceType, gpu: Gpu) -> Iterator[str]:
    yield f"{gpu.architecture}, compute capability {gpu.compute_capability:.1f}"
    yield gpu.form_factor
    yield f"ECC {words.yes_no(gpu.ecc)}"
    yield f"MIG {words.yes_no(gpu.mig_supported)}"
    yield f"graphics {words.graphics(gpu, row)}"
    if row.gpu_model_confidence != "provider":
        yield "inferred: the cloud does not name the GPU"


def _gpu_memory(row: InstanceType) -> Iterator[str]:
    yield f"{row.gpu_memory_gib:g} GiB a GPU"
    yield f"{row.usable_gib:.1f} GiB usable by a process"
    yield f"sold as {row.memory_class_gb:g} GB"
    if row.gpu_devices > 1:
        yield f"{row.memory_class_gb * row.gpu_devices:g} GB in all"


def _rates(gpu: Gpu) -> Iterator[str]:
    yield (
        f"{gpu.memory_bandwidth_gb_s:,.0f} GB/s"
        if gpu.memory_bandwidth_gb_s
        else f"bandwidth {words.UNKNOWN}"
    )
    yield from words.rates(gpu)


def _cpu(row: InstanceType) -> Iterator[str]:
    yield f"{words.vcpu(row)} vCPU"
    yield row.cpu_arch
    yield row.cpu_platform or f"platform {words.UNKNOWN}"
    if row.numa_nodes:
        yield plural(row.numa_nodes, "NUMA node")
    if row.host_pcie_generation:
        yield f"PCIe {row.host_pcie_generation}.0"
    if row.bare_metal:
        yield "bare metal"


def _nvme(row: InstanceType) -> Iterator[str]:
    if row.local_nvme_gib:
        count = f"{plural(row.local_nvme_count, 'disk')}, " if row.local_nvme_count else ""
        yield f"{count}{row.local_nvme_gib:,.0f} GiB in all"
    elif row.local_nvme_gib is None:
        yield words.UNKNOWN
    elif not row.attachable_ssd_counts:
        yield "none"
    if row.attachable_ssd_counts:
        counts = ", ".join(map(str, row.attachable_ssd_counts))
        yield f"attachable: {counts} × {row.attachable_ssd_gib:g} GiB"


def _volumes(row: InstanceType) -> Iterator[str]:
    if row.volume_mb_s is None:
        yield f"limit {words.UNKNOWN}"
        return
    yield f"{units.mb_s(row.volume_mb_s)} sustained"
    if (row.volume_burst_mb_s or 0) > row.volume_mb_s:
        yield f"up to {units.mb_s(row.volume_burst_mb_s or 0)}"
    if row.volume_iops:
        yield f"{row.volume_iops:,.0f} IOPS sustained"


def _network(row: InstanceType) -> Iterator[str]:
    yield words.network_whole(row)
    if row.network_cards:
        yield plural(row.network_cards, "network card")
    if row.network_interfaces_max:
        yield f"up to {plural(row.network_interfaces_max, 'interface')}"
    if row.ipv4_per_interface:
        yield f"{row.ipv4_per_interface} IPv4 addresses an interface"


def _fabric(row: InstanceType) -> Iterator[str]:
    if row.interconnect == "none":
        yield "none"
        return
    yield words.fabric(row)
    yield f"RDMA {words.yes_no(row.rdma)}"
    yield f"GPUDirect RDMA {words.yes_no(row.gpudirect_rdma)}"
    if row.efa_interfaces_max:
        yield f"up to {plural(row.efa_interfaces_max, 'EFA interface')}"


def _sold_as(row: InstanceType) -> Iterator[str]:
    for word, sold in (("on demand", row.on_demand), ("spot", row.spot)):
        if sold is None:
            yield f"{word}: {words.UNKNOWN}"
        elif sold:
            yield word
    yield from row.other_purchase


def _offered(catalog: Catalog, row: InstanceType) -> list[str]:
    zones = catalog.zones(row.cloud, row.name)
    if not zones:
        return ["unconfirmed: no source lists it in any region"]
    count = sum(len(z) for z in zones.values())
    return [f"{plural(len(zones), 'region')}, {plural(count, 'zone')}: {', '.join(zones)}"]


def _layout(catalog: Catalog, row: InstanceType) -> Mapping[str, str]:
    if row.cloud != "aws":
        return facts_of(catalog, row)
    for fact in catalog.facts("aws_network"):
        if fact["instance_type"] == row.name:
            return fact
    return {}


#: Column of the layout table → what it is good for.
_LAYOUTS = {
    "layout_all_bandwidth": "all bandwidth",
    "layout_save_ips": "fewest addresses",
    "layout_single_interface": "one interface",
    "layout_older_combined": "older, combined",
}


def _layout_lines(catalog: Catalog, row: InstanceType, width: int) -> list[str]:
    """How EFA and plain interfaces are laid over the cards."""
    layout = _layout(catalog, row)
    if not layout or not row.efa_interfaces_max:
        return []
    lines = ["", "  EFA layout (card : device : kind)"]
    cells: list[list[str]] = []
    for column, title in _LAYOUTS.items():
        if layout.get(column):
            cells.append([title, layout[column].replace(";", "; ")])
    if layout.get("device_index_rule"):
        cells.append(["rule", layout["device_index_rule"]])
    cells.append(
        [
            "source",
            f"{words.sources(layout['source'])}, as of {layout['as_of']}: {layout['confidence']}",
        ]
    )
    return [*lines, *table((Column(), Column(wraps=True)), cells, width, "    ")]


_PRICE_COLUMNS = (
    Column("region"),
    Column("on demand", right=True),
    Column("spot", right=True),
    Column("1 year", right=True),
    Column("3 years", right=True),
    Column("zones", wraps=True, drop=3),
    Column("as of", drop=1),
    Column("from", drop=2),
    Column("advisor saves", right=True, drop=4),
    Column("interrupted", right=True, drop=5),
)


def _price_lines(catalog: Catalog, row: InstanceType, width: int) -> list[str]:
    """A row per region with a price or an offering; sources by letter."""
    prices = {purchase: listed_prices(catalog, row, purchase) for purchase in PURCHASES}
    zones = catalog.zones(row.cloud, row.name)
    regions = sorted({*zones, *(region for found in prices.values() for region in found)})
    if not regions:
        return ["", "  no price in any region"]
    known = [one for found in prices.values() for one in found.values()]
    letters = Letters(one.source for one in known)
    cells: list[list[str]] = []
    for region in regions:
        here = [prices[purchase].get(region) for purchase in PURCHASES]
        dated = [one for one in here if one is not None]
        cells.append(
            [
                region,
                *(_dollars(one) for one in here),
                zones_text(region, zones.get(region, ())) if zones else "unconfirmed",
                min((one.as_of for one in dated), default=""),
                letters.of(one.source for one in dated),
                *_advice(catalog, row, region),
            ]
        )
    hosts = sorted({one.host for one in prices["on_demand"].values() if one.host})
    head = ["prices in USD per hour", f"with {', '.join(hosts)}" if hosts else ""]
    head += ["`as of` is the oldest of its row" if known else ""]
    advised = [catalog.spot_advice(region, row.name) for region in regions if row.cloud == "aws"]
    dates = sorted({one.as_of for one in advised if one})
    if dates:
        head.append(f"`advisor saves` is AWS's own figure of {dates[0]}, not these prices")
    return [
        "",
        *("  " + line for line in flow(head, width - 2, 0)),
        *table(_PRICE_COLUMNS, cells, width, "  "),
        *labelled("  from", letters.legend, width, 8),
    ]


def _advice(catalog: Catalog, row: InstanceType, region: str) -> tuple[str, str]:
    """The spot advisor's words, AWS only."""
    advice = catalog.spot_advice(region, row.name) if row.cloud == "aws" else None
    return (f"{advice.savings_percent:g} %", advice.interruption) if advice else ("", "")


def _dollars(price: Listed | None) -> str:
    return per_hour(price.usd_per_hour).removesuffix("/h") if price else "unknown"


def zones_text(region: str, zones: Sequence[str]) -> str:
    """`use1-az1, 2, 4` and `a, b`: what the region or the first zone says is not repeated."""
    if not zones:
        return "not offered"
    names = [zone.removeprefix(f"{region}-") for zone in zones]
    stem = names[0].rstrip("0123456789")
    if len(stem) > 1 and all(name.startswith(stem) for name in names):
        names = [names[0], *(name.removeprefix(stem) for name in names[1:])]
    return ", ".join(names)
