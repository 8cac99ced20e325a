"""Zones that the tests use: no discovery document lists them."""

from __future__ import annotations

from tests.engine.provider import Refused

# Region -> the last letter of each of its zones.
ZONES = {
    "us-central1": "abcf",
    "us-east1": "bcd",
    "us-east4": "abc",
    "us-west1": "abc",
    "us-west4": "abc",
    "europe-west1": "bcd",
    "europe-west4": "abc",
    "asia-southeast1": "abc",
}


def zones(region: str) -> list[str]:
    if region not in ZONES:
        raise Refused(
            "region", f"the stand-in knows no zones of {region}: tests/engine/gcp/places.py"
        )
    return [f"{region}-{letter}" for letter in ZONES[region]]
