"""What a first boot takes, stage by stage: measured in rehearsals, kept as data, drawn.

`make rehearsal ARGS=--update-timeline` measures again (on a quiet machine), `make docs` draws.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

from tests.rehearsal.container import Container
from tests.rehearsal.scene import Scene, plain
from tests.rehearsal.vm import VirtualMachine

DATA = Path(__file__).parent / "timelines"
BEGAN = re.compile(r"gputier: bundle there after (?P<seconds>[\d.]+) s")
DONE = re.compile(
    r"gputier-node: stage (?P<name>[\w-]+): (?P<outcome>\w+), (?P<seconds>[\d.]+) of "
    r"(?P<limit>[\d.]+) s"
)
UP = re.compile(r"\[ *(?P<up>\d+\.\d+)\] ")
START = "start"


@dataclass(frozen=True, slots=True)
class Row:
    """One stage. `at`: seconds from power-on; `limit` 0 where nothing of ours limits it."""

    name: str
    at: float
    seconds: float
    limit: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """The first boot of one machine. `tier` is container or vm, `by` what it ran on."""

    workload: str
    machine: str
    tier: str
    by: str
    rows: tuple[Row, ...]

    @property
    def seconds(self) -> float:
        return max(row.at + row.seconds for row in self.rows)

    @property
    def limit(self) -> float:
        return sum(row.limit for row in self.rows)


def measure(scene: Scene[Any], machine: Container | VirtualMachine) -> Timeline:
    """The first boot of a rehearsal, by the account that the machine gives on its console."""
    settings = scene.cloud.given.settings
    rows = rows_of(plain(machine.console()), float(settings["limits"]["bundle"]))
    by = "systemd-nspawn"
    if isinstance(machine, VirtualMachine):
        by = f"QEMU, {'KVM' if machine.accelerator == 'kvm' else 'emulated'}, "
        by += f"{machine.hardware.cpus} vCPUs"
    name = scene.cloud.given.name
    return Timeline(name, str(settings["instance_type"]), machine.tier, by, tuple(rows))


def rows_of(console: str, bundle: float) -> list[Row]:
    found: list[Row] = []
    for line in console.splitlines():
        up = UP.search(line)
        if up is None:
            continue
        ended = float(up["up"])
        if began := BEGAN.search(line):
            if found:
                break  # the next boot
            seconds = float(began["seconds"])
            at = round(ended - seconds, 1)
            found += [Row(START, 0.0, at, 0.0), Row("bundle", at, seconds, bundle)]
        elif done := DONE.search(line):
            seconds = float(done["seconds"])
            at = round(ended - seconds, 1)
            found.append(Row(done["name"], at, seconds, float(done["limit"])))
    return found


# --- kept ---------------------------------------------------------------------------------------


def keep(found: Timeline) -> None:
    DATA.mkdir(exist_ok=True)
    file = DATA / f"{found.workload}.json"
    file.write_text(json.dumps(asdict(found), indent=1) + "\n", encoding="utf-8")


def kept() -> list[Timeline]:
    """All that were measured, virtual machines first."""
    found: list[Timeline] = []
    for file in sorted(DATA.glob("*.json")):
        data = json.loads(file.read_text(encoding="utf-8"))
        rows = tuple(Row(**row) for row in data.pop("rows"))
        found.append(Timeline(**data, rows=rows))
    return sorted(found, key=lambda one: (one.tier != "vm", one.workload))


# --- shown --------------------------------------------------------------------------------------


def text(found: list[Timeline]) -> str:
    """A table for each machine."""
    parts: list[str] = []
    for one in found:
        parts += [f"**{one.machine}** ({one.by})", "", "| stage | from | takes | limit |"]
        parts.append("| --- | --- | --- | --- |")
        for row in one.rows:
            limit = f"{row.limit:,.0f} s" if row.limit else "–"
            parts.append(f"| {row.name} | {row.at:.1f} s | {row.seconds:.1f} s | {limit} |")
        parts += [f"| together | | {one.seconds:.1f} s | {one.limit:,.0f} s |", ""]
    return "\n".join(parts)


LEFT, RIGHT, WIDTH, LINE, HEAD = 130, 150, 860, 22, 46


def picture(found: Timeline) -> str:
    """One machine's first boot as bars along the time, the limits beside them, as SVG."""
    height = HEAD + LINE * len(found.rows) + 30
    scale = (WIDTH - LEFT - RIGHT) / max(found.seconds, 1.0)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="system-ui, sans-serif" font-size="12">',
        f"<title>The first boot of a {escape(found.machine)}, rehearsed</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="20" font-size="14" fill="#1f2328">First boot of a {escape(found.machine)}'
        f" in rehearsal ({escape(found.by)}): {found.seconds:.0f} s</text>",
        f'<text x="{WIDTH - 12}" y="36" text-anchor="end" fill="#59636e">took, of its limit</text>',
    ]
    parts += _grid(found, scale, height)
    for number, row in enumerate(found.rows):
        y = HEAD + number * LINE
        x, wide = LEFT + row.at * scale, max(row.seconds * scale, 1.5)
        color = "#8c959f" if row.name == START else "#0969da"
        limit = f" of {row.limit:,.0f} s" if row.limit else ""
        parts += [
            f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end" fill="#1f2328">'
            f"{escape(row.name)}</text>",
            f'<rect x="{x:.1f}" y="{y + 4}" width="{wide:.1f}" height="13" rx="2" fill="{color}"/>',
            f'<text x="{WIDTH - 12}" y="{y + 14}" text-anchor="end" fill="#59636e">'
            f"{row.seconds:.1f} s{limit}</text>",
        ]
    return "\n".join([*parts, "</svg>", ""])


def _grid(found: Timeline, scale: float, height: int) -> list[str]:
    """A line for every round number of seconds, at most ten of them."""
    step = next(s for s in (1, 2, 5, 10, 20, 30, 60, 120, 300, 600) if found.seconds / s <= 10)
    parts: list[str] = []
    for second in range(0, int(found.seconds) + 1, step):
        x = LEFT + second * scale
        parts.append(
            f'<line x1="{x:.1f}" y1="{HEAD}" x2="{x:.1f}" y2="{height - 24}" stroke="#d1d9e0"/>'
        )
        parts.append(
            f'<text x="{x:.1f}" y="{height - 10}" text-anchor="middle" fill="#59636e">'
            f"{second} s</text>"
        )
    return parts
