"""After joining: what a node that works is watched for, at less than a hundredth of one core.

Notices at every step; one nvidia-smi query, the newest kernel lines and a few files at every few.
Each kind of event is told at most once in a while; what takes the node out of service goes through
the gate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gputier.node import interruption, load_cause, report, smi, xids
from gputier.node.checks.network import ports
from gputier.node.checks.thermal import HARDWARE
from gputier.node.cloud import glance, identity
from gputier.node.cloud.identity import Identity
from gputier.node.engine import Context
from gputier.node.result import HEALTHY, INCONCLUSIVE, REBOOT, REPLACE, WARNING, Failed, Garbled

JOURNAL = ("journalctl", "-k", "-b", "0", "--no-pager", "-o", "short-iso", "-n", "500")
FIELDS = (
    "index",
    "uuid",
    "utilization.gpu",
    "utilization.memory",
    "temperature.gpu",
    "memory.used",
    "memory.total",
    "power.draw",
    "power.limit",
    "clocks_event_reasons.active",
    "clocks_throttle_reasons.active",
    "ecc.errors.uncorrected.volatile.total",
)
ECC = "ecc.errors.uncorrected.volatile.total"
QUIET_SECONDS = 300.0
# A GPU that is missed or slowed down once may be busy; three times in a row it is not.
PATIENCE = 3


class Event(NamedTuple):
    """Something that happened. REPLACE and REBOOT shut the gate, so does a notice."""

    key: str
    outcome: str
    words: str
    notice: bool = False

    @property
    def shuts(self) -> bool:
        return self.notice or self.outcome in (REPLACE, REBOOT)


class Watch:
    """Keeps what was seen; `step` looks once and tells what is new."""

    def __init__(self, ctx: Context, every: int = 1) -> None:
        """`every`: what costs a process (nvidia-smi, the log) is asked at each such step only."""
        self.ctx = ctx
        self.every = every
        self.turn = 0
        self.lines: set[str] = set()
        self.uuids: dict[str, str] = {}
        self.ecc: dict[str, float] = {}
        self.streaks: dict[str, int] = {}
        self.told: dict[str, float] = {}
        self.suppressed = 0
        self.rows: list[dict[str, str]] = []
        self.cause = load_cause.Window()
        self.cloud = report.machine(ctx)["cloud"]
        self.first = True

    def step(self) -> list[Event]:
        """Look once: every event that is new or was quiet long enough."""
        found: list[Event] = []
        looks: list[Callable[[], list[Event]]] = [self._notices]
        if self.turn % self.every == 0:
            looks += [self._kernel, self._gpus, self._fabric, self._load]
        for look in looks:
            found += look()
        self.turn += 1
        self.first = False
        return [event for event in found if self._may_tell(event)]

    def _may_tell(self, event: Event) -> bool:
        now = self.ctx.host.monotonic()
        if event.key in self.told and now - self.told[event.key] < QUIET_SECONDS:
            self.suppressed += 1
            return False
        self.told[event.key] = now
        return True

    def _kernel(self) -> list[Event]:
        """Xids new since the last step; what was there at the start the gate has judged."""
        done = self.ctx.host.run(JOURNAL, 10.0)
        if not done.ok:
            return []
        lines = done.out.splitlines()
        new = [line for line in lines if line not in self.lines]
        self.lines = set(lines)
        if self.first:
            return []
        found: list[Event] = []
        for event in xids.find("\n".join(new)):
            outcome = xids.action(event, links_down=False)
            if outcome != HEALTHY:
                row = xids.TABLE.get(event.code)
                words = f"Xid {event.code} ({row.meaning if row else 'unknown'}): {event.line}"
                found.append(Event(f"xid {event.code} {event.device}", outcome, words))
        return found

    def _gpus(self) -> list[Event]:
        for key in [key for key in self.ctx.memory if key.startswith("query gpu")]:
            del self.ctx.memory[key]
        self.ctx.memory.pop(smi.HUNG, None)
        try:
            self.rows = smi.query(self.ctx, FIELDS)
        except Garbled as error:
            self.rows = []
            # Could not be read is not broken; ended badly three times in a row is.
            outcome = REBOOT if isinstance(error, Failed) else WARNING
            return self._after("smi", Event("smi", outcome, str(error)))
        self.streaks.pop("smi", None)
        seen = {row.get("uuid", row["index"]): row["index"] for row in self.rows}
        if self.first:
            self.uuids = seen
        found: list[Event] = []
        for uuid, index in self.uuids.items():
            if uuid not in seen:
                words = f"GPU {index} is gone: {len(seen)} of {len(self.uuids)} left"
                found += self._after(f"gone {uuid}", Event(f"gone {uuid}", REPLACE, words))
            else:
                self.streaks.pop(f"gone {uuid}", None)
        for row in self.rows:
            found += self._errors(row) + self._slowed(row)
        return found

    def _errors(self, row: dict[str, str]) -> list[Event]:
        index, now = row["index"], smi.number(row.get(ECC))
        before = self.ecc.get(index)
        if now is None:
            return []
        self.ecc[index] = now
        if before is None or now <= before:
            return []
        words = f"GPU {index}: {now - before:.0f} new uncorrected ECC errors"
        return [Event(f"ecc {index}", REBOOT, words)]

    def _slowed(self, row: dict[str, str]) -> list[Event]:
        text = row.get(FIELDS[9], row.get(FIELDS[10], "0x0"))
        bits = int(text, 16) if text.startswith("0x") else 0
        named = [name for bit, name in HARDWARE if bits & bit]
        key = f"slow {row['index']}"
        if not named:
            self.streaks.pop(key, None)
            return []
        words = f"GPU {row['index']}: {', '.join(named)} at {row.get('temperature.gpu')} °C"
        lasting = self._after(key, Event(key, REPLACE, f"{words}, {PATIENCE} times in a row"))
        return lasting or [Event(f"{key} once", WARNING, words)]

    def _after(self, key: str, event: Event) -> list[Event]:
        self.streaks[key] = self.streaks.get(key, 0) + 1
        return [event] if self.streaks[key] >= PATIENCE else []

    def _fabric(self) -> list[Event]:
        kind = self.ctx.expect.fabric
        if kind not in ("infiniband", "roce"):
            return []
        down = [
            p.name for p in ports(self.ctx, kind) if p.state and "active" not in p.state.lower()
        ]
        if not down:
            self.streaks.pop("fabric", None)
            return []
        words = f"fabric port {', '.join(down)} is down"
        return self._after("fabric", Event("fabric", REPLACE, words))

    def _notices(self) -> list[Event]:
        words = notice(self.ctx, str(self.cloud or ""))
        return [Event("notice", INCONCLUSIVE, words, notice=True)] if words else []

    def _load(self) -> list[Event]:
        self.cause.add(load_cause.sample(self.ctx.host, self.rows))
        found = self.cause.judge()
        name = None if found is None else found.name
        for key in [
            key for key in self.streaks if key.startswith("load ") and key != f"load {name}"
        ]:
            del self.streaks[key]
        if found is None or name in (load_cause.IDLE, load_cause.BUSY):
            return []
        words = f"{found.name}: {found.words}"
        return self._after(f"load {name}", Event("utilisation", WARNING, words))

    def figures(self) -> list[dict[str, Any]]:
        """Utilisation, temperature and memory of each GPU as last seen."""
        return [
            {
                "gpu": row["index"],
                "utilisation_percent": smi.number(row.get("utilization.gpu")),
                "temperature_c": smi.number(row.get("temperature.gpu")),
                "memory_used_mib": smi.number(row.get("memory.used")),
                "memory_total_mib": smi.number(row.get("memory.total")),
                "power_w": smi.number(row.get("power.draw")),
            }
            for row in self.rows
        ]


def notice(ctx: Context, cloud: str) -> str | None:
    """That the provider takes the machine away or works on it, in words; None when it does not."""
    who = identity.load(ctx.host) or Identity(cloud, "", "", "", "")
    return interruption.taken(glance.of(ctx.host, who.cloud), who)
