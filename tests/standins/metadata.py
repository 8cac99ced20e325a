"""The metadata services: IMDSv2 with its token rules, Google's with its header and long polls,
Azure's with its versions.

`values` are texts by path below the service's own root; a path that leads to others lists them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any

from tests.standins.server import Asked, Fault, Reply, StandIn
from tests.standins.signature import Credentials

VERSIONS = ("1.0", "2009-04-04", "2016-09-02", "2018-09-24", "2021-03-23", "latest")
ROLE = "gputier-node"


class Metadata(StandIn):
    """What is common: a tree of texts that a test may change while it runs."""

    def __init__(self, values: Mapping[str, str], faults: Iterable[Fault] = ()) -> None:
        super().__init__(faults)
        self.values = dict(values)
        self.off = False

    def set(self, path: str, value: str | None) -> None:
        with self.lock:
            if value is None:
                self.values.pop(path, None)
            else:
                self.values[path] = value

    def change(self, what: Mapping[str, Any]) -> None:
        for path, value in what.items():
            self.set(path, value)

    def look(self, path: str) -> str | None:
        """The text at a path, or the list of what is below it."""
        with self.lock:
            if path in self.values:
                return self.values[path]
            prefix = f"{path.rstrip('/')}/" if path.strip("/") else ""
            names: dict[str, None] = {}
            for key in self.values:
                if key.startswith(prefix):
                    first, more, _ = key[len(prefix) :].partition("/")
                    names[f"{first}{more}"] = None
            return "\n".join(names) if names else None


def aws_values(
    instance: str = "i-0123456789abcdef0",
    region: str = "us-east-1",
    account: str = "111122223333",
    instance_type: str = "p5.48xlarge",
    state: str | None = "InService",
) -> dict[str, str]:
    """An instance of an Auto Scaling group, on its way to `state`."""
    zone = f"{region}a"
    document = {"instanceId": instance, "region": region, "availabilityZone": zone,
                "accountId": account, "instanceType": instance_type, "version": "2017-09-30",
                "architecture": "x86_64", "imageId": "ami-00000000",
                "privateIp": "10.0.2.15"}  # fmt: skip
    domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    found = {
        "dynamic/instance-identity/document": json.dumps(document),
        "meta-data/instance-id": instance,
        "meta-data/instance-type": instance_type,
        "meta-data/placement/region": region,
        "meta-data/placement/availability-zone": zone,
        "meta-data/services/domain": domain,
        "meta-data/services/partition": "aws-cn" if region.startswith("cn-") else "aws",
    }
    if state:
        found["meta-data/autoscaling/target-lifecycle-state"] = state
    return found


class Aws(Metadata):
    """IMDSv2: no token, no answer. `credentials` are the role's, None for no role."""

    def __init__(
        self,
        values: Mapping[str, str] | None = None,
        credentials: Credentials | None = None,
        faults: Iterable[Fault] = (),
    ) -> None:
        super().__init__(aws_values() if values is None else values, faults)
        self.credentials = credentials
        self.tokens: dict[str, float] = {}

    def reply(self, asked: Asked) -> Reply:
        if self.off:
            return Reply(403)
        if "x-forwarded-for" in asked.headers:
            # A proxy came between: the real service refuses to give out a token.
            return Reply(403)
        parts = [part for part in asked.path.split("/") if part]
        if asked.method == "PUT":
            return self._token(asked, parts)
        token = asked.headers.get("x-aws-ec2-metadata-token")
        with self.lock:
            if token is None or self.tokens.get(token, 0.0) < time.monotonic():
                return Reply(401)
        if not parts:
            return Reply(200, "\n".join(VERSIONS).encode())
        if parts[0] not in VERSIONS:
            return Reply(404)
        return self._text("/".join(parts[1:]))

    def _token(self, asked: Asked, parts: list[str]) -> Reply:
        ttl = asked.headers.get("x-aws-ec2-metadata-token-ttl-seconds", "")
        right = len(parts) == 3 and parts[0] in VERSIONS and parts[1:] == ["api", "token"]
        if not right or not ttl.isdigit() or not 1 <= int(ttl) <= 21600:
            return Reply(400 if right else 404)
        with self.lock:
            token = f"TOKEN-{len(self.tokens)}=="
            self.tokens[token] = time.monotonic() + int(ttl)
        return Reply(200, token.encode(), {"X-aws-ec2-metadata-token-ttl-seconds": ttl})

    def forget_tokens(self) -> None:
        """As after a stop and a start."""
        with self.lock:
            self.tokens.clear()

    def _text(self, path: str) -> Reply:
        role = "meta-data/iam/security-credentials"
        if path.startswith(role):
            return self._role(path[len(role) :].strip("/"))
        text = self.look(path)
        return Reply(404) if text is None else Reply(200, text.encode())

    def _role(self, name: str) -> Reply:
        if self.credentials is None:
            return Reply(404)
        if not name:
            return Reply(200, ROLE.encode())
        if name != ROLE:
            return Reply(404)
        found = self.credentials
        until = found.until or self.now() + 6 * 3600
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(until))
        data = {"Code": "Success", "Type": "AWS-HMAC", "LastUpdated": "2026-11-30T00:00:00Z",
                "AccessKeyId": found.access, "SecretAccessKey": found.secret,
                "Token": found.token, "Expiration": stamp}  # fmt: skip
        return Reply.json(data)


def gcp_values(
    name: str = "tuner-x1k2",
    project: str = "stand-in-project",
    zone: str = "us-central1-a",
    group: str | None = "zones/us-central1-a/instanceGroupManagers/tuner",
) -> dict[str, str]:
    """A machine of a managed instance group."""
    found = {
        "project/project-id": project,
        "project/numeric-project-id": "123456789012",
        "instance/id": "4815162342108151623",
        "instance/name": name,
        "instance/zone": f"projects/123456789012/zones/{zone}",
        "instance/machine-type": "projects/123456789012/machineTypes/a3-highgpu-8g",
        "instance/preempted": "FALSE",
        "instance/maintenance-event": "NONE",
    }
    if group:
        found["instance/attributes/created-by"] = f"projects/123456789012/{group}"
    return found


class Gcp(Metadata):
    """Google's: the header both ways, and `wait_for_change`."""

    def __init__(
        self,
        values: Mapping[str, str] | None = None,
        token: str | None = "stand-in-bearer-token",  # noqa: S107 (belongs to nobody)
        faults: Iterable[Fault] = (),
    ) -> None:
        super().__init__(gcp_values() if values is None else values, faults)
        self.token = token
        self.life = 3600
        # Seconds that a question is held at most.
        self.longest = 30.0

    def reply(self, asked: Asked) -> Reply:
        google = {"Metadata-Flavor": "Google"}
        if asked.headers.get("metadata-flavor") != "Google" or "x-forwarded-for" in asked.headers:
            return Reply(403, b"", google)
        root = "/computeMetadata/v1/"
        if not asked.path.startswith(root):
            return Reply(404, b"", google)
        path = asked.path[len(root) :]
        if path == "instance/service-accounts/default/token":
            if self.token is None:
                return Reply(404, b"", google)
            found = Reply.json({"access_token": self.token, "expires_in": self.life,
                                "token_type": "Bearer"})  # fmt: skip
            return Reply(200, found.body, {**found.headers, **google})
        text = self._waited(asked, path)
        if text is None:
            return Reply(404, b"", google)
        return Reply(200, text.encode(), {**google, "ETag": _etag(text)})

    def _waited(self, asked: Asked, path: str) -> str | None:
        text = self.look(path)
        wanted = asked.parameters
        if wanted.get("wait_for_change") != "true" or text is None:
            return text
        before = wanted.get("last_etag", _etag(text))
        until = time.monotonic() + min(float(wanted.get("timeout_sec", self.longest)), self.longest)
        while text is not None and _etag(text) == before and time.monotonic() < until:
            time.sleep(0.01)
            text = self.look(path)
        return text


def _etag(text: str) -> str:
    return text.encode().hex()[:16] or "0"


def azure_values() -> dict[str, str]:
    """A machine of a scale set."""
    compute = {"subscriptionId": "00000000-0000-0000-0000-000000000000", "location": "eastus",
               "zone": "1", "vmId": "5c08b38e-4d57-4c23-ac45-aca61037f084", "name": "tuner_3",
               "vmScaleSetName": "tuner", "vmSize": "Standard_ND96isr_H100_v5"}  # fmt: skip
    events = {"DocumentIncarnation": 1, "Events": list[Any]()}
    return {"instance/compute": json.dumps(compute), "scheduledevents": json.dumps(events)}


class Azure(Metadata):
    """Azure's: the header, and a version in every question."""

    def __init__(
        self, values: Mapping[str, str] | None = None, faults: Iterable[Fault] = ()
    ) -> None:
        super().__init__(azure_values() if values is None else values, faults)

    def reply(self, asked: Asked) -> Reply:
        if asked.headers.get("metadata", "").lower() != "true":
            return Reply(400)
        if "api-version" not in asked.parameters:
            return Reply(400)
        text = self.look(asked.path[len("/metadata/") :])
        return Reply(404) if text is None else Reply(200, text.encode())


CLOUDS = {"aws": Aws, "gcp": Gcp, "azure": Azure}
