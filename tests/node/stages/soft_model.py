"""A machine's software: packages, units, pythons, docker, and what comes from the network."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from tests.node.stages.disk_model import Disks
from tests.node.stages.state import Answer

from gputier.node import pythons

COMMANDS = ("systemctl", "apt-get", "apt-cache", "dpkg", "dpkg-query", "stat", "modprobe",
            "modinfo", "ln", "rm", "install", "getent", "chown", "curl", "gpg", "tar", "bash",
            "env", "uname", "ldconfig", "ip")  # fmt: skip
# What becomes of a workload that is started.
OUTCOMES = {
    "active": {"ActiveState": "active", "SubState": "running", "Result": "success"},
    "finished": {"ActiveState": "inactive", "SubState": "dead", "Result": "success"},
    "crashed": {"ActiveState": "activating", "SubState": "auto-restart", "Result": "exit-code",
                "ExecMainStatus": "127"},
    "shut": {"ActiveState": "inactive", "SubState": "dead", "Result": "success",
             "ExecMainStartTimestampMonotonic": "0"},
}  # fmt: skip
NOBODY = "Could not resolve host"


@dataclass
class Python:
    """An interpreter: its age, and version and CUDA of each package that it has."""

    age: tuple[int, int] = (3, 12)
    packages: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])


class Software(Disks):
    """An Ubuntu machine that the network answers, until it does not."""

    def __init__(self) -> None:
        super().__init__(COMMANDS)
        self.installed: dict[str, str] = {}
        # Packages of the repositories, and the commands that each brings.
        self.offers: dict[str, tuple[str, ...]] = {
            "mdadm": ("mdadm",),
            "xfsprogs": ("mkfs.xfs", "xfs_growfs", "xfs_info"),
            "e2fsprogs": ("mkfs.ext4", "resize2fs", "dumpe2fs"),
            "docker.io": ("docker", "/usr/bin/docker"),
            "nvidia-container-toolkit": ("nvidia-ctk",),
            "python3-venv": (),
            "openmpi-bin": ("mpirun",),
            "libopenmpi-dev": (), "cmake": (), "g++": (),
        }  # fmt: skip
        self.units: dict[str, dict[str, str]] = {}
        self.modules: set[str] = {"nvidia", "nvidia_uvm"}
        self.absent_modules: tuple[str, ...] = ()
        self.network = True
        self.pythons: dict[str, Python] = {"python3": Python()}
        self.commands.add("python3")
        # What an index offers: package, version without its local part, its CUDA.
        self.wheels = {("torch", "2.9.0"): "12.8", ("jax", "0.8.1"): "13", ("numpy", "2"): ""}
        self.images: set[str] = set()
        self.registry: set[str] = set()
        self.runtimes: dict[str, object] = {"runc": {}}
        self.signer = ""
        self.workload = "active"
        self.nics: dict[str, str] = {}
        self.files["/dev/nvidia0"] = self.files["/dev/nvidia1"] = ""
        self.files["/proc/devices"] = "195 nvidia\n235 nvidia-uvm\n"

    def read(self, path: str) -> str | None:
        if path == "/proc/modules":
            return "".join(f"{name} 1 0 - Live 0x0\n" for name in sorted(self.modules))
        return super().read(path)

    def _answer(self, program: str, rest: list[str]) -> Answer:
        if re.match(r"^(?:.*/)?python3(?:\.\d+)?$", program):
            return self._run_python(program, rest)
        return super()._answer(program, rest)

    # --- packages, modules ------------------------------------------------------------------

    def _dpkg_query(self, rest: list[str]) -> Answer:
        names = rest[rest.index("-f") + 2 :]
        rows = [f"ii |{n}|{self.installed[n]}\n" for n in names if n in self.installed]
        return (0 if len(rows) == len(names) else 1), "".join(rows), ""

    def _dpkg(self, rest: list[str]) -> Answer:
        return 0, "amd64\n" if "--print-architecture" in rest else "", ""

    def _apt_cache(self, rest: list[str]) -> Answer:
        return 0, f"{rest[-1]} | 1.0 | http://archive\n" if rest[-1] in self.offers else "", ""

    def _apt_get(self, rest: list[str]) -> Answer:
        if not self.network:
            return 100, "", "E: Failed to fetch http://…: Could not resolve 'archive.ubuntu.com'"
        if "install" not in rest:
            return 0, "", ""
        for name in rest[rest.index("install") + 1 :]:
            plain, _, version = name.partition("=")
            if name.startswith("/"):
                for path in self.offers[name.rsplit("/", 1)[-1]]:
                    self.files[path] = ""
                continue
            if plain not in self.offers:
                return 100, "", f"E: Unable to locate package {plain}"
            self.installed[plain] = version or "1.0"
            self.commands.update(self.offers[plain])
        return 0, "", ""

    def _modprobe(self, rest: list[str]) -> Answer:
        if rest[-1] in self.absent_modules:
            return 1, "", f"modprobe: FATAL: Module {rest[-1]} not found in directory /lib/modules"
        self.modules.add(rest[-1].replace("-", "_"))
        if rest[-1] == "import-helper":
            self.files["/dev/dmabuf_import_helper"] = ""
        return 0, "", ""

    def _modinfo(self, rest: list[str]) -> Answer:
        return (1 if rest[-1] in self.absent_modules else 0), "", ""

    def _getent(self, rest: list[str]) -> Answer:
        if rest[-1] != "ubuntu":
            return 2, "", ""
        return 0, "ubuntu:x:1000:1000:Ubuntu:/home/ubuntu:/bin/bash\n", ""

    # --- the network ------------------------------------------------------------------------

    def _curl(self, rest: list[str]) -> Answer:
        if not self.network:
            return 6, "", f"curl: (6) {NOBODY}: efa-installer.amazonaws.com"
        self.files[rest[rest.index("-o") + 1]] = "downloaded"
        return 0, "", ""

    def _gpg(self, rest: list[str]) -> Answer:
        if "--verify" not in rest:
            return 0, "", ""
        return 0, f"[GNUPG:] GOODSIG x\n[GNUPG:] VALIDSIG {self.signer} 2026-10-01 1\n", ""

    def _bash(self, rest: list[str]) -> Answer:
        if "efa_installer" in rest[1]:
            self.commands.add("fi_info")
            self.absent_modules = ()
        return 0, "", ""

    def _rm(self, rest: list[str]) -> Answer:
        for path in rest:
            self.files.pop(path, None)
        return 0, "", ""

    def _uname(self, _: list[str]) -> Answer:
        return 0, "x86_64\n", ""

    def _ip(self, _: list[str]) -> Answer:
        rows = enumerate(self.nics.items(), 2)
        return 0, "".join(f"{n}: {nic} inet {ip}/20 scope\n" for n, (nic, ip) in rows if ip), ""

    def efa(self, count: int, others: int = 0) -> None:
        """EFA devices, and Mellanox ones beside them."""
        for n in range(count + others):
            layer = "Unspecified" if n < count else "InfiniBand"
            name = f"rdmap{n}s0" if n < count else f"mlx5_{n}"
            self.files[f"/sys/class/infiniband/{name}/ports/1/link_layer"] = layer
            self.files[f"/sys/class/infiniband_verbs/uverbs{n}/ibdev"] = name + "\n"
            self.files[f"/dev/infiniband/uverbs{n}"] = ""

    # --- pythons ----------------------------------------------------------------------------

    def _run_python(self, program: str, rest: list[str]) -> Answer:
        python = self.pythons[program]
        if rest[:2] == ["-m", "venv"]:
            self.pythons[pythons.OURS] = Python(python.age)
            self.files[pythons.OURS] = ""
            return 0, "", ""
        if rest[:2] == ["-m", "pip"]:
            return self._pip(python, rest[2:])
        if "sys.version_info[:2])" in rest[1] and "metadata" not in rest[1]:
            return 0, f"{python.age[0]} {python.age[1]}\n", ""
        return self._asked(python, rest[1], rest[2:])

    def _asked(self, python: Python, code: str, rest: list[str]) -> Answer:
        if "horovod" in code:
            has = "horovod" in python.packages
            good = json.dumps({"version": "0.28.1", "good": True})
            return (
                (0, pythons.MARK + good + "\n", "") if has else (1, "", "No module named horovod")
            )
        if rest:
            found: dict[str, object] = {"python": list(python.age)}
            if rest[0] in python.packages:
                found["version"] = python.packages[rest[0]][0]
            return 0, pythons.MARK + json.dumps(found) + "\n", ""
        name = next(n for n, text in pythons.LOAD.items() if code.startswith(text))
        if name not in python.packages:
            return 1, "", f"ModuleNotFoundError: No module named '{name}'"
        version, cuda = python.packages[name]
        answer = json.dumps({"version": version, "cuda": cuda or None})
        return 0, f"a warning of the framework\n{pythons.MARK}{answer}\n", ""

    def _pip(self, python: Python, rest: list[str]) -> Answer:
        if rest == ["--version"]:
            return 0, "pip 24", ""
        if not self.network:
            return 1, "", f"NewConnectionError: Failed to establish a new connection: {NOBODY}"
        for spec in (word for word in rest if "==" in word or word == "numpy"):
            name, _, version = spec.partition("==")
            plain = name.partition("[")[0]
            if plain == "horovod":
                python.packages[plain] = (version, "")
                continue
            match = next((k for k in self.wheels if k[0] == plain and version in ("", k[1])), None)
            if match is None:
                return 1, "", f"ERROR: No matching distribution found for {spec}"
            cuda = self.wheels[match]
            local = f"+cu{cuda.replace('.', '')}" if cuda and plain == "torch" else ""
            python.packages[plain] = (match[1] + local, cuda)
        return 0, "", ""

    # --- containers -------------------------------------------------------------------------

    def _docker(self, rest: list[str]) -> Answer:
        if rest[0] == "info":
            return 0, json.dumps(self.runtimes) + "\n", ""
        if rest[:2] == ["image", "inspect"]:
            return (0 if rest[-1] in self.images else 1), "", ""
        if rest[0] == "pull":
            if not self.network:
                return 1, "", "dial tcp: lookup registry: no such host"
            if rest[-1] not in self.registry:
                return 1, "", f"pull access denied for {rest[-1]}, repository does not exist"
            self.images.add(rest[-1])
        if rest[0] == "run" and "install" in rest:
            folder = "tcpxo" if "tcpxo" in " ".join(rest) else "tcpx"
            self.files[f"/var/lib/{folder}/lib64/libnccl-net.so"] = ""
        if rest[0] == "logs":
            return 0, "I0000 Buffer manager initialization complete\n", ""
        return 0, "", ""

    def _nvidia_ctk(self, rest: list[str]) -> Answer:
        if rest == ["--version"]:
            return 0, "NVIDIA Container Toolkit CLI version 1.19.1\ncommit: x\n", ""
        if rest[0] == "system":
            for number in ("195:0", "195:1", "195:255", "235:0"):
                self.links[f"/dev/char/{number}"] = "../nvidia"
        if rest[0] == "cdi":
            self.files[rest[-1].split("=", 1)[1]] = 'devices:\n- name: "0"\n'
        if rest[0] == "runtime":
            self.runtimes["nvidia"] = {}
        return 0, "", ""

    # --- systemd ----------------------------------------------------------------------------

    def _systemctl(self, rest: list[str]) -> Answer:
        verb, names = rest[0], [word for word in rest[1:] if not word.startswith("-")]
        known = self.units.get(names[-1], {}) if names else {}
        if verb == "show":
            loaded = f"/etc/systemd/system/{names[-1]}" in self.files or bool(known)
            cells = {"LoadState": "loaded" if loaded else "not-found", **known}
            return 0, "".join(f"{key}={value}\n" for key, value in cells.items()), ""
        if verb == "is-active":
            state = known.get("ActiveState", "inactive")
            return (0 if state == "active" else 3), state + "\n", ""
        if verb == "is-enabled":
            state = known.get("UnitFileState", "disabled")
            return (0 if state == "enabled" else 1), state + "\n", ""
        for name in names if verb != "set-environment" else ():
            self._change(verb, name)
        return 0, "", ""

    def _change(self, verb: str, name: str) -> None:
        known = self.units.setdefault(name, {"LoadState": "loaded"})
        if verb in ("start", "restart"):
            known["ActiveState"] = "active"
            known["ExecMainStartTimestampMonotonic"] = "1"
            if name == "gputier-workload.service":
                known.update(OUTCOMES[self.workload])
            if name == "gputier-rxdm.service":
                self.files["/run/tcpx/socket"] = ""
        elif verb == "stop":
            known["ActiveState"] = "inactive"
        elif verb in ("enable", "disable", "mask"):
            known["UnitFileState"] = f"{verb}d"
