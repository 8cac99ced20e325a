"""What must hold for every row of a catalogue, ours or one with a person's overlay.

Each check is a function from a catalogue to the problems it finds, one line of text each.
`refresh` refuses to write an overlay that has any, and the tests run all of them over the
packaged data and each of them over a row that was broken on purpose.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from gputier.catalog.integrity_software import (
    branches_and_cuda_agree,
    drivers_cover_every_card,
    images_are_for_known_machines,
    wheels_are_sane,
)
from gputier.catalog.load import EVERYWHERE, Catalog
from gputier.catalog.records import CLOUDS, INTERCONNECTS, LIFECYCLES, PURCHASES, InstanceType
from gputier.catalog.regions import region_of_zone
from gputier.catalog.tables import KEYS

_DATE = re.compile(r"\d{4}(-\d\d(-\d\d)?)?")
_PRICE_DATE = re.compile(r"\d{4}-\d\d(-\d\d)?")
_CONFIDENCE = ("provider", "inferred", "inferred-fraction")
_ARM_GPUS = ("GB200", "GB300", "GH200-96GB", "GH200-144GB", "T4G")
_ARM_FAMILIES = ("ebmgn6ia", "gn7ia", "gn7r")  # Alibaba: the GPU's name does not tell
# USD per hour of one whole GPU on demand; outside this a price is a unit mistake.
_USD_PER_GPU_HOUR = (0.10, 60.0)

Check = Callable[[Catalog], Iterator[str]]


def problems(catalog: Catalog, checks: Iterable[Check] | None = None) -> tuple[str, ...]:
    """Every problem of every check, in the checks' order."""
    return tuple(one for check in (CHECKS if checks is None else checks) for one in check(catalog))


def _types(catalog: Catalog) -> Iterator[tuple[str, InstanceType]]:
    return ((f"{one.cloud} {one.name}", one) for one in catalog.types.values())


def type_figures_are_within_range(catalog: Catalog) -> Iterator[str]:
    limits = {
        "vcpus": (1, 1024),
        "memory_gib": (0.5, 8192),
        "gpu_count": (0.01, 16),
        "gpu_devices": (1, 16),
        "gpu_memory_gib": (1, 512),
        "local_nvme_count": (0, 64),
        "local_nvme_gib": (0, 100_000),
        "network_sustained_gbps": (0.1, 10_000),
        "network_burst_gbps": (0.1, 10_000),
        "network_cards": (1, 64),
        "network_interfaces_max": (1, 128),
        "interconnect_gbps": (0, 10_000),
        "nvlink_domain_gpus": (0, 72),
        "numa_nodes": (1, 16),
        "host_pcie_generation": (3, 6),
        "volume_mb_s": (10, 50_000),
        "volume_iops": (500, 1_000_000),
        "ipv4_per_interface": (1, 256),
    }
    for where, one in _types(catalog):
        for field, (low, high) in limits.items():
            value = getattr(one, field)
            if value is not None and not low <= value <= high:
                yield f"{where}: {field} is {value:g}, outside {low} to {high}"
        if (
            one.network_sustained_gbps
            and one.network_burst_gbps
            and (one.network_sustained_gbps > one.network_burst_gbps)
        ):
            yield f"{where}: sustained network exceeds its burst"
        if one.volume_mb_s and one.volume_burst_mb_s and one.volume_mb_s > one.volume_burst_mb_s:
            yield f"{where}: sustained volume speed exceeds its burst"


def type_words_are_known(catalog: Catalog) -> Iterator[str]:
    columns = {cloud: set(catalog.columns(cloud)) for cloud in CLOUDS}
    for where, one in _types(catalog):
        for field, value, known in (
            ("lifecycle", one.lifecycle, LIFECYCLES),
            ("interconnect", one.interconnect, INTERCONNECTS),
            ("gpu_model_confidence", one.gpu_model_confidence, _CONFIDENCE),
            ("cpu_arch", one.cpu_arch, ("x86_64", "arm64")),
        ):
            if value not in known:
                yield f"{where}: {field} is `{value}`"
        for field in ("family", "placement_group", "source"):
            if not getattr(one, field):
                yield f"{where}: {field} is empty"
        if not _DATE.fullmatch(one.as_of):
            yield f"{where}: as_of is `{one.as_of}`, no date"
        unknown = set(one.unverified) - columns[one.cloud]
        if unknown:
            yield f"{where}: unverified names no column: {', '.join(sorted(unknown))}"


def gpu_memory_is_never_above_nominal(catalog: Catalog) -> Iterator[str]:
    for where, one in _types(catalog):
        gpu = catalog.gpus[one.gpu_model]
        # 0.5 %: providers round 277.5 to 278 or 279.
        if one.gpu_memory_gib > gpu.vram_gib * 1.005 or one.gpu_memory_gib > gpu.marketed_gb:
            yield f"{where}: {one.gpu_memory_gib:g} GiB is more than a {gpu.model} has"
        if not one.fractional and one.gpu_memory_gib < gpu.vram_gib * 0.98:
            yield f"{where}: {one.gpu_memory_gib:g} GiB is less than a whole {gpu.model}"
        visible = one.gpu_memory_visible_mib
        if visible is not None and not 0.92 <= visible / 1024 / one.gpu_memory_gib <= 1.005:
            yield f"{where}: visible memory is not within 8 % below nominal"
        if not 0 < one.usable_gib <= one.gpu_memory_gib:
            yield f"{where}: usable memory is above nominal"
        if visible is not None and one.usable_gib > visible / 1024:
            yield f"{where}: usable memory is above what the API prints"


def slices_are_never_whole_gpus(catalog: Catalog) -> Iterator[str]:
    for where, one in _types(catalog):
        share = one.gpu_memory_gib / catalog.gpus[one.gpu_model].vram_gib
        if one.fractional:
            if one.gpu_count > 1 or one.gpu_devices != 1:
                yield f"{where}: a slice is one device and less than one GPU"
            elif abs(share - one.gpu_count) > 0.02:
                yield f"{where}: {one.gpu_count:g} of a GPU with {share:.2f} of its memory"
        elif one.gpu_devices != one.gpu_count:
            yield f"{where}: {one.gpu_count:g} whole GPUs as {one.gpu_devices} devices"


def arm_hosts_are_exactly_the_known_ones(catalog: Catalog) -> Iterator[str]:
    for where, one in _types(catalog):
        expected = one.gpu_model in _ARM_GPUS or (
            one.cloud == "alibaba" and one.family in _ARM_FAMILIES
        )
        if (one.cpu_arch == "arm64") != expected:
            yield f"{where}: cpu_arch is {one.cpu_arch}"


def nvlink_only_where_the_gpu_has_it(catalog: Catalog) -> Iterator[str]:
    for where, one in _types(catalog):
        gpu = catalog.gpus[one.gpu_model]
        speed = one.nvlink_gb_s_per_gpu or 0
        if one.nvlink:
            if speed <= 0 or speed > (gpu.nvlink_gb_s_per_gpu or 0):
                yield f"{where}: NVLink at {speed:g} GB/s, the {gpu.model} has less"
            if (one.nvlink_domain_gpus or 0) < 2:
                yield f"{where}: an NVLink domain of fewer than 2 GPUs"
        elif one.nvlink is False and speed:
            yield f"{where}: no NVLink, yet {speed:g} GB/s of it"


def fabric_facts_agree(catalog: Catalog) -> Iterator[str]:
    for where, one in _types(catalog):
        efa = one.efa_interfaces_max
        if one.cloud == "aws":
            if (one.interconnect == "efa") != bool(efa):
                yield f"{where}: interconnect {one.interconnect} with {efa} EFA interfaces"
        elif efa is not None or one.interconnect == "efa":
            yield f"{where}: EFA exists on AWS only"
        if one.interconnect == "none" and (one.rdma or one.gpudirect_rdma):
            yield f"{where}: RDMA without a fabric"
        if one.gpudirect_rdma and not one.rdma:
            yield f"{where}: GPUDirect RDMA without RDMA"
        if one.volume_mb_s is not None and one.cloud not in ("aws", "gcp"):
            yield f"{where}: volume limits are known for AWS and GCP only"


def attached_gpus_are_composable(catalog: Catalog) -> Iterator[str]:
    for where, one in _types(catalog):
        composed = one.accelerator is not None
        if composed != (one.vcpu_range is not None) or composed != (one.memory_range is not None):
            yield f"{where}: only an attached GPU has a choice of hosts"
        if not composed and (one.vcpus is None or one.memory_gib is None):
            yield f"{where}: no vCPU or memory figure"
        if one.vcpu_range and one.memory_range:
            (low, high), (low_gib, high_gib) = one.vcpu_range, one.memory_range
            if low >= high or low_gib >= high_gib or one.attached_count != one.gpu_count:
                yield f"{where}: its ranges or its count do not read"
            elif not catalog.hosts_of(one):
                yield f"{where}: no N1 machine is within its ranges"


def gpu_figures_agree(catalog: Catalog) -> Iterator[str]:
    for gpu in catalog.gpus.values():
        pairs = (
            ("FP8 is twice FP16", gpu.fp8_tflops, gpu.fp16_tflops, 2.0),
            ("FP16 equals BF16", gpu.fp16_tflops, gpu.bf16_tflops, 1.0),
            ("FP16 is twice TF32", gpu.fp16_tflops, gpu.tf32_tflops, 2.0),
        )
        for words, a, b, factor in pairs:
            if a is not None and b is not None and abs(a / (b * factor) - 1) > 0.10:
                yield f"{gpu.model}: {words} does not hold ({a:g} and {b:g})"
        if (gpu.compute_capability >= 8.9) != (gpu.fp8_tflops is not None):
            yield f"{gpu.model}: FP8 needs compute capability 8.9"
        if (gpu.compute_capability >= 8.0) != (gpu.bf16_tflops is not None):
            yield f"{gpu.model}: BF16 needs compute capability 8.0"
        if gpu.mig_supported is not None and gpu.mig_supported != bool(gpu.mig_profiles):
            yield f"{gpu.model}: MIG flag and profiles disagree"
        if any(count > (gpu.mig_max_instances or 0) for _, count in gpu.mig_profiles):
            yield f"{gpu.model}: a MIG profile fits more often than instances exist"
        if gpu.ecc is False and not gpu.consumer:
            yield f"{gpu.model}: a data-centre card without ECC"
        if gpu.usable_gib is not None and not 0.85 <= gpu.usable_gib / gpu.vram_gib <= 1.0:
            yield f"{gpu.model}: usable memory is not just below nominal"
        if (gpu.usable_gib is None) != (gpu.usable_source == ""):
            yield f"{gpu.model}: a usable figure needs a source"
        if not 0 <= gpu.marketed_gb / gpu.vram_gib - 1 <= 0.10:
            yield f"{gpu.model}: marketed as {gpu.marketed_gb:g}, has {gpu.vram_gib:g}"
        if gpu.opengl_vulkan not in (None, "true", "false", "headless-only"):
            yield f"{gpu.model}: opengl_vulkan is `{gpu.opengl_vulkan}`"


def prices_are_for_known_things(catalog: Catalog) -> Iterator[str]:
    hosts = {host.name for host in catalog.hosts()}
    accelerators = {
        f"accelerator:{one.accelerator}" for one in catalog.types.values() if one.accelerator
    }
    for cloud, name, purchase in catalog.priced():
        where = f"price of {cloud} {name} {purchase}"
        if cloud not in CLOUDS or purchase not in PURCHASES:
            yield f"{where}: no such cloud or purchase kind"
        if (cloud, name) not in catalog.types and not (
            cloud == "gcp" and (name in hosts or name in accelerators)
        ):
            yield f"{where}: no such type"
        for region, price in catalog.prices(cloud, name, purchase).items():
            if not region or not _PRICE_DATE.fullmatch(price.as_of) or not price.source:
                yield f"{where} in {region}: no region, date or source"


def prices_are_sane(catalog: Catalog) -> Iterator[str]:
    low, high = _USD_PER_GPU_HOUR
    for cloud, name, purchase in catalog.priced():
        prices = catalog.prices(cloud, name, purchase)
        one = catalog.types.get((cloud, name))
        if purchase == "on_demand" and one is not None:
            for region, price in prices.items():
                if not low <= price.usd_per_hour / one.gpu_count <= high:
                    yield f"{cloud} {name} in {region}: {price.usd_per_hour:g} USD/h is no price"
        if purchase != "on_demand":
            full = catalog.prices(cloud, name, "on_demand")
            for region, price in prices.items():
                if region in full and price.usd_per_hour > full[region].usd_per_hour:
                    yield f"{cloud} {name} in {region}: {purchase} is above on demand"


def offerings_are_for_known_things(catalog: Catalog) -> Iterator[str]:
    for row in catalog.facts("offerings"):
        cloud, region, zone = row["provider"], row["region"], row["zone"]
        where = f"offering of {cloud} {row['instance_type']} in {zone or region}"
        if (cloud, row["instance_type"]) not in catalog.types:
            yield f"{where}: no such type"
        if zone and region_of_zone(cloud, zone) != region:
            yield f"{where}: that zone is not in {region}"


def advice_items_and_hosts_are_sane(catalog: Catalog) -> Iterator[str]:
    for row in catalog.facts("spot_advisor_aws"):
        advice = catalog.spot_advice(row["region"], row["instance_type"])
        if advice is None or ("aws", advice.instance_type) not in catalog.types:
            yield f"spot advice for {row['instance_type']}: no such type"
        elif not -100 < advice.savings_percent < 100:  # below 0: spot cost more than on demand
            yield f"spot advice for {advice.instance_type}: saves {advice.savings_percent:g} %"
    for cloud in CLOUDS:
        for name in catalog.items(cloud):
            item = catalog.item(cloud, name, EVERYWHERE)
            if item is None or not item.unit or item.status not in ("sourced", "unverified"):
                yield f"{cloud} item {name}: no unit or status"
            elif item.usd is not None and item.usd < 0:
                yield f"{cloud} item {name}: a negative price"
    shapes = {"standard": 3.75, "highmem": 6.5, "highcpu": 0.9}
    for host in catalog.hosts():
        kind = host.name.split("-")[1]
        if abs(host.memory_gib / host.vcpus - shapes.get(kind, 0)) > 0.01 or not host.source:
            yield f"host {host.name}: {host.memory_gib:g} GiB for {host.vcpus} vCPU"


def keys_are_unique(catalog: Catalog) -> Iterator[str]:
    for table, columns in KEYS.items():
        key = (*columns, "zone") if table == "offerings" else columns
        counts = Counter(tuple(row[column] for column in key) for row in catalog.facts(table))
        for duplicate, count in counts.items():
            if count > 1:
                yield f"{table}.csv: {' '.join(duplicate)} is there {count} times"


CHECKS: tuple[Check, ...] = (
    type_figures_are_within_range,
    type_words_are_known,
    gpu_memory_is_never_above_nominal,
    slices_are_never_whole_gpus,
    arm_hosts_are_exactly_the_known_ones,
    nvlink_only_where_the_gpu_has_it,
    fabric_facts_agree,
    attached_gpus_are_composable,
    gpu_figures_agree,
    prices_are_for_known_things,
    prices_are_sane,
    offerings_are_for_known_things,
    advice_items_and_hosts_are_sane,
    keys_are_unique,
    wheels_are_sane,
    drivers_cover_every_card,
    branches_and_cuda_agree,
    images_are_for_known_machines,
)
