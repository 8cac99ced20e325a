"""What one machine of a group keeps when it is made anew: its disks, addresses and metadata."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from tests.engine import schema
from tests.engine.gcp import documents, groups, instances, links
from tests.engine.gcp.api import GoogleError
from tests.engine.gcp.request import Form, Translation
from tests.engine.gcp.resource import Resource
from tests.engine.gcp.session import Session
from tests.engine.gcp.values import block
from tests.engine.provider import Refused
from tests.engine.wire import Props, is_unknown


def _disks(translation: Translation, value: Any) -> Any:
    found: Props = {}
    for disk in value:
        about: Props = {"autoDelete": disk.get("deleteRule", "NEVER")}
        if disk.get("source"):
            about["source"] = translation.place.complete("disks", "zone", disk["source"])
        found[disk.get("deviceName", "")] = {"mode": disk.get("mode", "READ_WRITE"), **about}
    return found


def _disks_now(translation: Translation, live: Any, old: Any) -> Any:
    if _disks(translation, old) == (live or {}):
        return old
    return [
        {
            "deviceName": name,
            "source": about.get("source"),
            "deleteRule": about["autoDelete"],
            "mode": about["mode"],
        }
        for name, about in block(live).items()
    ]


def _addresses(member: str) -> Form:
    def sent(translation: Translation, value: Any) -> Any:
        found: Props = {}
        for address in value:
            about: Props = {"autoDelete": address.get("autoDelete", "NEVER")}
            own: Any = block(address.get("ipAddress")).get("address")
            if own:
                at = translation.place.complete("addresses", "region", own)
                about["ipAddress"] = {"literal": own} if _is_literal(own) else {"address": at}
            found[address.get("interfaceName", "")] = about
        return found

    def seen(translation: Translation, live: Any, old: Any) -> Any:
        if sent(translation, old) == (live or {}):
            return old
        return [{"interfaceName": name, **about} for name, about in block(live).items()]

    return Form(member, sent, seen)


def _is_literal(text: str) -> bool:
    return "/" not in text and text.count(".") == 3


class PerInstanceConfig(Resource):
    token = "gcp:compute/perInstanceConfig:PerInstanceConfig"
    collection, scope, creates = "compute.instanceGroupManagers", "zone", "createInstances"
    group: ClassVar[str] = "instanceGroupManager"
    names = {
        "preservedState.disks": Form("disks", _disks, _disks_now),
        "preservedState.internalIps": _addresses("internalIPs"),
        "preservedState.externalIps": _addresses("externalIPs"),
    }
    apart = frozenset(
        {
            "instanceGroupManager",
            "minimalAction",
            "mostDisruptiveAllowedAction",
            "regionInstanceGroupManager",
            "removeInstanceOnDestroy",
            "removeInstanceStateOnDestroy",
        }
    )
    defaults = {
        "minimalAction": "NONE",
        "mostDisruptiveAllowedAction": "REPLACE",
        "removeInstanceOnDestroy": False,
        "removeInstanceStateOnDestroy": False,
    }

    @property
    def form(self) -> Props:
        return documents.schema("compute.v1", "PerInstanceConfig")

    def where(self, gcp: Session) -> Props:
        group = gcp.inputs.get(self.group)
        name = "group" if group is None or is_unknown(group) else links.name(str(group))
        return {**super().where(gcp), "instanceGroupManager": name}

    def check(self, gcp: Session, inputs: Props) -> Iterator[schema.Problem]:
        try:
            body, where = {"instances": [self.request(gcp, inputs)]}, self.where(gcp)
        except Refused as refused:
            yield refused.problem
            return
        found = gcp.api.check(f"{self.collection}.{self.creates}", where, body, self.beta)
        yield from ((path.replace("instances[0].", ""), why) for path, why in found)

    def _manager(self, gcp: Session) -> str:
        where = self.where(gcp)
        at = f"compute/projects/{where['project']}/{self.scope}s/{where[self.scope]}"
        return f"{at}/instanceGroupManagers/{where['instanceGroupManager']}"

    def key_of(self, id_: str, inputs: Props) -> str:
        project, place, group, name = id_.split("/")
        at = f"compute/projects/{project}/{self.scope}s/{place}/instanceGroupManagers/{group}"
        return f"{at}/perInstanceConfigs/{name}"

    def create(self, gcp: Session, inputs: Props) -> str:
        config, where, manager = self.request(gcp, inputs), self.where(gcp), self._manager(gcp)
        self.call(gcp, self.creates, {"instances": [config]}, **where)
        group = gcp.api.get(manager)
        gcp.api.insert(f"{manager}/perInstanceConfigs/{config['name']}", config)
        zone = where["zone"] if self.scope == "zone" else groups.places(manager, group)[0]
        at = f"compute/projects/{where['project']}/zones/{zone}/instances/{config['name']}"
        if at in gcp.api.objects:
            raise GoogleError(409, f"The resource '{at}' already exists")
        template = groups.template_of(gcp, group)
        instances.from_template(gcp, at, template, manager.split("/", 2)[2])
        group["targetSize"] = len(groups.of_group(gcp, manager))
        parts = (where["project"], where[self.scope], where["instanceGroupManager"])
        return "/".join((*parts, config["name"]))

    def update(self, gcp: Session, id_: str, olds: Props, news: Props) -> None:
        key, config, where = self.key_of(id_, news), self.request(gcp, news), self.where(gcp)
        self.call(gcp, "updatePerInstanceConfigs", {"perInstanceConfigs": [config]}, **where)
        del gcp.api.objects[key]
        gcp.api.insert(key, config)

    def describe(self, gcp: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = super().describe(gcp, id_, live, inputs)
        return {k: v for k, v in found.items() if k != "preservedState"}

    def delete(self, gcp: Session, id_: str, inputs: Props) -> None:
        key, where = self.key_of(id_, inputs), self.where(gcp)
        if key not in gcp.api.objects:
            return
        self.call(gcp, "deletePerInstanceConfigs", {"names": [key.rsplit("/", 1)[-1]]}, **where)
        del gcp.api.objects[key]
        if inputs.get("removeInstanceOnDestroy"):
            manager = self._manager(gcp)
            for machine in groups.of_group(gcp, manager):
                if machine.endswith(f"/{key.rsplit('/', 1)[-1]}"):
                    del gcp.api.objects[machine]
            gcp.api.get(manager)["targetSize"] = len(groups.of_group(gcp, manager))


class RegionPerInstanceConfig(PerInstanceConfig):
    token = "gcp:compute/regionPerInstanceConfig:RegionPerInstanceConfig"
    collection, scope = "compute.regionInstanceGroupManagers", "region"
    group = "regionInstanceGroupManager"


TYPES: tuple[Resource, ...] = (PerInstanceConfig(), RegionPerInstanceConfig())
