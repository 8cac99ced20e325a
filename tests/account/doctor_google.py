"""A Google project in which every check of doctor is good, and parts of one that is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.account.google_account import PROJECT, Google

from gputier.account.doctor_gcp_account import BUDGETS, ROLES, SERVICES

FAMILIES = (
    "projects/{project}/services/compute.googleapis.com/consumerQuotaMetrics/"
    "compute.googleapis.com%2Fgpus_per_gpu_family"
)
FAMILIES_OF_IMAGES = (
    "projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64",
    "projects/deeplearning-platform-release/global/images/family/"
    "common-cu129-ubuntu-2404-nvidia-580",
    "projects/ubuntu-os-accelerator-images/global/images/family/"
    "ubuntu-accelerator-2404-amd64-with-nvidia-580",
)


def well_google() -> Google:
    """A Google project in which every check is good."""
    google = Google()
    here = {"name": "projects/424242", "projectId": PROJECT, "state": "ACTIVE"}
    google.has("projects", "projects/{project}", here)
    google.has("services", "projects/{project}/services:batchGet", services())
    google.has("projects", "projects/{project}:testIamPermissions", permissions())
    google.has("billing", "projects/{project}/billingInfo", billing())
    google.has("budgets", "billingAccounts/000000-111111-222222/budgets", {"budgets": []})
    google.has("compute", "projects/{project}", quotas(GPUS_ALL_REGIONS=(64, 8)))
    l4 = quotas(NVIDIA_L4_GPUS=(16, 2), NVIDIA_T4_GPUS=(8, 0), PREEMPTIBLE_NVIDIA_T4_GPUS=(4, 0))
    google.has("compute", "projects/{project}/regions/us-central1", l4)
    google.has("compute", "projects/{project}/regions/us-east4", quotas(NVIDIA_L4_GPUS=(16, 2)))
    google.has(
        "quotas",
        FAMILIES,
        families(("us-east4", "NVIDIA_H200", 64), ("us-central1", "NVIDIA_H100_MEGA", 64)),
    )
    for zone in ("a", "b", "c", "f"):
        at = f"projects/{{project}}/zones/us-central1-{zone}"
        for name in ("g2-standard-4", "g2-standard-8", "n1-standard-1", "a3-megagpu-8g"):
            google.has("compute", f"{at}/machineTypes/{name}", {"name": name})
        google.has("compute", f"{at}/acceleratorTypes/nvidia-tesla-t4", {"name": "nvidia-tesla-t4"})
    google.has("compute", "projects/imgs/global/images/mine", gcp_image(name="mine"))
    shared = {"count": "3", "instanceProperties": {"machineType": "g2-standard-4"}}
    google.has("compute", "projects/owner/zones/us-central1-a/reservations/gpus",
               reserved(name="gpus", specificReservation=shared))  # fmt: skip
    at = "projects/{project}/zones/us-east4-b"
    google.has("compute", f"{at}/machineTypes/a3-ultragpu-8g", {"name": "a3-ultragpu-8g"})
    google.has("compute", f"{at}/reservations/big", reserved())
    google.has("compute", "projects/{project}/global/networkProfiles/us-east4-b-vpc-roce",
               {"name": "us-east4-b-vpc-roce"})  # fmt: skip
    google.has("compute", "projects/{project}/global/networks/host", {"name": "host", "mtu": 8896})
    network = "https://www.googleapis.com/compute/v1/projects/acme-ml/global/networks/host"
    google.has("compute", "projects/{project}/regions/us-east4/subnetworks/host-a",
               {"name": "host-a", "network": network})  # fmt: skip
    google.has("compute", "projects/{project}/aggregated/instances", instances())
    for family in FAMILIES_OF_IMAGES:
        google.has("compute", family, gcp_image())
    return google


def services(off: str = "") -> Callable[[Any], dict[str, Any]]:
    found = [
        {"name": f"projects/424242/services/{name}",
         "state": "DISABLED" if name == off else "ENABLED"}
        for name in (*SERVICES, BUDGETS)
    ]  # fmt: skip
    return lambda _query: {"services": found}


def permissions(without: str = "-") -> dict[str, Any]:
    every = [one for role in ROLES.values() for one in role]
    return {"permissions": [one for one in every if not one.startswith(without)]}


def billing(account: str = "000000-111111-222222") -> dict[str, Any]:
    return {"projectId": PROJECT, "billingEnabled": bool(account),
            "billingAccountName": f"billingAccounts/{account}" if account else ""}  # fmt: skip


def quotas(**of: tuple[float, float]) -> dict[str, Any]:
    """metric → limit and usage."""
    return {"quotas": [{"metric": k, "limit": v[0], "usage": v[1]} for k, v in of.items()]}


def families(*of: tuple[str, str, int]) -> dict[str, Any]:
    buckets = [
        {"effectiveLimit": str(limit), "dimensions": {"region": region, "gpu_family": family}}
        for region, family, limit in of
    ]
    metric = "compute.googleapis.com/gpus_per_gpu_family"
    return {"metric": metric, "consumerQuotaLimits": [{"metric": metric, "quotaBuckets": buckets}]}


def instances(*of: tuple[str, str, str]) -> dict[str, Any]:
    """Machines that run: zone, type and model of provisioning."""
    found: dict[str, Any] = {}
    for zone, type_, model in of:
        url = f"https://www.googleapis.com/compute/v1/projects/acme-ml/zones/{zone}"
        one = {"zone": url, "machineType": f"{url}/machineTypes/{type_}", "status": "RUNNING",
               "scheduling": {"provisioningModel": model}}  # fmt: skip
        found.setdefault(f"zones/{zone}", {"instances": []})["instances"].append(one)
    return {"items": found}


def reserved(**changed: Any) -> dict[str, Any]:
    specific = {"count": "2", "inUseCount": "0",
                "instanceProperties": {"machineType": "a3-ultragpu-8g"}}  # fmt: skip
    specific |= changed.pop("specificReservation", {})
    return {"name": "big", "status": "READY", "specificReservation": specific} | changed


def gcp_image(**changed: Any) -> dict[str, Any]:
    found = {"name": "ubuntu-2404-v20261101", "status": "READY", "architecture": "X86_64",
             "diskSizeGb": "10"}  # fmt: skip
    return found | changed
