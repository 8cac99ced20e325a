"""Which machines a search of the catalogue keeps. What is unknown never passes a filter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import click

from gputier import units
from gputier.catalog import CLOUDS, INTERCONNECTS, Catalog, InstanceType
from gputier.cli.command import completes
from gputier.cli.options import Decorator, complete_gpus
from gputier.errors import InvalidInput, Problem, spelling_hint


@dataclass(frozen=True)
class Filters:
    """A search: every field that is set must be met."""

    like: str = ""
    gpu: tuple[str, ...] = ()
    cloud: tuple[str, ...] = ()
    region: tuple[str, ...] = ()
    memory: float | None = None
    total_memory: float | None = None
    gpus: int | None = None
    capability: float | None = None
    graphics: str | None = None
    encode: bool = False
    decode: bool = False
    vgpu: bool = False
    mig: bool = False
    nvlink: bool = False
    fabric: str | None = None
    network: float | None = None
    vcpu: int | None = None
    host_memory: float | None = None
    scratch: float | None = None
    arch: str | None = None
    max_price: float | None = None
    spot: bool = False

    @property
    def purchase(self) -> str:
        return "spot" if self.spot else "on_demand"


class Quantity(click.ParamType[float]):
    """A quantity with its unit, parsed as in a workload file."""

    def __init__(self, name: str, parse: Callable[[str], float]) -> None:
        self.name = name
        self.parse = parse

    def convert(
        self, value: str | float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, (int, float)):
            return float(value)
        try:
            return self.parse(value)
        except ValueError as error:
            self.fail(f"{error}, not `{value}`", param, ctx)


_GPU_MEMORY = Quantity("SIZE", units.parse_gpu_memory_gib)
_SIZE = Quantity("SIZE", units.parse_size_gib)
_GBPS = Quantity("SPEED", units.parse_gbps)
_USD = Quantity("USD", units.parse_usd)


def _regions(_context: click.Context, _incomplete: str) -> list[str]:
    from gputier import catalog

    loaded = catalog.load()
    return [f"{cloud}:{region}" for cloud in CLOUDS for region in loaded.regions(cloud)]


_FLAGS: tuple[Decorator, ...] = (
    click.option("--like", default="", metavar="TEXT", help="Name, family or GPU contains TEXT."),
    click.option(
        "--gpu", multiple=True, metavar="MODEL", shell_complete=complete_gpus,
        help="GPU model, or `H100` for every variant. May be repeated.",
    ),
    click.option("--cloud", multiple=True, type=click.Choice(CLOUDS), help="May be repeated."),
    click.option(
        "--region", multiple=True, metavar="[CLOUD:]REGION", shell_complete=completes(_regions),
        help="Sold there; prices are of these regions. May be repeated.",
    ),
    click.option("--memory", type=_GPU_MEMORY, help="At least this class per GPU, such as 24GB."),
    click.option("--total-memory", type=_GPU_MEMORY, help="At least this in a machine."),
    click.option("--gpus", type=click.IntRange(min=1), help="At least this many GPUs."),
    click.option("--capability", type=float, help="At least this compute capability, such as 8.9."),
    click.option("--graphics", type=click.Choice(["opengl", "vulkan"]), help="It, not headless."),
    click.option("--encode", is_flag=True, help="Hardware video encoding (NVENC)."),
    click.option("--decode", is_flag=True, help="Hardware video decoding (NVDEC)."),
    click.option("--vgpu", is_flag=True, help="vGPU, or a slice made by the cloud."),
    click.option("--mig", is_flag=True, help="Divisible by MIG."),
    click.option("--nvlink", is_flag=True, help="GPUs joined by NVLink."),
    click.option(
        "--fabric", type=click.Choice(["any", *(i for i in INTERCONNECTS if i != "none")]),
        help="A fabric between machines.",
    ),
    click.option("--network", type=_GBPS, help="At least this, sustained, such as 10Gbps."),
    click.option("--vcpu", type=click.IntRange(min=1), help="At least this many vCPUs."),
    click.option("--host-memory", type=_SIZE, help="At least this, such as 64GiB."),
    click.option("--scratch", type=_SIZE, help="At least this local NVMe, bundled or not."),
    click.option("--arch", type=click.Choice(["x86_64", "arm64"]), help="CPU architecture."),
    click.option("--max-price", type=_USD, help="At most this per hour, such as 2.50."),
    click.option("--spot", is_flag=True, help="Sold as spot; prices are spot prices."),
)  # fmt: skip


def filter_options(function: Callable[..., object]) -> Callable[..., object]:
    """All filters as options, in this order."""
    for option in reversed(_FLAGS):
        function = option(function)
    return function


def check(catalog: Catalog, filters: Filters) -> None:
    """Refuse names that nobody knows. Raises InvalidInput with all of them."""
    problems = [
        Problem(
            "--gpu",
            f"`{name}` is not a GPU model in the catalogue",
            spelling_hint(name, catalog.gpus, otherwise="`gputier catalog gpus` lists the models"),
        )
        for name in filters.gpu
        if not catalog.match_gpus(name)
    ]
    problems += _unknown_regions(catalog, filters)
    if problems:
        raise InvalidInput(problems)


def _unknown_regions(catalog: Catalog, filters: Filters) -> Iterator[Problem]:
    for written in filters.region:
        cloud, region = split_region(written)
        if cloud and cloud not in CLOUDS:
            hint = spelling_hint(cloud, CLOUDS, otherwise=f"clouds: {', '.join(CLOUDS)}")
            yield Problem("--region", f"`{cloud}` is not a cloud", hint)
            continue
        among = (cloud,) if cloud else filters.cloud or CLOUDS
        known = {name for one in among for name in catalog.regions(one)}
        if region not in known:
            where = f" of {' or '.join(among)}" if len(among) < len(CLOUDS) else ""
            hint = spelling_hint(region, known, otherwise="`gputier catalog regions` lists them")
            yield Problem("--region", f"`{region}` is not a region{where} we know", hint)


def split_region(written: str) -> tuple[str, str]:
    """`aws:us-east-1` → (aws, us-east-1); without a cloud it is any cloud's."""
    cloud, colon, region = written.partition(":")
    return (cloud, region) if colon else ("", cloud)


def regions_for(row: InstanceType, filters: Filters) -> frozenset[str] | None:
    """The regions a search allows this row; None is any."""
    if not filters.region:
        return None
    split = map(split_region, filters.region)
    return frozenset(region for cloud, region in split if cloud in ("", row.cloud))


def matches(catalog: Catalog, row: InstanceType, filters: Filters, models: frozenset[str]) -> bool:
    """Whether a row meets every filter but the price's. `models` are those `filters.gpu` names."""
    wanted = filters.like.casefold()
    return (
        (not filters.cloud or row.cloud in filters.cloud)
        and (not models or row.gpu_model in models)
        and any(wanted in text.casefold() for text in (row.name, row.family, row.gpu_model))
        and _sold_there(catalog, row, filters)
        and _gpu_meets(catalog, row, filters)
        and _machine_meets(row, filters)
    )


def _sold_there(catalog: Catalog, row: InstanceType, filters: Filters) -> bool:
    if filters.spot and not row.spot:
        return False
    allowed = regions_for(row, filters)
    if allowed is None:
        return True
    listed = catalog.zones(row.cloud, row.name)
    # No source lists the type at all: where it is sold is unknown, and shown as unconfirmed.
    return (
        bool(allowed & set(catalog.regions(row.cloud)))
        if not listed
        else bool(allowed & set(listed))
    )


def _gpu_meets(catalog: Catalog, row: InstanceType, filters: Filters) -> bool:
    gpu = catalog.gpus[row.gpu_model]
    draws = gpu.draws and row.graphics is not False
    return (
        row.memory_class_gb >= (filters.memory or 0)
        and row.memory_class_gb * row.gpu_devices >= (filters.total_memory or 0)
        and row.gpu_devices >= (filters.gpus or 0)
        and gpu.compute_capability >= (filters.capability or 0)
        and (not filters.graphics or draws)
        and (not filters.encode or bool(gpu.nvenc_count))
        and (not filters.decode or bool(gpu.nvdec_count))
        and (not filters.vgpu or row.fractional or bool(gpu.vgpu_supported))
        and (not filters.mig or (bool(gpu.mig_supported) and not row.fractional))
    )


def _machine_meets(row: InstanceType, filters: Filters) -> bool:
    vcpus = row.vcpu_range[1] if row.vcpu_range else row.vcpus
    memory = row.memory_range[1] if row.memory_range else row.memory_gib
    return (
        (not filters.nvlink or bool(row.nvlink))
        and _fabric_meets(row, filters.fabric)
        and (row.network_sustained_gbps or 0) >= (filters.network or 0)
        and (vcpus or 0) >= (filters.vcpu or 0)
        and (memory or 0) >= (filters.host_memory or 0)
        and most_scratch(row) >= (filters.scratch or 0)
        and (not filters.arch or row.cpu_arch == filters.arch)
    )


def _fabric_meets(row: InstanceType, wanted: str | None) -> bool:
    if not wanted:
        return True
    return row.interconnect != "none" if wanted == "any" else row.interconnect == wanted


def most_scratch(row: InstanceType) -> float:
    """GiB of local NVMe at most, bundled and attached."""
    attached = max(row.attachable_ssd_counts, default=0) * (row.attachable_ssd_gib or 0.0)
    return (row.local_nvme_gib or 0.0) + attached
