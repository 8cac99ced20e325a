"""Images that Google and others have published; a test may publish more."""

from __future__ import annotations

from typing import Any

from tests.engine.gcp import links
from tests.engine.gcp.api import Api

# (project, family, name): what the examples and the tests of this folder rest on.
PUBLIC = (
    ("debian-cloud", "debian-12", "debian-12-bookworm-v20260114"),
    ("ubuntu-os-cloud", "ubuntu-2404-lts-amd64", "ubuntu-2404-noble-amd64-v20260114"),
)


def publish(api: Api, project: str, name: str, family: str = "", **about: Any) -> str:
    key = f"compute/projects/{project}/global/images/{name}"
    count = sum(1 for other in api.objects if "/images/" in other)
    born = {**api.born(key), "creationTimestamp": f"2026-01-01T00:{count:02d}:00.000-08:00"}
    image = {"name": name, "family": family, "diskSizeGb": "10", "status": "READY"}
    more = {"architecture": "X86_64", "archiveSizeBytes": "1", "description": ""}
    api.objects[key] = {**born, **image, **more, **about}
    return key.partition("/")[2]


def publish_all(api: Api) -> None:
    for project, family, name in PUBLIC:
        publish(api, project, name, family)


class Images:
    """Images as the provider takes them: by link, by name or by family, with or without project."""

    def __init__(self, api: Api, project: str) -> None:
        self._api, self._project = api, project

    def link(self, text: str) -> str:
        text = links.path(text)
        if text.startswith("projects/"):
            return links.link(text)
        text = text.removeprefix("global/images/")
        if text.startswith("family/"):
            return links.link(f"projects/{self._project}/global/images/{text}")
        owner, _, name = text.rpartition("/")
        owners = [owner] if owner else [self._project, *sorted({where for where, _, _ in PUBLIC})]
        for where in owners:
            for wanted in (name, f"family/{name}"):
                if self._known(where, wanted):
                    return links.link(f"projects/{where}/global/images/{wanted}")
        return links.link(f"projects/{owners[0]}/global/images/{name}")

    def same(self, text: str, live: str) -> bool:
        """Whether what is live is the image, or one of the family, that a text names: a newer image
        of the same family is no difference to the provider."""
        link = links.path(self.link(text))
        project, _, family = link.partition("/global/images/family/")
        if not family:
            return links.same(link, live)
        image = self._api.objects.get(f"compute/{links.path(live)}", {})
        return links.path(live).startswith(f"{project}/") and image.get("family") == family

    def _known(self, project: str, wanted: str) -> bool:
        at = f"compute/projects/{project}/global/images/"
        if not wanted.startswith("family/"):
            return f"{at}{wanted}" in self._api.objects
        family = wanted.removeprefix("family/")
        found = (image for key, image in self._api.objects.items() if key.startswith(at))
        return any(image.get("family") == family for image in found)
