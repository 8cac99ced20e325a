"""Our signature is AWS's own, byte for byte."""

from __future__ import annotations

import datetime
import importlib
import urllib.parse
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputier.node.cloud.sign import Keys, Scope, headers

NOW = datetime.datetime(2026, 11, 30, 12, 34, 56, tzinfo=datetime.UTC)
# What goes into a header by http.client: Latin-1 without control characters; we send ASCII.
ASCII = st.characters(min_codepoint=32, max_codepoint=126)
VALUES = st.text(ASCII, max_size=30) | st.text(st.sampled_from("  a,="), max_size=8)
NAMES = st.from_regex(r"(x-amz-|X-Amz-|If-|Content-|x-)[a-zA-Z0-9]{1,8}", fullmatch=True)
SKIPPED = {"x-amz-date", "x-amz-security-token", "x-amz-content-sha256", "content-md5"}
PATHS = st.text(max_size=30).map(lambda text: "/" + urllib.parse.quote(text, safe="/~"))
QUERIES = st.lists(st.tuples(st.text(min_size=1, max_size=6), st.text(max_size=6)), max_size=4).map(
    lambda pairs: urllib.parse.urlencode(pairs, quote_via=urllib.parse.quote)
)
HOSTS = st.sampled_from(
    ["b.s3.us-east-1.amazonaws.com", "127.0.0.1:9000", "h:80", "h:443", "[fd00::1]:81"]
)


def botocore(
    service: str, keys: Keys, method: str, url: str, given_headers: dict[str, str], body: bytes
) -> dict[str, str]:
    """What botocore sends for the same request at the same moment."""
    auth: Any = importlib.import_module("botocore.auth")
    request: Any = importlib.import_module("botocore.awsrequest").AWSRequest(
        method, url, headers=given_headers, data=body
    )
    models: Any = importlib.import_module("botocore.credentials")
    found = models.Credentials(keys.access, keys.secret, keys.token or None)
    kind = auth.S3SigV4Auth if service == "s3" else auth.SigV4Auth
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auth, "get_current_datetime", lambda: NOW)
        kind(found, service, "us-east-1").add_auth(request)
    return {name.lower(): value for name, value in request.headers.items()}


@given(
    service=st.sampled_from(["s3", "autoscaling"]),
    scheme=st.sampled_from(["http", "https"]),
    name=HOSTS,
    path=PATHS,
    query=QUERIES,
    more=st.dictionaries(NAMES, VALUES, max_size=4),
    body=st.binary(max_size=64),
    token=st.sampled_from(["", "IQoJb3JpZ2luX2VjE//+=="]),
    method=st.sampled_from(["GET", "PUT", "POST", "HEAD"]),
)
def test_every_signature_is_the_one_that_botocore_makes(
    service: str, scheme: str, name: str, path: str, query: str, more: dict[str, str],
    body: bytes, token: str, method: str,
) -> None:  # fmt: skip
    if len({key.lower() for key in more}) < len(more) or SKIPPED & {key.lower() for key in more}:
        return
    keys = Keys("ASIAEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", token)
    url = f"{scheme}://{name}{path if service == 's3' else '/'}" + (f"?{query}" if query else "")
    scope = Scope(NOW.timestamp(), "us-east-1", service)
    ours = headers(keys, scope, method, url, more, body)
    theirs = botocore(service, keys, method, url, more, body)
    assert {key.lower(): value for key, value in ours.items()} == theirs


def test_the_example_of_the_specification_comes_out() -> None:
    """GET ?lifecycle, from "Authenticating Requests (AWS Signature Version 4)" of S3."""
    keys = Keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    moment = datetime.datetime(2013, 5, 24, tzinfo=datetime.UTC).timestamp()
    url = "https://examplebucket.s3.amazonaws.com/?lifecycle="
    found = headers(keys, Scope(moment, "us-east-1", "s3"), "GET", url, {}, b"")
    wanted = "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
    assert found["Authorization"].endswith(f"Signature={wanted}")


def test_credentials_are_not_shown() -> None:
    assert "secret" not in f"{Keys('access', 'secret', 'token')!r}{Keys('a', 'secret')!s}"
