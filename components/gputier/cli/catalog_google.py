"""What `gputier catalog show` says of a machine of Google's beside what every machine has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gputier.catalog import Catalog, InstanceType
from gputier.catalog.disks import limits_of
from gputier.cli.catalog_words import UNKNOWN
from gputier.cli.text import Column, table

#: Column of `gcp_machines.csv` → what it is called on the screen.
FACTS = {
    "gpu_attach": "cards are",
    "accelerator_type": "card is called",
    "optional_local_ssd_counts": "local SSDs to add",
    "nics_for_full_gpu_bandwidth": "interfaces for all bandwidth",
    "nic_types": "of kind",
    "networks_for_full_gpu_bandwidth": "networks for them",
    "mtu_recommended": "MTU",
    "egress_max_gbps": "Gbps at most",
    "egress_tier1_gbps": "with Tier_1",
    "provisioning_models": "bought as",
    "disk_types_accepted": "disks",
    "boot_disk_types": "boots from",
    "disk_types_refused": "refuses",
}


NONE: Mapping[str, str] = {}
#: Networks are of this size where nothing else is asked (compute v1 discovery, Network.mtu).
MTU = "1460, as Google makes networks"


def facts_of(catalog: Catalog, row: InstanceType) -> Mapping[str, str]:
    """The machine's row of Google's own facts; empty where there is none."""
    if row.cloud != "gcp":
        return {}
    found = (r for r in catalog.facts("gcp_machines") if r["machine_type"] == row.name)
    return next(found, NONE)


def google_lines(catalog: Catalog, row: InstanceType, width: int) -> list[str]:
    facts = facts_of(catalog, row)
    if not facts:
        return []
    facts = {**facts, "mtu_recommended": facts["mtu_recommended"] or MTU}
    cells = [[t, facts[column].replace("|", ", ") or UNKNOWN] for column, t in FACTS.items()]
    cells += [list(pair) for pair in _limits(catalog, row)]
    cells.append(["unverified", facts["unverified_fields"] or "none"])
    cells.append(["source", facts["source"]])
    shown = table((Column(), Column(wraps=True)), cells, width, "    ")
    return ["", "  on Google Cloud", *shown]


def _limits(catalog: Catalog, row: InstanceType) -> Iterator[tuple[str, str]]:
    """What the machine takes of each kind of volume, all of them together."""
    if row.accelerator:
        yield "volumes take", "what the N1 machine takes, by its vCPUs"
        return
    for kind, most in limits_of(catalog.disk_limits, row.name).items():
        yield f"{kind} at most", f"{most.throughput:,.0f} MiB/s, {most.iops:,.0f} IOPS"
