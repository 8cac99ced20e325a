"""The network interfaces that a machine on Google has beside its first: its fabric's.

How many, of which kind and in which networks is `gcp_machines.csv`'s, by machine type.
A machine without them boots and works all the same, so one that works alone gets none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gputier.catalog import Catalog
from gputier.plan.verdict import Verdict

GVNIC, RDMA = "GVNIC", "MRDMA"
#: The network that a rail lies in, by its interface: `10.N.0.0/16`, as in Google's own script
#: (docs.cloud.google.com/ai-hypercomputer/docs/create/create-vm, 2026-04-06). The ranges of a
#: machine's interfaces may not meet; networks of their own may have the same ones.
CIDR = "10.{index}.0.0/16"
#: What makes a network one for RDMA over Ethernet; it is of one zone (same page).
PROFILE = "{zone}-vpc-roce"
_KIND = re.compile(r"(?P<kind>[A-Z]+)(?: x(?P<count>\d+))?")


class Rail(NamedTuple):
    """One interface. `place` is where it is on the machine, the first being 0; `network` the word
    for its network, which is one of RDMA where it has a `profile`."""

    place: int
    kind: str
    network: str
    cidr: str
    mtu: int
    profile: str | None


def rails_of(
    catalog: Catalog, chosen: Verdict, fabric: str, zones: tuple[str, ...]
) -> tuple[Rail, ...]:
    """The rails of a machine of this fabric; none where there is no fabric."""
    if chosen.type.cloud != "gcp" or fabric == "none":
        return ()
    row = _row(catalog, chosen.type.name)
    return tuple(_rails(row, fabric, zones[0] if zones else "")) if row else ()


def _row(catalog: Catalog, machine: str) -> Mapping[str, str] | None:
    found = (r for r in catalog.facts("gcp_machines") if r["machine_type"] == machine)
    return next(found, None)


def _rails(row: Mapping[str, str], fabric: str, zone: str) -> Iterator[Rail]:
    mtu = int(row["mtu_recommended"] or 0)
    for index, kind in enumerate(kinds(row)):
        if index == 0:
            continue
        if kind == RDMA:
            profile, network = PROFILE.format(zone=zone), f"{fabric}-{zone}"
        else:
            profile, network = None, f"{fabric}-{index}"
        yield Rail(index, kind, network, CIDR.format(index=index), mtu, profile)


def kinds(row: Mapping[str, str]) -> Iterator[str]:
    """The kind of each interface in its order: `GVNIC x2|MRDMA x8`, or the first of those that will
    do for all: `GVNIC|VIRTIO_NET`. Raises `ValueError` for another grammar."""
    for part in row["nic_types"].split("|"):
        found = _KIND.match(part)
        if found is None:
            raise ValueError(f"{row['machine_type']}: `{part}` is no kind of interface")
        count = found["count"] or row["nics_for_full_gpu_bandwidth"]
        yield from [found["kind"]] * int(count)
        if not found["count"]:
            return
