"""What an instance and a template of instances have in common, and Google's rules for both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from tests.engine.gcp.request import LIFTED, NOT_SENT, Form, Name, Translation
from tests.engine.gcp.values import block
from tests.engine.wire import UNKNOWN, Props, has_unknown, is_unknown

SCRIPT = "startup-script"


def _pairs(_translation: Translation, value: Any) -> Any:
    return {
        "items": [{"key": k, "value": v if is_unknown(v) else str(v)} for k, v in value.items()]
    }


def _map(_translation: Translation, live: Any, old: Any) -> Any:
    """Metadata but for the script that another input has, unless it was written as metadata."""
    pairs: list[Props] = block(live).get("items") or []
    found = {item["key"]: item["value"] for item in pairs}
    if SCRIPT not in old:
        found.pop(SCRIPT, None)
    return old if {k: str(v) for k, v in old.items()} == found else found


def _script(_translation: Translation, value: Any) -> Any:
    return {"items": [{"key": SCRIPT, "value": value}]}


def _script_now(_translation: Translation, live: Any, _old: Any) -> Any:
    pairs: list[Props] = block(live).get("items") or []
    return next((item["value"] for item in pairs if item["key"] == SCRIPT), None)


def _tags(_translation: Translation, value: Any) -> Any:
    return {"items": value}


def _tags_now(_translation: Translation, live: Any, old: Any) -> Any:
    found: list[str] = block(live).get("items") or []
    return old if sorted(found) == sorted(old) else found


def _features(_translation: Translation, value: Any) -> Any:
    return [item if is_unknown(item) else {"type": item} for item in value]


def _features_now(_translation: Translation, live: Any, old: Any) -> Any:
    found = [item["type"] for item in live or ()]
    return old if sorted(found) == sorted(old) else found


FEATURES = Form("guestOsFeatures", _features, _features_now)
METADATA: Mapping[str, Name] = {
    "metadata": Form("metadata", _pairs, _map),
    "metadataStartupScript": Form("metadata", _script, _script_now),
    "tags": Form("tags", _tags, _tags_now),
}
# Input path -> member, of both types, where the names differ.
NAMES: Mapping[str, Name] = {
    "guestAccelerators.type": "acceleratorType",
    "guestAccelerators.count": "acceleratorCount",
    "networkInterfaces.subnetworkProject": NOT_SENT,
    "reservationAffinity.type": "consumeReservationType",
    "reservationAffinity.specificReservation": LIFTED,
    "scheduling.localSsdRecoveryTimeouts": "localSsdRecoveryTimeout",
}


def below(prefix: str, names: Mapping[str, Name]) -> dict[str, Name]:
    """The same names where the members are inside of another one."""
    found: dict[str, Name] = {}
    for path, name in names.items():
        if isinstance(name, Form):
            found[path] = Form(f"{prefix}.{name.member}", name.sent, name.seen)
        elif "." in path:
            found[path] = name
        else:
            found[path] = f"{prefix}.{name}" if name not in (LIFTED, NOT_SENT) else name
    return found


def refused(properties: Props) -> Iterator[tuple[str, str]]:
    """What Compute Engine refuses of a machine, as far as its properties are known."""
    scheduling: Props = properties.get("scheduling") or {}
    if is_unknown(scheduling):
        return
    cards = properties.get("guestAccelerators")
    if cards and not _is(scheduling, "onHostMaintenance", "TERMINATE"):
        yield (
            "scheduling.onHostMaintenance",
            "Instances with guest accelerators do not support live migration: TERMINATE is needed",
        )
    model = scheduling.get("provisioningModel")
    if model == "SPOT" and scheduling.get("automaticRestart") is True:
        yield "scheduling.automaticRestart", "a spot machine is not restarted automatically"
    if scheduling.get("preemptible") and model == "STANDARD":
        yield "scheduling.preemptible", "conflicts with the provisioning model STANDARD"
    if model == "FLEX_START":
        yield from _flexible(properties, scheduling)
    if model == "RESERVATION_BOUND":
        yield from _bound(properties)
    yield from _interfaces(properties)


def _is(values: Props, name: str, wanted: str) -> bool:
    return values.get(name) in (wanted, UNKNOWN)


def _flexible(properties: Props, scheduling: Props) -> Iterator[tuple[str, str]]:
    if not scheduling.get("maxRunDuration"):
        yield "scheduling.maxRunDuration", "FLEX_START needs how long it runs"
    affinity: Any = properties.get("reservationAffinity") or {}
    if not is_unknown(affinity) and not _is(affinity, "consumeReservationType", "NO_RESERVATION"):
        yield "reservationAffinity.type", "FLEX_START takes no reservation: NO_RESERVATION"


def _bound(properties: Props) -> Iterator[tuple[str, str]]:
    affinity: Any = properties.get("reservationAffinity") or {}
    if is_unknown(affinity):
        return
    if not _is(affinity, "consumeReservationType", "SPECIFIC_RESERVATION"):
        yield "reservationAffinity.type", "RESERVATION_BOUND needs SPECIFIC_RESERVATION"


def _interfaces(properties: Props) -> Iterator[tuple[str, str]]:
    """Two interfaces in one network need one of the fabrics that allow it."""
    interfaces: Any = properties.get("networkInterfaces") or []
    if has_unknown(interfaces) or is_unknown(interfaces):
        return
    seen: dict[str, str] = {}
    for index, card in enumerate(cast(list[Props], interfaces)):
        network, kind = str(card.get("network", "")), str(card.get("nicType", ""))
        if network and network in seen and kind not in ("MRDMA", "IRDMA"):
            yield f"networkInterfaces[{index}].network", "another interface is in the same network"
        seen[network] = kind
