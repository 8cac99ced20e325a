"""What a program may ask AWS: few functions, on purpose."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.engine.aws.found import plain
from tests.engine.aws.session import Session
from tests.engine.provider import Refused
from tests.engine.wire import Props, secret


def _ami(aws: Session, args: Props) -> Props:
    request: Props = {}
    if args.get("owners"):
        request["Owners"] = args["owners"]
    if args.get("filters"):
        request["Filters"] = [{"Name": f["name"], "Values": f["values"]} for f in args["filters"]]
    if args.get("executableUsers"):
        request["ExecutableUsers"] = args["executableUsers"]
    images = aws.client("ec2").describe_images(**request)["Images"]
    if not images:
        raise Refused("filters", "Your query returned no results. Change your search criteria.")
    if len(images) > 1 and not args.get("mostRecent"):
        raise Refused("mostRecent", "Your query returned more than one result.")
    image = max(images, key=lambda found: found["CreationDate"])
    id_ = image["ImageId"]
    found = {k: v for k, v in plain(image).items() if k not in ("tags", "blockDeviceMappings")}
    arn = f"arn:aws:ec2:{aws.region}::image/{id_}"
    return {**args, **found, "id": id_, "arn": arn, "region": aws.region, "tags": {}}


def _zones(aws: Session, args: Props) -> Props:
    zones = aws.client("ec2").describe_availability_zones()["AvailabilityZones"]
    wanted = [z for z in zones if args.get("state", z["State"]) == z["State"]]
    wanted = [z for z in wanted if z["ZoneName"] not in args.get("excludeNames", ())]
    wanted = [z for z in wanted if z["ZoneId"] not in args.get("excludeZoneIds", ())]
    for filter_ in args.get("filters") or ():
        member = {"zone-id": "ZoneId", "zone-name": "ZoneName"}.get(filter_["name"])
        if member:
            wanted = [z for z in wanted if z[member] in filter_["values"]]
        elif filter_["name"] != "opt-in-status":
            raise Refused("filters", f"the stand-in has no filter {filter_['name']}")
    return {
        **args,
        "id": aws.region,
        "region": aws.region,
        "names": [zone["ZoneName"] for zone in wanted],
        "zoneIds": [zone["ZoneId"] for zone in wanted],
        "groupNames": [aws.region],
    }


def _parameter(aws: Session, args: Props) -> Props:
    client, name = aws.client("ssm"), args["name"]
    decrypt = args.get("withDecryption", True)
    found: Props | None = aws.kept("published").get(name)
    try:
        found = found or client.get_parameter(Name=name, WithDecryption=decrypt)["Parameter"]
    except client.exceptions.ParameterNotFound as error:
        raise Refused("name", f"couldn't find resource: {name}") from error
    assert found
    hidden = found["Type"] == "SecureString"
    return {
        **args,
        "id": args["name"],
        "arn": found["ARN"],
        "type": found["Type"],
        "value": secret(found["Value"]) if hidden else found["Value"],
        "insecureValue": "" if hidden else found["Value"],
        "version": found["Version"],
        "region": aws.region,
        "withDecryption": decrypt,
    }


def _filters(args: Props) -> list[Props]:
    """Filters and tags of a look-up as EC2 takes them."""
    filters = [{"Name": f["name"], "Values": f["values"]} for f in args.get("filters") or ()]
    tags: Props = args.get("tags") or {}
    return filters + [{"Name": f"tag:{key}", "Values": [tags[key]]} for key in tags]


def _only(what: str, found: list[Props]) -> Props:
    if len(found) != 1:
        raise Refused("", f"{'no' if not found else 'multiple'} matching {what} found")
    return found[0]


def _vpc(aws: Session, args: Props) -> Props:
    """A network that somebody else made: by id, by tags, or the default one."""
    filters = _filters(args)
    if args.get("default"):
        filters.append({"Name": "is-default", "Values": ["true"]})
    ids = {"VpcIds": [args["id"]]} if args.get("id") else {}
    vpc = _only("EC2 VPC", aws.client("ec2").describe_vpcs(**ids, Filters=filters)["Vpcs"])
    id_ = vpc["VpcId"]
    arn = f"arn:aws:ec2:{aws.region}:{aws.account}:vpc/{id_}"
    tags = {tag["Key"]: tag["Value"] for tag in vpc.get("Tags", ())}
    return {**plain(vpc), "id": id_, "arn": arn, "tags": tags, "region": aws.region}


def _subnet(aws: Session, args: Props) -> Props:
    filters = _filters(args)
    if args.get("vpcId"):
        filters.append({"Name": "vpc-id", "Values": [args["vpcId"]]})
    ids = {"SubnetIds": [args["id"]]} if args.get("id") else {}
    found = aws.client("ec2").describe_subnets(**ids, Filters=filters)["Subnets"]
    subnet = _only("EC2 Subnet", found)
    tags = {tag["Key"]: tag["Value"] for tag in subnet.get("Tags", ())}
    extra = {"id": subnet["SubnetId"], "arn": subnet["SubnetArn"], "tags": tags}
    return {**plain(subnet), **extra, "region": aws.region}


def _subnets(aws: Session, args: Props) -> Props:
    found = aws.client("ec2").describe_subnets(Filters=_filters(args))["Subnets"]
    ids = sorted(subnet["SubnetId"] for subnet in found)
    return {**args, "id": aws.region, "ids": ids, "tags": args.get("tags") or {}}


def _offerings(aws: Session, args: Props) -> Props:
    """The zones that offer a type, or the types that a zone offers."""
    kind = args.get("locationType", "region")
    found = aws.client("ec2").describe_instance_type_offerings(
        LocationType=kind, Filters=_filters(args)
    )["InstanceTypeOfferings"]
    return {
        **args,
        "id": aws.region,
        "instanceTypes": [offer["InstanceType"] for offer in found],
        "locations": [offer["Location"] for offer in found],
        "locationTypes": [offer["LocationType"] for offer in found],
    }


def _caller(aws: Session, _args: Props) -> Props:
    who = aws.client("sts").get_caller_identity()
    account = who["Account"]
    return {"accountId": account, "arn": who["Arn"], "userId": who["UserId"], "id": account}


def _region(aws: Session, args: Props) -> Props:
    name = args.get("region") or args.get("name") or aws.region
    endpoint = f"ec2.{name}.amazonaws.com"
    return {"id": name, "name": name, "region": name, "description": name, "endpoint": endpoint}


def _partition(_aws: Session, _args: Props) -> Props:
    return {
        "id": "aws",
        "partition": "aws",
        "dnsSuffix": "amazonaws.com",
        "reverseDnsPrefix": "com.amazonaws",
    }


WORDS = {
    "sid": "Sid",
    "actions": "Action",
    "notActions": "NotAction",
    "resources": "Resource",
    "notResources": "NotResource",
}


def _document(_aws: Session, args: Props) -> Props:
    """The JSON text of a policy, in the order and form that the real provider writes."""
    if unknown := set(args) - {"version", "statements", "policyId"}:
        raise Refused(sorted(unknown)[0], "the stand-in writes documents of statements alone")
    statements = [_statement(statement) for statement in args.get("statements") or ()]
    document: Props = {"Version": args.get("version") or "2012-10-17", "Statement": statements}
    if args.get("policyId"):
        document["Id"] = args["policyId"]
    return {
        **args,
        "id": "policy",
        "json": json.dumps(document, indent=2),
        "minifiedJson": json.dumps(document, separators=(",", ":")),
    }


def _statement(declared: Props) -> Props:
    made: Props = {"Effect": declared.get("effect", "Allow")}
    for name, word in WORDS.items():
        if value := declared.get(name):
            made[word] = value if isinstance(value, str) else _one_or_all(value)
    for name, word in (("principals", "Principal"), ("notPrincipals", "NotPrincipal")):
        for principal in declared.get(name) or ():
            made.setdefault(word, {})[principal["type"]] = _one_or_all(principal["identifiers"])
    for condition in declared.get("conditions") or ():
        tests = made.setdefault("Condition", {}).setdefault(condition["test"], {})
        tests[condition["variable"]] = _one_or_all(condition["values"])
    return made


def _one_or_all(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values


LOOKUPS: dict[str, Callable[[Session, Props], Props]] = {
    "aws:ec2/getAmi:getAmi": _ami,
    "aws:ec2/getInstanceTypeOfferings:getInstanceTypeOfferings": _offerings,
    "aws:ec2/getSubnet:getSubnet": _subnet,
    "aws:ec2/getSubnets:getSubnets": _subnets,
    "aws:ec2/getVpc:getVpc": _vpc,
    "aws:iam/getPolicyDocument:getPolicyDocument": _document,
    "aws:index/getAvailabilityZones:getAvailabilityZones": _zones,
    "aws:index/getCallerIdentity:getCallerIdentity": _caller,
    "aws:index/getPartition:getPartition": _partition,
    "aws:index/getRegion:getRegion": _region,
    "aws:ssm/getParameter:getParameter": _parameter,
}
