"""What a region's or a zone's name says by itself."""

from __future__ import annotations

import re

_NOT_COMMERCIAL = {
    # Separate partitions: their own accounts, endpoints and (China) currency.
    "aws": re.compile(r"us-gov-|cn-|us-iso|eu-iso|eusc-"),
    "azure": re.compile(r"usgov|usdod|ussec|usnat|china"),
    "alibaba": re.compile(r".*-(finance|gov)"),
}

_AWS_AREA_WORDS = {
    "n": "north",
    "s": "south",
    "e": "east",
    "w": "west",
    "c": "central",
    "ne": "northeast",
    "nw": "northwest",
    "se": "southeast",
    "sw": "southwest",
}
# use1-az4, usgw1-az1; local zones add a site: use1-atl2-az1
_AWS_ZONE_ID = re.compile(r"([a-z]{2})(g?)(ne|nw|se|sw|n|s|e|w|c)([0-9]+)-(?:[a-z0-9]+-)?az[0-9]+")
# us-east-1a, us-gov-west-1b; local zones: us-east-1-atl-2a
_AWS_ZONE_NAME = re.compile(r"([a-z]{2,4}(?:-[a-z]+)?-[a-z]+-[0-9]+)(?:-[a-z]{3}-[0-9]+)?[a-z]")
_ZONE_NAMES = {
    "gcp": re.compile(r"([a-z]+-[a-z]+[0-9]+)-[a-z]"),
    "azure": re.compile(r"([a-z]+[0-9]?)-[1-9]"),
    "alibaba": re.compile(r"([a-z]{2}-[a-z]+(?:-[0-9]+(?=[a-z]))?)-?[a-z]"),
    "tencent": re.compile(r"([a-z]{2}-[a-z]+)-[0-9]+"),
}


def is_commercial(cloud: str, region: str) -> bool:
    """Whether an ordinary account of this cloud can use the region.

    False for AWS GovCloud, China and sovereign partitions and for Azure Government and China.
    Alibaba's and Tencent's mainland regions are ordinary regions of those clouds.
    """
    pattern = _NOT_COMMERCIAL.get(cloud)
    return not (pattern and pattern.match(region))


def region_of_zone(cloud: str, zone: str) -> str | None:
    """The region a zone name or AWS zone id belongs to, or None when it is neither."""
    if cloud == "aws":
        if found := _AWS_ZONE_ID.fullmatch(zone):
            area, gov, direction, number = found.groups()
            return f"{area}{'-gov' if gov else ''}-{_AWS_AREA_WORDS[direction]}-{number}"
        found = _AWS_ZONE_NAME.fullmatch(zone)
    else:
        pattern = _ZONE_NAMES.get(cloud)
        found = pattern.fullmatch(zone) if pattern else None
    return found[1] if found else None
