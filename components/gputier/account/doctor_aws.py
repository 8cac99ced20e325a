"""What AWS is asked about each fleet's machine: where it is sold, its image, fabric and subnets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from gputier.account import doctor_checks as checks
from gputier.account.answers import CannotAsk
from gputier.account.doctor import Finding, Once, Question, Subject, bad, good, unknown
from gputier.account.doctor_targets import Target
from gputier.account.session_aws import AwsSession
from gputier.plan.boot import PLACEHOLDER_HINT

_ZONE_ID = re.compile(r"[a-z0-9-]+-az\d+")
#: Errors that say that something is not there: an answer, and no failure to ask.
_NO_IMAGE = ("InvalidAMIID.NotFound", "InvalidAMIID.Malformed", "InvalidAMIID.Unavailable")
_NO_TYPE = ("InvalidInstanceType", "InvalidParameterValue")
_SOME = 4


class Aws:
    """The account as this stack asks it. What several questions need is asked once."""

    def __init__(self, make: Callable[[], AwsSession], subject: Subject) -> None:
        self._make, self.subject, self.once = make, subject, Once()

    @property
    def session(self) -> AwsSession:
        """Raises `CannotAsk`."""
        return self.once.get("session", self._make)

    def command(self, line: str, region: str = "") -> str:
        """A command line of AWS's, as whoever deploys the stack would type it."""
        parts = [f"aws {line}", f"--region {region}" if region else ""]
        profile = self.subject.account.aws.profile
        parts.append(f"--profile {profile}" if profile else "")
        return " ".join(filter(None, parts))

    def lock(self, *flags: str) -> str:
        return " ".join(["gputier lock", self.subject.command, *flags])

    def offered(self, region: str, type_: str, *, by_name: bool = False) -> frozenset[str]:
        """The zones that sell a type, by id or by this account's names."""
        kind = "availability-zone" if by_name else "availability-zone-id"

        def ask() -> frozenset[str]:
            found = self.session.every(
                "ec2",
                "describe_instance_type_offerings",
                "InstanceTypeOfferings",
                region,
                LocationType=kind,
                Filters=[{"Name": "instance-type", "Values": [type_]}],
            )
            return frozenset(str(one["Location"]) for one in found)

        return self.once.get((kind, region, type_), ask)


def questions(aws: Aws, targets: Sequence[Target]) -> Iterator[Question]:
    """Those of each fleet's machine."""
    for t in targets:
        one = (t.name,)
        place = f"{t.type} in {t.region}"
        yield Question(checks.OFFERED_AWS, one, place, partial(_offered, aws, t))
        image = t.chosen.boot.image
        about = f"{image.id or image.family or 'no image'} in {t.region}"
        known = without_image(aws, t)
        yield Question(checks.IMAGE_AWS, one, about, partial(_image, aws, t), known)
        if t.chosen.network.fabric == "efa":
            yield Question(checks.FABRIC_AWS, one, place, partial(_fabric, aws, t))
        network = t.chosen.network
        if network.adopted:
            about = " ".join([f"{network.vpc} in {t.region}", *network.subnets])
            yield Question(checks.NETWORK_AWS, one, about, partial(_network, aws, t))


def _offered(aws: Aws, target: Target) -> Finding:
    ids = [zone for zone in target.zones if _ZONE_ID.fullmatch(zone)]
    names = [zone for zone in target.zones if zone not in ids]
    known = aws.offered(target.region, target.type)
    sold = {zone for zone in ids if zone in known}
    if names:
        sold |= aws.offered(target.region, target.type, by_name=True) & set(names)
    if not known:
        another = f"`regions` of {target.name} without {target.region}, then {aws.lock()}"
        return bad(f"{target.type} is not sold in {target.region}", another)
    if not target.zones:
        return good(f"{target.type} in {len(known)} zones of {target.region}")
    missing = [zone for zone in target.zones if zone not in sold]
    if not missing:
        return good(f"{target.type} in {_listed(target.zones)}")
    fix = f"`zones: [{', '.join(sorted(sold or known))}]` of {target.name}, then {aws.lock()}"
    where = f"sold in {_listed(sorted(known))}"
    return bad(f"{target.type} is not sold in {_listed(missing)}; {where}", fix)


def without_image(aws: Aws, target: Target) -> Finding | None:
    """What is wrong before anybody is asked."""
    image = target.chosen.boot.image
    if image.placeholder:
        hint = PLACEHOLDER_HINT.replace("STACK", aws.subject.command)
        return bad(f"{image.id} is a placeholder", hint)
    if image.id is None and image.family is None:
        own = f"`software.image: ami-…` of {target.name}"
        return bad(f"no image is known for {target.type}", own)
    return None


def _image(aws: Aws, target: Target) -> Finding:
    image, name = target.chosen.boot.image, target.name
    own = f"`software.image: ami-…` of {name}"
    id_ = image.id
    if id_ is None:
        try:
            found = aws.session.ask("ssm", "get_parameter", target.region, Name=image.family)
        except CannotAsk as error:
            if error.code == "ParameterNotFound":
                return bad(f"{image.family} is not there in {target.region}", own)
            raise
        id_ = str(found["Parameter"]["Value"])
    try:
        images: list[dict[str, Any]] = aws.session.ask(
            "ec2", "describe_images", target.region, ImageIds=[id_]
        )["Images"]
    except CannotAsk as error:
        if error.code in _NO_IMAGE:
            return bad(f"{id_} is not there in {target.region}", aws.lock("--images", name), own)
        raise
    if not images:
        message = f"{id_} is not there in {target.region}, or not for this account"
        return bad(message, aws.lock("--images", name), own)
    return _judged(aws, target, images[0])


def _judged(aws: Aws, target: Target, found: Mapping[str, Any]) -> Finding:
    image, wanted = target.chosen.boot.image, target.chosen.verdict.type.cpu_arch
    id_, has = found["ImageId"], found.get("Architecture", "")
    own = f"`software.image: ami-…` of {target.name}"
    pin = aws.lock("--images", target.name)
    if found.get("State", "available") != "available":
        return bad(f"{id_} is {found['State']}", pin, own)
    if has != wanted:
        return bad(f"{id_} is for {has}, and {target.type} is {wanted}", own)
    root = target.chosen.storage.root
    size = _root_gib(found)
    if size > root.gib:
        return bad(f"{id_} needs {size} GiB, and the root disk has {root.gib:g}", own)
    if not image.pinned:
        newest = f"{id_} for {has}, the newest of its family and not pinned"
        return bad(newest, pin) if aws.subject.production else good(newest)
    ends = str(found.get("DeprecationTime", ""))
    if ends and ends < aws.subject.now:
        return good(f"{id_} for {has}, pinned; its owner calls it old since {ends[:10]}")
    return good(f"{id_} for {has}, pinned")


def _root_gib(image: Mapping[str, Any]) -> int:
    disks: Iterable[Mapping[str, Any]] = image.get("BlockDeviceMappings", ())
    root = image.get("RootDeviceName")
    sizes = [disk.get("Ebs", {}).get("VolumeSize", 0) for disk in disks
             if disk.get("DeviceName") == root]  # fmt: skip
    return max(sizes, default=0)


def _fabric(aws: Aws, target: Target) -> Finding:
    wanted = sum(one.kind != "interface" for one in target.chosen.network.interfaces)
    try:
        (found,) = aws.session.ask(
            "ec2", "describe_instance_types", target.region, InstanceTypes=[target.type]
        )["InstanceTypes"]
    except CannotAsk as error:
        if error.code in _NO_TYPE:
            return bad(f"{target.type} is not known in {target.region}", aws.lock("--upgrade"))
        raise
    network: Mapping[str, Any] = found.get("NetworkInfo", {})
    without = f"`fabric: none` of {target.name}"
    if not network.get("EfaSupported"):
        return bad(f"{target.type} has no EFA", without)
    most = network.get("EfaInfo", {}).get("MaximumEfaInterfaces")
    if most is None:
        return unknown(f"{target.type} has EFA; with how many interfaces is not said")
    if wanted > most:
        return bad(f"{target.type} takes {most} EFA interfaces, and {wanted} are planned", without)
    return good(f"{target.type} takes {most} EFA interfaces, {wanted} planned")


def _network(aws: Aws, target: Target) -> Finding:
    named, zones = target.chosen.network.subnets, target.zones
    declared = f"`network.vpc` and `network.subnets` of {target.name}"
    vpc = _vpc(aws, target)
    if vpc is None:
        return bad(f"no network {target.chosen.network.vpc} in {target.region}", declared)
    found = [
        one for one in _subnets(aws, vpc, target.region) if not named or _called(one) & {*named}
    ]
    missing = [name for name in named if not any(name in _called(one) for one in found)]
    if missing:
        return bad(f"no subnet {_listed(missing)} in {vpc}", declared)
    fit = [
        one
        for one in found
        if not zones or one.get("AvailabilityZoneId") in zones or one["AvailabilityZone"] in zones
    ]
    if not fit:
        has = _listed(sorted({str(one.get("AvailabilityZoneId")) for one in found})) or "no zone"
        fix = f"a subnet in {_listed(zones)}, or `zones` of {target.name}"
        return bad(f"subnets in {has}, and the fleet stands in {_listed(zones)}", fix)
    needs = target.most * max(1, len(target.chosen.network.interfaces))
    free = sum(int(one.get("AvailableIpAddressCount", 0)) for one in fit)
    names = _listed([str(one["SubnetId"]) for one in fit])
    if free < needs:
        fix = f"a larger subnet in `network.subnets` of {target.name}"
        return bad(f"{names}: {free} addresses left, and {needs} are needed", fix)
    return good(f"{names}: {free} addresses left, {needs} needed")


def _vpc(aws: Aws, target: Target) -> str | None:
    """The id of the network that is named by it or by its tag Name; None where there is none."""
    name = str(target.chosen.network.vpc)
    key, value = ("vpc-id", name) if name.startswith("vpc-") else ("tag:Name", name)
    filters = [{"Name": key, "Values": [value]}]
    found = aws.session.every("ec2", "describe_vpcs", "Vpcs", target.region, Filters=filters)
    return str(found[0]["VpcId"]) if found else None


def _subnets(aws: Aws, vpc: str, region: str) -> list[dict[str, Any]]:
    filters = [{"Name": "vpc-id", "Values": [vpc]}]
    return aws.session.every("ec2", "describe_subnets", "Subnets", region, Filters=filters)


def _called(subnet: Mapping[str, Any]) -> set[str]:
    """What a subnet can be named by."""
    tags: Iterable[Mapping[str, str]] = subnet.get("Tags", ())
    return {str(subnet["SubnetId"]), *(tag["Value"] for tag in tags if tag["Key"] == "Name")}


def _listed(names: Sequence[str]) -> str:
    """`a, b, c`; many are counted."""
    if len(names) > _SOME:
        return f"{', '.join(names[:_SOME])} and {len(names) - _SOME} more"
    return ", ".join(names)
