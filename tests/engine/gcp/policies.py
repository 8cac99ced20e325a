"""Resource policies (placement, hours), reservations and requests for machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.engine import schema
from tests.engine.gcp import links
from tests.engine.gcp.request import NOT_SENT, Form, Translation
from tests.engine.gcp.resource import Resource
from tests.engine.gcp.session import Session
from tests.engine.gcp.values import block
from tests.engine.wire import Props, is_unknown


class ResourcePolicy(Resource):
    token = "gcp:compute/resourcePolicy:ResourcePolicy"
    collection, scope = "compute.resourcePolicies", "region"
    names = {"diskConsistencyGroupPolicy.enabled": NOT_SENT}
    beta = frozenset(
        {
            "ResourcePolicyGroupPlacementPolicy.maxDistance",
            "ResourcePolicyGroupPlacementPolicy.tpuTopology",
        }
    )

    def check(self, gcp: Session, inputs: Props) -> Iterator[schema.Problem]:
        yield from super().check(gcp, inputs)
        if not any(inputs.get(name) for name in KINDS):
            yield "", f"one of {', '.join(KINDS)} is needed"
        placement: Any = inputs.get("groupPlacementPolicy") or {}
        distance = None if is_unknown(placement) else placement.get("maxDistance")
        if isinstance(distance, int) and not 1 <= distance <= 3:
            yield "groupPlacementPolicy.maxDistance", f"{distance} is not from 1 to 3"


KINDS = (
    "diskConsistencyGroupPolicy",
    "groupPlacementPolicy",
    "instanceSchedulePolicy",
    "snapshotSchedulePolicy",
    "workloadPolicy",
)


def _shares(_translation: Translation, value: Any) -> Any:
    return {
        share.get("id", ""): {"projectId": share.get("projectId")}
        for share in value
        if not is_unknown(share)
    }


def _shares_now(_translation: Translation, live: Any, old: Any) -> Any:
    return (
        old
        if _shares(_translation, old) == live
        else [{"id": id_, **about} for id_, about in block(live).items()]
    )


class Reservation(Resource):
    token = "gcp:compute/reservation:Reservation"
    collection, scope, changes = "compute.reservations", "zone", "update"
    names = {
        "shareSettings.projectMaps": Form("projectMap", _shares, _shares_now),
    }
    beta = frozenset(
        {
            "AllocationSpecificSKUAllocationReservedInstanceProperties.maintenanceInterval",
            "ShareSettings.projects",
        }
    )
    defaults = {"specificReservationRequired": False}
    chosen = frozenset(
        {"deleteAtTime", "reservationSharingPolicy", "shareSettings", "enableEmergentMaintenance"}
    )
    types_whole = False

    def made(self, gcp: Session, key: str, body: Props) -> None:
        body["status"] = "READY"
        body["specificReservation"]["inUseCount"] = "0"

    def patch(self, gcp: Session, key: str, body: Props) -> None:
        resized = body.pop("specificReservation", {}).get("count")
        if resized is not None:
            verb = {"specificSkuCount": resized}
            self.call(gcp, "resize", verb, **self.parameters("resize", key))
            gcp.api.patch(key, {"specificReservation": {"count": resized}})
        if body:
            super().patch(gcp, key, body)


class ResizeRequest(Resource):
    """A request for machines of a group, all at once or none: nothing of it can be changed."""

    token = "gcp:compute/resizeRequest:ResizeRequest"
    collection, scope, changes = "compute.instanceGroupManagerResizeRequests", "zone", ""
    apart = frozenset({"instanceGroupManager"})

    def where(self, gcp: Session) -> Props:
        group = gcp.inputs.get("instanceGroupManager")
        name = "group" if group is None or is_unknown(group) else links.name(group)
        return {**super().where(gcp), "instanceGroupManager": name}

    def made(self, gcp: Session, key: str, body: Props) -> None:
        gcp.api.get(key.rsplit("/", 2)[0])  # 404 without the group
        body["state"] = "ACCEPTED"

    def delete(self, gcp: Session, id_: str, inputs: Props) -> None:
        key = self.key_of(id_, inputs)
        if gcp.api.objects.get(key, {}).get("state") in ("ACCEPTED", "CREATING"):
            self.call(gcp, "cancel", None, **self.parameters("cancel", key))
            gcp.api.patch(key, {"state": "CANCELLED"})
        super().delete(gcp, id_, inputs)


TYPES: tuple[Resource, ...] = (ResourcePolicy(), Reservation(), ResizeRequest())
