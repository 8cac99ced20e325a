"""The provider takes the machine: noticed in time, told to the gate, and the workload stopped well.

While a node is judged a notice makes the verdict inconclusive (`noticed`): it says nothing about
the machine. Once it has joined, the gate is shut, and the workload's unit is stopped, which runs
`before_stop`. A capacity block's end is told outside the machine only: nothing here can see it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gputier.node import gate, notices
from gputier.node.cloud import Trouble, endpoints, metadata
from gputier.node.cloud.http import Patience, Web
from gputier.node.cloud.identity import Identity
from gputier.node.cloud.metadata import GLANCE, Metadata
from gputier.node.host import Host
from gputier.node.notices import Asked, Notice
from gputier.node.result import INCONCLUSIVE
from gputier.node.units import WORKLOAD

# AWS asks for a look every 5 seconds (spot-instance-termination-notices).
INTERVAL_SECONDS = 5.0
# Google holds the question until the answer changes.
HELD_SECONDS = 5.0
HELD = Patience(15.0, each=HELD_SECONDS + 7.0)
HELD_PATH = "instance/preempted"
BOOT = "gputier-boot.service"
# A little more than the unit's own time for stopping (running.py).
STOP_SECONDS = 130.0
STATE = "meta-data/autoscaling/target-lifecycle-state"
KEPT_ASIDE = "kept in the warm pool"


def noticed(host: Host, identity: Identity | None) -> str | None:
    """That the provider takes this machine within minutes, in words; None when it does not, or
    when nobody can be asked. One short look, for use while the node is judged."""
    if identity is None:
        return None
    return taken(metadata.of(identity.cloud, Web(host), endpoints.read(host)), identity)


def taken(service: Metadata | None, identity: Identity) -> str | None:
    """The same of a service that is known already."""
    if service is None:
        return None
    try:
        found = look(service, identity)
    except Trouble:
        return None
    return next((notice.words for notice in found if notice.taken), None)


def look(service: Metadata, identity: Identity, patience: Patience = GLANCE) -> list[Notice]:
    """Every notice that stands. Raises Trouble."""
    found: list[Notice] = []
    for path, read in notices.TABLE[identity.cloud].items():
        text = service.get(path, patience)
        asked = Asked(service.web.host.now(), identity.name)
        notice = None if text is None else read(text, asked)
        found += [notice] if notice else []
    return found


class Seen(NamedTuple):
    """What a step found that was not told before, and what was wrong with looking."""

    new: tuple[Notice, ...]
    trouble: str | None = None


class Watcher:
    """Looks again and again; `step` acts on what is new. `say` is where it is told."""

    def __init__(
        self, host: Host, service: Metadata, identity: Identity, say: Callable[[str], None]
    ) -> None:
        self.host = host
        self.service = service
        self.identity = identity
        self.say = say
        self._told: set[str] = set()
        self._etag = ""
        self._aside = False
        self._stopped = False

    def step(self) -> Seen:
        """Look once, and shut the gate and stop the workload for a machine that is taken."""
        try:
            self._hold()
            found = look(self.service, self.identity)
            self._warm()
        except Trouble as error:
            return Seen((), str(error))
        new = tuple(notice for notice in found if notice.words not in self._told)
        for notice in new:
            self._told.add(notice.words)
            self.say(notice.words)
        taken = [notice.words for notice in found if notice.taken]
        # Open in spite of what was told: the verdict that opened it was on its way meanwhile.
        opened = bool(taken) and gate.read(self.host).open
        if opened or any(notice.taken for notice in new):
            self.leave(taken, again=opened)
        return Seen(new)

    def leave(self, reasons: list[str], again: bool = False) -> None:
        """No more work, whatever the gate's mode: this is no verdict, the machine goes. `again`:
        what was stopped may have been started behind us."""
        state = gate.read(self.host)
        shut = gate.Gate(False, INCONCLUSIVE, state.mode, tuple(reasons), int(self.host.now()))
        try:
            gate.write(self.host, shut)
        except OSError as error:
            self.say(f"the gate cannot be shut: {error}")
        if self._stopped and not again:
            return
        self._stopped = True
        done = self.host.run(("systemctl", "stop", WORKLOAD), STOP_SECONDS)
        words = "stopped" if done.ok else f"could not be stopped: {done.how}: {done.says()}"
        self.say(f"{WORKLOAD} {words}")

    def _hold(self) -> None:
        """Google: wait until something changes, for a Spot machine has 30 seconds."""
        if self.identity.cloud != "gcp":
            return
        if self._etag:
            held = f"?wait_for_change=true&timeout_sec={HELD_SECONDS:.0f}&last_etag={self._etag}"
            answer = self.service.answer(f"{HELD_PATH}{held}", HELD)
        else:
            answer = self.service.answer(HELD_PATH, GLANCE)
        self._etag = answer.headers.get("etag", "")

    def _warm(self) -> None:
        """AWS: a node that leaves the warm pool without a boot of its own is proved again."""
        if self.identity.cloud != "aws":
            return
        aside = any(KEPT_ASIDE in reason for reason in gate.read(self.host).reasons)
        comes = aside and self.service.get(STATE, GLANCE) == "InService"
        if comes and not self._aside:
            self.say("the node leaves the warm pool: it is proved again")
            self.host.run(("systemctl", "restart", "--no-block", BOOT), 30.0)
        self._aside = comes
