"""The one seam to the machine: commands, files, clock.

Nothing else in this package asks the running kernel anything. With a root other than `/` every
absolute path, a program's included, is looked up below that root; bare command names come from
PATH. `recording.Recorder` and `recording.Replay` stand in for `Host`: a machine can be judged
elsewhere.
"""

from __future__ import annotations

import os
import pkgutil
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gputier.node import processes

# Where images put tools that a service's PATH does not have.
TOOL_PLACES = (
    "/usr/local/sbin",
    "/usr/sbin",
    "/sbin",
    "/usr/bin",
    "/bin",
    "/usr/local/bin",
    "/usr/local/cuda/bin",
    "/opt/amazon/efa/bin",
    "/opt/amazon/openmpi/bin",
    "/opt/nvidia/nvbandwidth",
    "/opt/nccl-tests/build",
    "/usr/local/cuda/efa/test-cuda",
)
OUTPUT_LIMIT = 8 * 1024 * 1024
FILE_LIMIT = 4 * 1024 * 1024
LINK_LIMIT = 40
# After its leader ended, what is left of a command's group gets this long to close the pipes.
GRACE_SECONDS = 0.3
KILL_SECONDS = 1.0
# A probe is one of our own files, run by a python of the machine: `@probe:NAME` as an argument.
PROBE = "@probe:"
# Our own program started again, for what must not hang or crash the judge.
SELF = "@self"
HIDDEN = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "LANGUAGE", "LC_MESSAGES")


class Done(NamedTuple):
    """How a command ended. `state`: exited, timeout, missing, unusable, unrecorded.

    `rc` is the exit status, minus the signal's number when one ended it, None when it never ran
    or did not end in time.
    """

    argv: tuple[str, ...]
    rc: int | None
    out: str
    err: str
    seconds: float
    state: str

    @property
    def ok(self) -> bool:
        return self.state == "exited" and self.rc == 0

    @property
    def name(self) -> str:
        return self.argv[0].rsplit("/", 1)[-1]

    @property
    def text(self) -> str:
        """Both streams: tools disagree on where they complain."""
        return self.out + ("\n" if self.out and self.err else "") + self.err

    def says(self, length: int = 240) -> str:
        """One line for a report: what it printed first, or how it ended."""
        lines = [line.strip() for line in self.text.splitlines() if line.strip()]
        said = " / ".join(lines[:3])
        return (said[: length - 1] + "…" if len(said) > length else said) or self.how

    @property
    def how(self) -> str:
        words = {
            "exited": f"exit status {self.rc}",
            "timeout": f"no answer in {self.seconds:.0f} s",
            "missing": "not installed",
            "unusable": "cannot be started",
            "unrecorded": "not in the recording",
        }
        return words[self.state]


class Host:
    """The machine this runs on, seen below `root`."""

    def __init__(self, root: str = "/", environ: Mapping[str, str] | None = None) -> None:
        self.root = Path(root)
        self.real = self.root == Path("/")
        self.environ = dict(os.environ if environ is None else environ)

    # --- commands -----------------------------------------------------------------------------

    def which(self, command: str) -> str | None:
        """The file behind a command name or an absolute path, None when there is none."""
        if command == SELF:
            return sys.executable
        if "/" in command:
            places = [self._inside(command)]
        else:
            path = self.environ.get("PATH", os.defpath).split(os.pathsep)
            places = [Path(folder) / command for folder in path if folder]
            places += [self._inside(f"{folder}/{command}") for folder in TOOL_PLACES]
        for place in places:
            if place.is_file() and os.access(str(place), os.X_OK):
                return str(place)
        return None

    def run(
        self,
        argv: Sequence[str],
        limit: float,
        env: Mapping[str, str] | None = None,
        during: Callable[[], None] | None = None,
    ) -> Done:
        """Run a command for at most `limit` seconds; then its whole process group is killed.

        `during` is called once while the command works (2 s after its start). Never raises for
        what a command does, and never waits for a process that cannot be killed (state D).
        """
        started = self.monotonic()
        program = self.which(argv[0])
        if program is None:
            return Done(tuple(argv), None, "", "", 0.0, "missing")
        try:
            process = subprocess.Popen(  # noqa: S603 (argument lists only, never a shell)
                [program, *expanded(argv)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._environment(env or {}),
                start_new_session=True,
            )
        except OSError as error:
            return Done(tuple(argv), None, "", str(error), 0.0, "unusable")
        out, err, ended = _collect(process, started + limit, during)
        if not ended:
            _kill_group(process)
        seconds = self.monotonic() - started
        state = "exited" if ended else "timeout"
        return Done(tuple(argv), process.poll() if ended else None, out, err, seconds, state)

    def _environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        """English, UTC, no narrowed view of the GPUs; all else (PYTHONPATH too) as it came."""
        kept = {name: value for name, value in self.environ.items() if name not in HIDDEN}
        return {**kept, "LC_ALL": "C", "LANG": "C", "TZ": "UTC", **extra}

    # --- files --------------------------------------------------------------------------------

    def read(self, path: str) -> str | None:
        """A file's text, None when it is absent or unreadable; a pipe or device reads as empty."""
        try:
            handle = os.open(str(self._inside(path)), os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            parts: list[bytes] = []
            while sum(map(len, parts)) < FILE_LIMIT:
                part = os.read(handle, 65536)
                if not part:
                    break
                parts.append(part)
        except OSError:
            return None
        finally:
            os.close(handle)
        return b"".join(parts).decode("utf-8", "replace")

    def names(self, path: str) -> tuple[str, ...]:
        """What a folder holds, sorted; empty when there is no such folder."""
        try:
            return tuple(sorted(entry.name for entry in self._inside(path).iterdir()))
        except OSError:
            return ()

    def exists(self, path: str) -> bool:
        return self._inside(path).exists()

    def link(self, path: str) -> str | None:
        """Where a symbolic link points, as written in it."""
        try:
            return os.readlink(str(self._inside(path, follow_last=False)))
        except OSError:
            return None

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Replace a file in one step; a reader sees the old text or the new. Raises OSError.

        It is its owner's alone until it is whole: a text that others may not read never is.
        """
        target = self._inside(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=str(target.parent), prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(mode)
            Path(name).replace(target)
        except OSError:
            Path(name).unlink()
            raise

    def remove(self, path: str) -> None:
        """Remove a file if it is there. Raises OSError when it cannot be."""
        target = self._inside(path, follow_last=False)
        if target.exists():
            target.unlink()

    def _inside(self, path: str, follow_last: bool = True) -> Path:
        """`path` below the root; an absolute link on the way stays below the root too."""
        if self.real:
            return Path(path)
        done, rest = self.root, [part for part in path.split("/") if part]
        for _ in range(LINK_LIMIT * 4):
            if not rest:
                break
            part = rest.pop(0)
            if part == "..":
                done = done.parent if done != self.root else done
                continue
            step = done / part
            if step.is_symlink() and (rest or follow_last):
                target = os.readlink(str(step))
                rest = [piece for piece in target.split("/") if piece not in ("", ".")] + rest
                done = self.root if target.startswith("/") else done
                continue
            done = step
        return done

    # --- clock --------------------------------------------------------------------------------

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def expanded(argv: Sequence[str]) -> list[str]:
    """The arguments after the program, with probes and our own program filled in."""
    rest = list(argv[1:])
    if argv[0] == SELF:
        return [sys.argv[0], *rest] if is_archive() else ["-m", "gputier.node", *rest]
    return [source(arg[len(PROBE) :]) if arg.startswith(PROBE) else arg for arg in rest]


def is_archive() -> bool:
    """Whether this code was started from the zipapp."""
    return Path(__file__).parents[2].is_file()


def source(name: str) -> str:
    """The text of one of our probes, from the folder or the archive."""
    data = pkgutil.get_data("gputier.node", f"probes/{name}.txt")
    if data is None:
        raise FileNotFoundError(name)
    return data.decode("utf-8")


def _collect(
    process: subprocess.Popen[bytes], deadline: float, during: Callable[[], None] | None
) -> tuple[str, str, bool]:
    """Both outputs, and whether the command ended before the deadline."""
    kept: dict[int, list[bytes]] = {}
    quiet_since = 0.0
    call_at = time.monotonic() + 2.0
    with selectors.DefaultSelector() as waiting:
        streams = [stream for stream in (process.stdout, process.stderr) if stream]
        for stream in streams:
            waiting.register(stream, selectors.EVENT_READ)
            kept[stream.fileno()] = []
        while waiting.get_map():
            now = time.monotonic()
            if now >= deadline:
                break
            if during and now >= call_at:
                during()
                during = None
            ready = waiting.select(min(0.05, max(0.0, deadline - now)))
            for key, _ in ready:
                _take(waiting, key, kept)
            if ready or process.poll() is None:
                quiet_since = time.monotonic()
            elif time.monotonic() - quiet_since > GRACE_SECONDS:
                # The leader ended; something it left behind holds the pipe.
                _kill_group(process)
                break
        ended = _ended(process, deadline)
        texts = [b"".join(kept[stream.fileno()]).decode("utf-8", "replace") for stream in streams]
        for stream in streams:
            stream.close()
    return texts[0], texts[1], ended


def _take(
    waiting: selectors.BaseSelector, key: selectors.SelectorKey, kept: dict[int, list[bytes]]
) -> None:
    part = os.read(key.fd, 65536)
    if not part:
        waiting.unregister(key.fileobj)
    elif sum(map(len, kept[key.fd])) < OUTPUT_LIMIT:
        kept[key.fd].append(part)


def _ended(process: subprocess.Popen[bytes], deadline: float) -> bool:
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    return True


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the group and what left it; give up waiting after a second, for a process in state D
    never dies."""
    if process.poll() is None:
        processes.end(process.pid)
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
    _ended(process, time.monotonic() + KILL_SECONDS)
