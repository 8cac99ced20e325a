"""This machine's cloud, put together from the settings and the metadata: each part when first used.

Everything that a gate, the breaker or the watch for interruptions asks goes through one of these.
"""

from __future__ import annotations

import functools

from gputier.node.cloud import Trouble, endpoints, identity, metadata
from gputier.node.cloud.autoscaling import Autoscaling
from gputier.node.cloud.aws import Signed
from gputier.node.cloud.compute import Compute
from gputier.node.cloud.credentials import RoleKeys, ServiceToken
from gputier.node.cloud.http import Web
from gputier.node.cloud.identity import Identity
from gputier.node.cloud.store import S3, Gcs, Store
from gputier.node.host import Host
from gputier.node.settings import Settings

PROXIES = ("http", "https", "no_proxy")


class Here:
    """The cloud as this machine sees it."""

    def __init__(self, host: Host, settings: Settings, known: Identity) -> None:
        self.host = host
        self.settings = settings
        self.known = known
        self.endpoints = endpoints.read(host)
        self.web = web(host, settings)

    @functools.cached_property
    def identity(self) -> Identity:
        """Who this is, whole. Raises Silent."""
        if self.known.cloud == "aws":
            return identity.complete(self.known, self.aws)
        if self.known.cloud == "gcp":
            return identity.complete(self.known, self.gcp)
        return self.known

    @functools.cached_property
    def aws(self) -> metadata.Aws:
        return metadata.Aws(self.web, endpoints.metadata(self.endpoints))

    @functools.cached_property
    def gcp(self) -> metadata.Gcp:
        return metadata.Gcp(self.web, endpoints.metadata(self.endpoints))

    @functools.cached_property
    def keys(self) -> RoleKeys:
        return RoleKeys(self.aws)

    @functools.cached_property
    def token(self) -> ServiceToken:
        return ServiceToken(self.gcp)

    @functools.cached_property
    def store(self) -> Store:
        """The stack's bucket. Raises Trouble where this cloud, or this machine, has none."""
        who = self.identity
        if not who.bucket:
            raise Trouble("this machine's bucket is not known")
        if who.cloud == "aws":
            signed = Signed(self.web, self.keys, who.region, "s3")
            base = endpoints.bucket(self.endpoints, who.bucket, who.region, who.domain)
            return S3(signed, base, who.bucket, who.account)
        if who.cloud == "gcp":
            base = endpoints.google(self.endpoints, "storage")
            return Gcs(self.web, self.token, base, who.bucket)
        raise Trouble(f"reports are not kept on {who.cloud}")

    @functools.cached_property
    def autoscaling(self) -> Autoscaling:
        who = self.identity
        base = endpoints.aws(self.endpoints, "autoscaling", who.region, who.domain)
        return Autoscaling(Signed(self.web, self.keys, who.region, "autoscaling"), base)

    @functools.cached_property
    def compute(self) -> Compute:
        base = endpoints.google(self.endpoints, "compute")
        return Compute(self.web, self.token, base, self.identity.account)


def web(host: Host, settings: Settings) -> Web:
    """Asks by the proxies of the settings."""
    found = {name: settings.text(f"proxy.{name}") for name in PROXIES}
    return Web(host, {name: value for name, value in found.items() if value})
