"""The machine's own identity towards its cloud, from the metadata service, renewed before it ends.

In memory only. What the service says about a refusal is told; what it grants is not.
"""

from __future__ import annotations

import calendar
import time

from gputier.node.cloud import Trouble
from gputier.node.cloud.http import Patience
from gputier.node.cloud.metadata import Aws, Gcp
from gputier.node.cloud.sign import Keys

ROLE = "meta-data/iam/security-credentials/"
TOKEN = "instance/service-accounts/default/token"  # noqa: S105 (a path)
# AWS hands out new ones at least five minutes before the old ones end.
EARLY_SECONDS = 240.0
# An instance profile may be attached after the machine starts.
LATE_ROLE = Patience(60.0, each=2.0, first=1.0, most=8.0)


class Denied(Trouble):
    """This machine has no identity that works: why, in words."""


class RoleKeys:
    """The instance role's credentials."""

    def __init__(self, metadata: Aws) -> None:
        self.metadata = metadata
        self._kept: Keys | None = None

    def __repr__(self) -> str:
        return "RoleKeys(…)"

    def drop(self) -> None:
        """Forget them: a service says that they ran out."""
        self._kept = None

    def get(self) -> Keys:
        """Credentials that are good for some minutes. Raises Denied, Silent."""
        host = self.metadata.web.host
        if self._kept is None or self._kept.until - host.now() < EARLY_SECONDS:
            self._kept = self._ask()
        return self._kept

    def _ask(self) -> Keys:
        host = self.metadata.web.host
        end, pause = host.monotonic() + LATE_ROLE.seconds, LATE_ROLE.first
        while True:
            role = (self.metadata.get(ROLE) or "").split("\n")[0].strip()
            if role:
                return self._of(role)
            if host.monotonic() + pause >= end:
                raise Denied("this instance has no role: attach an instance profile")
            host.sleep(pause)
            pause = min(LATE_ROLE.most, pause * 2)

    def _of(self, role: str) -> Keys:
        answer = self.metadata.answer(f"{ROLE}{role}")
        found = answer.json()
        if found.get("Code") != "Success":
            why = found.get("Message") or found.get("Code") or f"status {answer.status}"
            raise Denied(f"the role {role} cannot be used: {why}")
        try:
            until = calendar.timegm(time.strptime(str(found["Expiration"]), "%Y-%m-%dT%H:%M:%SZ"))
            access, secret = str(found["AccessKeyId"]), str(found["SecretAccessKey"])
            return Keys(access, secret, str(found["Token"]), float(until))
        except (KeyError, ValueError):
            raise Denied(f"the credentials of role {role} cannot be read") from None


class ServiceToken:
    """The bearer token of the machine's service account."""

    def __init__(self, metadata: Gcp) -> None:
        self.metadata = metadata
        self._kept = ""
        self._until = 0.0

    def __repr__(self) -> str:
        return "ServiceToken(…)"

    def drop(self) -> None:
        self._kept = ""

    def get(self) -> str:
        """A token that is good for a minute at least. Raises Denied, Silent."""
        now = self.metadata.web.host.monotonic()
        if not self._kept or self._until - now < 60.0:
            answer = self.metadata.answer(TOKEN)
            found = answer.json()
            if answer.status == 404 or not found.get("access_token"):
                raise Denied("this machine has no service account with scopes")
            self._kept = str(found["access_token"])
            life = found.get("expires_in")
            self._until = now + (float(life) if isinstance(life, (int, float)) else 60.0)
        return self._kept
