"""Google's GPUDirect-TCPX (A3 High) and TCPXO (A3 Mega): plugin, receive daemon, devices.

The daemon hands the network's packets to the GPUs and has to run before any process of NCCL; each
version of it belongs to one of the plugin. Without them NCCL takes plain TCP and says nothing.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from gputier.node import distro, fetched, having, proxies, registry, units
from gputier.node.cloud import identity
from gputier.node.running import DOCKER
from gputier.node.stages import Halt, StageResult, Work, config, inconclusive, ok
from gputier.node.stages import container_toolkit as containers
from gputier.node.stages.collectives import TCPX_SOCKETS
from gputier.node.units import Unit

RXDM = "gputier-rxdm.service"
NAME = "gputier-rxdm"
LIBRARIES = "/var/lib/nvidia/lib64:/usr/local/nvidia/lib64"
APERTURES = "/dev/aperture_devices"
HELPER = "/dev/dmabuf_import_helper"
ADDRESS_SECONDS = 120.0
READY_SECONDS = 120.0
AR_KEY = "/etc/apt/keyrings/google-artifact-registry.asc"
APT = "/etc/apt/sources.list.d"
TOPOLOGY = "/opt/tcpdirect_benchmark/gpu_rxq_configuration.textproto"
GOOGLE, APERTURE = "0x1ae0", "0x0084"


class Kind(NamedTuple):
    """The images of a kind that belong together, and the folder where the plugin goes."""

    plugin: str
    daemon: str
    folder: str
    install: tuple[str, ...]
    source: str


REGISTRY = "us-docker.pkg.dev/gce-ai-infra"
KINDS = {
    "gpudirect-tcpx": Kind(
        f"{REGISTRY}/gpudirect-tcpx/nccl-plugin-gpudirecttcpx-dev:v3.1.8",
        f"{REGISTRY}/gpudirect-tcpx/tcpgpudmarxd-dev:v2.0.12",
        "/var/lib/tcpx/lib64",
        ("install",),
        "github.com/GoogleCloudPlatform/slurm-gcp receive-data-path-manager (2026-06)",
    ),
    "gpudirect-tcpxo": Kind(
        f"{REGISTRY}/gpudirect-tcpxo/nccl-plugin-gpudirecttcpx-dev:v1.0.14",
        f"{REGISTRY}/gpudirect-tcpxo/tcpgpudmarxd-dev:v1.0.20",
        "/var/lib/tcpxo/lib64",
        ("install", "--install-nccl"),
        "github.com/GoogleCloudPlatform/container-engine-accelerators, release of 2025-11-19",
    ),
}


def prepare(work: Work) -> StageResult:
    """Devices, plugin and daemon of the plan's kind."""
    name = work.settings.fabric or ""
    kind = KINDS[name]
    _addresses(work)
    changed = _tcpx_kernel(work) if name == "gpudirect-tcpx" else _tcpxo_devices(work)
    # The daemon is a container with GPUs; docker is made ready here, and again in its own stage.
    changed = containers.run(work).changed or changed
    changed = _plugin(work, kind) or changed
    _have(work, kind.daemon)
    made = daemon(work, name)
    stale = work.host.read(made.path) not in (None, made.text)
    changed = units.install(work, made) or changed
    changed = units.enable(work, RXDM) or changed
    if units.start(work, RXDM, again=stale):
        changed = True
    trouble = work.wait(lambda: _not_ready(work, name), 2.0, READY_SECONDS)
    if trouble:
        return config(
            f"the receive daemon does not come up: {trouble}", f"see journalctl -u {RXDM}"
        )
    return ok(f"{name}: plugin in {kind.folder}, receive daemon runs", changed)


# --- what the machine has to have ---------------------------------------------------------------


def _addresses(work: Work) -> None:
    """Every interface with an address: "online" is said for the first one already."""
    wanted = (work.settings.count("fabric.interfaces") or 0) + 1

    def missing() -> str | None:
        done = work.run("ip", "-o", "-4", "addr", "show", limit=10.0)
        have = {line.split()[1] for line in done.out.splitlines() if len(line.split()) > 3}
        nics = [
            name
            for name in work.host.names("/sys/class/net")
            if (work.host.read(f"/sys/class/net/{name}/device/vendor") or "").strip() == GOOGLE
        ]
        bare = sorted(set(nics) - have)
        if len(nics) < wanted:
            return f"{len(nics)} of {wanted} network interfaces"
        return f"no address on {', '.join(bare)}" if bare else None

    trouble = work.wait(missing, 5.0, ADDRESS_SECONDS)
    if trouble:
        raise Halt(
            inconclusive(
                f"{trouble} after {ADDRESS_SECONDS:.0f} s",
                "see the subnets of the GPU networks: one address per machine in each",
            )
        )


def _tcpx_kernel(work: Work) -> bool:
    """Only Google's patched kernel can do it, and COS. Raises Halt (config)."""
    release = (work.host.read("/proc/sys/kernel/osrelease") or "").strip()
    system = work.host.read("/etc/os-release") or ""
    if "tcpx" in release or re.search(r"^ID=\"?cos\"?$", system, re.M):
        return False
    remedy = "use COS, or an image with linux-gcp-tcpx (its archive is private: ask Google)"
    raise Halt(config(f"kernel {release} has no GPUDirect-TCPX", remedy))


def _tcpxo_devices(work: Work) -> bool:
    """The module that lends GPU memory to the network, and the network's own apertures."""
    changed = False
    if not work.host.exists(HELPER):
        if not work.run("modprobe", "import-helper", limit=30.0).ok:
            _install_helper(work)
            work.must("load import-helper", "modprobe", "import-helper", limit=30.0,
                      remedy="put dmabuf-import-helper into the image")  # fmt: skip
        changed = True
    mounted = {line.split()[4] for line in _mountinfo(work) if len(line.split()) > 4}
    for address in work.host.names("/sys/bus/pci/devices"):
        base = f"/sys/bus/pci/devices/{address}"
        ids = tuple((work.host.read(f"{base}/{n}") or "").strip() for n in ("vendor", "device"))
        target = f"{APERTURES}/{address}"
        if ids != (GOOGLE, APERTURE) or target in mounted:
            continue
        work.must(f"make {target}", "mkdir", "-p", target, limit=10.0)
        work.must(f"show {address}", "mount", "--bind", base, target, limit=10.0)
        files = [f"{base}/{n}" for n in work.host.names(base) if n.startswith("resource")]
        work.must(f"open {address}", "chmod", "0666", *files, limit=10.0)
        changed = True
    return changed


def _mountinfo(work: Work) -> list[str]:
    return (work.host.read("/proc/self/mountinfo") or "").splitlines()


def _install_helper(work: Work) -> None:
    """From Google's own archive, built for this kernel by DKMS. Raises Halt."""
    remedy = "put dmabuf-import-helper into the image"
    if distro.family(work) != distro.APT:
        raise Halt(config("the module import-helper is not in the image", remedy))
    artifact_registry(work, "gpudirect-tcpxo-apt")
    having.packages(work, ("dkms", "dmabuf-import-helper"), "import-helper", remedy)


def artifact_registry(work: Work, name: str) -> None:
    """Have one of Google's archives of packages, and what apt needs to read it. Raises Halt."""
    fetched.download(work, "https://us-apt.pkg.dev/doc/repo-signing-key.gpg", AR_KEY, limit=60.0)
    key = "/etc/apt/keyrings/google-cloud.asc"
    fetched.download(work, "https://packages.cloud.google.com/apt/doc/apt-key.gpg", key, limit=60.0)
    work.put(
        f"{APT}/google-artifact-registry.list",
        f"deb [signed-by={key}] https://packages.cloud.google.com/apt "
        "apt-transport-artifact-registry-stable main\n",
    )
    having.packages(work, ("apt-transport-artifact-registry",), f"reading {name}")
    work.put(
        f"{APT}/gputier-{name}.list",
        f"deb [signed-by={AR_KEY}] ar+https://us-apt.pkg.dev/projects/gce-ai-infra {name} main\n",
    )


# --- plugin and daemon --------------------------------------------------------------------------


def _have(work: Work, image: str) -> bool:
    """Pull an image that is not there. Raises Halt."""
    if work.run(DOCKER, "image", "inspect", "--format", "{{.Id}}", image, limit=60.0).ok:
        return False
    env = {
        **proxies.variables(work.settings),
        **registry.login(work, image, identity.load(work.host)),
    }
    done = work.run(DOCKER, "pull", "--quiet", image, limit=max(1.0, work.left() - 60.0), env=env)
    if not done.ok:
        remedy = "let the machine's service account read artifacts, or let it out to the registry"
        raise Halt(having.failed(f"{image} was not pulled", done, remedy))
    return True


def _plugin(work: Work, kind: Kind) -> bool:
    """The plugin's libraries from its image, in the version that the daemon belongs to."""
    note = f"{kind.folder}/gputier-image"
    libraries = [n for n in work.host.names(kind.folder) if n.startswith("libnccl-net")]
    if libraries and (work.host.read(note) or "").strip() == kind.plugin:
        return False
    _have(work, kind.plugin)
    argv = (DOCKER, "run", "--rm", "--network=host", "--volume", "/var/lib:/var/lib", kind.plugin)
    work.must("install the plugin", *argv, *kind.install, limit=120.0)
    work.put(note, kind.plugin + "\n")
    return True


def daemon(work: Work, name: str) -> Unit:
    """The receive daemon as a unit, started again whenever it ends."""
    argv = [
        DOCKER, "run", "--rm", "--name", NAME, "--pull=never", "--cap-add=NET_ADMIN",
        "--network=host", "--privileged", "--gpus", "all", "--ulimit", "memlock=-1",
        "--volume", LIBRARIES,
        *(_tcpx(work) if name == "gpudirect-tcpx" else _tcpxo(work)),
    ]  # fmt: skip
    return units.unit(
        RXDM,
        Unit=[
            ("Description", f"gputier: receive daemon of {name}"),
            ("After", "docker.service"),
            ("Requires", "docker.service"),
            ("StartLimitIntervalSec", "0"),
        ],
        Service=[
            ("Type", "exec"),
            ("ExecStartPre", units.command([DOCKER, "rm", "--force", NAME], quiet=True)),
            ("ExecStartPre", units.command(["/bin/mkdir", "-p", TCPX_SOCKETS])),
            ("ExecStart", units.command(argv)),
            ("ExecStop", units.command([DOCKER, "stop", NAME], quiet=True)),
            ("Restart", "always"),
            ("RestartSec", "5"),
        ],
        Install=[("WantedBy", "multi-user.target")],
    )


def _tcpxo(work: Work) -> list[str]:
    count = work.settings.count("fabric.interfaces") or 8
    return [
        "--volume", f"{HELPER}:{HELPER}",
        "--env", "LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu",
        KINDS["gpudirect-tcpxo"].daemon,
        "--num_hops=2", f"--num_nics={count}", "--uid=", "--alsologtostderr",
    ]  # fmt: skip


def _tcpx(work: Work) -> list[str]:
    """By the image's own map of GPUs and interfaces; COS names them as the preset does."""
    folder = TOPOLOGY.rsplit("/", 1)[0]
    manual = work.host.exists(TOPOLOGY)
    which = ["manual", "--gpu_nic_topology", TOPOLOGY] if manual else ["a3vm"]
    return [
        *(["--volume", f"{folder}:{folder}"] if manual else []),
        "--volume", f"{TCPX_SOCKETS}:{TCPX_SOCKETS}",
        "--env", "LD_LIBRARY_PATH=/usr/local/nvidia/lib64:/run/tcpx:/usr/lib/lib32"
                 ":/usr/lib/x86_64-linux-gnu/",
        "--entrypoint", "/tcpgpudmarxd/build/app/tcpgpudmarxd",
        KINDS["gpudirect-tcpx"].daemon,
        "--gpu_nic_preset", *which, "--gpu_shmem_type", "fd", "--uds_path", TCPX_SOCKETS,
    ]  # fmt: skip


def _not_ready(work: Work, name: str) -> str | None:
    """What the daemon still lacks: TCPXO says it when it is ready, TCPX makes its sockets."""
    if not units.is_active(work, RXDM):
        return f"{RXDM} is not active"
    if name == "gpudirect-tcpx":
        return None if work.host.names(TCPX_SOCKETS) else f"no socket in {TCPX_SOCKETS}"
    done = work.run(DOCKER, "logs", "--tail", "200", NAME, limit=15.0)
    ready = "Buffer manager initialization complete" in done.text
    return None if ready else f"not initialised: {having.last(done)}"
