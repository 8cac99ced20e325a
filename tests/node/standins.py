"""A recorded machine as stand-ins: a folder of commands for PATH and a root for files.

This is the way in that users have (docs/node.md): nothing of the seam is replaced, the real program
runs real processes and reads real files.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

from gputier.node.host import PROBE, SELF, Done
from gputier.node.host import source as probe_source
from gputier.node.recording import Recording

SCRIPT = """#!{python} -S
import json, sys
answers = json.load(open({data!r}))
key = json.dumps(sys.argv[1:])
if key not in answers:
    sys.stderr.write("stand-in for {name}: not recorded: %s\\n" % key[:200])
    sys.exit(97)
rc, out, err = answers[key]
sys.stdout.write(out)
sys.stderr.write(err)
sys.exit(rc)
"""


def lay_out(recorded: Recording, place: Path) -> tuple[Path, Path]:
    """Write the stand-ins; the folder for PATH and the root for GPUTIER_SYSROOT."""
    commands, root = place / "bin", place / "root"
    commands.mkdir(parents=True)
    root.mkdir()
    by_tool: dict[str, dict[str, list[object]]] = {}
    for done in recorded.commands:
        if done.argv[0] != SELF and "/" not in done.argv[0] and done.state == "exited":
            by_tool.setdefault(done.argv[0], {}).setdefault(
                _key(done), [done.rc, done.out, done.err]
            )
    for name, answers in by_tool.items():
        _script(commands, name, answers)
    for path, text in recorded.files.items():
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    for path, target in recorded.links.items():
        link = root / path.lstrip("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
    for path, names in recorded.folders.items():
        for name in names:
            entry = root / path.lstrip("/") / name
            if not entry.is_symlink() and not entry.exists():
                entry.mkdir(parents=True)
    return commands, root


def _key(done: Done) -> str:
    arguments = [
        probe_source(part[len(PROBE) :]) if part.startswith(PROBE) else part
        for part in done.argv[1:]
    ]
    return json.dumps(arguments)


def _script(folder: Path, name: str, answers: dict[str, list[object]]) -> None:
    data = folder / f".{name}.json"
    data.write_text(json.dumps(answers), encoding="utf-8")
    script = folder / name
    script.write_text(
        SCRIPT.format(python=sys.executable, data=str(data), name=name), encoding="utf-8"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)


def environment(commands: Path, root: Path) -> dict[str, str]:
    """PATH holds the stand-ins only."""
    kept = {name: value for name, value in os.environ.items() if name in ("HOME", "TMPDIR")}
    return {**kept, "PATH": str(commands), "GPUTIER_SYSROOT": str(root)}
