"""The long-lived units of a node, as text: what starts at boot, and what behind the open gate.

`gputier-joined.target` is reached when `/run/gputier/ready` appears, whoever opens the gate. The
workload alone is started by its own stage, which waits for its image and sees whether it stays up.
None of them is ordered behind gputier-boot.service: that one is still running when it starts them.
"""

from __future__ import annotations

from gputier.node import units
from gputier.node.gate import READY
from gputier.node.settings import APPLICATION_HEALTH, Settings
from gputier.node.units import Unit

# By python and not by itself: it lies below /var/lib, where SELinux lets systemd start nothing
# (github.com/libnyanpasu/nyanpasu-runtime/issues/107), and /var may be mounted noexec.
PROGRAM = ("/usr/bin/env", "python3", "/usr/local/bin/gputier-node")
JOINED, WAITING = "gputier-joined.target", "gputier-joined.path"
SERVE, WATCH = "gputier-serve.service", "gputier-watch.service"
INTERRUPTION, METRICS = "gputier-interruption.service", "gputier-metrics.service"
DCGM = "nvidia-dcgm.service"
SYSTEMCTL = "/usr/bin/systemctl"
# A service of ours that fails goes on trying: nobody else would start it again. One that ends well
# has nothing to do here, such as notices of a cloud that gives none.
AGAIN = (("Restart", "on-failure"), ("RestartSec", "5"))
AT_BOOT, AT_JOINING = ("WantedBy", "multi-user.target"), ("WantedBy", JOINED)


def joined() -> tuple[Unit, Unit]:
    """The target that stands for the open gate, and the path that reaches it."""
    target = units.unit(JOINED, Unit=[("Description", "gputier: the gate is open")])
    path = units.unit(
        WAITING,
        Unit=[("Description", "gputier: wait for the gate to open")],
        Path=[("PathExists", READY), ("Unit", JOINED)],
        Install=[AT_BOOT],
    )
    return target, path


def serve(settings: Settings) -> Unit:
    """The health endpoint, up from the start of a boot: 503 is an answer, silence is not."""
    argv = [*PROGRAM, "serve", "--port", str(settings.port)]
    if settings.gate_kind == APPLICATION_HEALTH:
        argv.append("--application-health")
    return _ours(SERVE, "health endpoint", argv, AT_BOOT)


def watch() -> Unit:
    """Faults of a node that joined shut the gate."""
    return _ours(WATCH, "watch over the GPUs", [*PROGRAM, "watch"], AT_JOINING)


def interruption() -> Unit:
    """Notices of the provider, and of the group that lets a machine go."""
    return _ours(INTERRUPTION, "notices of the cloud", [*PROGRAM, "interruption"], AT_BOOT)


def _ours(name: str, words: str, argv: list[str], wanted: tuple[str, str]) -> Unit:
    return units.unit(
        name,
        Unit=[
            ("Description", f"gputier: {words}"),
            ("After", "network-online.target"),
            ("Wants", "network-online.target"),
            ("StartLimitIntervalSec", "0"),
        ],
        Service=[
            ("Type", "exec"),
            ("ExecStart", units.command(argv)),
            *AGAIN,
            ("NoNewPrivileges", "yes"),
        ],
        Install=[wanted],
    )


def metrics(agent: str, dcgm: bool) -> Unit:
    """Start the agent once the gate is open; the agent's own unit keeps it running."""
    start = [units.command([SYSTEMCTL, "start", agent])]
    if dcgm:
        start.insert(0, units.command([SYSTEMCTL, "start", DCGM], quiet=True))
    return units.unit(
        METRICS,
        Unit=[("Description", "gputier: metrics of a node that joined")],
        Service=[
            ("Type", "oneshot"),
            ("RemainAfterExit", "yes"),
            *(("ExecStart", line) for line in start),
        ],
        Install=[AT_JOINING],
    )
