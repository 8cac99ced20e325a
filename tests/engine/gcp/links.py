"""How Google names things: by link, by path, or by name alone where a field says what it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

COMPUTE = "https://www.googleapis.com/compute/v1/"
_ROOT = re.compile(r"https://(?:www|compute)\.googleapis\.com/compute/(?:v1|beta)/")
# What a member of a request points to, and whether a name alone is one of a zone, a region or all.
# The provider completes such a name; a template keeps names of types, which have no zone yet.
REFERENCES: Mapping[str, tuple[str, str]] = {
    "acceleratorType": ("acceleratorTypes", "zone"),
    "diskType": ("diskTypes", "zone"),
    "healthCheck": ("healthChecks", "global"),
    "instanceTemplate": ("instanceTemplates", "global"),
    "machineType": ("machineTypes", "zone"),
    "network": ("networks", "global"),
    "resourcePolicies": ("resourcePolicies", "region"),
    "subnetwork": ("subnetworks", "region"),
}
OF_A_TYPE = frozenset({"acceleratorType", "diskType", "machineType"})


def path(text: str) -> str:
    """A link without its root and without what makes it unique: `projects/p/global/networks/n`."""
    return _ROOT.sub("", text).split("?")[0]


def link(text: str) -> str:
    return COMPUTE + path(text)


def name(text: str) -> str:
    return path(text).rsplit("/", 1)[-1]


def is_path(text: Any) -> bool:
    """Whether a text points to something of Compute Engine."""
    return isinstance(text, str) and bool(
        re.fullmatch(
            r"projects/[^/ ]+/(global|zones/[^/]+|regions/[^/]+)/[a-zA-Z]+/\S+", path(text)
        )
    )


def same(one: Any, other: Any) -> bool:
    """Whether two texts mean the same thing, however much of its link each spells."""
    if not isinstance(one, str) or not isinstance(other, str):
        return False
    one, other = sorted((path(one), path(other)), key=len)
    return one == other or other.endswith(f"/{one}")


def region_of(zone: str) -> str:
    return zone.rsplit("-", 1)[0]
