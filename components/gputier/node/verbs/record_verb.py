"""`record`: note what the checks learn of this machine, scrubbed, for a fixture or a report."""

from __future__ import annotations

import sys
from pathlib import Path

from gputier.node import boots, cli, recording, scrub, watching
from gputier.node.engine import Context
from gputier.node.expect import Expectation
from gputier.node.host import Host
from gputier.node.verbs import common

# What no check asks today, and a later one or a reader may want.
EXTRA = (
    ("nvidia-smi",),
    ("nvidia-smi", "-q"),
    ("nvidia-smi", "-q", "-x"),
    ("nvidia-smi", "topo", "-m"),
    ("nvidia-smi", "nvlink", "-s"),
    ("nvidia-smi", "nvlink", "-e"),
    ("nvidia-smi", "--help-query-gpu"),
    ("lspci", "-Dnnk"),
    ("lspci", "-vv"),
    ("lsblk", "-J", "-O"),
    ("ibstat",),
    ("ibv_devinfo",),
    ("fi_info", "-p", "efa", "-t", "FI_EP_RDM"),
    ("dcgmi", "discovery", "-l"),
    ("nvcc", "-V"),
    ("uname", "-a"),
    ("systemctl", "list-units", "--failed", "--no-pager"),
)
FILES = ("/proc/cmdline", "/proc/driver/nvidia/version", "/proc/driver/nvidia/params",
         "/etc/os-release", "/proc/stat", boots.BOOT_ID)  # fmt: skip


def main(arguments: list[str]) -> int:
    parser = common.parser("record", "Record this machine into a folder, without its identity.")
    parser.add_argument("folder", metavar="DIR")
    common.add_expect(parser)
    parser.add_argument("--depth", choices=("quick", "standard", "burn-in"))
    parser.add_argument("--note", default="", help="what is special about this machine")
    options = parser.parse_args(arguments)
    host = recording.Recorder(Host(cli.root()))
    wanted = _expectation(host, options.expect)
    found = common.judge(host, wanted, options.depth, keep=False)
    # With a memory of its own: a replay has to find every question that a fresh start asks.
    watching.Watch(Context(host, wanted)).step()
    for command in EXTRA:
        host.run(command, 30.0)
    for path in FILES:
        host.read(path)
    kind = str(found.report["machine"].get("instance_type") or "machine")
    origin = recording.Origin("real", "", options.note)
    text = scrub.recording(host.recording(origin, kind)).to_json()
    target = Path(options.folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
        (target / recording.FILE).write_text(text, encoding="utf-8")
    except OSError as error:
        sys.stderr.write(f"gputier-node: {target}: {error}\n")
        return 2
    sys.stderr.write(
        f"recorded {len(host.commands)} commands and {len(host.files)} files into "
        f"{target / recording.FILE}; read it once before you pass it on\n"
    )
    return 0


def _expectation(host: Host, path: str | None) -> Expectation:
    """Recording needs no expectation: without one, all that the plan would ask is left out."""
    if path is None and host.read(common.EXPECT) is None:
        return Expectation({})
    return common.read_expectation(host, path)
