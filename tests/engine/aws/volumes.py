"""Volumes that outlive a machine, and where they are attached."""

from __future__ import annotations

from typing import Any

from tests.engine.aws.ec2 import Ec2
from tests.engine.aws.resource import Resource, digest, only, unseen
from tests.engine.aws.session import Session
from tests.engine.wire import Props


class Volume(Ec2):
    token = "aws:ebs/volume:Volume"
    kind, creates, answer = "volume", "CreateVolume", "VolumeId"
    describes = ("DescribeVolumes", "VolumeIds", "Volumes")
    deletes = ("DeleteVolume", "VolumeId")
    renames = {"type": "VolumeType"}
    apart = frozenset({"finalSnapshot"})
    chosen = frozenset(
        {"size", "iops", "throughput", "type", "encrypted", "kmsKeyId", "snapshotId"}
    )

    def check(self, aws: Session, inputs: Props) -> Any:
        yield from super().check(aws, inputs)
        # AWS refuses these at run time; moto takes them.
        if inputs.get("type", "gp2") != "gp3" and "throughput" in inputs:
            yield "throughput", "InvalidParameterCombination: only a gp3 volume has a throughput"

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        return {**super().describe(aws, id_, live, inputs), "createTime": str(live["CreateTime"])}

    def _modify(self, aws: Session, id_: str, _olds: Props, news: Props) -> None:
        names = ("size", "type", "iops", "throughput")
        changed = {self.renames.get(n, n.capitalize()): news[n] for n in names if n in news}
        aws.client("ec2").modify_volume(VolumeId=id_, **changed)

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        if inputs.get("finalSnapshot"):
            aws.client("ec2").create_snapshot(VolumeId=id_)
        super().delete(aws, id_, inputs)

    in_place = {
        **Ec2.in_place,
        **dict.fromkeys(("size", "type", "iops", "throughput"), _modify),
        "finalSnapshot": unseen,
    }


class VolumeAttachment(Ec2):
    token = "aws:ec2/volumeAttachment:VolumeAttachment"
    creates = "AttachVolume"
    in_place = {}
    renames = {"deviceName": "Device"}
    apart = frozenset({"forceDetach", "skipDestroy", "stopInstanceBeforeDetaching"})

    def create(self, aws: Session, inputs: Props) -> str:
        self.call(aws, self.creates, **self.request(aws, inputs))
        return f"vai-{digest(inputs['deviceName'], inputs['instanceId'], inputs['volumeId'])}"

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        ids = [inputs["volumeId"]]
        volume = only(aws.client("ec2").describe_volumes(VolumeIds=ids)["Volumes"])
        return only(a for a in volume["Attachments"] if a["InstanceId"] == inputs["instanceId"])

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        if inputs.get("skipDestroy"):
            return
        where = {"VolumeId": inputs["volumeId"], "InstanceId": inputs["instanceId"]}
        aws.client("ec2").detach_volume(**where, Device=inputs["deviceName"])


TYPES: tuple[Resource, ...] = (Volume(), VolumeAttachment())
