"""The settings of a boot: what is done to the machine before it is judged, and how it joins.

The plan writes them to `/etc/gputier/boot.json` beside the expectation. A key that is absent means
that its stage has nothing to do; no secret is ever among them. `docs/boot.md` lists `FIELDS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gputier.node import fields
from gputier.node.fields import (
    ARGUMENTS,
    BRANCH,
    COUNT,
    DEPTHS,
    FABRICS,
    FLAG,
    FRAMEWORK,
    GATES,
    NUMBER,
    OBJECT,
    PATH,
    PORT,
    PORTS,
    SCRIPT,
    SECONDS,
    SHA256,
    STAGE_LIMITS,
    TEXT,
    TEXTS,
    URL,
    VARIABLES,
    VERSION,
    BadFields,
    Kind,
    Values,
    one_of,
)

SCHEMA = "gputier/boot/1"
FILE = "/etc/gputier/boot.json"
CLOUDS = ("aws", "gcp", "azure", "alibaba", "tencent")
LIFECYCLE_HOOK, HEALTH_ENDPOINT, APPLICATION_HEALTH, GATE_FILE = GATE_KINDS = (
    "lifecycle-hook",
    "health-endpoint",
    "application-health",
    "file",
)
PREBAKED, INSTALL = DRIVER_SOURCES = ("prebaked", "install")
OPEN, PROPRIETARY = MODULES = ("open", "proprietary")
FILESYSTEMS = ("xfs", "ext4")
AGENTS = ("cloudwatch", "ops-agent", "none")
HEARTBEAT_SECONDS = 60.0
DEADLINE_SECONDS = 3600.0
HEALTH_PORT = 8080
REBOOTS = 1
BREAKER_AFTER = 2
BREAKER_WINDOW_SECONDS = 86400.0

# Path of the key → its kind and what it means: documentation, reader and test in one.
FIELDS: dict[str, tuple[Kind, str]] = {
    "schema": (one_of((SCHEMA,)), "what the file follows"),
    "project": (TEXT, "the Pulumi project"),
    "stack": (TEXT, "the stack, without its organisation"),
    "workload": (TEXT, "the workload that the machine belongs to"),
    "cloud": (one_of(CLOUDS), "whose machine this is"),
    "instance_type": (TEXT, "for messages"),
    "bundle.sha256": (SHA256, "of the bundle that runs; a file that differs is not started"),
    "bundle.version": (TEXT, "the gputier that built it, for messages"),
    "bundle.delivery": (
        one_of(("object", "inline")),
        "from the stack's bucket, or carried in the user data",
    ),
    "gate.kind": (one_of(GATE_KINDS), "how the cloud is told; `file` (the default) tells nobody"),
    "gate.mode": (one_of(GATES), "off, report, or enforce (the default)"),
    "gate.depth": (one_of(DEPTHS), "how deep the validation goes; quick is the default"),
    "gate.group": (TEXT, "the group of machines that this one was made by"),
    "gate.hook": (TEXT, "the launch hook that holds it back"),
    "gate.port": (PORT, f"of the health endpoint; {HEALTH_PORT} is the default"),
    "gate.heartbeat_seconds": (
        SECONDS,
        f"between two signs of life while it prepares; {HEARTBEAT_SECONDS:g} is the default",
    ),
    "gate.deadline_seconds": (
        SECONDS,
        "from the first power-on to the verdict, reboots included; "
        f"{DEADLINE_SECONDS:g} is the default",
    ),
    "limits": (STAGE_LIMITS, "instead of a stage's own limit, seconds"),
    "reboots": (COUNT, f"most reboots that the stages may use; {REBOOTS} is the default"),
    "driver.source": (one_of(DRIVER_SOURCES), "in the image already, or to be installed"),
    "driver.branch": (BRANCH, "the driver's branch"),
    "driver.version": (VERSION, "exactly this version; needed where it is installed"),
    "driver.module": (one_of(MODULES), "flavour of the kernel module; else by the card"),
    "driver.fabric_manager": (FLAG, "whether the machine has NVSwitches to be managed"),
    "driver.imex": (FLAG, "whether memory is shared across machines (GB200, GB300)"),
    "mig.profile": (TEXT, "MIG profile of every instance: `1g.10gb`"),
    "mig.count": (COUNT, "MIG instances per GPU"),
    "scratch.mount": (PATH, "where the local disks are mounted"),
    "scratch.filesystem": (one_of(FILESYSTEMS), "what they are formatted with"),
    "scratch.count": (COUNT, "local disks of the machine"),
    "data.mount": (PATH, "where the data volume is mounted"),
    "data.filesystem": (one_of(FILESYSTEMS), "what a blank data volume is formatted with"),
    "data.gib": (NUMBER, "its size, GiB, which tells it from other volumes"),
    "fabric.kind": (one_of(FABRICS), "how machines talk to each other"),
    "fabric.interfaces": (COUNT, "fabric devices in this machine"),
    "nccl": (VARIABLES, "variables of NCCL, for the environment file and /etc/nccl.conf"),
    "mpi": (one_of(("none", "horovod")), "whether Horovod is installed beside the framework"),
    "framework.name": (FRAMEWORK, "the framework"),
    "framework.version": (VERSION, "its version"),
    "framework.cuda": (VERSION, "the CUDA version that it is built for"),
    "framework.index": (URL, "wheel index that it comes from, chosen by the driver"),
    "framework.python": (PATH, "the python that has it already, or gets it"),
    "packages": (TEXTS, "packages of the distribution that the workload wants"),
    "proxy.http": (URL, "proxy for http"),
    "proxy.https": (URL, "proxy for https"),
    "proxy.no_proxy": (TEXT, "hosts without a proxy, comma between; metadata is always one"),
    "mirrors.apt": (URL, "mirror of the distribution's packages"),
    "mirrors.pip": (URL, "mirror of PyPI"),
    "mirrors.container": (URL, "mirror of container images"),
    "ssh_keys": (TEXTS, "public keys that may log in"),
    "hugepages": (COUNT, "2 MiB pages to reserve"),
    "container_toolkit": (FLAG, "whether containers need the GPUs"),
    "metrics.agent": (one_of(AGENTS), "what sends the GPUs' figures to the cloud"),
    "metrics.config": (OBJECT, "the agent's own configuration"),
    "run": (SCRIPT, "shell text that is the workload, started once the gate is open"),
    "container.image": (TEXT, "container image that is the workload, instead of `run`"),
    "container.args": (ARGUMENTS, "its arguments"),
    "container.env": (VARIABLES, "its environment"),
    "container.ports": (PORTS, "ports that it opens on the machine"),
    "before_stop": (SCRIPT, "shell text that is run before the machine is taken away"),
    "breaker.after": (
        COUNT,
        "new machines in a row with the same configuration fault that stop the fleet; "
        f"{BREAKER_AFTER} is the default",
    ),
    "breaker.window_seconds": (
        SECONDS,
        f"within this time; {BREAKER_WINDOW_SECONDS:g} is the default",
    ),
}


class BadSettings(BadFields):
    """The file cannot be used; `problems` says where and why, one line each."""

    def __init__(self, problems: Sequence[str], values: Mapping[str, Any] | None = None) -> None:
        super().__init__("settings", problems, values)


class Settings(Values):
    """What is done to this machine. Never changes; what is absent is not done."""

    @property
    def gate_kind(self) -> str:
        return self.text("gate.kind") or GATE_FILE

    @property
    def mode(self) -> str:
        return self.text("gate.mode") or "enforce"

    @property
    def depth(self) -> str:
        return self.text("gate.depth") or "quick"

    @property
    def port(self) -> int:
        return self.count("gate.port") or HEALTH_PORT

    @property
    def heartbeat_seconds(self) -> float:
        return self.number("gate.heartbeat_seconds") or HEARTBEAT_SECONDS

    @property
    def deadline_seconds(self) -> float:
        return self.number("gate.deadline_seconds") or DEADLINE_SECONDS

    @property
    def reboots(self) -> int:
        count = self.count("reboots")
        return REBOOTS if count is None else count

    @property
    def fabric(self) -> str | None:
        """The fabric's kind, None where the plan has none."""
        kind = self.text("fabric.kind")
        return None if kind in (None, "none") else kind

    @property
    def agent(self) -> str | None:
        """The metrics agent, None where the plan has none."""
        agent = self.text("metrics.agent")
        return None if agent in (None, "none") else agent

    @property
    def breaker_after(self) -> int:
        return self.count("breaker.after") or BREAKER_AFTER

    @property
    def breaker_window_seconds(self) -> float:
        return self.number("breaker.window_seconds") or BREAKER_WINDOW_SECONDS

    def limits(self) -> Mapping[str, float]:
        """Seconds by stage name, where they differ from the stage's own."""
        return self.table("limits")


def read(text: str) -> Settings:
    """The settings in a JSON text. Raises BadSettings with every problem."""
    try:
        values, warnings = fields.read("settings", text, FIELDS)
    except BadFields as error:
        raise BadSettings(error.problems, error.values) from None
    problems = _contradictions(values)
    if problems:
        raise BadSettings(problems, values)
    return Settings(values, warnings)


def _contradictions(values: Mapping[str, Any]) -> list[str]:
    """What no single key shows to be wrong."""
    found: list[str] = []
    if "schema" not in values:
        found.append(f"schema: it is missing; this version reads {SCHEMA}")
    if values.get("driver.source") == INSTALL and "driver.version" not in values:
        found.append("driver.version: a driver to install needs its exact version, never a branch")
    if values.get("gate.kind") == LIFECYCLE_HOOK:
        found += [
            f"{path}: a lifecycle hook cannot be answered without it"
            for path in ("gate.group", "gate.hook")
            if path not in values
        ]
    if "run" in values and "container.image" in values:
        found.append("run: the workload is either `run` or a container, not both")
    return found
