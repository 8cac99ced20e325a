"""The verbs. Each lives in a module of its own that is loaded only when it is used: starting is
most of what `report` and `serve` cost.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from gputier.node import WrongInput, __version__

VERBS = {
    "check": ("judge this machine: check --expect FILE [--depth D] [--json]", "check"),
    "report": ("show the last verdict again: report [--json]", "show"),
    "gate": ("check, then open or shut the gate: gate --expect FILE", "gate"),
    "serve": ("health endpoint, 200 while the gate is open: serve [--port N]", "serve"),
    "watch": ("keep watching a node that joined: watch --expect FILE", "watch"),
    "boot": ("prepare, judge and admit, as systemd does at every boot: boot", "boot"),
    "stage": ("one stage of the boot, or all that there are: stage [NAME]", "stage"),
    "timeline": ("what each stage took, and its limit: timeline [--json]", "timeline_verb"),
    "interruption": ("watch for the provider's notices, to the end: interruption", "interruption"),
    "record": ("record this machine, scrubbed: record DIR [--expect FILE]", "record_verb"),
    "replay": ("judge a recording: replay DIR --expect FILE [--json]", "replay_verb"),
    "kernel": ("run a CUDA kernel on each GPU through libcuda; prints JSON", "kernel_verb"),
}
USAGE = 2
ROOT = "GPUTIER_SYSROOT"


def root() -> str:
    """The root for files and absolute paths: GPUTIER_SYSROOT, else the machine's own."""
    return os.environ.get(ROOT) or "/"


def main(arguments: Sequence[str]) -> int:
    """Run a verb; its exit status."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        sys.stdout.write(usage())
        return 0
    if arguments[0] == "--version":
        sys.stdout.write(f"gputier-node {__version__}\n")
        return 0
    verb = arguments[0]
    if verb not in VERBS:
        sys.stderr.write(f"gputier-node: there is no verb `{verb}`\n{usage()}")
        return USAGE
    module = importlib.import_module(f"gputier.node.verbs.{VERBS[verb][1]}")
    try:
        return int(module.main(list(arguments[1:])))
    except WrongInput as trouble:
        for line in trouble.lines:
            sys.stderr.write(f"gputier-node: {line}\n")
        return USAGE


def usage() -> str:
    """What `--help` prints."""
    rows = "".join(f"  {name:<9} {text}\n" for name, (text, _) in VERBS.items() if name != "kernel")
    return (
        "gputier-node: proves that a machine is what was paid for.\n\n"
        f"{rows}\n"
        "exit: 0 healthy, 10 reboot, 20 replace, 30 config, 40 inconclusive, 2 wrong use or a bad "
        "expectation\n"
        f"{ROOT}=DIR: files and absolute paths are looked up below DIR\n"
    )
