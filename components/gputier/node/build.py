"""The node bundle: one zipapp, byte for byte the same from the same source.

Fixed order, fixed timestamps, fixed permissions, no compiled files: its SHA-256 names its content,
so a launch template can pin it and a change of it is a change of ours.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

SHEBANG = b"#!/usr/bin/env python3\n"
# The oldest moment that a zip file can hold.
MOMENT = (1980, 1, 1, 0, 0, 0)
MODE = 0o644 << 16
# Not needed on a machine.
LEFT_OUT = ("build.py",)
START = b"import sys\n\nfrom gputier.node.cli import main\n\nsys.exit(main(sys.argv[1:]))\n"


def content() -> bytes:
    """The archive's bytes."""
    here = Path(__file__).parent
    files = {"__main__.py": START, "gputier/__init__.py": b""}
    for path in sorted(here.rglob("*")):
        name = path.relative_to(here).as_posix()
        if path.suffix in (".py", ".txt") and name not in LEFT_OUT:
            files[f"gputier/node/{name}"] = path.read_bytes().replace(b"\r\n", b"\n")
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, MOMENT)
            entry.external_attr = MODE
            # Stored, not deflated: the compressor's output differs between zlib builds.
            entry.compress_type = zipfile.ZIP_STORED
            entry.create_system = 3
            archive.writestr(entry, files[name])
    return SHEBANG + held.getvalue()


def build(out: Path) -> str:
    """Write the zipapp to `out`, executable; its SHA-256 in hex. Raises OSError."""
    data = content()
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(data)
    out.chmod(0o755)
    return hashlib.sha256(data).hexdigest()
