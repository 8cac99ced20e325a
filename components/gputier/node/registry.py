"""Pulling images from the clouds' own registries, with the machine's own identity.

What they ask for is a password of some hours. It goes into a file that root alone may read, in
memory, and from there to docker: into no argument, no log and no disk.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any, cast

from gputier.node.cloud import Trouble
from gputier.node.cloud.aws import Send, Signed, refused
from gputier.node.cloud.here import Here
from gputier.node.cloud.http import Patience
from gputier.node.cloud.identity import Identity
from gputier.node.stages import Work

FOLDER = "/run/gputier/docker"
FILE = f"{FOLDER}/config.json"
ECR = re.compile(r"\d{12}\.dkr\.ecr(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")
GOOGLE = re.compile(r"(?:[a-z0-9-]+-docker\.pkg\.dev|(?:[a-z]+\.)?gcr\.io)")
TARGET = "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken"
PATIENCE = Patience(60.0)


def of(image: str) -> str:
    """The registry's host that an image names; Docker Hub's where it names none."""
    first, slash, _ = image.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return first
    return "docker.io"


def login(work: Work, image: str, identity: Identity | None) -> dict[str, str]:
    """Docker's environment for pulling this image; empty where no password is needed, or had."""
    host = of(image)
    if identity is None or not (ECR.fullmatch(host) or GOOGLE.fullmatch(host)):
        return {}
    try:
        password = _password(Here(work.host, work.settings, identity), host)
    except Trouble as trouble:
        # The image may be on the machine already, or everybody's.
        work.warnings.append(f"no password for {host}: {trouble}")
        return {}
    text = json.dumps({"auths": {host: {"auth": password}}}) + "\n"
    try:
        work.host.write(FILE, text, 0o600)
    except OSError as error:
        work.warnings.append(f"{FILE} cannot be written: {error}")
        return {}
    return {"DOCKER_CONFIG": FOLDER}


def _password(cloud: Here, host: str) -> str:
    """User and password as docker's file has them, base64 of both. Raises Trouble."""
    found = ECR.fullmatch(host)
    if not found:
        return base64.b64encode(b"oauth2accesstoken:" + cloud.token.get().encode()).decode()
    region = found[1]
    domain = "amazonaws.com.cn" if host.endswith(".cn") else "amazonaws.com"
    base = cloud.endpoints.get("ecr", f"https://api.ecr.{region}.{domain}")
    headers = {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": TARGET}
    signed = Signed(cloud.web, cloud.keys, region, "ecr")
    answer = signed.send(Send("POST", f"{base}/", headers, b"{}"), PATIENCE)
    if not answer.ok:
        raise refused("GetAuthorizationToken", answer)
    rows = cast("list[dict[str, Any]]", answer.json().get("authorizationData") or [])
    token = str(rows[0].get("authorizationToken") or "") if rows else ""
    if not token:
        raise Trouble("ECR answered without a token")
    return token
