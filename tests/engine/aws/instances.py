"""Single machines."""

from __future__ import annotations

import base64
from typing import Any

from tests.engine.aws import request
from tests.engine.aws.ec2 import Ec2
from tests.engine.aws.found import plain
from tests.engine.aws.resource import Resource, only, pairs
from tests.engine.aws.session import Session
from tests.engine.provider import Refused
from tests.engine.wire import Props, is_unknown

# Inputs that are parts of a block of the request.
PLACED = {
    "availabilityZone": "AvailabilityZone",
    "placementGroup": "GroupName",
    "placementPartitionNumber": "PartitionNumber",
    "tenancy": "Tenancy",
    "hostId": "HostId",
}
ELSEWHERE = frozenset(
    {
        *PLACED,
        "associatePublicIpAddress",
        "ebsBlockDevices",
        "hibernation",
        "iamInstanceProfile",
        "monitoring",
        "rootBlockDevice",
        "sourceDestCheck",
        "tags",
        "userData",
        "userDataBase64",
        "userDataReplaceOnChange",
        "volumeTags",
        "getPasswordData",
        "forceDestroy",
    }
)
GONE = ("terminated", "shutting-down")
ROOT = "/dev/sda1"


class Instance(Ec2):
    token = "aws:ec2/instance:Instance"
    kind, creates = "instance", "RunInstances"
    answer = "Instances.0.InstanceId"
    apart = ELSEWHERE
    renames = {
        "ami": "ImageId",
        "vpcSecurityGroupIds": "SecurityGroupIds",
        "launchTemplate.id": "LaunchTemplateId",
        "launchTemplate.name": "LaunchTemplateName",
        "privateIp": "PrivateIpAddress",
        "enclaveOptions": "EnclaveOptions",
    }
    chosen = frozenset(
        [
            "availabilityZone",
            "privateIp",
            "subnetId",
            "vpcSecurityGroupIds",
            "ebsBlockDevices",
            "rootBlockDevice",
            "placementGroup",
            "tenancy",
            "keyName",
            "ipv6Addresses",
            "secondaryPrivateIps",
            "metadataOptions",
            "instanceType",
            "ami",
            "iamInstanceProfile",
        ]
    )
    # Stopped and started for it, a machine may come back with other addresses.
    restless = {"publicIp": ("instanceType", "userData"), "publicDns": ("instanceType", "userData")}

    def request(self, aws: Session, inputs: Props) -> Props:
        made = {**super().request(aws, inputs), "MinCount": 1, "MaxCount": 1}
        placed = {PLACED[k]: v for k, v in inputs.items() if k in PLACED}
        if placed:
            made["Placement"] = placed
        if profile := inputs.get("iamInstanceProfile"):
            made["IamInstanceProfile"] = {"Name": profile}
        if "monitoring" in inputs:
            made["Monitoring"] = {"Enabled": inputs["monitoring"]}
        if "hibernation" in inputs:
            made["HibernationOptions"] = {"Configured": inputs["hibernation"]}
        if (text := _user_data(inputs)) is not None:
            made["UserData"] = text
        if disks := list(self._disks(inputs)):
            made["BlockDeviceMappings"] = disks
        if "associatePublicIpAddress" in inputs:
            self._public(made, inputs["associatePublicIpAddress"])
        tags = [("instance", inputs.get("tags")), ("volume", inputs.get("volumeTags"))]
        specified = [{"ResourceType": k, "Tags": pairs(v)} for k, v in tags if v]
        return made | ({"TagSpecifications": specified} if specified else {})

    def _public(self, made: Props, value: Any) -> None:
        """AWS takes the choice of an address only in an interface of the request."""
        first: Props = {"DeviceIndex": 0, "AssociatePublicIpAddress": value}
        for name, there in (("SubnetId", "SubnetId"), ("SecurityGroupIds", "Groups")):
            if name in made:
                first[there] = made.pop(name)
        made["NetworkInterfaces"] = [first]

    def _disks(self, inputs: Props) -> Any:
        form = request.shape(self.service, self.creates).members["BlockDeviceMappings"].member
        translate = request.Translation(self.creates, {})
        root = inputs.get("rootBlockDevice")
        disks = [{"deviceName": ROOT, **root}] if root else []
        for index, disk in enumerate([*disks, *inputs.get("ebsBlockDevices", ())]):
            parts = {k: v for k, v in disk.items() if k not in ("deviceName", "tags", "tagsAll")}
            ebs = translate.structure(form.members["Ebs"], parts, f"blockDevices[{index}].")
            # The provider's own default; AWS keeps a volume that the request says nothing about.
            yield {"DeviceName": disk["deviceName"], "Ebs": {"DeleteOnTermination": True, **ebs}}

    def create(self, aws: Session, inputs: Props) -> str:
        made = self.call(aws, self.creates, **self.request(aws, inputs))
        id_: str = made["Instances"][0]["InstanceId"]
        if "sourceDestCheck" in inputs:
            self._attribute(aws, id_, {}, inputs)
        return id_

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        pages = aws.client("ec2").describe_instances(InstanceIds=[id_])["Reservations"]
        live = only(machine for page in pages for machine in page["Instances"])
        return live if live and live["State"]["Name"] not in GONE else None

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = super().describe(aws, id_, live, inputs)
        # The parts that the request has elsewhere; a block as it was declared is as good.
        for name in (
            "launchTemplate",
            "instanceMarketOptions",
            "networkInterfaces",
            "securityGroups",
        ):
            found.pop(name, None)
        found |= {name: live["Placement"].get(part) for name, part in PLACED.items()}
        found["instanceState"] = live["State"]["Name"]
        found["vpcSecurityGroupIds"] = _groups_of(live)
        found["monitoring"] = live["Monitoring"]["State"] in ("enabled", "pending")
        found["publicIp"] = live.get("PublicIpAddress")
        found["publicDns"], found["privateDns"] = live.get("PublicDnsName"), live["PrivateDnsName"]
        interface = only(live.get("NetworkInterfaces", ()))
        found["primaryNetworkInterfaceId"] = interface and interface["NetworkInterfaceId"]
        if profile := live.get("IamInstanceProfile"):
            found["iamInstanceProfile"] = profile["Arn"].rsplit("/", 1)[1]
        found["metadataOptions"] = plain(live.get("MetadataOptions") or {})
        return {k: v for k, v in found.items() if v is not None}

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        if inputs.get("disableApiTermination"):
            raise Refused("", f"OperationNotPermitted: {id_} is protected from termination")
        aws.client("ec2").terminate_instances(InstanceIds=[id_])

    # --- in place ----------------------------------------------------------------------------

    def _attribute(self, aws: Session, id_: str, olds: Props, news: Props) -> None:
        for name in ("sourceDestCheck", "disableApiTermination", "disableApiStop"):
            if news.get(name) != olds.get(name):
                member = name[:1].upper() + name[1:]
                value = {"Value": news.get(name, name == "sourceDestCheck")}
                aws.client("ec2").modify_instance_attribute(InstanceId=id_, **{member: value})

    def _groups(self, aws: Session, id_: str, _olds: Props, news: Props) -> None:
        groups = news["vpcSecurityGroupIds"]
        aws.client("ec2").modify_instance_attribute(InstanceId=id_, Groups=groups)

    def _stopped(self, aws: Session, id_: str, olds: Props, news: Props) -> None:
        """AWS changes these only while the machine is stopped."""
        ec2 = aws.client("ec2")
        ec2.stop_instances(InstanceIds=[id_])
        if news.get("instanceType") != olds.get("instanceType"):
            kind = {"Value": news["instanceType"]}
            ec2.modify_instance_attribute(InstanceId=id_, InstanceType=kind)
        if (text := _user_data(news)) != _user_data(olds):
            coded = {"Value": base64.b64encode((text or "").encode())}
            ec2.modify_instance_attribute(InstanceId=id_, UserData=coded)
        ec2.start_instances(InstanceIds=[id_])

    def _metadata(self, aws: Session, id_: str, _olds: Props, news: Props) -> None:
        form = request.shape("ec2", "ModifyInstanceMetadataOptions")
        options = request.Translation("ModifyInstanceMetadataOptions", {}).structure(
            form, news.get("metadataOptions") or {}
        )
        aws.client("ec2").modify_instance_metadata_options(InstanceId=id_, **options)

    def _root(self, aws: Session, id_: str, _olds: Props, news: Props) -> None:
        live = self.look(aws, id_, news)
        assert live
        disk = only(
            d for d in live["BlockDeviceMappings"] if d["DeviceName"] == live["RootDeviceName"]
        )
        form = request.shape("ec2", "ModifyVolume")
        renames = {"volumeSize": "Size"}
        parts = {k: v for k, v in news["rootBlockDevice"].items() if k in VOLUME_PARTS}
        changed = request.Translation("ModifyVolume", renames).structure(form, parts)
        aws.client("ec2").modify_volume(VolumeId=disk["Ebs"]["VolumeId"], **changed)

    in_place = {
        **Ec2.in_place,
        **dict.fromkeys(("sourceDestCheck", "disableApiTermination", "disableApiStop"), _attribute),
        **dict.fromkeys(("instanceType", "userData", "userDataBase64"), _stopped),
        "vpcSecurityGroupIds": _groups,
        "metadataOptions": _metadata,
        "rootBlockDevice": _root,
    }


VOLUME_PARTS = ("volumeSize", "volumeType", "iops", "throughput")


def _groups_of(live: Props) -> list[str]:
    """Groups that were asked for in an interface moto tells of there alone."""
    inside: list[Props] = [g for i in live.get("NetworkInterfaces", ()) for g in i["Groups"]]
    groups: list[Props] = live["SecurityGroups"] or inside
    return list(dict.fromkeys(group["GroupId"] for group in groups))


def _user_data(inputs: Props) -> Any:
    """The text that the machine gets; boto3 codes it again."""
    if (coded := inputs.get("userDataBase64")) is not None and not is_unknown(coded):
        return base64.b64decode(coded).decode()
    return inputs.get("userData", inputs.get("userDataBase64"))


TYPES: tuple[Resource, ...] = (Instance(),)
