"""NCCL's variables where every process meets them, and Horovod where the plan asks for it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gputier.node import having, proxies, pythons, units
from gputier.node.stages import Halt, StageResult, Work, config, ok

# systemd and shells read the first; NCCL itself reads the second, in every process of the machine.
ENVIRONMENT, NCCL_CONF = "/etc/gputier/nccl.env", "/etc/nccl.conf"
BEGIN, END = "# gputier: begin (written at every boot)", "# gputier: end"
BLOCK = re.compile(rf"^{re.escape(BEGIN)}\n.*?^{re.escape(END)}\n", re.M | re.S)
# AWS: "Do not use" (github.com/awslabs/awsome-distributed-ai efa-cheatsheet.md): RDMAV_FORK_SAFE
# breaks fork on newer kernels.
FORBIDDEN = ("RDMAV_",)
# What a vendor's package says of itself, for values that the plan does not name: file, and the
# variable that it wants to find its own folder in.
VENDORS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "roce": ("/usr/local/gib/scripts/set_nccl_env.sh", {}),
    "gpudirect-tcpxo": (
        "/var/lib/tcpxo/lib64/nccl-env-profile.sh",
        {"NCCL_LIB_DIR": "/var/lib/tcpxo/lib64"},
    ),
}
# Where the receive daemon of GPUDirect-TCPX listens (stages/fabric.py starts it there).
TCPX_SOCKETS = "/run/tcpx"
HOROVOD = "horovod==0.28.1"
MPI_PACKAGES = ("openmpi-bin", "libopenmpi-dev", "cmake", "g++")
BUILD = {"torch": "HOROVOD_WITH_PYTORCH", "tensorflow": "HOROVOD_WITH_TENSORFLOW"}
EFA_MPI = "/opt/amazon/openmpi/bin"


def run(work: Work) -> StageResult:
    """Both files with the plan's variables, Horovod built against NCCL."""
    declared = {key: str(value) for key, value in work.settings.table("nccl").items()}
    bad = sorted(name for name in declared if name.startswith(FORBIDDEN))
    if bad:
        return config(f"{', '.join(bad)} must not be set", "take it out: AWS says not to use it")
    found = {**_vendor(work), **_own(work), **declared}
    changed = False
    if found:
        try:
            changed = work.put(ENVIRONMENT, units.environment_file(found))
        except ValueError as error:
            return config(f"a variable of NCCL cannot be written: {error}")
        content = work.host.read(NCCL_CONF) or ""
        changed = work.put(NCCL_CONF, with_block(content, found)) or changed
    words = f"{len(found)} variables in {ENVIRONMENT} and {NCCL_CONF}"
    if work.settings.text("mpi") == "horovod":
        built, said = _horovod(work)
        return ok(f"{words}, {said}", changed or built)
    return ok(words, changed)


def forget(work: Work) -> bool:
    """Take back what an earlier plan had set; whether there was anything."""
    content = work.host.read(NCCL_CONF) or ""
    rest = BLOCK.sub("", content)
    there = work.host.exists(ENVIRONMENT)
    if there:
        work.host.remove(ENVIRONMENT)
    return (rest != content and work.put(NCCL_CONF, rest)) or there


def with_block(content: str, found: Mapping[str, str]) -> str:
    """NCCL's file with ours in front: of two lines for one variable it takes the first.

    It reads `NAME=value` to the end of the line, without quotes (nccl src/misc/param.cc).
    """
    rows = [f"{name}={value}" for name, value in sorted(found.items()) if name.startswith("NCCL_")]
    return "".join(f"{row}\n" for row in (BEGIN, *rows, END)) + BLOCK.sub("", content)


def _own(work: Work) -> dict[str, str]:
    """What follows from how this machine was prepared."""
    if work.settings.fabric == "gpudirect-tcpx":
        return {"NCCL_GPUDIRECTTCPX_UNIX_CLIENT_PREFIX": TCPX_SOCKETS}
    return {}


def _vendor(work: Work) -> dict[str, str]:
    """What the fabric's own script sets, by running it: its package changes it with each release.

    Absent where a container brings the plugin with its own script.
    """
    script, given = VENDORS.get(work.settings.fabric or "", ("", {}))
    if not script or not work.host.exists(script):
        return {}
    pairs = [f"{name}={value}" for name, value in given.items()]
    done = work.run(
        "env", "-i", "PATH=/usr/bin:/bin", *pairs,
        "bash", "-c", '. "$0" >/dev/null 2>&1; env', script, limit=30.0,
    )  # fmt: skip
    if not done.ok:
        work.warnings.append(f"{script} did not run: {done.how}: {done.says()}")
        return {}
    rows = (line.partition("=") for line in done.out.splitlines())
    return {
        name: value for name, _, value in rows if name.startswith("NCCL_") and name not in given
    }


# --- Horovod ------------------------------------------------------------------------------------


def _horovod(work: Work) -> tuple[bool, str]:
    """Whether it had to be built, and what is there. Raises Halt."""
    name = pythons.framework(work)
    if name not in BUILD:
        raise Halt(config(f"Horovod has no part for {name}", "take `software.mpi` out"))
    here = pythons.find(work)
    if here is None:
        raise Halt(config("no python with the framework that Horovod is for"))
    said = _built(work, here.python, name)
    if said:
        return False, said
    if work.host.which("mpirun") is None:
        having.packages(work, MPI_PACKAGES, "MPI for Horovod")
    env = {
        **proxies.variables(work.settings), BUILD[name]: "1", "HOROVOD_WITH_MPI": "1",
        "HOROVOD_GPU_OPERATIONS": "NCCL",
        "PATH": f"{EFA_MPI}:{here.folder or '/usr/bin'}:/usr/local/cuda/bin:/usr/local/bin"
                ":/usr/bin:/usr/sbin:/bin",
    }  # fmt: skip
    mirror = work.settings.text("mirrors.pip")
    source = ("--index-url", mirror) if mirror else ()
    argv = (here.python, "-m", "pip", "install", "--no-input", "--disable-pip-version-check",
            "--no-cache-dir", "--no-build-isolation", *source, HOROVOD)  # fmt: skip
    done = work.run(*argv, limit=max(1.0, work.left() - 60.0), env=env)
    if not done.ok:
        remedy = "use an image or a container that has Horovod built for its framework"
        raise Halt(having.failed("Horovod was not built", done, remedy))
    said = _built(work, here.python, name)
    if not said:
        raise Halt(config("Horovod was built without NCCL or MPI", "use an image that has it"))
    return True, said


def _built(work: Work, python: str, name: str) -> str:
    """`Horovod 0.28.1 with NCCL and MPI`; empty when it is not there, or built without them."""
    part = {"torch": "torch", "tensorflow": "tensorflow"}[name]
    code = (
        f"import horovod, horovod.{part} as h, json; print({pythons.MARK!r} + json.dumps("
        "{'version': horovod.__version__, 'good': bool(h.nccl_built() and h.mpi_built())}))"
    )
    data = pythons.answer(work.run(python, "-c", code, limit=120.0).out)
    return f"Horovod {data['version']} with NCCL and MPI" if data and data.get("good") else ""
