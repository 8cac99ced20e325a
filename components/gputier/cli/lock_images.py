"""Asking AWS which image a family names today, for `gputier lock --images`."""

from __future__ import annotations

from functools import cache
from typing import Any

from gputier.account import session_aws
from gputier.account.answers import RIGHT, CannotAsk
from gputier.account.session_aws import AwsSession
from gputier.account.stack import AwsAccount
from gputier.errors import InvalidInput, Problem
from gputier.lock import Found
from gputier.lock.images import Look

_RIGHTS = "it needs ssm:GetParameter and ec2:DescribeImages"


def session(account: AwsAccount) -> AwsSession:
    """Raises `CannotAsk`."""
    return session_aws.session(account)


def looker(account: AwsAccount) -> Look:
    """How a stack asks: with its own profile and roles, and once for each family of a region. What
    it gives raises `InvalidInput` in plain words: no credentials, no right, no such parameter, no
    way there."""

    @cache
    def asked() -> AwsSession:
        return session(account)

    @cache
    def look(region: str, family: str) -> Found:
        try:
            return _ask(asked(), region, family)
        except CannotAsk as error:
            where = f"{family} in {region}" if error.code else region
            hint = _RIGHTS if error.kind == RIGHT else error.fix or _RIGHTS
            raise InvalidInput(Problem("--images", f"{where}: {error.message}", hint)) from None

    return look


def _ask(aws: AwsSession, region: str, family: str) -> Found:
    name: str = aws.ask("ssm", "get_parameter", region, Name=family)["Parameter"]["Value"]
    images: list[dict[str, Any]] = aws.ask("ec2", "describe_images", region, ImageIds=[name])[
        "Images"
    ]
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
