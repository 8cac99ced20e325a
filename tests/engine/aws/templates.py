"""Launch templates and placement groups."""

from __future__ import annotations

from typing import Any

from tests.engine import schema
from tests.engine.aws import request
from tests.engine.aws.ec2 import Ec2
from tests.engine.aws.found import named
from tests.engine.aws.resource import Change, Resource, only, pairs
from tests.engine.aws.session import Session
from tests.engine.provider import Refused
from tests.engine.wire import Props

# Of the template itself; every other input is data of its newest version.
OF_TEMPLATE = frozenset({"name", "namePrefix", "tags", "region", "updateDefaultVersion"})
OF_VERSION = frozenset({"defaultVersion", "description"})


class LaunchTemplate(Ec2):
    token = "aws:ec2/launchTemplate:LaunchTemplate"
    kind, creates = "launch-template", "CreateLaunchTemplate"
    answer = "LaunchTemplate.LaunchTemplateId"
    describes = ("DescribeLaunchTemplates", "LaunchTemplateIds", "LaunchTemplates")
    deletes = ("DeleteLaunchTemplate", "LaunchTemplateId")
    named = ("name", "{}")
    renames = {
        "vpcSecurityGroupIds": "SecurityGroupIds",
        "securityGroupNames": "SecurityGroups",
        "networkInterfaces.securityGroups": "Groups",
        "networkInterfaces.ipv4AddressCount": "SecondaryPrivateIpAddressCount",
    }
    chosen = frozenset({"defaultVersion"})

    def unknown_after(self, changed: set[str]) -> set[str]:
        """Any change of its data is a new version, which may become the default."""
        moved = changed - OF_TEMPLATE - {"defaultVersion"}
        return {"latestVersion", "defaultVersion"} if moved else set()

    def way_of(self, name: str) -> Change | None:
        return super().way_of(name) or LaunchTemplate._version

    def request(self, aws: Session, inputs: Props) -> Props:
        made: Props = {
            "LaunchTemplateName": inputs["name"],
            "LaunchTemplateData": self._data(inputs),
        }
        if inputs.get("description"):
            made["VersionDescription"] = inputs["description"]
        if inputs.get("tags"):
            tags = pairs(inputs["tags"])
            made["TagSpecifications"] = [{"ResourceType": self.kind, "Tags": tags}]
        return made

    def _data(self, inputs: Props) -> Props:
        form = request.shape(self.service, self.creates).members["LaunchTemplateData"]
        values = {k: v for k, v in inputs.items() if k not in OF_TEMPLATE | OF_VERSION}
        return request.Translation(self.creates, self.renames).structure(form, values)

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        newest = aws.client("ec2").describe_launch_template_versions(
            LaunchTemplateId=id_, Versions=["$Latest"]
        )
        version = only(newest["LaunchTemplateVersions"])
        data = named(version["LaunchTemplateData"], schema.inputs(self.token), self.renames)
        if specified := data.get("tagSpecifications"):
            # moto puts the template's own tags among those of what it starts.
            ours = [s for s in specified if s["resourceType"] != self.kind]
            data["tagSpecifications"] = ours
        # moto shows a template's tags as they were at first, and those of today as any thing's.
        about = [{"Name": "resource-id", "Values": [id_]}]
        tags = aws.client("ec2").describe_tags(Filters=about)["Tags"]
        live = {**live, "Tags": [{"Key": tag["Key"], "Value": tag["Value"]} for tag in tags]}
        found = {**data, **super().describe(aws, id_, live, inputs)}
        return {
            **found,
            "name": live["LaunchTemplateName"],
            "latestVersion": live["LatestVersionNumber"],
            "defaultVersion": live["DefaultVersionNumber"],
            "description": version.get("VersionDescription"),
        }

    def _version(self, aws: Session, id_: str, olds: Props, news: Props) -> None:
        ec2, number = aws.client("ec2"), news.get("defaultVersion")
        changed = {name for name in {*olds, *news} if olds.get(name) != news.get(name)}
        if changed - OF_TEMPLATE - {"defaultVersion"}:
            note = {"VersionDescription": news["description"]} if news.get("description") else {}
            made = ec2.create_launch_template_version(
                LaunchTemplateId=id_, LaunchTemplateData=self._data(news), **note
            )
            if news.get("updateDefaultVersion"):
                number = made["LaunchTemplateVersion"]["VersionNumber"]
        if number is not None:
            ec2.modify_launch_template(LaunchTemplateId=id_, DefaultVersion=str(number))


class PlacementGroup(Ec2):
    """moto has none: the request is checked, and the group is kept beside moto's state."""

    token = "aws:ec2/placementGroup:PlacementGroup"
    kind, creates, answer = "placement-group", "CreatePlacementGroup", "=name"
    named = ("name", "{}")
    renames = {"name": "GroupName"}
    chosen = frozenset({"partitionCount", "spreadLevel"})

    def call(self, aws: Session, operation: str, **arguments: Any) -> Any:
        name = arguments["GroupName"]
        if name in aws.kept("placement-group"):
            raise Refused("name", f"InvalidPlacementGroup.Duplicate: {name} exists")
        tags = arguments.pop("TagSpecifications", [{}])[0].get("Tags", [])
        aws.kept("placement-group")[name] = {**arguments, "Tags": tags}
        return {}

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        return aws.kept("placement-group").get(id_)

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = {**super().describe(aws, id_, live, inputs), "name": id_}
        return {**found, "placementGroupId": f"pg-{id_}"}

    def _retag(self, aws: Session, id_: str, _olds: Props, news: Props) -> None:
        aws.kept("placement-group")[id_]["Tags"] = pairs(news.get("tags") or {})

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        """Like AWS, which refuses while machines or a group use it."""
        pages = aws.client("ec2").describe_instances()["Reservations"]
        used = [
            machine["InstanceId"]
            for page in pages
            for machine in page["Instances"]
            if machine["State"]["Name"] != "terminated"
            and machine.get("Placement", {}).get("GroupName") == id_
        ]
        if used:
            raise Refused("", f"InvalidPlacementGroup.InUse: {id_} holds {', '.join(used)}")
        del aws.kept("placement-group")[id_]

    in_place = {"tags": _retag}


TYPES: tuple[Resource, ...] = (LaunchTemplate(), PlacementGroup())
