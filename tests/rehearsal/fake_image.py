"""The layer that makes a plain distribution the GPU image of a rehearsal."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from functools import cache
from pathlib import Path

import tests.node.machines
from tests.rehearsal.layer import Layer
from tests.rehearsal.needs import PATH, alone, cache_folder
from tests.rehearsal.pretence import CURRENT, FRAMEWORK, KERNEL_LOG, PLACE, TOOLS, Pretence

import gputier.node

HERE = Path(__file__).parent
HOME = "/usr/local/lib/rehearsal"
LIBCUDA = "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
#: Kinds of files that only /proc and /sys of a GPU machine have; the rest is laid down as it is.
COVERED = ("/proc/driver/", "/proc/meminfo", "/proc/modules", "/sys/devices/system/cpu/online")
FABRIC_MANAGER = """[Unit]
Description=Stand-in for NVIDIA's Fabric Manager
[Service]
ExecStart={command}
[Install]
WantedBy=multi-user.target
"""
PERSISTENCED = FABRIC_MANAGER.replace("Fabric Manager", "persistence daemon")


def gpu_image(pretence: Pretence, container: bool) -> Layer:
    """Everything that a rehearsed machine brings to be taken for this GPU machine."""
    layer = Layer()
    _program(layer)
    for tool in (*TOOLS, *(KERNEL_LOG if container else ())):
        layer.link(f"/usr/local/bin/{tool}", f"{HOME}/answer.py")
    layer.link("/usr/local/bin/nvidia-persistenced", "/bin/true")
    layer.link(FRAMEWORK, f"{HOME}/answer.py")
    layer.put(LIBCUDA, libcuda().read_bytes())
    # The stand-in counts its devices by this variable; a service's environment comes from PID 1.
    seen = sum(gpu.visible and gpu.on_bus for gpu in pretence.machine().gpus)
    layer.put(
        "/etc/systemd/system.conf.d/rehearsal.conf",
        f"[Manager]\nDefaultEnvironment=FAKE_COUNT={seen}\n",
    )
    _states(layer, pretence)
    return layer


def _program(layer: Layer) -> None:
    layer.script(f"{HOME}/answer.py", "#!/usr/bin/python3 -sE\n" + _text("guest/answer.py"))
    layer.script(f"{HOME}/pretend", _text("guest/pretend"))
    layer.put("/etc/systemd/system/rehearsal-pretend.service", _text("guest/pretend.service"))
    layer.enable("rehearsal-pretend.service", "sysinit.target")
    lib = f"{HOME}/lib"
    node = Path(str(gputier.node.__file__)).parent
    layer.copy(node, f"{lib}/gputier/node")
    machines = Path(str(tests.node.machines.__file__)).parent
    for name in ("machines.py", "cases.py"):
        layer.put(f"{lib}/tests/node/{name}", (machines / name).read_bytes())
    for name in ("pretence.py", "faults.py"):
        layer.put(f"{lib}/tests/rehearsal/{name}", _text(name))


def _states(layer: Layer, pretence: Pretence) -> None:
    """What the machine is in each boot."""
    layer.put(f"{PLACE}/machine.json", pretence.text())
    for boot in range(1, len(pretence.boots) + 1):
        machine = pretence.machine(boot)
        place = f"{PLACE}/boots/{boot}"
        for path, text in machine.files.items():
            if path.startswith(COVERED):
                layer.put(f"{place}/files{path}", text)
        if machine.service == "active":
            layer.put(f"{place}/fabric", "")
        layer.put(f"{place}/kmsg", "".join(f"{line}\n" for line in kernel_lines(machine.log)))
    if pretence.kind.switches:
        unit = "nvidia-fabricmanager.service"
        command = f"/bin/sh -c 'test -e {CURRENT}/fabric && exec sleep infinity'"
        layer.put(f"/etc/systemd/system/{unit}", FABRIC_MANAGER.format(command=command))
        layer.enable(unit)
    layer.put(
        "/etc/systemd/system/nvidia-persistenced.service",
        PERSISTENCED.format(command="/bin/sleep infinity"),
    )
    layer.enable("nvidia-persistenced.service")


def kernel_lines(log: list[str]) -> list[str]:
    """The messages alone, as the kernel would be given them."""
    return [line.split(" kernel: ", 1)[1] for line in log if " kernel: " in line]


def _text(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


@cache
def libcuda() -> Path:
    """The checks' own stand-in library, compiled once for its source."""
    source = Path(str(tests.node.machines.__file__)).parent / "libcuda.c"
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    place = cache_folder()
    out = place / f"libcuda-{digest}.so"
    with alone(place, "libcuda"):
        if not out.exists():
            compiler = shutil.which("cc", path=PATH) or shutil.which("gcc", path=PATH)
            assert compiler, "needs.ready() sees to a compiler"
            part = out.with_suffix(".part")
            command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(part), str(source)]
            subprocess.run(command, env={"PATH": PATH}, check=True, capture_output=True)
            part.replace(out)
    return out
