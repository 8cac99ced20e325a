"""Asking AWS which image a family names today, for `gputier lock --images`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from gputier.errors import InvalidInput, Problem
from gputier.lock import Found

_CREDENTIALS = "credentials are found as the AWS command line finds them: AWS_PROFILE, SSO, a role"
_WAY = "AWS has to be reached from here; AWS_ENDPOINT_URL and HTTPS_PROXY are honoured"
_RIGHTS = "it needs ssm:GetParameter and ec2:DescribeImages"


@cache
def look(region: str, family: str) -> Found:
    """The image that a parameter names in a region. Raises `InvalidInput` in plain words: no
    credentials, no right, no such parameter, no way there."""
    errors, clients = _boto()
    try:
        ssm, ec2 = clients(region)
        name: str = ssm.get_parameter(Name=family)["Parameter"]["Value"]
        images: list[dict[str, Any]] = ec2.describe_images(ImageIds=[name])["Images"]
    except errors.ClientError as error:
        said = error.response.get("Error", {})
        message = f"{family} in {region}: {said.get('Code')}: {said.get('Message')}"
        raise InvalidInput(Problem("--images", message, _RIGHTS)) from None
    except (errors.EndpointConnectionError, errors.HTTPClientError) as error:
        raise InvalidInput(Problem("--images", f"{region}: {error}", _WAY)) from None
    except errors.BotoCoreError as error:
        raise InvalidInput(Problem("--images", f"{region}: {error}", _CREDENTIALS)) from None
    if not images:
        message = f"{family} names {name} in {region}, and there is no such image"
        raise InvalidInput(Problem("--images", message, "try again later"))
    return _found(images[0])


def _found(image: dict[str, Any]) -> Found:
    root = image["RootDeviceName"]
    sizes = [
        disk["Ebs"].get("VolumeSize", 0)
        for disk in image.get("BlockDeviceMappings", [])
        if disk.get("DeviceName") == root and "Ebs" in disk
    ]
    return Found(image["ImageId"], root, max(sizes, default=0))


def _boto() -> tuple[Any, Callable[[str], tuple[Any, ...]]]:
    """botocore's errors, and a region's clients for SSM and EC2, which give up soon. No stubs come
    with either package."""
    try:
        boto3: Any = import_module("boto3")
        config: Any = import_module("botocore.config")
        errors: Any = import_module("botocore.exceptions")
    except ModuleNotFoundError:
        message = "AWS is asked by boto3, which is not installed"
        raise InvalidInput(Problem("--images", message, "pip install 'gputier[aws]'")) from None
    patience = config.Config(
        connect_timeout=10, read_timeout=20, retries={"max_attempts": 3, "mode": "standard"}
    )

    def clients(region: str) -> tuple[Any, ...]:
        session = boto3.Session(region_name=region)
        return tuple(session.client(name, config=patience) for name in ("ssm", "ec2"))

    return errors, clients
