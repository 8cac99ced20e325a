"""The report as one screen of text, for the console and the serial port: the verdict first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gputier.node.result import CONFIG, HEALTHY, INCONCLUSIVE, REBOOT, REPLACE, WARNING

BAD = (REPLACE, REBOOT, CONFIG, INCONCLUSIVE)
WIDTH = 110
LABEL = 20
ASCII = {"✓": "+", "✗": "x", "–": "-", "×": "x", "≥": ">=", "≤": "<=", "±": "+-", "…": "...",
         "°": " ", "−": "-"}  # fmt: skip


def lines(report: Mapping[str, Any]) -> list[str]:
    """Verdict, what is wrong with its evidence, warnings, what is right, the remedy."""
    checks: Sequence[Mapping[str, Any]] = report["checks"]
    found = [_head(report)]
    causes = [check for check in checks if check["outcome"] in BAD and not check["because"]]
    causes.sort(key=lambda check: BAD.index(check["outcome"]))
    for check in causes:
        found += _labelled("✗", check)
    for check in checks:
        if check["outcome"] == WARNING:
            found += _labelled("!", check)
    found += _wrapped([f"✓ {_short(check)}" for check in checks if check["outcome"] == HEALTHY])
    found += _wrapped(_skipped(checks))
    found += _wrapped([_gpu(gpu) for gpu in report.get("gpus", ())])
    found += [f"  ! {text}" for text in report.get("warnings", ())]
    if report.get("remedy"):
        found.append(f"  remedy: {report['remedy']}")
    return found


def _head(report: Mapping[str, Any]) -> str:
    machine = report.get("machine", {})
    parts = [f"gputier-node: {str(report['outcome']).upper()}"]
    who = " ".join(filter(None, (machine.get("instance_type"), machine.get("instance_id"))))
    parts += [who] if who else []
    parts.append(f"{report.get('seconds', 0):.0f} s")
    if report.get("usd") is not None:
        parts.append(f"${report['usd']:.2f} spent on validation")
    return "   ".join(parts)


def _gpu(gpu: Mapping[str, Any]) -> str:
    """`GPU 3  34 °C  0 %  1/81559 MiB`; what the driver does not show is left out."""
    parts = [f"GPU {gpu['gpu']}"]
    if gpu["temperature_c"] is not None:
        parts.append(f"{gpu['temperature_c']:.0f} °C")
    if gpu["utilisation_percent"] is not None:
        parts.append(f"{gpu['utilisation_percent']:.0f} %")
    if gpu["memory_used_mib"] is not None and gpu["memory_total_mib"] is not None:
        parts.append(f"{gpu['memory_used_mib']:.0f}/{gpu['memory_total_mib']:.0f} MiB")
    return "  ".join(parts)


def _skipped(checks: Sequence[Mapping[str, Any]]) -> list[str]:
    """One item per reason: behind one failed check there may be twenty that say nothing."""
    behind: dict[str, list[str]] = {}
    for check in checks:
        if check["because"]:
            behind.setdefault(", ".join(check["because"]), []).append(str(check["title"]))
    return [
        f"– {', '.join(titles) if len(titles) < 4 else f'{len(titles)} checks'} skipped ({reason})"
        for reason, titles in behind.items()
    ]


def _short(check: Mapping[str, Any]) -> str:
    return str(check.get("short") or check["title"])


def _labelled(mark: str, check: Mapping[str, Any]) -> list[str]:
    evidence = str(check["evidence"])
    if len(evidence) > 400:
        evidence = evidence[:399] + "…"
    found = [f"  {mark} {check['title']:<{LABEL}} {evidence}"]
    if check["expected"]:
        found.append(f"    {'':<{LABEL}} expected: {check['expected']}  [{check['source']}]")
    return found


def _wrapped(items: Sequence[str]) -> list[str]:
    found: list[str] = []
    for item in items:
        if found and len(found[-1]) + len(item) + 3 <= WIDTH:
            found[-1] += f"   {item}"
        else:
            found.append(f"  {item}")
    return found


def text(report: Mapping[str, Any], encoding: str | None) -> str:
    """The screen, in plain ASCII where the terminal cannot show more."""
    screen = "\n".join(lines(report)) + "\n"
    try:
        screen.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        for mark, plain in ASCII.items():
            screen = screen.replace(mark, plain)
        screen = screen.encode("ascii", "replace").decode("ascii")
    return screen
