"""nvidia-smi, asked in English and read with suspicion.

Field names change between driver branches: a field that this one does not know is left out and the
rest is asked again. Anything that does not look like the answer is `Garbled`, with the text in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gputier.node import plain
from gputier.node.engine import Context
from gputier.node.host import Done
from gputier.node.result import Failed, Garbled, Wedged

SMI = "nvidia-smi"
ASK_SECONDS = 20.0
# Where the context keeps the question that nvidia-smi did not answer in time.
HUNG = "smi hung"
# What a cell says of a GPU that only a reset brings back.
NEEDS_RESET = "requires reset"
_INVALID = re.compile(r'Field "([^"]+)" is not a valid field to query')
_GPU_LINE = re.compile(r"^\s*GPU (\d+): (.+?) \(UUID: (GPU-[0-9a-fA-F-]+|GPU-[^)]+)\)\s*$")
_MIG_LINE = re.compile(r"^\s+MIG (\S+)\s+Device\s+(\d+): \(UUID: (MIG-[^)]+)\)\s*$")
_LINK = re.compile(r"^\s+Link (\d+): (.+?)\s*$")
_HEADER = re.compile(r"^GPU (?:[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d|\d+)\b")
# What nvidia-smi prints where there is no value.
NOTHING = (
    "",
    "n/a",
    "[n/a]",
    "[not supported]",
    "not supported",
    "unknown error",
    "[unknown error]",
)


class Link(NamedTuple):
    """One NVLink: its speed in GB/s, None when it is not up, and what the tool said."""

    number: int
    speed: float | None
    said: str


class Gpu(NamedTuple):
    """One line of `nvidia-smi -L`, with its MIG instances as (profile, UUID)."""

    number: int
    name: str
    uuid: str
    mig: tuple[tuple[str, str], ...]


def listed(ctx: Context) -> Done:
    """`nvidia-smi -L`, asked once: the driver check judges how it ended."""
    return ctx.once("smi -L", lambda: ctx.run(SMI, "-L", limit=ASK_SECONDS))


def ask(ctx: Context, *arguments: str) -> Done:
    """nvidia-smi with these arguments. Raises Wedged when it does not end in time.

    Once it hung it is not asked again: each more question would wait as long for the same answer,
    and leave one more process that nobody can kill.
    """
    hung: Done | None = ctx.memory.get(HUNG)
    if hung is None:
        done = ctx.run(SMI, *arguments, limit=ASK_SECONDS)
        if done.state != "timeout":
            return done
        hung = done
        if done.seconds > 0:  # else the check's own time was used up before
            ctx.memory[HUNG] = done
    raise Wedged(f"{' '.join(hung.argv)}: {hung.how}")


def gpus(ctx: Context) -> tuple[Gpu, ...]:
    """The GPUs that the driver sees. Raises Garbled."""
    done = listed(ctx)
    found: list[Gpu] = []
    for line in done.out.splitlines():
        gpu, mig = _GPU_LINE.match(line), _MIG_LINE.match(line)
        if gpu:
            found.append(Gpu(int(gpu[1]), gpu[2], gpu[3], ()))
        elif mig and found:
            last = found[-1]
            found[-1] = last._replace(mig=(*last.mig, (mig[1], mig[3])))
    if not found and done.ok and "no devices" not in done.text.lower():
        raise Garbled(f"nvidia-smi -L printed: {done.says()}")
    return tuple(found)


def query(ctx: Context, fields: Sequence[str], what: str = "gpu") -> list[dict[str, str]]:
    """One row per GPU, in the driver's order; a field that it does not know is absent.

    Raises Garbled when the answer is not a table of these fields.
    """
    key = f"query {what} {','.join(fields)}"
    return ctx.once(key, lambda: _query(ctx, list(fields), what))


def _query(ctx: Context, fields: list[str], what: str) -> list[dict[str, str]]:
    # Each question costs a process: what this driver refused once is not asked again.
    refused: set[str] = ctx.once("refused fields", set)
    fields = [field for field in fields if field not in refused]
    while fields:
        names = ",".join(fields)
        done = ask(ctx, f"--query-{what}={names}", "--format=csv,noheader")
        unknown = _INVALID.search(done.text)
        if unknown and unknown[1] in fields:
            refused.add(unknown[1])
            fields = [field for field in fields if field != unknown[1]]
            continue
        if not done.ok:
            kind = Failed if done.state == "exited" else Garbled
            raise kind(f"nvidia-smi --query-{what}: {done.how}: {done.says()}")
        if NEEDS_RESET in done.out.lower():
            raise Wedged(f"nvidia-smi --query-{what}: {done.out.strip()[:200]}")
        return [_row(line, fields) for line in done.out.splitlines() if line.strip()]
    return []


def _row(line: str, fields: list[str]) -> dict[str, str]:
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) != len(fields):
        raise Garbled(f"nvidia-smi answered {len(fields)} fields with: {line.strip()}")
    return dict(zip(fields, cells))


def number(text: str | None) -> float | None:
    """`81559 MiB` → 81559.0; None where there is no value. Raises Garbled on other text."""
    if text is None or absent(text):
        return None
    found = re.match(r"^(-?\d+(?:\.\d+)?)\s*(?:MiB|MHz|W|C|%|GB/s|us)?$", text.strip())
    if not found:
        raise Garbled(f"nvidia-smi printed {text!r} where a number belongs")
    return float(found[1])


def absent(text: str | None) -> bool:
    """Whether a cell holds no value: not supported here, deprecated, or not readable."""
    plain = (text or "").strip().lower()
    return plain in NOTHING or "deprecated" in plain


def yes(text: str | None) -> bool | None:
    """Yes, 1, Enabled, Active → True; No, 0, Disabled → False; no value → None. Raises Garbled."""
    if text is None or absent(text):
        return None
    plain = text.strip().lower()
    if plain in ("yes", "1", "enabled", "active", "on"):
        return True
    if plain in ("no", "0", "disabled", "not active", "off"):
        return False
    raise Garbled(f"nvidia-smi printed {text!r} where yes or no belongs")


# --- nvidia-smi -q: an indented tree ------------------------------------------------------------


def details(ctx: Context) -> list[dict[str, Any]]:
    """`nvidia-smi -q` per GPU as nested maps. Raises Garbled when it is not that."""
    return ctx.once("smi -q", lambda: _details(ctx))


def trees(ctx: Context) -> list[dict[str, Any]]:
    """`details`, or nothing where it cannot be read: the fields then stand alone."""
    try:
        return details(ctx)
    except Wedged:
        raise
    except Garbled:
        return []


def _details(ctx: Context) -> list[dict[str, Any]]:
    done = ask(ctx, "-q")
    if not done.ok:
        raise Garbled(f"nvidia-smi -q: {done.how}: {done.says()}")
    found = tree(done.out)
    if not found:
        raise Garbled(f"nvidia-smi -q printed: {done.says()}")
    return found


def tree(text: str) -> list[dict[str, Any]]:
    """The sections of every `GPU 0000…:…` heading; `Key : value` lines end a branch."""
    found: list[dict[str, Any]] = []
    stack: list[tuple[int, dict[str, Any]]] = []
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if _HEADER.match(line):
            found.append({"address": line.split()[1]})
            stack = [(0, found[-1])]
            continue
        if not line.strip() or not stack or indent == 0:
            continue
        while len(stack) > 1 and stack[-1][0] >= indent:
            stack.pop()
        key, mark, value = line.strip().partition(" : ")
        if mark or line.rstrip().endswith(" :"):
            stack[-1][1][key.rstrip(" :").strip()] = value.strip()
        else:
            branch: dict[str, Any] = {}
            stack[-1][1][key.strip()] = branch
            stack.append((indent, branch))
    return found


def look(gpu: Mapping[str, Any], *path: str) -> str | None:
    """The text at a path of the tree, None when there is none."""
    here: Any = gpu
    for name in path:
        branch = plain.mapping(here)
        if branch is None or name not in branch:
            return None
        here = branch[name]
    return here if isinstance(here, str) else None


# --- nvlink, topo ---------------------------------------------------------------------------------


def links(ctx: Context) -> tuple[Done, list[tuple[int, list[Link]]]]:
    """`nvidia-smi nvlink -s` and the links of each GPU by its index."""
    return ctx.once("smi nvlink", lambda: _links(ctx))


def _links(ctx: Context) -> tuple[Done, list[tuple[int, list[Link]]]]:
    done = ask(ctx, "nvlink", "-s")
    found: list[tuple[int, list[Link]]] = []
    for line in done.out.splitlines():
        heading = re.match(r"^\s*GPU (\d+):", line)
        link = _LINK.match(line)
        if heading:
            found.append((int(heading[1]), []))
        elif link and found:
            speed = re.match(r"^(\d+(?:\.\d+)?) GB/s$", link[2])
            found[-1][1].append(Link(int(link[1]), float(speed[1]) if speed else None, link[2]))
    return done, found


def matrix(text: str) -> dict[str, dict[str, str]]:
    """`nvidia-smi topo -m` as row → column → path; empty when it is no such table."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    lines = [line for line in plain.splitlines() if re.match(r"^\s*(?:GPU|NIC|mlx)", line)]
    heads = " ".join(line for line in lines if line[:1].isspace()).split()
    columns = [head for head in heads if re.match(r"^(?:GPU\d+|NIC\d+|mlx\w+)$", head)]
    rows: dict[str, dict[str, str]] = {}
    for line in lines:
        cells = line.split()
        if not line[:1].isspace() and len(cells) > len(columns) > 0:
            rows[cells[0]] = dict(zip(columns, cells[1:]))
    return rows
