"""One resource's state as the engine writes it, in every format alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from gputier.review.preview import SECRET, UNKNOWN, State, Value

#: What stands where a value is not known yet, one for each kind of value
#: (pulumi sdk/go/common/resource/plugin/rpc.go).
SENTINELS = frozenset(
    {
        "04da6b54-80e4-46f7-96ec-b56ff0331ba9",  # text, and anything
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # yes or no
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # a number
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # a list
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # a map
        "030794c1-ac77-496b-92df-f27374a8bd58",  # an asset
        "e48ece36-62e2-4504-bad9-02848725956a",  # an archive
    }
)
#: What the engine writes for a secret. Somebody's real text of that kind cannot be told apart.
SECRET_TEXT = "[secret]"  # noqa: S105 (a word)
#: The key by which a map says that it is no map but a value of another kind (the same file).
SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET_KIND = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105
_OUTPUT_KIND = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_REFERENCE_KIND = "5cf8f73096256a8f31e491e813e4eb8e"


def shown(value: Any) -> Value:
    """A value as a review may know it: what is hidden is `UNKNOWN` or `SECRET` at any depth, and a
    reference to a resource is its id."""
    if isinstance(value, str):
        if value in SENTINELS:
            return UNKNOWN
        return SECRET if value == SECRET_TEXT else value
    if isinstance(value, list):
        return [shown(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return _map(cast("dict[str, Any]", value))
    return value


def _map(value: Mapping[str, Any]) -> Value:
    kind = value.get(SIGNATURE)
    if kind == _SECRET_KIND:
        return SECRET
    if kind == _OUTPUT_KIND:
        if value.get("secret"):
            return SECRET
        return shown(value["value"]) if "value" in value else UNKNOWN
    if kind == _REFERENCE_KIND:
        return shown(value.get("id"))
    # Providers keep to themselves which values they filled in (`__defaults`).
    return {
        name: shown(item)
        for name, item in value.items()
        if not name.startswith("__") and name != SIGNATURE
    }


def properties(value: Any) -> Mapping[str, Value]:
    """A resource's inputs or outputs; nothing where there is no map."""
    found = shown(value)
    return cast("Mapping[str, Value]", found) if isinstance(found, dict) else {}


def state(raw: Mapping[str, Any], outputs: Mapping[str, Value] | None = None) -> State:
    """A state; `outputs` are those of before where this side has none of its own."""
    own = properties(raw.get("outputs"))
    links = cast("Mapping[str, Any]", raw.get("propertyDependencies") or {})
    return State(
        urn=str(raw.get("urn") or ""),
        type=str(raw.get("type") or type_of(str(raw.get("urn") or ""))),
        id=_id(raw.get("id")),
        inputs=properties(raw.get("inputs")),
        outputs=own or (outputs or {}),
        dependencies={name: tuple(map(str, urns or ())) for name, urns in links.items()},
        parent=cast("str | None", raw.get("parent") or None),
        provider=cast("str | None", raw.get("provider") or None),
        protect=bool(raw.get("protect")),
        retain=bool(raw.get("retainOnDelete")),
        custom=raw.get("custom") is not False,
    )


def _id(raw: Any) -> str | None:
    return raw if isinstance(raw, str) and raw and raw not in SENTINELS else None


def type_of(urn: str) -> str:
    """The type's token in a URN: `…::aws:ec2/vpc:Vpc::name`, without its parents' types."""
    parts = urn.split("::")
    return parts[2].rsplit("$", 1)[-1] if len(parts) > 3 else ""


def stack_of(urn: str) -> tuple[str, str]:
    """Project and stack of `urn:pulumi:STACK::PROJECT::…`; empty where it is no URN."""
    parts = urn.split("::")
    if len(parts) < 4 or not parts[0].startswith("urn:pulumi:"):
        return "", ""
    return parts[1], parts[0].removeprefix("urn:pulumi:")
