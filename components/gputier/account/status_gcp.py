"""One fleet on Google Cloud: its managed instance group or lone machine, found by its names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from gputier.account import status_errors
from gputier.account.answers import CannotAsk
from gputier.account.session_gcp import GcpSession
from gputier.account.status_facts import (
    GROUP,
    HELD,
    LEAVING,
    LONE,
    SERVING,
    STARTING,
    STOPPED,
    Ask,
    Facts,
    Live,
    Questions,
    Reservation,
    Size,
)
from gputier.account.status_google import (
    at,
    attempts,
    autoscaled,
    bulk,
    last,
    lives,
    reported,
    requested,
)
from gputier.account.status_reports import Listing
from gputier.boot import bucket_name

GONE = ("404", "NOT_FOUND")
PAGE = 1000
#: Four characters that a group adds to its base name (compute API v1, baseInstanceName).
_SUFFIX = "-[a-z0-9]{4}"

#: Reservations' states in AWS's words (compute.v1, Reservation.status); others are no use any more.
_HELD = {"CREATING": "pending", "READY": "active", "UPDATING": "active"}
_LEAVES = ("ABANDONING", "DELETING", "STOPPING", "SUSPENDING")
_STARTS = ("PENDING", "PROVISIONING", "STAGING", "REPAIRING")
_STOPS = ("STOPPED", "TERMINATED", "SUSPENDED")
_RENEWED = ("RECREATING", "RESTARTING", "REFRESHING", "STARTING", "RESUMING")


class Bucket:
    """The stack's bucket in a region."""

    def __init__(self, session: GcpSession, ask: Ask) -> None:
        self._session, names = session, ask.names
        self._name = bucket_name(names.project, names.stack, session.project, ask.entry.region)
        self.address = f"gs://{self._name}"

    def keys(self, prefix: str, most: int) -> Listing:
        """Keys below a prefix. Raises `CannotAsk`; a bucket that is not there has none."""
        found: list[str] = []
        token = None
        while len(found) < most:
            try:
                page = self._session.get(
                    "storage", f"b/{self._name}/o", prefix=prefix, maxResults=PAGE, pageToken=token
                )
            except CannotAsk as error:
                if error.code in GONE:
                    return Listing((), True)
                raise
            found += [str(item["name"]) for item in page.get("items", ())]
            token = page.get("nextPageToken")
            if not token:
                return Listing(found, True)
        return Listing(found, False)

    def read(self, key: str) -> Mapping[str, Any] | None:
        """An object; None where it, or the bucket, is not there. Raises `CannotAsk`."""
        path = f"b/{self._name}/o/{quote(key, safe='')}"
        try:
            return self._session.get("storage", path, alt="media")
        except CannotAsk as error:
            if error.code in GONE:
                return None
            raise


def facts(session: GcpSession, ask: Ask, questions: Questions) -> Facts:
    """What Google says of a fleet; what it does not say is noted."""
    return _Fleet(session, ask, questions).facts()


class _Fleet:
    def __init__(self, session: GcpSession, ask: Ask, questions: Questions) -> None:
        self._session, self._ask, self._questions = session, ask, questions
        self._group, self._base = ask.names.of("group"), ask.names.of("instance")
        zones, region = ask.entry.zones, f"regions/{ask.entry.region}"
        zonal = [f"zones/{zone}" for zone in zones]
        self._places = [*zonal, region] if len(zones) == 1 else [region, *zonal]

    def facts(self) -> Facts:
        try:
            place, group = self._found()
        except CannotAsk as error:
            where = f"{self._session.project}, {self._ask.entry.region}"
            self._questions.note(f"the group {self._group} in {where}", error)
            return Facts(known=False, look=self._look(self._places[0]))
        manager = f"{place}/instanceGroupManagers/{self._group}"
        managed = self._managed(manager) if group else ()
        zones = sorted({*self._ask.entry.zones, *(last(m.get("instance"), 3) for m in managed)})
        machines = [one for zone in zones if zone for one in self._instances(zone)]
        operations, whole = self._operations([zone for zone in zones if zone])
        by_name = {str(machine["name"]): machine for machine in machines}
        live = [one for member in managed if (one := _member(member, by_name))]
        if group is None:
            live = [_alone(machine) for machine in machines if machine["name"] == self._base]
        scaled = self._autoscaler(group)
        requests = self._requests(manager) if group and self._flexes else ()
        failures = [*attempts(managed), *bulk(group), *autoscaled(scaled), *requested(requests)]
        failures += reported(self._errors(manager)) if group else ()
        return Facts(
            known=True,
            shape=GROUP if group else LONE if live else None,
            group=self._group,
            size=_size(group, scaled, live),
            live=tuple(live),
            gone=tuple(lives(operations, {one.reports for one in live})),
            failures=tuple(failures),
            came=max((one.started for one in live if one.started), default=None),
            stopped=_stopped(scaled),
            reservation=self._reservation(),
            before=bool(operations),
            whole=whole,
            waiting=any(r.get("state") in ("CREATING", "ACCEPTED") for r in requests),
            look=self._look(place),
        )

    @property
    def _flexes(self) -> bool:
        return self._ask.entry.capacity == "flex_start"

    def _found(self) -> tuple[str, Mapping[str, Any] | None]:
        """The group and where it is. Raises `CannotAsk`."""
        for place in self._places:
            try:
                path = f"projects/{{project}}/{place}/instanceGroupManagers/{self._group}"
                return place, self._session.get("compute", path)
            except CannotAsk as error:
                if error.code not in GONE:
                    raise
        return self._places[0], None

    def _managed(self, manager: str) -> Sequence[Mapping[str, Any]]:
        path = f"projects/{{project}}/{manager}/listManagedInstances"
        try:
            found: list[Mapping[str, Any]] = []
            token = None
            while True:
                page = self._session.post("compute", path, None, pageToken=token)
                found += page.get("managedInstances", ())
                token = page.get("nextPageToken")
                if not token:
                    return found
        except CannotAsk as error:
            self._questions.note(f"the machines of {self._group}", error)
            return ()

    def _instances(self, zone: str) -> Sequence[Mapping[str, Any]]:
        wanted = f'name eq "{self._base}({_SUFFIX})?"'
        path = f"projects/{{project}}/zones/{zone}/instances"
        return self._listed(path, f"the machines in {zone}", filter=wanted) or ()

    def _operations(self, zones: Sequence[str]) -> tuple[Sequence[Mapping[str, Any]], bool]:
        """What was done to machines of these names, and whether that goes back to the month's
        beginning: Google keeps operations for about two weeks (recalled; unverified)."""
        wanted = f'targetLink eq ".*/instances/{self._base}({_SUFFIX})?"'
        found: list[Mapping[str, Any]] = []
        whole = self._ask.now - self._ask.month < 14 * 86400
        for zone in zones:
            path = f"projects/{{project}}/zones/{zone}/operations"
            heard = self._listed(path, f"the operations in {zone}", filter=wanted)
            whole = whole and heard is not None
            found += heard or ()
        return found, whole

    def _errors(self, manager: str) -> Sequence[Mapping[str, Any]]:
        path = f"projects/{{project}}/{manager}/listErrors"
        return self._listed(path, f"the errors of {self._group}") or ()

    def _requests(self, manager: str) -> Sequence[Mapping[str, Any]]:
        path = f"projects/{{project}}/{manager}/resizeRequests"
        return self._listed(path, f"the resize requests of {self._group}") or ()

    def _listed(self, path: str, what: str, **query: Any) -> Sequence[Mapping[str, Any]] | None:
        try:
            return self._session.every("compute", path, **query)
        except CannotAsk as error:
            self._questions.note(what, error)
            return None

    def _autoscaler(self, group: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        address = str((group or {}).get("status", {}).get("autoscaler") or "")
        if not address:
            return None
        path = address[address.index("projects/") :]
        try:
            return self._session.get("compute", path)
        except CannotAsk as error:
            self._questions.note(f"the autoscaler of {self._group}", error)
            return None

    def _reservation(self) -> Reservation | None:
        declared = self._ask.declared.capacity if self._ask.declared else ()
        name = next((c.id for c in declared if c.use == "reservation" and c.id), None)
        zones = self._ask.entry.zones
        if name is None or self._ask.entry.capacity != "reservation" or not zones:
            return None
        path = f"projects/{{project}}/zones/{zones[0]}/reservations/{last(name)}"
        try:
            found = self._session.get("compute", path)
        except CannotAsk as error:
            if error.code in GONE:
                return Reservation(name, status_errors.HELD_GONE, None, None, None, None)
            self._questions.note(f"the reservation {name}", error)
            return None
        held: Mapping[str, Any] = found.get("specificReservation") or {}
        total, used = held.get("count"), held.get("inUseCount")
        free = None if total is None else int(total) - int(used or 0)
        state = _HELD.get(str(found.get("status")), "over")
        return Reservation(name, state, None, None, free, None if total is None else int(total))

    def _look(self, place: str) -> tuple[str, ...]:
        kind, name = place.split("/")
        return (
            f"gcloud compute instance-groups managed list-errors {self._group}"
            f" --{kind.removesuffix('s')} {name} --project {self._session.project}",
        )


def _member(member: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]) -> Live | None:
    """A machine of a group; None for one that does not exist yet."""
    status, action = member.get("instanceStatus"), str(member.get("currentAction") or "NONE")
    if not status:
        return None
    name = str(member.get("name") or last(member.get("instance")))
    machine = known.get(name, {})
    health = [str(one.get("detailedHealthState")) for one in member.get("instanceHealth", ())]
    healthy = "HEALTHY" in health if health else None
    return Live(
        name,
        last(member.get("instance"), 3) or None,
        last(machine.get("machineType")) or None,
        _stage(str(status), action),
        _began(machine),
        str(member.get("id") or machine.get("id") or name),
        _is_spot(machine),
        healthy,
    )


def _stage(status: str, action: str) -> str:
    if status in _STOPS:
        return STOPPED
    if action in _LEAVES or status in ("STOPPING", "PENDING_STOP", "DEPROVISIONING", "SUSPENDING"):
        return LEAVING
    if status in _STARTS or action in _RENEWED:
        return STARTING
    # Until the first healthy answer the group verifies it: that is the gate.
    return HELD if action in ("VERIFYING", "CREATING", "CREATING_WITHOUT_RETRIES") else SERVING


def _alone(machine: Mapping[str, Any]) -> Live:
    return Live(
        str(machine["name"]),
        last(machine.get("zone")) or None,
        last(machine.get("machineType")) or None,
        _stage(str(machine.get("status")), "NONE"),
        _began(machine),
        str(machine.get("id") or machine["name"]),
        _is_spot(machine),
    )


def _began(machine: Mapping[str, Any]) -> float | None:
    return at(machine.get("lastStartTimestamp")) or at(machine.get("creationTimestamp"))


def _is_spot(machine: Mapping[str, Any]) -> bool | None:
    model = machine.get("scheduling", {}).get("provisioningModel")
    return None if model is None else model == "SPOT"


def _size(
    group: Mapping[str, Any] | None, scaled: Mapping[str, Any] | None, live: Sequence[Live]
) -> Size | None:
    if group is None:
        return Size(1, 1, 1) if live else None
    wanted = int(group.get("targetSize") or 0)
    policy: Mapping[str, Any] = (scaled or {}).get("autoscalingPolicy") or {}
    least, most = policy.get("minNumReplicas"), policy.get("maxNumReplicas")
    return Size(
        wanted, wanted if least is None else int(least), wanted if most is None else int(most)
    )


def _stopped(scaled: Mapping[str, Any] | None) -> str | None:
    policy: Mapping[str, Any] = (scaled or {}).get("autoscalingPolicy") or {}
    return "the autoscaler's mode is OFF" if policy.get("mode") == "OFF" else None
