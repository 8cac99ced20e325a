"""The stages of a boot, in order, each with its limit; one module per stage, loaded when it runs.

A stage brings one thing to what the settings say and proves that it is so. It looks at the machine
each time, never at a note that it ran before: a boot may end anywhere and start again. A stage is
a module of this package with `run(work: Work) -> StageResult`; it may also raise `Halt`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gputier.node.engine import DEFAULT_REMEDIES, TOTAL_SECONDS, Context
from gputier.node.expect import Expectation
from gputier.node.host import Done, Host
from gputier.node.result import CONFIG, HEALTHY, INCONCLUSIVE, REBOOT, REPLACE
from gputier.node.settings import INSTALL, Settings

# A stage has to say itself what took too long: it is given a little less than it is killed after.
MARGIN_SECONDS = 5.0
# One reboot, from `systemctl reboot` to our own start: 45 to 150 s on bare metal and large
# virtual machines (docs.aws.amazon.com/AWSEC2, instance reboot: "a few minutes", 2026-08).
REBOOT_SECONDS = 180.0
# Beside the checks: starting, the fingerprint with its metadata, writing the report.
JUDGE_SECONDS = 30.0


class StageResult(NamedTuple):
    """How a stage came out, and why.

    `outcome` is one of healthy, reboot, config, replace, inconclusive. `then` is what a reboot
    that did not help means.
    """

    outcome: str
    evidence: str
    changed: bool = False
    remedy: str = ""
    then: str = REPLACE
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.outcome == HEALTHY


class Halt(Exception):
    """The stage ends here, as `result` says."""

    def __init__(self, result: StageResult) -> None:
        super().__init__(f"{result.outcome}: {result.evidence}")
        self.result = result


def ok(evidence: str, changed: bool = False) -> StageResult:
    """What the settings ask is so; `changed` when this run made it so."""
    return StageResult(HEALTHY, evidence, changed)


def reboot(evidence: str, remedy: str = "", then: str = REPLACE) -> StageResult:
    """It is so after a reboot; when reboots are used up, the outcome is `then`."""
    return StageResult(REBOOT, evidence, True, remedy or DEFAULT_REMEDIES[REBOOT], then)


def config(evidence: str, remedy: str = "") -> StageResult:
    """Our own image, declaration or network is wrong; another machine would be no better."""
    return StageResult(CONFIG, evidence, remedy=remedy or DEFAULT_REMEDIES[CONFIG])


def replace(evidence: str, remedy: str = "") -> StageResult:
    """This host is bad."""
    return StageResult(REPLACE, evidence, remedy=remedy or DEFAULT_REMEDIES[REPLACE])


def inconclusive(evidence: str, remedy: str = "") -> StageResult:
    """It could not be done in time, or not be told: nothing is proven."""
    return StageResult(INCONCLUSIVE, evidence, remedy=remedy or DEFAULT_REMEDIES[INCONCLUSIVE])


class Work(Context):
    """What a stage works with: the host, the expectation, the settings, its deadline.

    As a `Context` it goes to everything that asks of the machine (`smi`, `disks`, `pci`).
    `run` asks; `must` and `put` change, and end the stage where they cannot.
    """

    def __init__(self, host: Host, expect: Expectation, settings: Settings, seconds: float) -> None:
        super().__init__(host, expect)
        self.settings = settings
        self.seconds = seconds
        self.depth = settings.depth
        self.deadline = host.monotonic() + seconds
        self.warnings: list[str] = []

    def must(
        self, words: str, *argv: str, limit: float = 600.0, remedy: str = "", **kept: Any
    ) -> Done:
        """Run a command that has to end well. Raises Halt: config, or inconclusive out of time."""
        done = self.run(*argv, limit=limit, **kept)
        if done.ok:
            return done
        evidence = f"{words}: {' '.join(argv[:6])}: {done.how}"
        if done.text.strip():
            evidence += f": {done.says()}"
        raise Halt((inconclusive if done.state == "timeout" else config)(evidence, remedy))

    def put(self, path: str, text: str) -> bool:
        """Have a file hold this text; whether it had to be written. Raises Halt (config)."""
        if self.host.read(path) == text:
            return False
        try:
            self.host.write(path, text)
        except OSError as error:
            raise Halt(config(f"{path} cannot be written: {error}")) from None
        return True

    def wait(self, ask: Callable[[], str | None], every: float, limit: float) -> str | None:
        """Ask until nothing stands in the way; what still did when the time was up, else None."""
        until = self.host.monotonic() + min(limit, self.left())
        while True:
            trouble = ask()
            if trouble is None:
                return None
            if self.host.monotonic() + every > until:
                return trouble
            self.host.sleep(every)


def _always(_: Settings) -> bool:
    return True


class Limit(NamedTuple):
    """A stage's time where `when` holds (`words` says so), and why it is so long."""

    seconds: float
    why: str
    words: str = ""
    when: Callable[[Settings], bool] = _always


class Stage(NamedTuple):
    """One stage. `applies` says why the settings do not ask for it, None when they do.

    The first of `limits` that holds counts; the last always holds.
    """

    name: str
    title: str
    module: str
    limits: tuple[Limit, ...]
    applies: Callable[[Settings], str | None] = lambda _: None

    def seconds(self, settings: Settings) -> float:
        """The limit: of the settings, else of this table."""
        named = settings.limits().get(self.name)
        return named if named is not None else self.default(settings).seconds

    def default(self, settings: Settings) -> Limit:
        """The row of `limits` that holds for these settings."""
        return next(limit for limit in self.limits if limit.when(settings))


def _needs(path: str, words: str) -> Callable[[Settings], str | None]:
    return lambda settings: None if settings.has(path) else f"the plan has no {words}"


def _flag(path: str, words: str) -> Callable[[Settings], str | None]:
    return lambda settings: None if settings.flag(path) else f"the plan has no {words}"


def _limits(settings: Settings) -> str | None:
    asked = settings.fabric or settings.count("hugepages")
    return None if asked else "the plan has no fabric and no huge pages"


def _collectives(settings: Settings) -> str | None:
    asked = settings.table("nccl") or _horovod(settings)
    return None if asked else "the plan has no setting of NCCL and no Horovod"


def _workload(settings: Settings) -> str | None:
    asked = any(settings.has(path) for path in ("run", "container", "before_stop"))
    return None if asked else "the plan starts nothing itself"


def _fabric(settings: Settings) -> str | None:
    return None if settings.fabric else "the plan has no fabric"


def _metrics(settings: Settings) -> str | None:
    return None if settings.agent else "the plan has no metrics agent"


def _judged(settings: Settings) -> str | None:
    return "the gate is off" if settings.mode == "off" else None


def _horovod(settings: Settings) -> bool:
    return settings.text("mpi") == "horovod"


def _installs(settings: Settings) -> bool:
    return settings.text("driver.source") == INSTALL


def _checks(depth: str, when: Callable[[Settings], bool] | None = None) -> Limit:
    seconds = TOTAL_SECONDS[depth]
    why = f"all checks together have {seconds:g} s at this depth; the rest for start and report"
    return Limit(seconds + JUDGE_SECONDS, why, f"depth {depth}", when or _always)


def _burn_in(settings: Settings) -> bool:
    return settings.depth == "burn-in"


def _standard(settings: Settings) -> bool:
    return settings.depth == "standard"


def _one(seconds: float, why: str) -> tuple[Limit, ...]:
    return (Limit(seconds, why),)


VALIDATE, GATE, BURN_IN, WORKLOAD = "validate", "gate", "burn-in", "workload"
# What comes when the verdict is given: no cloud waits for it.
AFTER = (BURN_IN, WORKLOAD)

# fmt: off
STAGES: tuple[Stage, ...] = (
    Stage("packages", "package manager quiet, kernel and driver held", "packages", _one(
        660, "unattended upgrades hold the lock for minutes: 600 s to wait for them "
        "(github.com/danvk/mapsnap/issues/443), the rest for the holds")),
    Stage("proxy", "proxy", "proxy", _one(30, "files and one reload"),
          _needs("proxy", "proxy")),
    Stage("mirrors", "package and image mirrors", "mirrors", _one(
        120, "files, and one package list from the mirror"), _needs("mirrors", "mirror")),
    Stage("driver", "driver", "driver", (
        Limit(1200, "download, DKMS build and load: 10 minutes and more "
              "(github.com/GoogleCloudPlatform/compute-gpu-installation, 2026-08)",
              "where it is installed", _installs),
        Limit(120, "asking only; a first nvidia-smi takes up to 60 s on eight GPUs without "
              "persistence")), _needs("driver", "driver")),
    Stage("persistence", "persistence mode", "persistence", _one(
        90, "the daemon initialises every GPU, a few seconds each"), _needs("driver", "driver")),
    Stage("fabric-manager", "Fabric Manager", "fabric_manager", _one(
        240, "training eight GPUs' links takes 60 to 120 s; one restart on top "
        "(github.com/Azure/azhpc-images/issues/365)"),
        _flag("driver.fabric_manager", "NVSwitch")),
    Stage("mig", "MIG layout", "mig", _one(
        180, "stopping clients, a reset and the instances, 10 to 15 s per GPU"),
        _needs("mig", "MIG layout")),
    Stage("limits", "locked memory, open files, huge pages", "limits", _one(
        60, "files and one sysctl; reserving pages may compact memory first"), _limits),
    Stage("scratch", "scratch disks", "scratch", _one(
        180, "array, file system without trim, mount"), _needs("scratch", "scratch")),
    Stage("data", "data volume", "data", _one(
        300, "the volume may be attached after the start, and its journal be replayed"),
        _needs("data", "data volume")),
    Stage("fabric", "fabric of the network", "fabric", _one(
        420, "EFA's installer 2 to 4 minutes; late devices 15 s; TCPX containers are pulled"),
        _fabric),
    Stage("container-toolkit", "container toolkit", "container_toolkit", _one(
        420, "packages of docker and the toolkit, and one container"),
        _flag("container_toolkit", "container")),
    Stage("packages-extra", "the workload's packages", "packages_extra", _one(
        600, "as many as the user names"), _needs("packages", "package of its own")),
    Stage("framework", "framework", "framework", _one(
        900, "wheels of 3 to 5 GB with CUDA in them, at 10 MB/s"),
        _needs("framework", "framework")),
    Stage("collectives", "NCCL, Horovod", "collectives", (
        Limit(1200, "Horovod is compiled on the machine, 5 to 15 minutes", "with Horovod",
              _horovod),
        Limit(30, "two files")), _collectives),
    Stage("ssh-keys", "SSH keys", "ssh_keys", _one(30, "one file of one user"),
          _needs("ssh_keys", "SSH key")),
    Stage("metrics", "metrics agent", "metrics", _one(
        180, "one package and its start"),
        _metrics),
    Stage("services", "services of the node", "services", _one(
        60, "units, one reload, and the start of two or three of them")),
    Stage(VALIDATE, "validation", "validate", (
        _checks("burn-in", _burn_in), _checks("standard", _standard), _checks("quick")), _judged),
    Stage(GATE, "gate", "gate", _one(
        420, "the report is put for up to 120 s, the breaker's state 60 s, and the cloud's answer "
        "is worth 180 s of trying (github.com/PrairieLearn/PrairieLearn/issues/15586)")),
    Stage(BURN_IN, "burn-in, of a node that joined", "burn_in", _one(
        TOTAL_SECONDS["burn-in"] + 330, "the checks' time at this depth; 30 s to start, 120 s for "
        "the report, 180 s for having the machine replaced"), _judged),
    Stage(WORKLOAD, "the workload itself", "workload", _one(
        900, "a container image of 10 to 20 GB is pulled"), _workload),
)
# fmt: on
BY_NAME = {stage.name: stage for stage in STAGES}


def applying(settings: Settings) -> tuple[Stage, ...]:
    """The stages that the settings ask for, in order. The burn-in is asked for by the expectation
    alone (`burns_in`)."""
    return tuple(stage for stage in STAGES if stage.applies(settings) is None)


def burns_in(settings: Settings, expect: Expectation) -> str | None:
    """Why there is no burn-in after joining, None when there is one."""
    if expect.depth != "burn-in":
        return "the plan has no burn-in"
    return BY_NAME[BURN_IN].applies(settings)


def preparing(settings: Settings) -> tuple[Stage, ...]:
    """Those of them that come before the validation."""
    judged = (VALIDATE, GATE, *AFTER)
    return tuple(stage for stage in applying(settings) if stage.name not in judged)
