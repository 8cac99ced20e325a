"""What a call is about: the stand-in's Google, and where the provider's settings place it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.engine.gcp import links
from tests.engine.gcp.api import Api
from tests.engine.gcp.request import Place
from tests.engine.provider import Refused
from tests.engine.wire import Props, is_unknown

if TYPE_CHECKING:
    from tests.engine.gcp.cloud import Gcp

# Every resource that Pulumi makes bears it, unless `addPulumiAttributionLabel` is false.
ATTRIBUTION = {"goog-pulumi-provisioned": "true"}


@dataclass(frozen=True, slots=True)
class Session:
    """One resource's, or one look-up's: its own project, region and zone win over the settings'."""

    cloud: Gcp
    settings: Props
    inputs: Props

    @property
    def api(self) -> Api:
        return self.cloud.api

    @property
    def project(self) -> str:
        return self._set("project", "the provider has no project")

    @property
    def region(self) -> str:
        zone = self.inputs.get("zone") or self.settings.get("zone")
        if not self._own("region") and not self.settings.get("region") and zone:
            return links.region_of(str(zone))
        return self._set("region", "neither the resource nor the provider has a region")

    @property
    def zone(self) -> str:
        return self._set("zone", "neither the resource nor the provider has a zone")

    @property
    def place(self) -> Place:
        """As far as it is known; what is needed and missing is refused where it is needed."""
        found = (self._own(name) or self.settings.get(name) or "" for name in PARTS)
        project, region, zone = map(str, found)
        return Place(links.name(project), region or (links.region_of(zone) if zone else ""), zone)

    def labels(self, own: Props) -> Props:
        """A resource's labels with those that the provider adds."""
        attributed = self.settings.get("addPulumiAttributionLabel", True)
        return {
            **(self.settings.get("defaultLabels") or {}),
            **own,
            **(ATTRIBUTION if attributed else {}),
        }

    def _own(self, name: str) -> str:
        found = self.inputs.get(name)
        return "" if not found or is_unknown(found) else str(found)

    def _set(self, name: str, otherwise: str) -> str:
        found = self._own(name) or self.settings.get(name)
        if not found:
            raise Refused(name, otherwise)
        return links.name(str(found))


PARTS = ("project", "region", "zone")
