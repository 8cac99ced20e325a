"""The metadata services by their link-local address, whether they are late, strict or not there.

By address and not by name: DNS may not work yet (github.com/canonical/cloud-init/issues/4085).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gputier.node.cloud import Trouble, endpoints
from gputier.node.cloud.http import Answer, Ask, NoAnswer, Patience, Web

TTL_SECONDS = 21600
TOKEN = "X-aws-ec2-metadata-token"  # noqa: S105 (a header)
# On a first boot the service may come up after the machine does.
LATE = Patience(120.0, each=2.0, first=0.25, most=5.0)
# Once it has answered, silence is a fault and not a late start.
SOON = Patience(15.0, each=2.0, first=0.25, most=2.0)
# One look, for what is looked at again in seconds anyway.
GLANCE = Patience(1.5, each=1.5)
AZURE_VERSION = "2021-02-01"


class Silent(Trouble):
    """The metadata service cannot be used: why, in words."""


class Metadata:
    """`get` asks for a path of this cloud's service; its text, None where there is no such path."""

    def __init__(self, web: Web, base: str = endpoints.METADATA) -> None:
        self.web = web
        self.base = base
        self.waited = False

    def get(self, path: str, patience: Patience | None = None) -> str | None:
        answer = self.answer(path, patience)
        return None if answer.status == 404 else answer.text.strip()

    def answer(self, path: str, patience: Patience | None = None) -> Answer:
        """The whole answer, status 200 or 404. Raises Silent."""
        return self._sorted(self._question(path, patience), path)

    def _question(self, path: str, patience: Patience | None) -> Answer:
        return self._ask(lambda: Ask("GET", self.address(path), self.headers()), patience)

    def _sorted(self, found: Answer, path: str) -> Answer:
        if found.status not in (200, 404):
            bare = path.partition("?")[0]
            raise Silent(f"the metadata service answers {found.status} for {bare}")
        return found

    def address(self, path: str) -> str:
        raise NotImplementedError

    def headers(self) -> Mapping[str, str]:
        raise NotImplementedError

    def _ask(self, make: Callable[[], Ask], patience: Patience | None) -> Answer:
        patient = patience or (SOON if self.waited else LATE)
        # Answered or not: a late start is waited out once, and not by every step again.
        self.waited = self.waited or patience is None
        try:
            return self.web.ask(make, patient)
        except NoAnswer as error:
            raise Silent(f"the metadata service does not answer: {error.words}") from None


class Aws(Metadata):
    """IMDSv2: a token first, then each question with it. A token that ran out is renewed once."""

    def __init__(self, web: Web, base: str = endpoints.METADATA) -> None:
        super().__init__(web, base)
        self._token: str | None = None

    def address(self, path: str) -> str:
        return f"{self.base}/latest/{path}"

    def headers(self) -> Mapping[str, str]:
        return {TOKEN: self._token or ""}

    def answer(self, path: str, patience: Patience | None = None) -> Answer:
        if self._token is None:
            self._renew(patience)
        found = self._question(path, patience)
        if found.status == 401:
            self._renew(patience)
            found = self._question(path, patience)
        return self._sorted(found, path)

    def _renew(self, patience: Patience | None) -> None:
        ttl = {f"{TOKEN}-ttl-seconds": str(TTL_SECONDS)}
        try:
            found = self._ask(lambda: Ask("PUT", f"{self.base}/latest/api/token", ttl), patience)
        except Silent as error:
            # The answer to PUT has a hop limit (1 by default): from a container it never arrives.
            raise Silent(f"{error} (a hop limit of 1 does not reach into a container)") from None
        if found.status == 403:
            raise Silent("the metadata service is switched off for this instance (HttpEndpoint)")
        if not found.ok or not found.text.strip():
            raise Silent(f"the metadata service answers {found.status} to the token request")
        self._token = found.text.strip()


class Gcp(Metadata):
    """Google's, which proves itself by a header: a captive network's answer has none."""

    def address(self, path: str) -> str:
        return f"{self.base}/computeMetadata/v1/{path}"

    def headers(self) -> Mapping[str, str]:
        return {"Metadata-Flavor": "Google"}

    def answer(self, path: str, patience: Patience | None = None) -> Answer:
        found = super().answer(path, patience)
        if found.headers.get("metadata-flavor") != "Google":
            raise Silent("what answers at the metadata address is not Google's service")
        return found


class Azure(Metadata):
    """Azure's instance metadata and scheduled events."""

    def address(self, path: str) -> str:
        has = "api-version=" in path
        joint = "&" if "?" in path else "?"
        version = "" if has else f"{joint}api-version={AZURE_VERSION}"
        return f"{self.base}/metadata/{path}{version}"

    def headers(self) -> Mapping[str, str]:
        return {"Metadata": "true"}


KINDS = {"aws": Aws, "gcp": Gcp, "azure": Azure}


def of(cloud: str, web: Web, found: Mapping[str, str]) -> Metadata | None:
    """The service of a cloud, None for one whose service is not known here."""
    kind = KINDS.get(cloud)
    return kind(web, endpoints.metadata(found)) if kind else None
