"""What the AWS command line prints → catalogue rows.

Shapes: botocore's EC2 service model (`InstanceTypeInfo`, `InstanceTypeOffering`, `SpotPrice`) and
the Price List's products, each a string of JSON inside `PriceList`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from gputier import units
from gputier.catalog.records import Gpu
from gputier.catalog.refresh_harvest import Cells, Harvest, Scope
from gputier.catalog.refresh_io import Document, Json, each
from gputier.catalog.regions import region_of_zone
from gputier.errors import InvalidInput, Problem

# The API's names that are not the catalogue's: several sizes are told apart by memory.
_GPU_NAMES: dict[str, tuple[str, ...]] = {
    "A100": ("A100-40GB", "A100-80GB"),
    "H100": ("H100-80GB",),
    "H200": ("H200-141GB",),
    "V100": ("V100-16GB", "V100-32GB"),
    "T4g": ("T4G",),
    "RTX PRO Server 6000": ("RTX-PRO-6000-SE",),
    "RTX PRO 4500": ("RTX-PRO-4500-SE",),
}
_SPEED = re.compile(r"(?:Up to )?(?:(\d+)x )?(\d+(?:\.\d+)?) (Gigabit|Megabit)", re.IGNORECASE)
_ZONE_ID = re.compile(r"-az\d+$")
_LINUX = ("Linux/UNIX", "Linux/UNIX (Amazon VPC)")
_NOT_AN_OFFER = "prices that are not Linux, shared, on demand or standard reserved"


class _Devices(NamedTuple):
    """GPUs of one type: how many physical ones, devices, GiB and MiB per device."""

    gpu: Gpu
    physical: float
    devices: int
    memory_gib: float
    visible_mib: float


def types(document: Document, harvest: Harvest) -> None:
    """`describe-instance-types` → aws, aws_ebs and aws_interfaces rows."""
    families = {one.family for (cloud, _), one in harvest.base.types.items() if cloud == "aws"}

    def read(record: Json) -> None:
        name = str(record["InstanceType"])
        gpus: list[Json] = record.get("GpuInfo", {}).get("Gpus", [])
        if not gpus:
            if name.split(".")[0] in families:
                harvest.refused.append(
                    f"aws {name}: listed without a GPU, although its family has them"
                )
            else:
                harvest.ignored["instance types without a GPU"] += 1
            return
        maker = str(gpus[0].get("Manufacturer", ""))
        if maker.upper() != "NVIDIA":
            harvest.ignored[f"instance types with GPUs of {maker or 'no named maker'}"] += 1
            return
        devices = _devices(name, gpus, harvest)
        if devices is not None:
            _add_type(name, record, devices, document, harvest)

    for _ in each(document, read, "InstanceType"):
        pass


def _devices(name: str, gpus: list[Json], harvest: Harvest) -> _Devices | None:
    first = gpus[0]
    # A slice has Count 0; only the logical count and the partition's size tell what it is.
    whole = sum(int(gpu["Count"]) for gpu in gpus)
    logical = int(first.get("LogicalGpuCount") or 0)
    partition = float(first.get("GpuPartitionSize") or 1)
    count = float(whole) if whole else logical * partition
    if not count:
        harvest.refused.append(f"aws {name}: a GPU family with 0 GPUs")
        return None
    visible = float(first["MemoryInfo"]["SizeInMiB"])
    found = _gpu(str(first["Name"]), visible / min(partition, 1), count, harvest)
    if found is None:
        harvest.unknown.append(f"aws {name}: {first['Name']} with {visible:g} MiB")
        return None
    gpu, divisor = found
    return _Devices(
        gpu=gpu,
        physical=count,
        devices=whole or logical,
        memory_gib=gpu.vram_gib * partition if partition < 1 else gpu.vram_gib,
        visible_mib=visible / divisor,
    )


def _gpu(name: str, visible_mib: float, count: float, harvest: Harvest) -> tuple[Gpu, float] | None:
    """The model whose memory fits the API's figure, and 1, or `count` where that is a total."""
    names = _GPU_NAMES.get(name) or harvest.base.match_gpus(name)
    models = [harvest.base.gpus[one] for one in names if one in harvest.base.gpus]
    for divisor in (1.0, count) if count > 1 else (1.0,):
        for gpu in models:
            if 0.92 <= visible_mib / divisor / 1024 / gpu.vram_gib <= 1.005:
                return gpu, divisor
    return None


def _add_type(
    name: str, record: Json, devices: _Devices, document: Document, harvest: Harvest
) -> None:
    network: Json = record["NetworkInfo"]
    efa = int(network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0))
    base = harvest.base_row("aws", name)
    row: dict[str, object] = dict(base or _curated(name, devices, efa, harvest))
    total = _gbps(str(network["NetworkPerformance"]))
    cards: list[Json] = network["NetworkCards"]
    # Cards print the machine's total, half of it or their own speed; only one alone is sure.
    baseline = cards[0].get("BaselineBandwidthInGbps") if len(cards) == 1 else total
    storage: Json = record.get("InstanceStorageInfo", {})
    usage: list[str] = record["SupportedUsageClasses"]
    arch = "aarch64" if "arm64" in record["ProcessorInfo"]["SupportedArchitectures"] else "x86_64"
    row |= {
        "gpu_model": devices.gpu.model,
        "gpu_model_confidence": "provider",
        "gpu_count": devices.physical,
        "gpu_devices": devices.devices,
        "gpu_memory_gib": devices.memory_gib,
        "gpu_memory_visible_mib": devices.visible_mib,
        "vcpus": int(record["VCpuInfo"]["DefaultVCpus"]),
        "memory_gib": float(record["MemoryInfo"]["SizeInMiB"]) / 1024,
        "cpu_arch": arch,
        "local_nvme_count": sum(int(disk["Count"]) for disk in storage.get("Disks", [])),
        "local_nvme_gib_total": round(float(storage.get("TotalSizeInGB", 0)) * units.GIB_PER_GB, 1),
        "network_baseline_gbps": float(baseline) if baseline is not None else None,
        "network_gbps": total,
        "network_cards": int(network["MaximumNetworkCards"]),
        "network_interfaces_max": int(network["MaximumNetworkInterfaces"]),
        "interconnect": "efa" if efa else "none",
        "interconnect_gbps": total if efa else 0,
        "bare_metal": bool(record["BareMetal"]),
        "on_demand_support": "on-demand" in usage,
        "spot_support": "spot" in usage,
        "other_purchase": "capacity-block" if "capacity-block" in usage else "",
        "lifecycle": "current" if record["CurrentGeneration"] else "previous-generation",
        "source": "aws-describe-instance-types" + ("+gputier" if base else ""),
        "as_of": document.as_of,
        "unverified": "",
    }
    harvest.add("aws", row)
    _add_ebs(name, record["EbsInfo"], document, harvest)
    harvest.add(
        "aws_interfaces",
        {
            "instance_type": name,
            "ipv4_per_interface": int(network["Ipv4AddressesPerInterface"]),
            "ipv6_per_interface": int(network["Ipv6AddressesPerInterface"]),
            "efa_interfaces_max": efa,
            "source": "aws-describe-instance-types",
            "as_of": document.as_of,
        },
    )


def _curated(name: str, devices: _Devices, efa: int, harvest: Harvest) -> dict[str, object]:
    """What no API says, for a type that is new: only what its GPU or its fabric settles."""
    sibling = next(
        (one for one in harvest.base.types.values() if one.family == name.split(".")[0]), None
    )
    no_nvlink = not devices.gpu.nvlink_gb_s_per_gpu or devices.physical <= 1
    return {
        "instance_type": name,
        "family": name.split(".")[0],
        "cpu_platform": sibling.cpu_platform if sibling else None,
        "rdma": None if efa else False,
        "gpudirect_rdma": None if efa else False,
        "nvlink": False if no_nvlink else None,
        "nvlink_gb_s_per_gpu": 0 if no_nvlink else None,
        "nvlink_domain_gpus": 0 if no_nvlink else None,
        "placement_group": "cluster",
        "notes": "new since the packaged catalogue",
    }


def _gbps(text: str) -> float | None:
    found = _SPEED.fullmatch(text.strip())
    if not found:
        return None  # `High`, `Moderate`: words of old types, no figure
    speed = float(found[2]) * (int(found[1]) if found[1] else 1)
    return speed / 1000 if found[3].lower() == "megabit" else speed


def _add_ebs(name: str, info: Json, document: Document, harvest: Harvest) -> None:
    speeds: Json = info.get("EbsOptimizedInfo", {})
    base = harvest.base_row("aws_ebs", name) or {"instance_type": name}
    row: dict[str, object] = dict(base)
    row |= {
        "ebs_optimized": info.get("EbsOptimizedSupport"),
        "baseline_bandwidth_mbps": speeds.get("BaselineBandwidthInMbps"),
        "maximum_bandwidth_mbps": speeds.get("MaximumBandwidthInMbps"),
        "baseline_throughput_mb_s": _number(speeds.get("BaselineThroughputInMBps")),
        "maximum_throughput_mb_s": _number(speeds.get("MaximumThroughputInMBps")),
        "baseline_iops": speeds.get("BaselineIops"),
        "maximum_iops": speeds.get("MaximumIops"),
        "max_ebs_attachments": info.get("MaximumEbsAttachments"),
        "attachment_limit_type": info.get("AttachmentLimitType"),
        "nvme_support": info.get("NvmeSupport"),
        "encryption_support": info.get("EncryptionSupport"),
        "source": "aws-describe-instance-types",
        "as_of": document.as_of,
    }
    harvest.add("aws_ebs", row)


# Most types have no NVIDIA GPU; a new one that has is read from its own listing first.
_NOT_OURS = "of types that are not in the catalogue (describe-instance-types adds new GPU types)"


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def offerings(document: Document, harvest: Harvest) -> None:
    """`describe-instance-type-offerings` by zone id → offerings rows."""
    seen: dict[tuple[str, str], set[str]] = {}
    scope = Scope("aws-describe-instance-type-offerings", document.as_of)

    def read(record: Json) -> None:
        name, zone = str(record["InstanceType"]), str(record["Location"])
        region = region_of_zone("aws", zone) if _ZONE_ID.search(zone) else None
        if region is None:
            # Zone names (us-east-1a) mean different places in different accounts.
            raise _wrong_location(document, zone)
        scope.zones.add((region, zone))
        if harvest.knows("aws", name):
            seen.setdefault((region, name), set()).add(zone)
        else:
            harvest.ignored[f"offerings {_NOT_OURS}"] += 1
            scope.complete = True  # not filtered to GPU types: what is missing is not offered

    for _ in each(document, read, "InstanceType"):
        pass
    harvest.place("aws", seen, scope)


def _wrong_location(document: Document, location: str) -> InvalidInput:
    message = f"says `{location}`; the catalogue holds zone ids, the same in every account"
    hint = "run it again with --location-type availability-zone-id"
    return InvalidInput(Problem(str(document.path), message, hint))


def prices(document: Document, harvest: Harvest) -> None:
    """`pricing get-products` → prices rows: on demand, and standard reserved without upfront."""

    def read(record: Json) -> None:
        attributes: Json = record.get("product", {}).get("attributes", {})
        name = str(attributes.get("instanceType", ""))
        if not harvest.knows("aws", name):
            harvest.ignored[f"prices {_NOT_OURS}"] += 1
            return
        if not _is_plain(attributes):
            harvest.ignored[_NOT_AN_OFFER] += 1
            return
        as_of = str(record.get("publicationDate") or document.as_of)[:10]
        terms: Json = record["terms"]
        region = str(attributes["regionCode"])
        for term in terms.get("OnDemand", {}).values():
            _add_price(name, region, "on_demand", _hourly(term), as_of, harvest)
        for term in terms.get("Reserved", {}).values():
            purchase = _reserved(term.get("termAttributes", {}))
            if purchase:
                _add_price(name, region, purchase, _hourly(term), as_of, harvest)

    for _ in each(document, read, "sku"):
        pass


def _is_plain(attributes: Json) -> bool:
    """Linux, shared tenancy, nothing pre-installed, and no capacity block or reservation."""
    return (
        attributes.get("operatingSystem") == "Linux"
        and attributes.get("tenancy") == "Shared"
        and attributes.get("preInstalledSw", "NA") in ("NA", "")
        and attributes.get("capacitystatus") == "Used"
        and attributes.get("marketoption", "OnDemand") == "OnDemand"
        and attributes.get("locationType", "AWS Region") == "AWS Region"
    )


def _reserved(attributes: Json) -> str | None:
    if (
        attributes.get("OfferingClass") != "standard"
        or attributes.get("PurchaseOption") != "No Upfront"
    ):
        return None
    return {"1yr": "reserved_1y", "3yr": "reserved_3y"}.get(
        str(attributes.get("LeaseContractLength"))
    )


def _hourly(term: Json) -> tuple[float, str] | None:
    """Price per hour and currency."""
    for dimension in term["priceDimensions"].values():
        if dimension["unit"] == "Hrs":
            currency, amount = next(iter(dimension["pricePerUnit"].items()))
            return float(amount), str(currency)
    return None


def _add_price(
    name: str,
    region: str,
    purchase: str,
    hourly: tuple[float, str] | None,
    as_of: str,
    harvest: Harvest,
) -> None:
    if hourly is None:
        return
    amount, currency = hourly
    if currency != "USD":
        harvest.ignored[f"prices in {currency}"] += 1
    elif amount <= 0:
        harvest.refused.append(f"aws {name} in {region}: {purchase} at 0 USD")
    else:
        harvest.add(
            "prices",
            _price_cells(name, region, purchase, amount)
            | {"as_of": as_of, "source": "aws-pricing-get-products"}
            | ({"note": "Standard RI, no upfront"} if purchase != "on_demand" else {}),
        )


def _price_cells(name: str, region: str, purchase: str, amount: float) -> dict[str, object]:
    return {
        "provider": "aws",
        "region": region,
        "zone": "",
        "instance_type": name,
        "purchase": purchase,
        "usd_per_hour": amount,
        "currency": "USD",
        "native_per_hour": amount,
    }


def spot(document: Document, harvest: Harvest) -> None:
    """`describe-spot-price-history` → a prices row per zone and one for the region.

    The latest price of each zone counts. The region's figure is the dearest zone's: a fleet may
    land in any of them, so it never says less than what will be paid; the zones stay beside it.
    """
    latest: dict[tuple[str, str], tuple[str, float, str]] = {}

    def read(record: Json) -> None:
        name, zone = str(record["InstanceType"]), str(record["AvailabilityZone"])
        if not harvest.knows("aws", name):
            harvest.ignored[f"spot prices {_NOT_OURS}"] += 1
        elif record["ProductDescription"] not in _LINUX:
            harvest.ignored["spot prices that are not Linux"] += 1
        else:
            when, amount = str(record["Timestamp"]), float(record["SpotPrice"])
            zone_id = str(record.get("AvailabilityZoneId") or "")
            if amount <= 0:
                harvest.refused.append(f"aws {name} in {zone}: spot at 0 USD")
            elif (name, zone) not in latest or when > latest[name, zone][0]:
                latest[name, zone] = (when, amount, zone_id)

    for _ in each(document, read, "InstanceType"):
        pass
    by_region: dict[tuple[str, str], list[tuple[str, float, str]]] = {}
    for (name, zone), found in latest.items():
        region = region_of_zone("aws", zone)
        if region is None:
            harvest.refused.append(f"aws {name}: `{zone}` is no zone name")
        else:
            by_region.setdefault((name, region), []).append(found)
    for (name, region), zones in by_region.items():
        _add_spot(name, region, zones, harvest)


def _add_spot(
    name: str, region: str, zones: list[tuple[str, float, str]], harvest: Harvest
) -> None:
    source: Cells = {"source": "aws-describe-spot-price-history"}
    for when, amount, zone_id in zones:
        if zone_id:
            cells = _price_cells(name, region, "spot", amount)
            harvest.add("prices", cells | source | {"zone": zone_id, "as_of": when[:10]})
    dearest, cheapest = max(zone[1] for zone in zones), min(zone[1] for zone in zones)
    note = f"dearest of {len(zones)} zones, cheapest {cheapest:g}" if len(zones) > 1 else "one zone"
    # The oldest of the zones' dates: the figure is no newer than what it was chosen among.
    cells = _price_cells(name, region, "spot", dearest)
    harvest.add("prices", cells | source | {"as_of": min(z[0] for z in zones)[:10], "note": note})


READERS: dict[str, Callable[[Document, Harvest], None]] = {
    "aws-types": types,
    "aws-offerings": offerings,
    "aws-prices": prices,
    "aws-spot": spot,
}
