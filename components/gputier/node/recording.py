"""A machine as a file: what its commands printed and its files held.

One JSON file, `machine.json`, in a folder. `Recorder` is the seam that notes what passes through
it; `Replay` is the seam that answers from what was noted, on a clock of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gputier.node import WrongInput
from gputier.node.host import Done, Host

SCHEMA = "gputier/recording/1"
FILE = "machine.json"
ORIGINS = ("real", "public log", "synthesised")


class BadRecording(WrongInput):
    """The folder holds no recording that can be replayed; the message says why."""


class Origin(NamedTuple):
    """Where a recording comes from: `kind` is one of ORIGINS, `address` where it was published."""

    kind: str
    address: str = ""
    note: str = ""


class Recording(NamedTuple):
    """What was noted. Commands keep their order: the same one may answer differently later."""

    origin: Origin
    machine: str
    at: float
    commands: tuple[Done, ...]
    missing: tuple[str, ...]
    files: Mapping[str, str]
    folders: Mapping[str, tuple[str, ...]]
    links: Mapping[str, str]
    present: tuple[str, ...]

    def to_json(self) -> str:
        data = {
            "schema": SCHEMA,
            "origin": self.origin._asdict(),
            "machine": self.machine,
            "at": self.at,
            "commands": [
                {
                    "argv": list(done.argv),
                    "rc": done.rc,
                    "out": done.out,
                    "err": done.err,
                    "seconds": round(done.seconds, 3),
                    "state": done.state,
                }
                for done in self.commands
            ],
            "missing": list(self.missing),
            "files": dict(sorted(self.files.items())),
            "folders": {path: list(names) for path, names in sorted(self.folders.items())},
            "links": dict(sorted(self.links.items())),
            "present": list(self.present),
        }
        return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def from_json(text: str) -> Recording:
    """A recording of its text. Raises BadRecording."""
    try:
        data: dict[str, Any] = json.loads(text)
        if data["schema"] != SCHEMA:
            raise BadRecording(f"schema {data['schema']!r} instead of {SCHEMA}")
        origin = Origin(**data["origin"])
        if origin.kind not in ORIGINS:
            raise BadRecording(f"origin {origin.kind!r} is none of {', '.join(ORIGINS)}")
        return Recording(
            origin=origin,
            machine=str(data["machine"]),
            at=float(data["at"]),
            commands=tuple(
                Done(tuple(c["argv"]), c["rc"], c["out"], c["err"], c["seconds"], c["state"])
                for c in data["commands"]
            ),
            missing=tuple(data["missing"]),
            files=dict(data["files"]),
            folders={path: tuple(names) for path, names in data["folders"].items()},
            links=dict(data["links"]),
            present=tuple(data["present"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadRecording(f"not a recording: {type(error).__name__}: {error}") from None


def load(folder: str) -> Recording:
    """The recording in a folder. Raises BadRecording."""
    path = Path(folder) / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadRecording(f"{path}: {error}") from None
    return from_json(text)


class Recorder(Host):
    """Passes everything to another host and notes it."""

    def __init__(self, inner: Host) -> None:
        super().__init__(str(inner.root), inner.environ)
        self.inner = inner
        self.commands: list[Done] = []
        self.missing: set[str] = set()
        self.files: dict[str, str] = {}
        self.folders: dict[str, tuple[str, ...]] = {}
        self.links: dict[str, str] = {}
        self.present: set[str] = set()
        self.started = inner.now()

    def which(self, command: str) -> str | None:
        return self.inner.which(command)

    def run(
        self,
        argv: Sequence[str],
        limit: float,
        env: Mapping[str, str] | None = None,
        during: Callable[[], None] | None = None,
    ) -> Done:
        done = self.inner.run(argv, limit, env, during)
        if done.state == "missing":
            self.missing.add(argv[0])
        else:
            self.commands.append(done)
        return done

    def read(self, path: str) -> str | None:
        text = self.inner.read(path)
        if text is not None:
            self.files[path] = text
        return text

    def names(self, path: str) -> tuple[str, ...]:
        found = self.inner.names(path)
        if found:
            self.folders[path] = found
        return found

    def exists(self, path: str) -> bool:
        found = self.inner.exists(path)
        if found:
            self.present.add(path)
        return found

    def link(self, path: str) -> str | None:
        target = self.inner.link(path)
        if target is not None:
            self.links[path] = target
        return target

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """A recording changes nothing on the machine."""

    def remove(self, path: str) -> None:
        """A recording changes nothing on the machine."""

    def now(self) -> float:
        return self.inner.now()

    def monotonic(self) -> float:
        return self.inner.monotonic()

    def sleep(self, seconds: float) -> None:
        self.inner.sleep(seconds)

    def recording(self, origin: Origin, machine: str) -> Recording:
        """Everything that was noted so far."""
        return Recording(
            origin=origin,
            machine=machine,
            at=self.started,
            commands=tuple(self.commands),
            missing=tuple(sorted(self.missing)),
            files=dict(self.files),
            folders=dict(self.folders),
            links=dict(self.links),
            present=tuple(sorted(self.present)),
        )


class Replay(Host):
    """Answers from a recording. Time passes as recorded: a command takes the seconds it took.

    A command that was run several times answers in order, the last answer for ever. What is
    written stays in memory.
    """

    def __init__(self, recorded: Recording) -> None:
        super().__init__("/", {})
        self.recorded = recorded
        self.answers: dict[tuple[str, ...], list[Done]] = {}
        for done in recorded.commands:
            self.answers.setdefault(done.argv, []).append(done)
        self.tools = {done.argv[0] for done in recorded.commands}
        self.written: dict[str, str | None] = {}
        self.clock = 0.0

    def which(self, command: str) -> str | None:
        return command if command in self.tools else None

    def run(
        self,
        argv: Sequence[str],
        limit: float,
        env: Mapping[str, str] | None = None,  # noqa: ARG002 (the seam's shape)
        during: Callable[[], None] | None = None,
    ) -> Done:
        key = tuple(argv)
        answers = self.answers.get(key)
        if answers is None:
            known = argv[0] in self.tools and argv[0] not in self.recorded.missing
            state = "unrecorded" if known else "missing"
            return Done(key, None, "", "", 0.0, state)
        done = answers.pop(0) if len(answers) > 1 else answers[0]
        if during:
            during()
        if done.state == "timeout" or done.seconds > limit:
            self.clock += limit
            return done._replace(rc=None, seconds=limit, state="timeout")
        self.clock += done.seconds
        return done

    def read(self, path: str) -> str | None:
        if path in self.written:
            return self.written[path]
        return self.recorded.files.get(path)

    def names(self, path: str) -> tuple[str, ...]:
        return self.recorded.folders.get(path, ())

    def exists(self, path: str) -> bool:
        if path in self.written:
            return self.written[path] is not None
        return path in self.recorded.present or path in self.recorded.files

    def link(self, path: str) -> str | None:
        return self.recorded.links.get(path)

    def write(self, path: str, text: str, mode: int = 0o644) -> None:  # noqa: ARG002 (the seam's shape)
        self.written[path] = text

    def remove(self, path: str) -> None:
        self.written[path] = None

    def now(self) -> float:
        return self.recorded.at + self.clock

    def monotonic(self) -> float:
        return self.clock

    def sleep(self, seconds: float) -> None:
        self.clock += seconds
