"""AWS Signature Version 4, the part that S3 and the query APIs need.

Written so that it can be read beside the specification and copied whole: standard library only, no
state. https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import hashlib
import hmac
import time
import urllib.parse
from collections.abc import Mapping
from typing import NamedTuple

ALGORITHM = "AWS4-HMAC-SHA256"
# Whatever lies between may change these; botocore leaves the same ones out.
UNSIGNED = ("expect", "transfer-encoding", "user-agent", "x-amzn-trace-id")


class Scope(NamedTuple):
    """Where and when a signature is good: seconds since 1970, region, service."""

    at: float
    region: str
    service: str

    @property
    def stamp(self) -> str:
        return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self.at))

    @property
    def text(self) -> str:
        return f"{self.stamp[:8]}/{self.region}/{self.service}/aws4_request"


class Keys:
    """Temporary credentials. Never shown: not by `repr`, not in an exception."""

    def __init__(self, access: str, secret: str, token: str = "", until: float = 0.0) -> None:
        self.access = access
        self.secret = secret
        self.token = token
        self.until = until

    def __repr__(self) -> str:
        return "Keys(…)"


def headers(
    keys: Keys, scope: Scope, method: str, url: str, given: Mapping[str, str], body: bytes
) -> dict[str, str]:
    """The headers to send: those given, with the date, the session token and the signature."""
    digest = hashlib.sha256(body).hexdigest()
    found = {**given, "X-Amz-Date": scope.stamp}
    if scope.service == "s3":
        # S3 wants the digest as a header too, and takes the path as it is sent.
        found["X-Amz-Content-SHA256"] = digest
    if keys.token:
        found["X-Amz-Security-Token"] = keys.token
    address = urllib.parse.urlsplit(url)
    signed = {name.lower(): " ".join(value.split()) for name, value in found.items()}
    signed = {name: value for name, value in signed.items() if name not in UNSIGNED}
    signed["host"] = host(address)
    names = sorted(signed)
    canonical = "\n".join(
        (
            method.upper(),
            address.path if scope.service == "s3" and address.path else _path(address.path),
            _query(address.query),
            "".join(f"{name}:{signed[name]}\n" for name in names),
            ";".join(names),
            digest,
        )
    )
    words = "\n".join(
        (ALGORITHM, scope.stamp, scope.text, hashlib.sha256(canonical.encode()).hexdigest())
    )
    signature = hmac.new(_key(keys.secret, scope), words.encode(), hashlib.sha256).hexdigest()
    found["Authorization"] = (
        f"{ALGORITHM} Credential={keys.access}/{scope.text}, "
        f"SignedHeaders={';'.join(names)}, Signature={signature}"
    )
    return found


def host(address: urllib.parse.SplitResult) -> str:
    """The Host header that `http.client` sends: without the scheme's own port."""
    usual = {"http": 80, "https": 443}[address.scheme]
    name = address.hostname or ""
    name = f"[{name}]" if ":" in name else name
    return name if address.port in (None, usual) else f"{name}:{address.port}"


def _path(path: str) -> str:
    return urllib.parse.quote(path or "/", safe="/~")


def _query(query: str) -> str:
    """The parameters in order, as they are escaped in the address."""
    pairs = [part.partition("=") for part in query.split("&") if part]
    return "&".join(f"{name}={value}" for name, _, value in sorted(pairs))


def _key(secret: str, scope: Scope) -> bytes:
    key = ("AWS4" + secret).encode()
    for part in scope.text.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key
