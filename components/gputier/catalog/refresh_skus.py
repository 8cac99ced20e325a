"""Cloud Billing Catalog SKUs → prices of whole machines.

Google sells components: a machine's price is its cores, its memory, its GPUs and its bundled SSD
added up; A4 alone is one SKU per GPU. Shapes: `Sku` of cloudbilling.v1 (`description`, `category`,
`serviceRegions`, `pricingInfo[].pricingExpression.{usageUnit,tieredRates}`). Descriptions are the
only place that tells what a SKU is, and some spot SKUs carry the usage type OnDemand.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from gputier.catalog.records import InstanceType
from gputier.catalog.refresh_harvest import Harvest
from gputier.catalog.refresh_io import Document, Json, each
from gputier.errors import InvalidInput, Problem

HOURS_PER_MONTH = 730  # Google's own, for what it prices by the month

# Same component, other terms: 30 to 60 % below the on-demand price they would be taken for.
_OTHER_TERMS = re.compile(
    r"\b(DWS|Defined Duration|Calendar Mode|Reserved|Reservation|Sole Tenancy|Custom|Extended"
    r"|Premium|suspended|Workstation|Confidential|Upgrade)\b",
    re.IGNORECASE,
)
_COMMITMENT = re.compile(r"Commitment v1: (?P<rest>.+?) for (?P<years>[13]) Years?")
_SPOT = re.compile(r"\b(?:Spot )?Preemptible\b", re.IGNORECASE)
_CORE_OR_RAM = re.compile(
    r"(?:Spot )?(?:Preemptible )?(?P<family>[\w ]+?) Instance (?P<part>Core|Ram) running in .+"
)
_COMMITTED_CORE_OR_RAM = re.compile(r"(?:(?P<family>[A-Z]\d\w*) )?(?P<part>Cpu|Ram) in .+")
_LOCAL_SSD = re.compile(r"(?:SSD backed Local Storage|Local SSD)\b")
_GPU_WHERE = re.compile(
    r"(?: attached to Spot Preemptible VMs)?(?: running)?(?: in .+)?", re.IGNORECASE
)
# The SKU's own words → the accelerator. Longer names first: a shorter one is their beginning.
_GPU_WORDS: tuple[tuple[str, str], ...] = (
    ("Nvidia Tesla A100 80GB GPU", "nvidia-a100-80gb"),
    ("Nvidia Tesla A100 GPU", "nvidia-tesla-a100"),
    ("Nvidia Tesla T4 GPU", "nvidia-tesla-t4"),
    ("Nvidia Tesla P4 GPU", "nvidia-tesla-p4"),
    ("Nvidia Tesla P100 GPU", "nvidia-tesla-p100"),
    ("Nvidia Tesla V100 GPU", "nvidia-tesla-v100"),
    ("Nvidia L4 GPU", "nvidia-l4"),
    ("Nvidia H100 80GB Mega GPU", "nvidia-h100-mega-80gb"),
    ("Nvidia H100 80GB Plus GPU", "nvidia-h100-mega-80gb"),
    ("Nvidia H100 Mega 80GB GPU", "nvidia-h100-mega-80gb"),
    ("Nvidia H100 80GB GPU", "nvidia-h100-80gb"),
    ("H200 141GB GPU", "nvidia-h200-141gb"),
    ("RTX 6000 96GB", "nvidia-rtx-pro-6000"),
)
_SLICE = re.compile(r"(?:Spot Preemptible )?A4 Nvidia B200 \(1 gpu slice\)(?: running)? in .+")
# Core and memory SKU families: the description's words → the beginning of the machines' names.
_FAMILIES: dict[str, tuple[str, ...]] = {
    "A2": ("a2-",),
    "A3": ("a3-highgpu-",),
    "A3PLUS": ("a3-megagpu-",),
    "A3ULTRA": ("a3-ultragpu-",),
    "G2": ("g2-",),
    "G4": ("g4-",),
    "N1PREDEFINED": ("n1-",),
}
_ACCELERATORS: tuple[tuple[str, str], ...] = (
    ("a2-ultragpu-", "nvidia-a100-80gb"),
    ("a2-", "nvidia-tesla-a100"),
    ("a3-highgpu-", "nvidia-h100-80gb"),
    ("a3-megagpu-", "nvidia-h100-mega-80gb"),
    ("a3-ultragpu-", "nvidia-h200-141gb"),
    ("a4-", "slice:nvidia-b200"),
    ("g2-", "nvidia-l4"),
    ("g4-", "nvidia-rtx-pro-6000"),
)
_UNITS = {"h": 1.0, "GiBy.h": 1.0, "GiBy.mo": 1.0 / HOURS_PER_MONTH}


class _Rates(NamedTuple):
    """USD per hour by (component, region, purchase kind)."""

    usd: dict[tuple[str, str, str], float]
    as_of: str


def prices(document: Document, harvest: Harvest) -> None:
    """SKUs → prices of machine types, of N1 machines and of attachable GPUs, per region.

    One page may hold a machine's cores and another its GPUs: `merge` the pages first.
    """
    rates = _Rates({}, document.as_of)

    def read(record: Json) -> None:
        found = component(str(record["description"]))
        if found is None:
            harvest.ignored["SKUs that are no part of a GPU machine, or of other terms"] += 1
            return
        usd = _hourly(record, document)
        regions: list[str] = record["serviceRegions"]
        for region in regions:
            _note(rates, (found[0], region, found[1]), usd, harvest)

    for _ in each(document, read, "description"):
        pass
    _compose(rates, harvest)


def merge(documents: list[Document]) -> list[Document]:
    """Pages of the SKU catalogue as one document; everything else as it is."""
    pages = [one for one in documents if one.kind == "gcp-skus"]
    others = [one for one in documents if one.kind != "gcp-skus"]
    if len(pages) > 1:
        records = [record for page in pages for record in page.records]
        oldest = min(page.as_of for page in pages)
        pages = [pages[0]._replace(records=records, as_of=oldest)]
    return others + pages


def component(description: str) -> tuple[str, str] | None:
    """(`core:A3`, `ram:A3`, `ssd`, an accelerator or `slice:…`; the purchase kind), or None."""
    if _OTHER_TERMS.search(description):
        return None
    committed = _COMMITMENT.fullmatch(description)
    if committed:
        part = _committed(committed["rest"])
        return (part, f"reserved_{committed['years']}y") if part else None
    if "commitment" in description.lower():
        return None
    purchase = "spot" if _SPOT.search(description) else "on_demand"
    if _SLICE.fullmatch(description):
        return "slice:nvidia-b200", purchase
    found = _CORE_OR_RAM.fullmatch(description)
    if found:
        family = found["family"].replace(" ", "").upper()
        return (f"{found['part'].lower()}:{family}", purchase) if family in _FAMILIES else None
    if _LOCAL_SSD.match(description):
        return "ssd", purchase
    gpu = _gpu(description)
    return (gpu, purchase) if gpu else None


def _committed(rest: str) -> str | None:
    found = _COMMITTED_CORE_OR_RAM.fullmatch(rest)
    if found:
        family = (found["family"] or "N1PREDEFINED").upper()
        part = {"Cpu": "core", "Ram": "ram"}[found["part"]]
        return f"{part}:{family}" if family in _FAMILIES else None
    if _SLICE.fullmatch(rest):
        return "slice:nvidia-b200"
    return "ssd" if _LOCAL_SSD.match(rest) else _gpu(rest)


def _gpu(description: str) -> str | None:
    for words, accelerator in _GPU_WORDS:
        if description.startswith(words) and _GPU_WHERE.fullmatch(description[len(words) :]):
            return accelerator
    return None


def _hourly(record: Json, document: Document) -> float:
    """USD per hour (and per GiB, for memory and disks) of the first tier of the newest price."""
    info: list[Json] = record["pricingInfo"]
    newest = max(info, key=lambda one: str(one.get("effectiveTime", "")))
    expression: Json = newest["pricingExpression"]
    unit = str(expression["usageUnit"])
    if unit not in _UNITS:
        raise ValueError(f"its unit is `{unit}`, none of {', '.join(_UNITS)}")
    price: Json = expression["tieredRates"][0]["unitPrice"]
    if price.get("currencyCode", "USD") != "USD":
        message = f"prices are in {price['currencyCode']}"
        raise InvalidInput(
            Problem(str(document.path), message, "ask the API with currencyCode=USD")
        )
    return (int(price.get("units") or 0) + int(price.get("nanos") or 0) / 1e9) * _UNITS[unit]


def _note(rates: _Rates, key: tuple[str, str, str], usd: float, harvest: Harvest) -> None:
    part, region, purchase = key
    if usd <= 0:
        harvest.refused.append(f"gcp {part} in {region}: {purchase} at 0 USD")
        return
    known = rates.usd.get(key)
    if known is not None and abs(known / usd - 1) > 1e-6:
        both = f"{known:g} and {usd:g} USD; the dearer is taken"
        harvest.refused.append(f"gcp {part} in {region}: {purchase} is {both}")
    rates.usd[key] = max(usd, known or 0.0)


def _compose(rates: _Rates, harvest: Harvest) -> None:
    places = sorted({(region, purchase) for _, region, purchase in rates.usd})
    types = [one for one in harvest.base.types.values() if one.cloud == "gcp"]
    accelerators = sorted({one.accelerator for one in types if one.accelerator})
    for region, purchase in places:
        for one in types:
            usd = None if one.accelerator else _machine(one, region, purchase, rates)
            if usd is not None:
                _add(harvest, one.name, (region, purchase, usd), rates.as_of)
        for host in harvest.base.hosts():
            shape = (float(host.vcpus), host.memory_gib)
            usd = _cores_and_memory("N1PREDEFINED", shape, (region, purchase), rates)
            if usd is not None:
                _add(harvest, host.name, (region, purchase, usd), rates.as_of)
        for accelerator in accelerators:
            usd = rates.usd.get((accelerator, region, purchase))
            if usd is not None:
                _add(harvest, f"accelerator:{accelerator}", (region, purchase, usd), rates.as_of)
    _reject_suspicious(harvest)


def _machine(one: InstanceType, region: str, purchase: str, rates: _Rates) -> float | None:
    """The sum of a machine's parts; None if any of them has no price, never the sum without it."""
    accelerator = next((a for start, a in _ACCELERATORS if one.name.startswith(start)), None)
    if accelerator is None or one.vcpus is None or one.memory_gib is None:
        return None
    gpu = rates.usd.get((accelerator, region, purchase))
    if gpu is None:
        return None
    if accelerator.startswith("slice:"):
        return gpu * one.gpu_count  # everything is in it
    family = next(f for f, starts in _FAMILIES.items() if one.name.startswith(starts))
    shape = (float(one.vcpus), one.memory_gib)
    rest = _cores_and_memory(family, shape, (region, purchase), rates)
    ssd = rates.usd.get(("ssd", region, purchase)) if one.local_nvme_gib else 0.0
    if rest is None or ssd is None or one.local_nvme_gib is None:
        return None
    return gpu * one.gpu_count + rest + ssd * one.local_nvme_gib


def _cores_and_memory(
    family: str, shape: tuple[float, float], where: tuple[str, str], rates: _Rates
) -> float | None:
    core = rates.usd.get((f"core:{family}", *where))
    ram = rates.usd.get((f"ram:{family}", *where))
    return None if core is None or ram is None else shape[0] * core + shape[1] * ram


def _add(harvest: Harvest, name: str, price: tuple[str, str, float], as_of: str) -> None:
    region, purchase, usd = price
    known = harvest.base.types.get(("gcp", name))
    if purchase == "on_demand" and known is not None and known.on_demand is False:
        harvest.ignored["on-demand list prices of machines that cannot be had on demand"] += 1
        return
    note = ""
    if name.startswith("accelerator:"):
        note = "per GPU attached to N1"
    elif name.startswith("n1-"):
        note = "N1 machine without GPU; add accelerator rows"
    harvest.add(
        "prices",
        {
            "provider": "gcp",
            "region": region,
            "zone": "",
            "instance_type": name,
            "purchase": purchase,
            "usd_per_hour": round(usd, 6),
            "currency": "USD",
            "native_per_hour": round(usd, 6),
            "as_of": as_of,
            "source": "gcp-billing-skus",
            "note": note,
        },
    )


def _reject_suspicious(harvest: Harvest) -> None:
    """An on-demand price at or below spot is another SKU's price taken for it."""
    rows = [row for row in harvest.added("prices") if row["provider"] == "gcp"]
    spot = {
        (row["instance_type"], row["region"]): float(row["usd_per_hour"])
        for row in rows
        if row["purchase"] == "spot"
    }
    for row in rows:
        place = (row["instance_type"], row["region"])
        if row["purchase"] == "on_demand" and float(row["usd_per_hour"]) <= spot.get(place, 0.0):
            harvest.drop("prices", row)
            harvest.refused.append(
                f"gcp {place[0]} in {place[1]}: on demand at {row['usd_per_hour']} USD, not above "
                f"spot at {spot[place]:g}"
            )
