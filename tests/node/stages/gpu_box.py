"""A GPU machine with a package manager: what is installed, loaded, stopped and held stays so."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.node.machines import Kind, Machine, begins, lspci

from gputier.node import expect, settings
from gputier.node.host import Done
from gputier.node.stages import BY_NAME, StageResult, Work
from gputier.node.verbs.stage import perform

KERNEL = "6.8.0-1021-aws"
ASKS = ("blkid", "lspci", "journalctl", "stat", "dpkg-query", "rpm", "modinfo", "mokutil", "uname",
        "systemctl is-active", "systemctl is-enabled", "systemctl list-unit-files", "apt-cache",
        "apt-mark showhold", "dpkg --audit", "nvidia-smi --query", "nvidia-smi -L", "nvidia-smi -q",
        "dnf -q repoquery", "grubby", "nv-fabricmanager", "nvidia-imex", "nvidia-persistenced",
        "curl -s")  # fmt: skip


class GpuBox(Machine):
    """`offers`: versions by package; `brings`: what the installation of one does."""

    def __init__(self, kind: str | Kind = "g6.12xlarge", family: str = "apt") -> None:
        super().__init__(kind)
        self.absent |= {"dnf", "rpm"} if family == "apt" else {"apt-get", "dpkg-query"}
        self.absent |= {"grubby"}
        self.installed: dict[str, str] = {}
        self.offers: dict[str, tuple[str, ...]] = {}
        self.held: set[str] = set()
        self.units: dict[str, str] = {}
        self.active: set[str] = set()
        self.refused: dict[str, str] = {}
        self.half_installed = False
        self.module_for: set[str] = {KERNEL}
        self.buildable = True
        self.programs: dict[str, str] = {}
        self.files[f"/lib/modules/{KERNEL}/build/Makefile"] = ""

    # --- the seam ---------------------------------------------------------------------------

    def run(
        self,
        argv: Sequence[str],
        limit: float,
        env: Mapping[str, str] | None = None,
        during: Callable[[], None] | None = None,
    ) -> Done:
        key = tuple(argv)
        handler = getattr(self, "do_" + argv[0].replace("-", "_"), None)
        known = any(begins(key, prefix) for prefix, _ in self.overrides)
        if handler is None or known or argv[0] in self.absent:
            return super().run(argv, limit, env, during)
        self.calls.append(key)
        self.clock += 0.1
        found = handler(list(argv[1:]))
        if found is None:
            return Done(key, None, "", "", 0.0, "missing")
        rc, out, err = found
        return Done(key, rc, out, err, 0.1, "exited")

    # --- packages ---------------------------------------------------------------------------

    clock: float
    lock_until = 0.0
    pages = 1 << 20

    def locked_by(self, name: str, until: float) -> None:
        """A process of this name has the lock until this moment of the clock."""
        self.files["/var/lib/dpkg/lock-frontend"] = ""
        self.files["/proc/4321/comm"] = name + "\n"
        self.lock_until = until

    def read(self, path: str) -> str | None:
        if path == "/proc/locks":
            mine = "1: POSIX  ADVISORY  WRITE 4321 fd:01:1234 0 EOF\n"
            return (
                mine
                if self.clock < self.lock_until
                else "2: FLOCK  ADVISORY  WRITE 1 0:1:9 0 EOF\n"
            )
        return super().read(path)

    def do_stat(self, rest: list[str]) -> tuple[int, str, str]:
        return 0, "".join(f"{1234 + i} {path}\n" for i, path in enumerate(rest[2:])), ""

    def do_dpkg(self, rest: list[str]) -> tuple[int, str, str]:
        if "--audit" in rest:
            return 0, "half configured: linux-image\n" if self.half_installed else "", ""
        self.half_installed = False
        return 0, "", ""

    def do_dpkg_query(self, rest: list[str]) -> tuple[int, str, str]:
        return self._query(rest[rest.index("-f") + 2 :], "ii |{0}|{1}\n")

    def do_rpm(self, rest: list[str]) -> tuple[int, str, str]:
        if "-qf" in rest:
            return 0, "kernel-core\n", ""
        return self._query(rest[rest.index("--qf") + 2 :], "{0}||{1}\n")

    def _query(self, patterns: list[str], row: str) -> tuple[int, str, str]:
        names = [n for n in self.installed if any(fnmatch.fnmatchcase(n, p) for p in patterns)]
        return (0 if names else 1), "".join(row.format(n, self.installed[n]) for n in names), ""

    def do_apt_cache(self, rest: list[str]) -> tuple[int, str, str]:
        versions = self.offers.get(rest[-1], ())
        return 0, "".join(f" {rest[-1]} | {v} | http://archive main\n" for v in versions), ""

    def do_apt_mark(self, rest: list[str]) -> tuple[int, str, str]:
        if rest[0] == "hold":
            self.held |= set(rest[1:])
        return 0, "".join(f"{name}\n" for name in sorted(self.held)), ""

    def do_apt_get(self, rest: list[str]) -> tuple[int, str, str]:
        if "install" not in rest:
            return 0, "", ""
        return self._install(rest[rest.index("install") + 1 :], "=")

    def do_dnf(self, rest: list[str]) -> tuple[int, str, str]:
        if "repoquery" in rest:
            return 0, "".join(f"{version}\n" for version in self.offers.get(rest[-1], ())), ""
        if "install" not in rest:
            return 0, "", ""
        return self._install(rest[rest.index("install") + 1 :], "-")

    def _install(self, names: list[str], join: str) -> tuple[int, str, str]:
        if self.clock < self.lock_until:
            return 100, "", "E: Could not get lock /var/lib/dpkg/lock-frontend"
        for name in names:
            plain = next((p for p in self.offers if name == p or name.startswith(p + join)), name)
            version = name[len(plain) + 1 :] or (self.offers.get(plain, ("1.0",))[0])
            if name in self.refused:
                return 100, "", self.refused[name]
            self.installed[plain] = version
            self.arrived(plain, version)
        return 0, "", ""

    def arrived(self, name: str, version: str) -> None:
        """What a package brings beside its name."""
        plain = version.split("-")[0]
        if name.startswith(("nvidia-driver", "nvidia-open", "cuda-drivers")):
            self.absent.discard("nvidia-smi")
            self.driver = self.module_version = plain
            self.open_module = "open" in name
        if "fabricmanager" in name:
            self.manager = plain
        if "imex" in name:
            self.programs["nvidia-imex"] = plain

    # --- kernel -----------------------------------------------------------------------------

    def unloaded(self) -> None:
        """The module is installed, and nothing has loaded it yet."""
        self.files.pop("/proc/driver/nvidia/version", None)
        self.files["/proc/modules"] = "efa 1 0 - Live 0x0\n"
        rows = [row for row in lspci(self).splitlines() if "driver in use" not in row]
        self.says("lspci -Dnnk", 0, "\n".join(rows) + "\n")

    def without_driver(self) -> None:
        """An image that has none."""
        self.unloaded()
        self.absent |= {"nvidia-smi"}
        self.module_for.clear()

    def loads(self) -> None:
        flavour = "Open Kernel Module for x86_64" if self.open_module else "x86_64 Kernel Module"
        text = f"NVRM version: NVIDIA UNIX {flavour}  {self.module_version}  Release\n"
        self.files["/proc/driver/nvidia/version"] = text
        self.files["/proc/modules"] += "nvidia 1 0 - Live 0x0\n"

    def do_modprobe(self, rest: list[str]) -> tuple[int, str, str]:
        name = rest[-1]
        modules = self.files["/proc/modules"]
        if rest[0] == "-r":
            if name in self.refused:
                return 1, "", f"modprobe: FATAL: Module {name} is in use."
            kept = [row for row in modules.splitlines(True) if not row.startswith(f"{name} ")]
            self.files["/proc/modules"] = "".join(kept)
            if name == "nvidia":
                self.files.pop("/proc/driver/nvidia/version", None)
            return 0, "", ""
        if name in self.refused:
            return 1, "", self.refused[name]
        if name == "nvidia":
            if KERNEL not in self.module_for:
                return 1, "", f"modprobe: FATAL: Module nvidia not found in /lib/modules/{KERNEL}"
            if "nvidia " not in modules:
                self.loads()
        return 0, "", ""

    def do_modinfo(self, rest: list[str]) -> tuple[int, str, str]:
        kernel = rest[rest.index("-k") + 1] if "-k" in rest else KERNEL
        if kernel not in self.module_for:
            return 1, "", "modinfo: ERROR: Module nvidia not found."
        if "filename" in rest:
            return 0, f"/lib/modules/{kernel}/updates/dkms/nvidia.ko\n", ""
        rc, out = self._modinfo(rest)
        return rc, out, ""

    def do_dkms(self, rest: list[str]) -> tuple[int, str, str]:
        if not self.buildable:
            return 10, "", "Error! Bad return status for module build on kernel"
        self.module_for.add(rest[-1])
        return 0, "", ""

    def do_uname(self, _: list[str]) -> tuple[int, str, str]:
        return 0, "x86_64\n", ""

    def do_update_initramfs(self, _: list[str]) -> tuple[int, str, str]:
        return 0, "", ""

    def do_dracut(self, _: list[str]) -> tuple[int, str, str]:
        return 0, "", ""

    def do_sysctl(self, rest: list[str]) -> tuple[int, str, str]:
        wanted = int(rest[-1].split("=")[1])
        self.files["/proc/sys/vm/nr_hugepages"] = f"{min(wanted, self.pages)}\n"
        return 0, "", ""

    def do_nvidia_imex(self, _: list[str]) -> tuple[int, str, str] | None:
        return self._program("nvidia-imex", "IMEX version is: ")

    def do_nvidia_persistenced(self, _: list[str]) -> tuple[int, str, str] | None:
        return self._program("nvidia-persistenced", "nvidia-persistenced:  version ")

    def _program(self, name: str, words: str) -> tuple[int, str, str] | None:
        return (0, words + self.programs[name] + "\n", "") if name in self.programs else None

    # --- systemd ----------------------------------------------------------------------------

    def do_systemctl(self, rest: list[str]) -> tuple[int, str, str]:
        verb, names = rest[0], [word for word in rest[1:] if not word.startswith("-")]
        if verb == "list-unit-files":
            rows = [f"{n} {self.units[n]} enabled\n" for n in names if n in self.units]
            return (0 if rows else 1), "".join(rows), ""
        if verb == "is-enabled":
            return (0 if self.units.get(names[0]) == "enabled" else 1), "", ""
        if verb == "is-active":
            on = names[0] in self.active or (
                names[0] == "nvidia-fabricmanager" and self.service == "active"
            )
            if names[0] == "nvidia-fabricmanager":
                return (0 if on else 3), self.service + "\n", ""
            return (0 if on else 3), "active\n" if on else "inactive\n", ""
        for name in names:
            if verb == "mask":
                self.units[name] = "masked"
            if verb in ("start", "restart") or "--now" in rest:
                self.active.add(name)
                self.started(name)
            if verb == "stop":
                self.active.discard(name)
            if verb == "enable":
                self.units[name] = "enabled"
        return 0, "", ""

    def started(self, name: str) -> None:
        """What a unit's start does."""
        if name == "nvidia-persistenced" and name in self.units:
            for gpu in self.gpus:
                gpu.fields["persistence_mode"] = "Enabled"

    # --- for tests --------------------------------------------------------------------------

    def stage(self, name: str, seconds: float = 900.0, **declared: Any) -> StageResult:
        """Run a stage on it with these settings, as the boot does."""
        text = json.dumps({"schema": settings.SCHEMA, **declared})
        wanted = expect.read(json.dumps(self.expectation()))
        work = Work(self, wanted, settings.read(text), seconds)
        return perform(BY_NAME[name], work)

    def changes(self) -> list[str]:
        """What was done to it: its calls without those that only ask."""
        calls = [" ".join(call) for call in self.calls]
        return [call for call in calls if not call.startswith(ASKS)]
