"""Managed instance groups of a zone and of a region, and the machines that they make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, cast

from tests.engine import schema
from tests.engine.gcp import instances, links
from tests.engine.gcp.api import fingerprint
from tests.engine.gcp.places import zones
from tests.engine.gcp.request import Form, Name, Translation
from tests.engine.gcp.resource import Change, Resource
from tests.engine.gcp.session import Session
from tests.engine.gcp.values import block
from tests.engine.provider import Refused
from tests.engine.wire import Props, is_unknown


def _zones(_translation: Translation, value: Any) -> Any:
    place = _translation.place
    return [
        {
            "zone": zone
            if is_unknown(zone)
            else links.link(f"projects/{place.project}/zones/{links.name(zone)}")
        }
        for zone in value
    ]


def _zones_now(_translation: Translation, live: Any, old: Any) -> Any:
    found = sorted(links.name(item["zone"]) for item in live or ())
    return old if found == sorted(map(links.name, old)) else found


def _stateful(member: str, key: str) -> Form:
    """A list of blocks that the API has as a map, by the name of the disk or interface."""

    def sent(_translation: Translation, value: Any) -> Any:
        return {
            block.get(key, "nic0"): {"autoDelete": block.get("deleteRule", "NEVER")}
            for block in value
            if not is_unknown(block)
        }

    def seen(_translation: Translation, live: Any, old: Any) -> Any:
        found = [
            {key: name, "deleteRule": about["autoDelete"]} for name, about in block(live).items()
        ]
        wanted = [
            {key: b.get(key, "nic0"), "deleteRule": b.get("deleteRule", "NEVER")} for b in old
        ]
        return old if sorted(map(str, found)) == sorted(map(str, wanted)) else found

    return Form(f"statefulPolicy.preservedState.{member}", sent, seen)


def _selections(translation: Translation, value: Any) -> Any:
    found: Props = {}
    for selection in value["instanceSelections"]:
        about = {k: v for k, v in selection.items() if k != "name"}
        found[selection.get("name", "")] = about
    return found


def _selections_now(_translation: Translation, live: Any, old: Any) -> Any:
    found = [{"name": name, **about} for name, about in block(live).items()]
    return old if found == old.get("instanceSelections") else {"instanceSelections": found}


NAMES: dict[str, Name] = {
    "versions.targetSize": "targetSize",
    "updatePolicy.maxSurgeFixed": "maxSurge.fixed",
    "updatePolicy.maxSurgePercent": "maxSurge.percent",
    "updatePolicy.maxUnavailableFixed": "maxUnavailable.fixed",
    "updatePolicy.maxUnavailablePercent": "maxUnavailable.percent",
    "allInstancesConfig.labels": "properties.labels",
    "allInstancesConfig.metadata": "properties.metadata",
    "statefulDisks": _stateful("disks", "deviceName"),
    "statefulInternalIps": _stateful("internalIPs", "interfaceName"),
    "statefulExternalIps": _stateful("externalIPs", "interfaceName"),
    "targetSizePolicies": "targetSizePolicy",
}


class InstanceGroupManager(Resource):
    token = "gcp:compute/instanceGroupManager:InstanceGroupManager"
    collection, scope = "compute.instanceGroupManagers", "zone"
    names: ClassVar[Mapping[str, Name]] = NAMES
    apart = frozenset({"waitForInstances", "waitForInstancesStatus"})
    beta = frozenset(
        {
            "InstanceGroupManager.params",
            "InstanceGroupManagerUpdatePolicy.minReadySec",
        }
    )
    defaults = {
        "listManagedInstancesResults": "PAGELESS",
        "waitForInstances": False,
        "waitForInstancesStatus": "STABLE",
    }
    chosen = frozenset(
        {
            "instanceLifecyclePolicy",
            "standbyPolicy",
            "statefulExternalIps",
            "statefulInternalIps",
            "targetSize",
            "targetStoppedSize",
            "targetSuspendedSize",
            "updatePolicy",
        }
    )
    outputs = {"instanceGroupManagerId": "id"}
    restless = {"fingerprint": ("versions", "updatePolicy", "autoHealingPolicies", "targetSize")}

    def check(self, gcp: Session, inputs: Props) -> Iterator[schema.Problem]:
        yield from super().check(gcp, inputs)
        try:
            body = self.request(gcp, inputs)
        except Refused:
            return
        yield from _refused(body)

    def made(self, gcp: Session, key: str, body: Props) -> None:
        body["instanceGroup"] = body["selfLink"].replace("GroupManagers/", "Groups/")
        body.setdefault("targetSize", 0)
        resized(gcp, key)

    def describe(self, gcp: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = super().describe(gcp, id_, live, inputs)
        return {
            **found,
            "instanceGroupManagerId": int(live["id"]),
            "statuses": [{"isStable": True}],
        }

    def _resize(self, gcp: Session, key: str, _olds: Props, news: Props) -> None:
        size = news.get("targetSize")
        if size is None:
            return  # from now on it is somebody else's to say
        self.call(gcp, "resize", None, **self.parameters("resize", key), size=size)
        gcp.api.patch(key, {"targetSize": size})
        resized(gcp, key)

    def patch(self, gcp: Session, key: str, body: Props) -> None:
        super().patch(gcp, key, body)
        if "versions" in body or "instanceTemplate" in body:
            rolled(gcp, key)

    def delete(self, gcp: Session, id_: str, inputs: Props) -> None:
        super().delete(gcp, id_, inputs)
        key = self.key_of(id_, inputs)
        if key not in gcp.api.objects:
            inside = [other for other in gcp.api.objects if other.startswith(f"{key}/")]
            for gone in (*of_group(gcp, key), *inside):
                del gcp.api.objects[gone]

    in_place: ClassVar[Mapping[str, Change]] = {"targetSize": _resize}


class RegionInstanceGroupManager(InstanceGroupManager):
    token = "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager"
    collection, scope = "compute.regionInstanceGroupManagers", "region"
    names: ClassVar[Mapping[str, Name]] = {
        **NAMES,
        "distributionPolicyZones": Form("distributionPolicy.zones", _zones, _zones_now),
        "distributionPolicyTargetShape": "distributionPolicy.targetShape",
        "instanceFlexibilityPolicy": Form(
            "instanceFlexibilityPolicy.instanceSelections", _selections, _selections_now
        ),
    }
    chosen = InstanceGroupManager.chosen | {
        "distributionPolicyZones",
        "distributionPolicyTargetShape",
    }

    def check(self, gcp: Session, inputs: Props) -> Iterator[schema.Problem]:
        yield from super().check(gcp, inputs)
        shape = inputs.get("distributionPolicyTargetShape")
        policy: Any = inputs.get("updatePolicy") or {}
        if shape in ("BALANCED", "ANY_SINGLE_ZONE") and isinstance(policy, dict):
            found = cast(Props, policy).get("instanceRedistributionType")
            if found != "NONE" and not is_unknown(found):
                yield (
                    "updatePolicy.instanceRedistributionType",
                    f"the target shape {shape} needs NONE",
                )

    def made(self, gcp: Session, key: str, body: Props) -> None:
        policy: Props = body.setdefault("distributionPolicy", {})
        if not policy.get("zones"):
            few = zones(gcp.region)[:3]
            policy["zones"] = [
                {"zone": links.link(f"projects/{gcp.project}/zones/{z}")} for z in few
            ]
        policy.setdefault("targetShape", "EVEN")
        super().made(gcp, key, body)

    def describe(self, gcp: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = super().describe(gcp, id_, live, inputs)
        policy: Props = live["distributionPolicy"]
        return {
            **found,
            "distributionPolicyZones": sorted(links.name(z["zone"]) for z in policy["zones"]),
            "distributionPolicyTargetShape": policy["targetShape"],
        }


def _refused(body: Props) -> Iterator[schema.Problem]:
    """What Compute Engine refuses of a group (rules.md of the facts names where it says so)."""
    healing: Any = body.get("autoHealingPolicies") or []
    for policy in () if is_unknown(healing) else cast(list[Props], healing):
        delay: Any = 0 if is_unknown(policy) else policy.get("initialDelaySec", 0)
        if isinstance(delay, int) and not 0 <= delay <= 3600:
            yield "autoHealingPolicies.initialDelaySec", f"{delay} is not from 0 to 3600"
    policy: Any = body.get("updatePolicy") or {}
    if is_unknown(policy):
        return
    surge, absent = (_most(policy.get(name)) for name in ("maxSurge", "maxUnavailable"))
    if surge == 0 and absent == 0:
        yield "updatePolicy", "maxSurge and maxUnavailable cannot both be 0"
    if policy.get("replacementMethod") == "RECREATE" and surge != 0:
        yield "updatePolicy.maxSurgeFixed", "RECREATE keeps the names: it needs a surge of 0"


def _most(value: Any) -> int | None:
    """None: not set, or not known."""
    if is_unknown(value):
        return None
    found = [v for v in block(value).values() if isinstance(v, int)]
    return found[0] if found else None


# --- machines ----------------------------------------------------------------------------------


def of_group(gcp: Session, key: str) -> list[str]:
    """The keys of a group's machines."""
    mark = f"projects/{key.split('/', 2)[2]}"
    return sorted(
        other
        for other, body in gcp.api.objects.items()
        if "/instances/" in other
        and {"key": "created-by", "value": mark} in body.get("metadata", {}).get("items", ())
    )


def resized(gcp: Session, key: str) -> None:
    """As many machines as the group is to have, spread over its zones."""
    group, there = gcp.api.get(key), of_group(gcp, key)
    wanted = int(group.get("targetSize", 0))
    for machine in there[wanted:]:
        del gcp.api.objects[machine]
    for number in range(len(there), wanted):
        where = places(key, group)
        zone = where[number % len(where)]
        own = f"{group.get('baseInstanceName', group['name'])}-{fingerprint(key, number)[:4]}"
        project = key.split("/")[2]
        at = f"compute/projects/{project}/zones/{zone}/instances/{own}"
        instances.from_template(gcp, at, template_of(gcp, group), key.split("/", 2)[2])


def rolled(gcp: Session, key: str) -> None:
    """Another template: a proactive group replaces its machines, another waits for its chance."""
    group = gcp.api.get(key)
    if group.get("updatePolicy", {}).get("type") == "PROACTIVE":
        for machine in of_group(gcp, key):
            del gcp.api.objects[machine]
        resized(gcp, key)


def places(key: str, group: Props) -> list[str]:
    if "/zones/" in key:
        return [key.split("/")[4]]
    return [links.name(item["zone"]) for item in group["distributionPolicy"]["zones"]]


def template_of(gcp: Session, group: Props) -> Props:
    return gcp.cloud.get(group["versions"][0]["instanceTemplate"])


TYPES: tuple[Resource, ...] = (InstanceGroupManager(), RegionInstanceGroupManager())
