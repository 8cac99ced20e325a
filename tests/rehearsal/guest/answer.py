"""Answers in the place of a GPU machine's tools: nvidia-smi, lspci and others, by its own name.

Runs on the rehearsed machine. Which machine it pretends to be stands in /etc/rehearsal/machine.json
(`tests.rehearsal.pretence` writes it); what was changed on it (a MIG layout) is kept beside.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, "/usr/local/lib/rehearsal/lib")

from tests.rehearsal.pretence import Pretence

#: The real tool, for questions that are not about GPUs or their kernel module.
REAL = ("/usr/bin", "/usr/sbin")


def main() -> int:
    name, rest = Path(sys.argv[0]).name, sys.argv[1:]
    pretence = Pretence.of_this_machine()
    if not pretence.answers(name, rest):
        return real(name, rest)
    rc, text = pretence.answer(name, rest)
    sys.stdout.write(text)
    return rc


def real(name: str, rest: list[str]) -> int:
    for folder in REAL:
        if Path(folder, name).exists():
            os.execv(f"{folder}/{name}", [name, *rest])  # noqa: S606 (a fixed folder's own tool)
    sys.stderr.write(f"{name}: not on this machine: {json.dumps(rest)}\n")
    return 127


if __name__ == "__main__":
    sys.exit(main())
