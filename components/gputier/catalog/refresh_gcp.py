"""What gcloud prints about machine and accelerator types → catalogue rows.

Shapes: compute.v1 `MachineType` (`accelerators`, `bundledLocalSsds.partitionCount`, `memoryMb`) and
`AcceleratorType` (`maximumCardsPerInstance`), which gcloud prints as they are.
"""

from __future__ import annotations

from collections.abc import Callable

from gputier.catalog import refresh_skus
from gputier.catalog.refresh_harvest import Harvest, Scope
from gputier.catalog.refresh_io import Document, Json, each
from gputier.catalog.regions import region_of_zone

# API accelerator → the catalogue's model. The vWS variants are the same boards with a licence.
GPU_OF_ACCELERATOR: dict[str, str] = {
    "nvidia-tesla-t4": "T4",
    "nvidia-tesla-p4": "P4",
    "nvidia-tesla-p100": "P100",
    "nvidia-tesla-v100": "V100-16GB",
    "nvidia-tesla-a100": "A100-40GB",
    "nvidia-a100-80gb": "A100-80GB",
    "nvidia-l4": "L4",
    "nvidia-rtx-pro-6000": "RTX-PRO-6000-SE",
    "nvidia-h100-80gb": "H100-80GB",
    "nvidia-h100-mega-80gb": "H100-80GB",
    "nvidia-h200-141gb": "H200-141GB",
    "nvidia-b200": "B200",
    "nvidia-gb200": "GB200",
    "nvidia-gb300": "GB300",
}
# A whole RTX PRO 6000 comes with 48 vCPU; the API reports a smaller machine as one whole GPU.
_G4_VCPUS_PER_GPU = 48
_LIFECYCLES = {"DEPRECATED": "retiring", "OBSOLETE": "retired", "DELETED": "retired"}


def types(document: Document, harvest: Harvest) -> None:
    """`machine-types list` → gcp, gcp_hosts and offerings rows."""
    # Attached GPUs have no machine type of their own: a listing of types says nothing of them.
    scope = Scope("gcloud-machine-types", document.as_of, lambda name: "+" not in name)
    seen: dict[tuple[str, str], set[str]] = {}

    def read(record: Json) -> None:
        name, zone = str(record["name"]), _last(record["zone"])
        region = region_of_zone("gcp", zone)
        if region is None:
            raise ValueError(f"its zone is `{zone}`")
        scope.zones.add((region, zone))
        accelerators: list[Json] = record.get("accelerators") or []
        if not accelerators:
            _plain(name, record, document, harvest)
            scope.complete = True
            return
        gpu_name = str(accelerators[0]["guestAcceleratorType"])
        model = GPU_OF_ACCELERATOR.get(gpu_name)
        count = sum(int(one["guestAcceleratorCount"]) for one in accelerators)
        if model is None:
            _unknown(name, gpu_name, harvest)
        elif not count:
            harvest.refused.append(f"gcp {name}: {gpu_name} with 0 GPUs")
        else:
            _add_type(record, (model, count), document, harvest)
            seen.setdefault((region, name), set()).add(zone)

    for _ in each(document, read, "name"):
        pass
    harvest.place("gcp", seen, scope)


def _plain(name: str, record: Json, document: Document, harvest: Harvest) -> None:
    shape = name.split("-")
    if shape[0] == "n1" and len(shape) == 3 and shape[1] in ("standard", "highmem", "highcpu"):
        vcpus, memory = int(record["guestCpus"]), _gib(record)
        source = f"gcloud-machine-types {document.as_of}"
        row = {"name": name, "vcpus": vcpus, "memory_gib": memory, "source": source}
        harvest.add("gcp_hosts", row)
    else:
        harvest.ignored["machine types without a GPU"] += 1


def _unknown(name: str, accelerator: str, harvest: Harvest) -> None:
    if accelerator.startswith("nvidia-"):
        harvest.unknown.append(f"gcp {name}: {accelerator}")
    else:
        harvest.ignored["machine types with accelerators that are not NVIDIA's"] += 1


def _gib(record: Json) -> float:
    # The API rounds 1.8 GiB to 1843 MiB; one decimal gives the machine's own figure back.
    memory = float(record["memoryMb"]) / 1024
    return round(memory, 1) if abs(memory - round(memory, 1)) < 0.01 else memory


def _add_type(record: Json, gpus: tuple[str, int], document: Document, harvest: Harvest) -> None:
    name, vcpus = str(record["name"]), int(record["guestCpus"])
    model, reported = gpus
    gpu = harvest.base.gpus[model]
    base = harvest.base_row("gcp", name)
    sliced = name.startswith("g4-") and vcpus < _G4_VCPUS_PER_GPU * reported
    share = vcpus / _G4_VCPUS_PER_GPU if sliced else 1.0
    disks = int(record.get("bundledLocalSsds", {}).get("partitionCount") or 0)
    row: dict[str, object] = dict(base or _curated(name, gpu.nvlink_gb_s_per_gpu, reported))
    disk_gib = _disk_gib(name, disks, harvest)
    row |= {
        "gpu_model": model,
        "gpu_count": share if sliced else reported,
        "gpu_devices": reported,
        "vcpus": vcpus,
        "memory_gib": _gib(record),
        "cpu_arch": "aarch64" if record.get("architecture") == "ARM64" else "x86_64",
        "local_nvme_count": disks,
        "local_nvme_gib_total": None if disk_gib is None else disks * disk_gib,
        "source": "gcloud-machine-types" + ("+gputier" if base else ""),
        "as_of": document.as_of,
    }
    if base is None:
        row["gpu_memory_gib"] = gpu.vram_gib * share
    deprecated: Json = record.get("deprecated") or {}
    if deprecated.get("state"):
        row["lifecycle"] = _LIFECYCLES.get(str(deprecated["state"]), "current")
    harvest.add("gcp", row)


def _disk_gib(name: str, disks: int, harvest: Harvest) -> float | None:
    """Size of one bundled disk: known per type, 375 GiB elsewhere but on the A4X machines."""
    if not disks:
        return 0.0
    known = harvest.base.types.get(("gcp", name))
    if known and known.local_nvme_count and known.local_nvme_gib:
        return known.local_nvme_gib / known.local_nvme_count
    return None if name.startswith("a4x") else 375.0


def _curated(name: str, nvlink: float | None, gpus: int) -> dict[str, object]:
    """What the API does not say of a type that is new: unknown, but for what its GPU settles."""
    none = not nvlink or gpus == 1
    return {
        "instance_type": name,
        "family": name.split("-")[0],
        "gpu_model_confidence": "provider",
        "interconnect": "none",
        "interconnect_gbps": 0,
        "nvlink": False if none else None,
        "nvlink_gb_s_per_gpu": 0 if none else None,
        "nvlink_domain_gpus": 0 if none else None,
        "placement_group": "compact-placement",
        "bare_metal": name.endswith("-metal"),
        "lifecycle": "current",
        "notes": "new since the packaged catalogue",
        "unverified": "interconnect|interconnect_gbps|placement_group",
    }


def accelerators(document: Document, harvest: Harvest) -> None:
    """`accelerator-types list` → offerings of N1 machines with attached GPUs."""
    attachable: dict[str, list[tuple[str, int]]] = {}
    for (cloud, name), one in harvest.base.types.items():
        if cloud == "gcp" and one.accelerator:
            attachable.setdefault(one.accelerator, []).append((name, one.attached_count))
    scope = Scope("gcloud-accelerator-types", document.as_of, lambda name: "+" in name)
    seen: dict[tuple[str, str], set[str]] = {}

    def read(record: Json) -> None:
        accelerator, zone = str(record["name"]), _last(record["zone"])
        region = region_of_zone("gcp", zone)
        if region is None:
            raise ValueError(f"its zone is `{zone}`")
        scope.zones.add((region, zone))
        most = int(record["maximumCardsPerInstance"])
        for name, count in attachable.get(accelerator, ()):
            if count <= most:
                seen.setdefault((region, name), set()).add(zone)
        if not accelerator.startswith("nvidia-"):
            scope.complete = True  # TPUs too: the listing was not filtered to some GPUs
            harvest.ignored["accelerators that are not NVIDIA's"] += 1
        elif accelerator.removesuffix("-vws") not in GPU_OF_ACCELERATOR:
            harvest.unknown.append(f"gcp {zone}: {accelerator}")

    for _ in each(document, read, "name"):
        pass
    harvest.place("gcp", seen, scope)


def _last(url: object) -> str:
    """`https://…/zones/us-central1-a` or `us-central1-a` → the zone's name."""
    return str(url).rsplit("/", 1)[-1]


READERS: dict[str, Callable[[Document, Harvest], None]] = {
    "gcp-types": types,
    "gcp-accelerators": accelerators,
    "gcp-skus": refresh_skus.prices,
}
