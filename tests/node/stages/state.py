"""The seam to a machine that never was, whose files and programs are a few dicts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from gputier.node.host import Done, Host

Answer = tuple[int, str, str]


class State(Host):
    """Files, links, commands, a clock; a command's method does to the state what it does."""

    def __init__(self, commands: Sequence[str]) -> None:
        super().__init__("/", {})
        self.files: dict[str, str] = {}
        self.modes: dict[str, int] = {}
        self.links: dict[str, str] = {}
        self.commands: set[str] = set(commands)
        self.handlers: dict[str, Callable[[list[str]], Answer]] = {}
        self.overrides: list[tuple[str, Done]] = []
        self.calls: list[str] = []
        self.envs: list[Mapping[str, str]] = []
        self.clock = 0.0
        self.due: list[tuple[float, Callable[[], None]]] = []

    def after(self, seconds: float, change: Callable[[], None]) -> None:
        """Something that happens by itself, later."""
        self.due.append((self.clock + seconds, change))

    def drop(self, prefix: str) -> None:
        """Everything below this path is gone."""
        for held in (self.files, self.links):
            for path in [path for path in held if path.startswith(prefix)]:
                del held[path]

    def which(self, command: str) -> str | None:
        if command.startswith("/"):
            return command if command in self.files or command in self.commands else None
        return f"/usr/bin/{command}" if command in self.commands else None

    def run(
        self,
        argv: Sequence[str],
        limit: float,
        env: Mapping[str, str] | None = None,
        during: Callable[[], None] | None = None,  # noqa: ARG002 (the seam's shape)
    ) -> Done:
        key, line = tuple(argv), " ".join(argv)
        self.calls.append(line)
        self.envs.append(env or {})
        for prefix, done in self.overrides:
            if line.startswith(prefix):
                self._pass(min(limit, done.seconds))
                return done._replace(argv=key)
        if self.which(argv[0]) is None:
            return Done(key, None, "", "", 0.0, "missing")
        self._pass(0.05)
        rc, out, err = self._answer(argv[0], list(argv[1:]))
        return Done(key, rc, out, err, 0.05, "exited")

    def _answer(self, program: str, rest: list[str]) -> Answer:
        handler = self.handlers.get(program) or self.handlers.get(program.rsplit("/", 1)[-1])
        if handler is None:
            method = "_" + re.sub(r"\W", "_", program.rsplit("/", 1)[-1])
            handler = getattr(self, method, None)
        return handler(rest) if handler else (0, "", "")

    def says(self, line: str, rc: int, out: str = "", err: str = "") -> None:
        """From now on commands that begin like this line end so."""
        self.overrides.insert(0, (line, Done((), rc, out, err, 0.1, "exited")))

    def hangs(self, line: str) -> None:
        self.overrides.insert(0, (line, Done((), None, "", "", 1e9, "timeout")))

    def read(self, path: str) -> str | None:
        return self.files.get(path)

    def names(self, path: str) -> tuple[str, ...]:
        base = path.rstrip("/") + "/"
        every = [*self.files, *self.links]
        return tuple(sorted({p[len(base) :].split("/")[0] for p in every if p.startswith(base)}))

    def exists(self, path: str) -> bool:
        return path in self.files or path in self.links or bool(self.names(path))

    def link(self, path: str) -> str | None:
        return self.links.get(path)

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        self.calls.append(f"write {path}")
        self.envs.append({})
        self.files[path] = text
        self.modes[path] = mode

    def remove(self, path: str) -> None:
        if path in self.files:
            self.calls.append(f"remove {path}")
            self.envs.append({})
            del self.files[path]

    def now(self) -> float:
        return 1796040000.0 + self.clock

    def monotonic(self) -> float:
        return self.clock

    def sleep(self, seconds: float) -> None:
        self._pass(seconds)

    def _pass(self, seconds: float) -> None:
        self.clock += seconds
        now = [change for when, change in self.due if when <= self.clock]
        self.due = [(when, change) for when, change in self.due if when > self.clock]
        for change in now:
            change()
