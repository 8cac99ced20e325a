"""One fleet on AWS: its Auto Scaling group or lone machine, found by its names and its tag."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gputier.account import status_activities as activities
from gputier.account import status_errors
from gputier.account.answers import RIGHT, WAY, CannotAsk
from gputier.account.session_aws import HOW_WAY, AwsSession
from gputier.account.status_facts import (
    ASIDE,
    GROUP,
    HELD,
    INTERRUPTED,
    LEAVING,
    LONE,
    SERVING,
    STARTING,
    STOPPED,
    VANISHED,
    Ask,
    Facts,
    Failure,
    Life,
    Live,
    Questions,
    Reservation,
    Size,
)
from gputier.account.status_reports import Listing
from gputier.boot import bucket_name
from gputier.node import plain
from gputier.plan.names import FLEET_TAG

#: Activities that are read, newest first: AWS keeps six weeks of them, and a group that cannot
#: launch makes one every few minutes.
MOST_ACTIVITIES = 2000
PAGE = 100

_STAGES = {
    "Pending": STARTING,
    "Pending:Wait": HELD,
    "Pending:Proceed": HELD,
    "InService": SERVING,
    "EnteringStandby": ASIDE,
    "Standby": ASIDE,
    "Detaching": ASIDE,
    "Detached": ASIDE,
}
_STATES = {
    "pending": STARTING,
    "running": SERVING,
    "stopping": STOPPED,
    "stopped": STOPPED,
    "shutting-down": LEAVING,
}
_SPOT_REASONS = ("Server.SpotInstanceTermination", "Server.SpotInstanceShutdown")


class Bucket:
    """The stack's bucket in a region."""

    def __init__(self, session: AwsSession, ask: Ask, account: str) -> None:
        self._session, self._region, self._owner = session, ask.entry.region, account
        names = ask.names
        self._name = bucket_name(names.project, names.stack, account, ask.entry.region)
        self.address = f"s3://{self._name}"

    def keys(self, prefix: str, most: int) -> Listing:
        """Keys below a prefix. Raises `CannotAsk`; a bucket that is not there has none."""
        try:
            found = self._session.every(
                "s3",
                "list_objects_v2",
                "Contents",
                self._region,
                Bucket=self._name,
                Prefix=prefix,
                ExpectedBucketOwner=self._owner,
                PaginationConfig={"MaxItems": most},
            )
        except CannotAsk as error:
            if error.code == "NoSuchBucket":
                return Listing((), True)
            if error.kind != RIGHT:
                raise
            # The right is not called as the call is.
            fix = f"allow s3:ListBucket on {self._name} to whoever asks"
            raise CannotAsk(error.message, fix, RIGHT, error.code) from None
        return Listing([str(item["Key"]) for item in found], len(found) < most)

    def read(self, key: str) -> Mapping[str, Any] | None:
        """A JSON object; None where it, or the bucket, is not there, and an empty one where it is
        no JSON. Raises `CannotAsk`."""
        try:
            found = self._session.ask(
                "s3",
                "get_object",
                self._region,
                Bucket=self._name,
                Key=key,
                ExpectedBucketOwner=self._owner,
            )
        except CannotAsk as error:
            if error.code in ("NoSuchKey", "NoSuchBucket"):
                return None
            raise
        try:
            text: bytes = found["Body"].read()
        except Exception as error:  # the connection went while the object came
            said = f"{type(error).__name__}: {error}"
            raise CannotAsk(said, HOW_WAY, WAY) from None
        try:
            return plain.mapping(json.loads(text)) or {}
        except ValueError:
            return {}


def account_of(session: AwsSession) -> str:
    """Twelve digits. Raises `CannotAsk`."""
    return str(session.ask("sts", "get_caller_identity")["Account"])


def facts(session: AwsSession, ask: Ask, questions: Questions) -> Facts:
    """What AWS says of a fleet; what it does not say is noted."""
    return _Fleet(session, ask, questions).facts()


class _Fleet:
    def __init__(self, session: AwsSession, ask: Ask, questions: Questions) -> None:
        self._session, self._ask, self._questions = session, ask, questions
        self._region = ask.entry.region
        self._group = ask.names.of("group")

    def facts(self) -> Facts:
        try:
            group = self._described()
        except CannotAsk as error:
            self._questions.note(f"the group {self._group} in {self._region}", error)
            return Facts(known=False, look=self._look())
        machines = self._machines()
        story, whole = self._story(group)
        story = activities.named(story, _zone_ids(machines or ()))
        live = list(self._live(group, machines or (), story))
        lone = group is None and bool(live)
        return Facts(
            known=group is not None or machines is not None,
            shape=GROUP if group is not None else LONE if lone else None,
            group=self._group,
            size=_size(group, live),
            live=tuple(live),
            gone=tuple(self._gone(machines or (), story)),
            failures=(*story.failures, *(_ended(machines or ()) if group is None else ())),
            came=story.came,
            stopped=_stopped(group),
            reservation=self._reservation(),
            before=bool(story.started or story.deleted or machines),
            whole=whole,
            look=self._look(),
        )

    def _described(self) -> Mapping[str, Any] | None:
        found = self._session.ask(
            "autoscaling",
            "describe_auto_scaling_groups",
            self._region,
            AutoScalingGroupNames=[self._group],
        )["AutoScalingGroups"]
        return found[0] if found else None

    def _machines(self) -> Sequence[Mapping[str, Any]] | None:
        """EC2's own word of every machine with the fleet's tag, of those that ended an hour ago
        too."""
        try:
            found = self._session.every(
                "ec2",
                "describe_instances",
                "Reservations",
                self._region,
                Filters=[{"Name": f"tag:{FLEET_TAG}", "Values": [self._group]}],
            )
        except CannotAsk as error:
            self._questions.note(f"the machines of {self._group} in {self._region}", error)
            return None
        return [machine for one in found for machine in one.get("Instances", ())]

    def _story(self, group: Mapping[str, Any] | None) -> tuple[activities.Story, bool]:
        """What the activities tell, and whether they go back to the month's beginning."""
        try:
            found = self._session.every(
                "autoscaling",
                "describe_scaling_activities",
                "Activities",
                self._region,
                AutoScalingGroupName=self._group,
                IncludeDeletedGroups=True,
                PaginationConfig={"MaxItems": MOST_ACTIVITIES, "PageSize": PAGE},
            )
        except CannotAsk as error:
            if group is None and error.code == "ValidationError":  # none ever had this name
                return activities.read(()), True
            self._questions.note(f"the scaling activities of {self._group}", error)
            return activities.read(()), False
        story = activities.read(found)
        cut = len(found) == MOST_ACTIVITIES and (story.oldest or 0.0) > self._ask.month
        return story, not cut

    def _live(
        self,
        group: Mapping[str, Any] | None,
        machines: Sequence[Mapping[str, Any]],
        story: activities.Story,
    ) -> Iterator[Live]:
        known = {str(machine["InstanceId"]): machine for machine in machines}
        for member in (group or {}).get("Instances", ()):
            id_ = str(member["InstanceId"])
            machine = known.get(id_, {})
            state = str(member.get("LifecycleState"))
            yield Live(
                id_,
                machine.get("Placement", {}).get("AvailabilityZoneId")
                or member.get("AvailabilityZone"),
                member.get("InstanceType") or machine.get("InstanceType"),
                _STAGES.get(state, ASIDE if state.startswith("Warmed") else LEAVING),
                activities.moment(machine.get("LaunchTime")) or story.started.get(id_),
                id_,
                _is_spot(machine),
                None if not member.get("HealthStatus") else member["HealthStatus"] == "Healthy",
            )
        if group is None:
            yield from (one for machine in machines if (one := _lone(machine)))

    def _gone(
        self, machines: Sequence[Mapping[str, Any]], story: activities.Story
    ) -> Iterator[Life]:
        """Those that have gone, with EC2's reason where Auto Scaling gives none."""
        reasons = {
            str(machine["InstanceId"]): str(machine.get("StateReason", {}).get("Code", ""))
            for machine in machines
            if machine.get("State", {}).get("Name") in ("terminated", "shutting-down")
        }
        for life in story.gone:
            taken = reasons.get(life.id, "") in _SPOT_REASONS
            # EC2 forgets its reason after an hour; of a Spot machine there is hardly another.
            guessed = life.how == VANISHED and self._ask.spot and life.id not in reasons
            yield life._replace(how=INTERRUPTED) if taken or guessed else life

    def _reservation(self) -> Reservation | None:
        id_ = _reserved(self._ask)
        if id_ is None:
            return None
        try:
            listed: Sequence[Mapping[str, Any]] = self._session.ask(
                "ec2",
                "describe_capacity_reservations",
                self._region,
                CapacityReservationIds=[id_],
            )["CapacityReservations"]
        except CannotAsk as error:
            if error.code == "InvalidCapacityReservationId.NotFound":
                return Reservation(id_, status_errors.HELD_GONE, None, None, None, None)
            self._questions.note(f"the reservation {id_}", error)
            return None
        found: Mapping[str, Any] = listed[0] if listed else {}
        return Reservation(
            id_,
            str(found.get("State", "unknown")),
            activities.moment(found.get("StartDate")),
            activities.moment(found.get("EndDate")),
            found.get("AvailableInstanceCount"),
            found.get("TotalInstanceCount"),
        )

    def _look(self) -> tuple[str, ...]:
        return (
            f"aws autoscaling describe-scaling-activities --region {self._region}"
            f" --auto-scaling-group-name {self._group} --max-items 10",
        )


def _reserved(ask: Ask) -> str | None:
    """The id of what is reserved for it, by the declaration."""
    if ask.declared is None:
        return None
    held = ("reservation", "capacity_block")
    uses = [c for c in ask.declared.capacity if c.use == ask.entry.capacity and c.use in held]
    return uses[0].id if uses else None


def _size(group: Mapping[str, Any] | None, live: Sequence[Live]) -> Size | None:
    if group is None:
        return Size(1, 1, 1) if live else None
    return Size(int(group["DesiredCapacity"]), int(group["MinSize"]), int(group["MaxSize"]))


def _stopped(group: Mapping[str, Any] | None) -> str | None:
    """Why a group launches nothing: `Launch` is suspended."""
    for process in (group or {}).get("SuspendedProcesses", ()):
        if process.get("ProcessName") == "Launch":
            return str(process.get("SuspensionReason") or "Launch is suspended")
    return None


def _lone(machine: Mapping[str, Any]) -> Live | None:
    """A machine of no group; None for one that has ended, or that a group has."""
    tags = {tag.get("Key") for tag in machine.get("Tags", ())}
    stage = _STATES.get(machine.get("State", {}).get("Name", ""))
    if stage is None or "aws:autoscaling:groupName" in tags:
        return None
    place: Mapping[str, Any] = machine.get("Placement", {})
    return Live(
        str(machine["InstanceId"]),
        place.get("AvailabilityZoneId") or place.get("AvailabilityZone"),
        machine.get("InstanceType"),
        stage,
        activities.moment(machine.get("LaunchTime")),
        str(machine["InstanceId"]),
        _is_spot(machine),
    )


def _ended(machines: Sequence[Mapping[str, Any]]) -> Iterator[Failure]:
    """Why machines of no group are stopped, or ended: EC2 tells for about an hour."""
    for machine in machines:
        reason: Mapping[str, Any] = machine.get("StateReason") or {}
        tags = {tag.get("Key") for tag in machine.get("Tags", ())}
        if reason.get("Code") and "aws:autoscaling:groupName" not in tags:
            said = str(reason.get("Message") or reason["Code"])
            yield Failure(None, str(reason["Code"]), said)


def _zone_ids(machines: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Zone ids by name, which the lock has and activities do not: an account has its own names."""
    places = (machine.get("Placement", {}) for machine in machines)
    return {
        str(place["AvailabilityZone"]): str(place["AvailabilityZoneId"])
        for place in places
        if place.get("AvailabilityZone") and place.get("AvailabilityZoneId")
    }


def _is_spot(machine: Mapping[str, Any]) -> bool | None:
    return machine.get("InstanceLifecycle") == "spot" if machine else None
