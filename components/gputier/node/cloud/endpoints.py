"""Where the services are: the cloud's own addresses, unless the image brings others.

`/etc/gputier/endpoints.json` comes with an image (private endpoints, a rehearsal) and is never
rendered: an address is no part of a plan.
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Mapping

from gputier.node import WrongInput, plain
from gputier.node.host import Host

FILE = "/etc/gputier/endpoints.json"
NAMES = ("metadata", "s3", "autoscaling", "ecr", "storage", "compute")
METADATA = "http://169.254.169.254"
GOOGLE = {"storage": "https://storage.googleapis.com", "compute": "https://compute.googleapis.com"}


def read(host: Host) -> dict[str, str]:
    """The addresses of the file, without a slash at the end. Raises WrongInput."""
    text = host.read(FILE)
    if text is None:
        return {}
    try:
        data = plain.mapping(json.loads(text))
    except ValueError as error:
        raise WrongInput(f"{FILE}: not JSON: {error}") from None
    if data is None:
        raise WrongInput(f"{FILE}: must hold one JSON object")
    problems = [
        f"{FILE}: {name}: {why}" for name, value in data.items() if (why := _wrong(name, value))
    ]
    if problems:
        raise WrongInput(*problems)
    return {name: str(value).rstrip("/") for name, value in data.items()}


def _wrong(name: str, value: object) -> str | None:
    if name not in NAMES:
        return f"not one of {', '.join(NAMES)}"
    address = urllib.parse.urlsplit(value) if isinstance(value, str) else None
    if address is None or address.scheme not in ("http", "https") or not address.hostname:
        return f"{json.dumps(value)} is not an http or https address"
    return None


def metadata(found: Mapping[str, str]) -> str:
    return found.get("metadata", METADATA)


def google(found: Mapping[str, str], service: str) -> str:
    """`storage` or `compute` of Google."""
    return found.get(service, GOOGLE[service])


def bucket(found: Mapping[str, str], name: str, region: str, domain: str) -> str:
    """A bucket's address: its own host name at AWS, below the address that an image brings."""
    if "s3" in found:
        return f"{found['s3']}/{name}"
    return f"https://{name}.s3.{region}.{domain}"


def aws(found: Mapping[str, str], service: str, region: str, domain: str) -> str:
    """A regional service of AWS; the domain is the partition's (`amazonaws.com.cn` in China)."""
    return found.get(service, f"https://{service}.{region}.{domain}")
