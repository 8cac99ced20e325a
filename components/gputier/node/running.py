"""How the workload is started and stopped: its unit, its scripts, its environment.

`run` and `before_stop` are scripts of their own: nothing of them has to survive being quoted.
Values of the environment are in a file that root alone may read, and never in an argument:
everybody on a machine sees those.
"""

from __future__ import annotations

from gputier.node import pythons, units
from gputier.node.checks import network
from gputier.node.gate import READY
from gputier.node.stages import Halt, Work, collectives, config
from gputier.node.units import WORKLOAD, Unit

SCRIPT, BEFORE_STOP = "/etc/gputier/workload.sh", "/etc/gputier/before-stop.sh"
ENVIRONMENT = "/etc/gputier/workload.env"
NAME = "gputier-workload"
SHELL, DOCKER = "/bin/bash", "/usr/bin/docker"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TOOLS = "/opt/amazon/efa/bin:/opt/amazon/openmpi/bin:/usr/local/cuda/bin"
# From a notice to the end of the machine: 120 s for Spot (docs.aws.amazon.com, spot-instance-
# termination-notices), 30 s for Spot on Google (docs.cloud.google.com, preemption). Of it, the
# seconds for `before_stop`, and for what is left of the workload to end by itself.
NOTICE = {"aws": (85, 20), "gcp": (20, 5), "azure": (20, 5)}
OTHER_NOTICE = (85, 20)


def files(work: Work) -> bool:
    """Have the scripts and the environment; whether any had to be written. Raises ValueError."""
    env = {key: str(value) for key, value in work.settings.table("container.env").items()}
    texts = {
        SCRIPT: work.settings.text("run"),
        BEFORE_STOP: work.settings.text("before_stop"),
        ENVIRONMENT: units.environment_file(env) if env else None,
    }
    changed = False
    for path, text in texts.items():
        if work.host.read(path) == (None if text is None else whole(text)):
            continue
        try:
            if text is None:
                # Of an earlier plan, or of the machine that the image was made of.
                work.host.remove(path)
            else:
                work.host.write(path, whole(text), 0o600)
        except OSError as error:
            raise Halt(config(f"{path} cannot be written: {error}")) from None
        changed = True
    return changed


def whole(text: str) -> str:
    """With a newline at its end, which a shell wants."""
    return text if text.endswith("\n") else text + "\n"


def unit(work: Work) -> Unit | None:
    """The workload's unit, None where the plan starts nothing. Raises ValueError."""
    image = work.settings.text("container.image")
    if image:
        start = _container(work, image)
    elif work.settings.has("run"):
        start = [("ExecStart", units.command([SHELL, SCRIPT]))]
    elif work.settings.has("before_stop"):
        # Nothing is started here, but there is something to be done before the end.
        start = [("ExecStart", "/bin/true"), ("RemainAfterExit", "yes")]
    else:
        return None
    name = work.settings.text("workload") or "workload"
    once = not image and not work.settings.has("run")
    return units.unit(
        WORKLOAD,
        Unit=[
            ("Description", units.text(f"gputier: the workload {name}")),
            ("ConditionPathExists", READY),
            ("After", "network-online.target docker.service"),
            ("StartLimitIntervalSec", "600"),
            ("StartLimitBurst", "5"),
        ],
        Service=[
            ("Type", "oneshot" if once else "exec"),
            *_surroundings(work),
            *start,
            *_stop(work, bool(image)),
            *(() if once else (("Restart", "on-failure"), ("RestartSec", "15"))),
            ("KillMode", "mixed"),
            ("OOMPolicy", "continue"),
        ],
    )


def _surroundings(work: Work) -> list[tuple[str, str]]:
    """Folder, limits, variables: as for somebody who logs in, with the framework's python first."""
    here = pythons.find(work) if work.settings.has("framework") else None
    path = ":".join(filter(None, (here.folder if here else "", TOOLS, SYSTEM_PATH)))
    return [
        ("WorkingDirectory", units.text(work.settings.text("scratch.mount") or "/")),
        ("Environment", units.assignment("PATH", path)),
        ("Environment", units.assignment("HOME", "/root")),
        ("EnvironmentFile", f"-{collectives.ENVIRONMENT}"),
        ("EnvironmentFile", f"-{ENVIRONMENT}"),
        ("LimitMEMLOCK", "infinity"),
        ("LimitNOFILE", "1048576"),
        ("LimitSTACK", "67108864"),
        ("TasksMax", "infinity"),
    ]


def _stop(work: Work, container: bool) -> list[tuple[str, str]]:
    """`before_stop` while the workload still runs, then its end, within the cloud's notice."""
    before, ending = NOTICE.get(work.settings.text("cloud") or "", OTHER_NOTICE)
    lines: list[tuple[str, str]] = []
    if work.settings.has("before_stop"):
        # systemd runs this also behind a workload that ended by itself: then there is nothing to
        # be saved from. `before_stop` alone has no process of its own.
        alone = not container and not work.settings.has("run")
        guard = "" if alone else 'test -n "$MAINPID" || exit 0; '
        script = f"{guard}exec timeout --kill-after=5 {before} {SHELL} {BEFORE_STOP}"
        lines.append(("ExecStop", units.command(["/bin/sh", "-c", script], quiet=True)))
    if container:
        argv = [DOCKER, "stop", "--time", str(ending), NAME]
        lines.append(("ExecStop", units.command(argv, quiet=True)))
    # Each command for stopping has this long, and then the processes to end.
    return [*lines, ("TimeoutStopSec", str(before + ending))]


# --- container ----------------------------------------------------------------------------------


def _container(work: Work, image: str) -> list[tuple[str, str]]:
    """docker run in the foreground: its end is the unit's end, its output is in the journal."""
    env = {**work.settings.table("container.env"), **_nccl(work)}
    argv = [
        DOCKER, "run", "--rm", "--name", NAME, "--pull=never", "--log-driver=none",
        "--gpus", "all", "--ipc=host", "--ulimit", "memlock=-1", "--ulimit", "stack=67108864",
        *_network(work), *_devices(work), *_volumes(work),
        # A name alone: docker takes the value from its own environment.
        *(word for name in sorted(env) for word in ("--env", name)),
        image, *work.settings.texts("container.args"),
    ]  # fmt: skip
    return [
        ("ExecStartPre", units.command([DOCKER, "rm", "--force", NAME], quiet=True)),
        ("ExecStart", units.command(argv)),
    ]


def _nccl(work: Work) -> dict[str, str]:
    """Names of what NCCL's environment file holds."""
    rows = (work.host.read(collectives.ENVIRONMENT) or "").splitlines()
    return {row.partition("=")[0]: "" for row in rows if "=" in row}


def _network(work: Work) -> list[str]:
    """The machine's own network where a fabric is used; else the declared ports."""
    if work.settings.fabric:
        return ["--network=host"]
    ports = work.settings.texts("container.ports")
    return [word for port in ports for word in ("--publish", f"{port}:{port}")]


def _devices(work: Work) -> list[str]:
    kind = work.settings.fabric
    if kind == "efa":
        # Not all of /dev/infiniband: one mlx5 device that cannot be opened takes EFA away too
        # (github.com/ofiwg/libfabric/issues/12708).
        return [f"--device=/dev/infiniband/{name}" for name in efa_verbs(work)]
    if kind in ("roce", "infiniband", "erdma"):
        return ["--device=/dev/infiniband"]
    if kind == "gpudirect-tcpxo":
        return ["--device=/dev/dmabuf_import_helper"]
    return []


def efa_verbs(work: Work) -> list[str]:
    """The verbs devices of EFA: `uverbs0` and so on, by the device that each belongs to."""
    names = {port.name for port in network.ports(work, "efa")}
    folder = "/sys/class/infiniband_verbs"
    return [
        entry
        for entry in work.host.names(folder)
        if (work.host.read(f"{folder}/{entry}/ibdev") or "").strip() in names
    ]


def _volumes(work: Work) -> list[str]:
    """Disks at the same place inside, and what the fabric's plugin needs."""
    paths = [work.settings.text(f"{disk}.mount") for disk in ("scratch", "data")]
    kind = work.settings.fabric
    if kind == "gpudirect-tcpx":
        paths += ["/var/lib/tcpx", collectives.TCPX_SOCKETS]
    if kind == "gpudirect-tcpxo":
        paths += ["/var/lib/tcpxo", "/dev/aperture_devices"]
    found = [f"{path}:{path}" for path in paths if path]
    if kind == "roce" and work.host.exists("/usr/local/gib"):
        found.append("/usr/local/gib:/usr/local/gib:ro")
    return [word for pair in found for word in ("--volume", pair)]
