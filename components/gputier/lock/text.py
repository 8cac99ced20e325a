"""The lock's file: its text, written atomically and read strictly.

A file that is not as gputier wrote it (a hand edit, a merge conflict, half a file) is a `StaleLock`
that names the line and the command; it is never read as far as it goes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import cast

from gputier.errors import Problem, StaleLock
from gputier.lock.entries import Entry, Lock

VERSION = 1
#: Fields that a block may lack: of an earlier release, or with a driver of the image.
BOOTED = ("bundle", "bundle_version", "image", "driver")
_HEADER = re.compile(r"# gputier lock (\d+)\b")
_NAME = re.compile(r"([a-z][a-z0-9-]*):")
_FIELD = re.compile(r"  ([a-z_]+): (.+)")
_CONFLICT = ("<<<<<<<", "=======", ">>>>>>>", "|||||||")


def render_lock(lock: Lock) -> str:
    """The file's text: byte-identical for the same lock."""
    lines = [
        f"# gputier lock {VERSION} · written by `gputier lock {lock.stack}`, not by hand:"
        " after a merge conflict, take one side whole and run it again"
    ]
    for name in sorted(lock.entries):
        body = [f"  {key}: {_scalar(value)}" for key, value in _values(lock.entries[name])]
        lines += ["", f"{name}:", *body, f"  seal: {_scalar(_seal(name, body))}"]
    return "\n".join(lines) + "\n"


def _values(entry: Entry) -> Iterator[tuple[str, object]]:
    for field in fields(entry):
        value = getattr(entry, field.name)
        if field.name == "attached_ssds" and not value:
            continue
        if value is None and field.name in {"attached", "price_as_of"}:
            continue
        if value == "" and field.name in BOOTED:
            continue
        yield field.name, value


def _seal(name: str, body: Iterable[str]) -> str:
    return hashlib.sha256("\n".join([name, *body]).encode()).hexdigest()[:8]


def _scalar(value: object) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, tuple):
        names = cast("tuple[object, ...]", value)
        return "[" + ", ".join(map(str, names)) + "]"
    if isinstance(value, float):
        return f"{value:.6f}".rstrip("0").rstrip(".")
    text = str(value)
    return (
        text
        if re.fullmatch(r"[a-z][\w./-]*|\d+|\d{4}-\d\d(-\d\d)?", text)
        else json.dumps(text, ensure_ascii=False)
    )


def write_lock(path: Path, lock: Lock) -> None:
    """Write atomically: a reader sees the old file or the new one, never half of one."""
    text = render_lock(lock)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_lock(path: Path, stack: str) -> Lock | None:
    """The lock at `path`; None when there is none. Raises `StaleLock` for a file that is not as
    gputier wrote it, with the line."""
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (UnicodeDecodeError, OSError) as error:
        raise _broken(path, stack, f"it cannot be read: {error}") from None
    return Lock(stack, _parse(path, stack, text))


def _broken(path: Path, stack: str, why: str, line: int = 0) -> StaleLock:
    where = f"{path}:{line}" if line else str(path)
    hint = f"restore it from git, or delete it and run `gputier lock {stack}` to choose anew"
    return StaleLock(Problem("", f"{where}: {why}", hint))


def _parse(path: Path, stack: str, text: str) -> dict[str, Entry]:
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if line.startswith(_CONFLICT):
            raise _broken(path, stack, "a merge conflict is left in it", number)
    header = _HEADER.match(lines[0])
    if header is None:
        raise _broken(path, stack, "it does not start with `# gputier lock 1`", 1)
    if int(header[1]) != VERSION:
        why = f"it is version {header[1]}, and this gputier reads version {VERSION}"
        raise _broken(path, stack, f"{why}: upgrade gputier", 1)
    entries: dict[str, Entry] = {}
    name, body, start = "", list[str](), 0
    for number, line in enumerate([*lines[1:], ""], 2):
        if not line:
            if name:
                entries[name] = _parse_entry(path, stack, name, body, start)
            name, body = "", []
        elif not name:
            found = _NAME.fullmatch(line)
            if found is None or found[1] in entries:
                raise _broken(path, stack, f"`{line[:60]}` is not a workload's name", number)
            name, start = found[1], number
        else:
            body.append(line)
    return entries


def _parse_entry(path: Path, stack: str, name: str, body: list[str], start: int) -> Entry:
    values: dict[str, str] = {}
    for offset, line in enumerate(body, 1):
        found = _FIELD.fullmatch(line)
        if found is None or found[1] in values:
            raise _broken(
                path, stack, f"`{line.strip()[:60]}` is not `field: value`", start + offset
            )
        values[found[1]] = found[2]
    seal = values.pop("seal", "")
    sealed = [line for line in body if not line.startswith("  seal: ")]
    if seal != _scalar(_seal(name, sealed)):
        why = f"the block of `{name}` was edited by hand: its seal does not match"
        raise _broken(path, stack, why, start)
    try:
        return _entry_of(values)
    except (KeyError, ValueError) as error:
        raise _broken(path, stack, f"the block of `{name}` is incomplete: {error}", start) from None


def _entry_of(values: Mapping[str, str]) -> Entry:
    unknown = set(values) - {f.name for f in fields(Entry)}
    if unknown:
        raise ValueError(f"unknown field {sorted(unknown)[0]}")

    def text(key: str) -> str:
        raw = values[key]
        return str(json.loads(raw)) if raw.startswith('"') else raw

    inner = values["zones"].removeprefix("[").removesuffix("]")
    price = text("usd_per_hour")
    return Entry(
        digest=text("digest"),
        cloud=text("cloud"),
        region=text("region"),
        zones=tuple(z.strip() for z in inner.split(",") if z.strip()),
        instance_type=text("instance_type"),
        catalog_type=text("catalog_type"),
        attached=text("attached") if "attached" in values else None,
        attached_ssds=int(values.get("attached_ssds", "0")),
        nodes=int(values["nodes"]),
        machines=int(values["machines"]),
        capacity=text("capacity"),
        availability=text("availability"),
        usd_per_hour=None if price == "unknown" else float(price),
        hours_per_month=float(values["hours_per_month"]),
        price_basis=text("price_basis"),
        price_as_of=text("price_as_of") if "price_as_of" in values else None,
        catalog=text("catalog"),
        catalog_as_of=text("catalog_as_of"),
        **{key: text(key) for key in BOOTED if key in values},
    )
