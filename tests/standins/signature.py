"""AWS credentials and the check of a signature, by botocore: not by the code that is tested."""

from __future__ import annotations

import calendar
import hashlib
import importlib
import re
import time
from dataclasses import dataclass
from typing import Any

from tests.standins.server import Asked, Reply

# https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html: RequestTimeTooSkewed
SKEW_SECONDS = 900.0


@dataclass
class Credentials:
    """What an instance role hands out."""

    access: str = "ASIASTANDIN000000001"
    secret: str = "stand-in/secret+key/of/forty/characters0"  # noqa: S105 (belongs to nobody)
    token: str = "stand-in//session+token=="  # noqa: S105
    until: float = 0.0


def error(status: int, code: str, message: str, wrapped: bool = False) -> Reply:
    """An error in XML, as S3 writes it, or `wrapped` as the query APIs do."""
    inner = f"<Code>{code}</Code><Message>{message}</Message>"
    text = f"<Error>{inner}</Error>"
    if wrapped:
        text = f"<ErrorResponse><Error><Type>Sender</Type>{inner}</Error></ErrorResponse>"
    return Reply(status, text.encode(), {"Content-Type": "application/xml"})


class Verifier:
    """Knows the credentials that are good, and says what is wrong with a request's."""

    def __init__(self, region: str, service: str, now: Any) -> None:
        self.region = region
        self.service = service
        self.now = now
        self.good: dict[str, Credentials] = {}

    def admit(self, credentials: Credentials) -> None:
        self.good[credentials.access] = credentials

    def wrong(self, asked: Asked) -> Reply | None:
        """The refusal, None for a request that is signed well."""
        wrapped = self.service != "s3"

        def refuse(code: str, message: str) -> Reply:
            return error(403, code, message, wrapped)

        form = (
            r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, "
            r"SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})"
        )
        found = re.fullmatch(form, asked.headers.get("authorization", ""))
        if not found:
            return refuse("MissingAuthenticationToken", "the request is not signed")
        access, day, region, service, names, given = found.groups()
        credentials = self.good.get(access)
        if credentials is None:
            return refuse("InvalidClientTokenId", "the access key is not known")
        if asked.headers.get("x-amz-security-token", "") != credentials.token:
            return refuse("InvalidToken", "the session token is wrong")
        if credentials.until and credentials.until < self.now():
            return refuse("ExpiredToken", "the session token has expired")
        stamp = asked.headers.get("x-amz-date", "")
        if (region, service, day) != (self.region, self.service, stamp[:8]):
            return refuse("SignatureDoesNotMatch", "Credential should be scoped to this service")
        at = calendar.timegm(time.strptime(stamp, "%Y%m%dT%H%M%SZ"))
        if abs(at - self.now()) > SKEW_SECONDS:
            return self._skewed(refuse)
        if not {"host", "x-amz-date"} <= set(names.split(";")):
            return refuse("SignatureDoesNotMatch", "host and x-amz-date have to be signed")
        unsigned = {n for n in asked.headers if n.startswith("x-amz-")} - set(names.split(";"))
        if unsigned:
            return refuse("AccessDenied", f"there were headers that are not signed: {unsigned}")
        if given != self._expected(asked, credentials, names.split(";"), stamp):
            # The real one quotes what should have been signed, session token and all.
            quoted = f"The Canonical String is x-amz-security-token:{credentials.token}"
            return refuse("SignatureDoesNotMatch", f"The signature does not match. {quoted}")
        return None

    def _skewed(self, refuse: Any) -> Reply:
        if self.service == "s3":
            return refuse("RequestTimeTooSkewed", "the difference of the clocks is too large")
        return refuse("SignatureDoesNotMatch", "Signature expired: it is now too late")

    def _expected(
        self, asked: Asked, credentials: Credentials, names: list[str], stamp: str
    ) -> str:
        auth = importlib.import_module("botocore.auth")
        requests = importlib.import_module("botocore.awsrequest")
        models = importlib.import_module("botocore.credentials")
        kind = auth.S3SigV4Auth if self.service == "s3" else auth.SigV4Auth
        keys = models.Credentials(credentials.access, credentials.secret, credentials.token)
        signer = kind(keys, self.service, self.region)
        url = f"http://{asked.headers['host']}{asked.path}"
        url += f"?{asked.query}" if asked.query else ""
        headers = {name: asked.headers.get(name, "") for name in names}
        request: Any = requests.AWSRequest(asked.method, url, headers=headers, data=asked.body)
        request.context["timestamp"] = stamp
        canonical: str = signer.canonical_request(request)
        return str(signer.signature(signer.string_to_sign(request, canonical), request))


def digest_wrong(asked: Asked) -> Reply | None:
    """S3 checks that the body is the one whose digest was signed."""
    said = asked.headers.get("x-amz-content-sha256", "")
    if said != hashlib.sha256(asked.body).hexdigest():
        return error(400, "XAmzContentSHA256Mismatch", "the body is not what was signed")
    return None
