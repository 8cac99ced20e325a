"""A machine that boots: its stages run in this process, and it can be rebooted, stopped or killed.

What a stage does may be replaced by a result; validation, gate and burn-in are the real ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.node.machines import Kind, Machine

from gputier.node import expect, gate, report, settings, stages, timeline
from gputier.node.heartbeat import Heartbeat
from gputier.node.host import SELF, Done
from gputier.node.result import EXIT
from gputier.node.runner import MARK, Inputs, Runner
from gputier.node.stages import StageResult, Work, ok
from gputier.node.verbs.stage import perform

Script = Callable[["Booting"], StageResult]
REAL = (stages.VALIDATE, stages.GATE, stages.BURN_IN)
FIRMWARE_SECONDS = 20.0
EVERYTHING: dict[str, Any] = {
    "project": "p",
    "stack": "dev",
    "workload": "chat",
    "driver": {"source": "prebaked", "fabric_manager": True},
    "mig": {"profile": "1g.5gb", "count": 7},
    "proxy": {"http": "http://proxy:3128"},
    "mirrors": {"pip": "https://mirror/simple"},
    "scratch": {"mount": "/scratch", "count": 1},
    "data": {"mount": "/data", "gib": 100},
    "fabric": {"kind": "efa", "interfaces": 1},
    "container_toolkit": True,
    "packages": ["git"],
    "framework": {"name": "torch", "version": "2.9.0"},
    "nccl": {"NCCL_DEBUG": "WARN"},
    "ssh_keys": ["ssh-ed25519 AAAA me"],
    "hugepages": 16,
    "metrics": {"agent": "cloudwatch"},
    "run": "sleep infinity",
}


class Killed(BaseException):
    """The boot's process was killed; the machine goes on."""


class Booting(Machine):
    """`scripts` replaces stages by name; `began` are the stages that were started, in order."""

    def __init__(self, kind: str | Kind = "g4dn.xlarge", **declared: Any) -> None:
        super().__init__(kind)
        self.settings = settings.read(
            json.dumps({"schema": settings.SCHEMA, "reboots": 1, **declared})
        )
        self.scripts: dict[str, Script | StageResult] = {}
        self.began: list[str] = []
        self.reboots = 0
        self.powered_on = -FIRMWARE_SECONDS
        self.kill_before = ""
        self.kill_after = ""

    # --- the seam ---------------------------------------------------------------------------

    def read(self, path: str) -> str | None:
        if path == "/proc/uptime":
            return f"{self.clock - self.powered_on:.2f} 1.00\n"
        return super().read(path)

    def run(
        self,
        argv: Sequence[str],
        limit: float,
        env: Mapping[str, str] | None = None,
        during: Callable[[], None] | None = None,
    ) -> Done:
        if tuple(argv[:2]) == (SELF, "stage"):
            return self._stage(tuple(argv), limit)
        if tuple(argv) == ("systemctl", "reboot"):
            self.reboots += 1
            return Done(tuple(argv), 0, "", "", 0.1, "exited")
        return super().run(argv, limit, env, during)

    def _stage(self, argv: tuple[str, ...], limit: float) -> Done:
        name = argv[2]
        if name == self.kill_before:
            self.kill_before = ""
            raise Killed
        self.began.append(name)
        started = self.clock
        seconds = float(argv[argv.index("--seconds") + 1])
        script = self.scripts.get(name)
        if isinstance(script, StageResult):
            found = script
        elif script is not None:
            found = script(self)
        elif name in REAL:
            work = Work(self, self.wanted, self.settings, seconds)
            if "--depth" in argv:
                work.depth = argv[argv.index("--depth") + 1]
            found = perform(stages.BY_NAME[name], work)
        else:
            found = ok("done")
        self.clock += 1.0
        took = self.clock - started
        if took > limit:
            self.clock = started + limit
            return Done(argv, None, "", "", limit, "timeout")
        if name == self.kill_after:
            self.kill_after = ""
            raise Killed
        out = f"noise\n{MARK}{json.dumps(found._asdict())}\n"
        return Done(argv, EXIT[found.outcome], out, "", took, "exited")

    # --- what happens to it -----------------------------------------------------------------

    @property
    def wanted(self) -> expect.Expectation:
        return expect.read(json.dumps(self.expectation()))

    def boot(self, beat: Callable[[], str | None] = lambda: None, problem: str = "") -> int:
        """One run of the boot; its exit status."""
        given = Inputs(self, self.settings, self.wanted, problem)
        return Runner(given, Heartbeat(beat, 60.0)).boot()

    def power_cycle(self) -> None:
        """A new boot: what lies below /run is gone, and the boot id is another."""
        for path in [p for p in self.written if p.startswith("/run/")]:
            del self.written[path]
        count = self.reboots + int(self.clock)
        boot = "/proc/sys/kernel/random/boot_id"
        self.files[boot] = f"11111111-aaaa-4bbb-8ccc-{count:012}\n"
        self.clock += 60.0
        self.powered_on = self.clock - FIRMWARE_SECONDS

    def until_settled(self, most: int = 6) -> int:
        """Boot, and boot again as often as it reboots; the last exit status."""
        for _ in range(most):
            before = self.reboots
            status = self.boot()
            if self.reboots == before:
                return status
            self.power_cycle()
        raise AssertionError("it reboots for ever")


def passes(seconds: float, result: StageResult | None = None) -> Script:
    """A stage that takes this long."""

    def run(machine: Booting) -> StageResult:
        machine.clock += seconds
        return result or ok("done")

    return run


def opened(machine: Booting) -> gate.Gate:
    return gate.read(machine)


def said(machine: Booting) -> dict[str, Any]:
    found = report.load(machine)
    assert found
    return found


def last(machine: Booting) -> timeline.Boot:
    return timeline.read(machine).last
