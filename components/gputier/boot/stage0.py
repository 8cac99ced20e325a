"""Stage 0: the one script that a cloud is given, and how many bytes of it are whose."""

from __future__ import annotations

import base64
import bz2
import functools
import hashlib
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import NamedTuple

import jinja2

from gputier.boot.strip import strip

#: Bytes that a cloud takes, and what we hold ourselves to: user data may get a part of somebody
#: else beside ours. AWS: 16 KB before base64, as Alibaba (help/doc-detail/52012) and, unconfirmed,
#: Tencent; GCP: 262,144 bytes for a metadata value; Azure: custom data of 64 KB.
LIMITS: Mapping[str, int] = {
    "aws": 12 * 1024,
    "alibaba": 12 * 1024,
    "tencent": 12 * 1024,
    "gcp": 256 * 1024,
    "azure": 64 * 1024,
}
#: Where there is less room than this, the fetcher is packed.
ROOMY = 48 * 1024
PROGRAMS = {"aws": "fetch_aws.py", "gcp": "fetch_gcp.py"}
COLUMNS = 120


class File(NamedTuple):
    """A file that stage 0 writes. `part` is what its bytes are counted as."""

    part: str
    path: str
    text: str
    mode: str = "0644"
    packed: bool = False


class Script(NamedTuple):
    """The script's text and the bytes of each part of it."""

    text: str
    parts: Mapping[str, int]


def fits_inline(cloud: str) -> bool:
    """Whether the bundle could travel in the user data of this cloud; where not, room is short."""
    return LIMITS[cloud] > ROOMY


@functools.cache
def fetcher(cloud: str) -> str:
    """The fetcher of a cloud as one program, as small as it can be where room is short.

    What all clouds share comes first; the cloud's own part then finds it in itself.
    """
    shared, own = _source("fetching.py"), _source(PROGRAMS[cloud])
    if not fits_inline(cloud):
        shared, own = strip(shared), strip(own)
    joined = re.sub(r"^import fetching$", "fetching = sys.modules[__name__]", own, flags=re.M)
    if joined == own:
        raise ValueError(f"{PROGRAMS[cloud]} does not import what it shares")
    return f"{shared}\n\n{joined}"


def pack(data: bytes) -> str:
    """bzip2 in base 85, in lines. bzip2 and not deflate: its output is the same everywhere."""
    text = base64.b85encode(bz2.compress(data, 9)).decode()
    lines = [text[at : at + COLUMNS] for at in range(0, len(text), COLUMNS)]
    return "\n".join(lines) + "\n"


def lines(found: Mapping[str, object]) -> str:
    """JSON with one line per key of the top level: small, and a diff shows what changed."""
    inner = ",\n".join(
        f"{json.dumps(key)}:{json.dumps(value, sort_keys=True, separators=(',', ':'))}"
        for key, value in sorted(found.items())
    )
    return f"{{{inner}}}\n"


def script(
    cloud: str, expect: Mapping[str, object], settings: Mapping[str, object], inline: bytes | None
) -> Script:
    """Stage 0 for a machine of this cloud. `inline` is a bundle to carry along."""
    program, short = fetcher(cloud), not fits_inline(cloud)
    files = [
        File("expectation", "/etc/gputier/expect.json", lines(expect)),
        File("settings", "/etc/gputier/boot.json", lines(settings)),
        File(
            "fetcher", "/usr/local/lib/gputier/fetch.py",
            pack(program.encode()) if short else program, packed=short,
        ),
        File("unit", "/etc/systemd/system/gputier-boot.service", _source("gputier-boot.service")),
    ]  # fmt: skip
    if inline is not None:
        path = f"/var/lib/gputier/bundle/{hashlib.sha256(inline).hexdigest()}.pyz"
        files.append(File("bundle", path, pack(inline), "0755", True))
    return render_files(files)


def render_files(files: Sequence[File]) -> Script:
    """The script that writes these files and starts the unit."""
    template = _environment().get_template("stage0.sh.j2")
    text = template.render(files=files, packed=any(file.packed for file in files))
    parts: dict[str, int] = {}
    for file in files:
        parts[file.part] = parts.get(file.part, 0) + len(file.text.encode())
    return Script(text, {"script": len(text.encode()) - sum(parts.values()), **parts})


def _source(name: str) -> str:
    found = resources.files("gputier.templates") / "boot" / name
    return found.read_text(encoding="utf-8").replace("\r\n", "\n")


def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 (a shell script: `quote` and `heredoc` are its escaping)
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"quote": shlex.quote, "heredoc": heredoc, "delimiter": delimiter}
    return made


def delimiter(text: str) -> str:
    """A line that ends a here-document and is not among its lines. Raises `ValueError` for a text
    that a here-document would change."""
    if not text.endswith("\n") or "\0" in text or "\r" in text:
        raise ValueError("a here-document holds whole lines, without NUL and carriage return")
    number, taken = 0, set(text.split("\n"))
    while (word := f"EOF{number or ''}") in taken:
        number += 1
    return word


def heredoc(text: str) -> str:
    """What follows `<<`: quoted, so that the shell expands nothing inside."""
    return f"'{delimiter(text)}'"
