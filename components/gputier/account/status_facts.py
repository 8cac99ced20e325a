"""What a cloud says of one fleet, before anything is made of it. Times are seconds since 1970."""

from __future__ import annotations

from typing import NamedTuple

from gputier.account.answers import CannotAsk
from gputier.lock import Entry
from gputier.plan.names import Names
from gputier.workload import Workload

#: How far a machine is. `HELD` waits at its gate; `ASIDE` is in standby or in a warm pool.
STARTING, HELD, SERVING, LEAVING, ASIDE, STOPPED = (
    "starting",
    "held",
    "serving",
    "leaving",
    "aside",
    "stopped",
)

#: Why a machine has gone. `VANISHED`: the cloud ended it and does not say why.
REJECTED, SILENT, FAILED, INTERRUPTED, VANISHED, BROKEN, REPLACED, SCALED_IN, UNKNOWN = (
    "rejected",
    "silent",
    "failed",
    "interrupted",
    "vanished",
    "broken",
    "replaced",
    "scaled-in",
    "unknown",
)

GROUP, LONE = "group", "lone"


class Ask(NamedTuple):
    """Which fleet, and when. `declared` is None for one that only the lock still holds;
    `month` is when the month began."""

    workload: str
    names: Names
    entry: Entry
    declared: Workload | None
    month: float
    now: float

    @property
    def resources(self) -> str:
        """The name that everything of it is made under."""
        return self.names.workload

    @property
    def spot(self) -> bool:
        return self.entry.capacity == "spot"


class Live(NamedTuple):
    """A machine that is there. `reports` is what its reports are filed under; `healthy` is the
    cloud's own word, None where it has none."""

    id: str
    zone: str | None
    type: str | None
    stage: str
    started: float | None
    reports: str
    spot: bool | None = None
    healthy: bool | None = None


class Life(NamedTuple):
    """A machine that has gone. `id` is what its reports are filed under, `name` what people call it
    where that is another; `said` is the cloud's sentence."""

    id: str
    zone: str | None
    started: float | None
    ended: float | None
    how: str
    said: str = ""
    name: str = ""


class Failure(NamedTuple):
    """A machine that did not come, or an error of the group. `at` is None where nobody says when:
    it stands now."""

    at: float | None
    code: str | None
    said: str
    zone: str | None = None


class Size(NamedTuple):
    """Machines of a group: asked for, at least, at most."""

    wanted: int
    least: int
    most: int


class Reservation(NamedTuple):
    """What is reserved: the cloud's state of it, its span, and places."""

    id: str
    state: str
    starts: float | None
    ends: float | None
    free: int | None
    total: int | None


class Unasked(NamedTuple):
    """A question that was not answered. `workload` is `""` for the whole stack."""

    workload: str
    what: str
    why: str
    fix: str
    kind: str


class Facts(NamedTuple):
    """`shape` is None where nothing is there, `known` whether that could be asked at all. `before`
    says that it was there once. `whole` is False where machines that have gone this month are not
    all known. `stopped`: nothing is launched, by whom or what; `look`: commands that show more."""

    known: bool
    shape: str | None = None
    group: str | None = None
    size: Size | None = None
    live: tuple[Live, ...] = ()
    gone: tuple[Life, ...] = ()
    failures: tuple[Failure, ...] = ()
    #: When a machine came last.
    came: float | None = None
    stopped: str | None = None
    reservation: Reservation | None = None
    before: bool = False
    whole: bool = True
    waiting: bool = False
    look: tuple[str, ...] = ()


class Questions:
    """Asks, and notes what could not be asked."""

    def __init__(self, workload: str) -> None:
        self.workload = workload
        self.unasked: list[Unasked] = []

    def note(self, what: str, error: CannotAsk) -> None:
        found = Unasked(self.workload, what, error.message, error.fix, error.kind)
        if found not in self.unasked:
            self.unasked.append(found)
