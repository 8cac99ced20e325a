"""Takes out of a recording what identifies a machine, its owner or its place.

The same secret gets the same stand-in everywhere, so that what belonged together still does.
What a check judges (versions, counts, PCI addresses, names of cards) is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from gputier.node.host import Done
from gputier.node.recording import Recording

KEPT_ADDRESSES = ("127.", "0.0.0.0", "169.254.169.254", "255.")  # noqa: S104 (matched, never bound)
# Files that are nothing but an identity.
WHOLE = (
    "/var/lib/cloud/data/instance-id",
    "/etc/machine-id",
    "/etc/hostname",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/random/boot_id",
    "/sys/class/dmi/id/product_uuid",
    "/sys/class/dmi/id/product_serial",
    "/sys/class/dmi/id/board_asset_tag",
)


class Rule(NamedTuple):
    """A pattern (its last group is the secret) and what stands for the n-th different one."""

    pattern: re.Pattern[str]
    stand_in: Callable[[int], str]


def _rule(pattern: str, stand_in: str) -> Rule:
    def fill(n: int) -> str:
        return stand_in.format(n=n)

    return Rule(re.compile(pattern, re.IGNORECASE), fill)


RULES = (
    _rule(r"\b([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b",
          "00000000-0000-4000-8000-{n:012x}"),
    _rule(r"\b((?:[0-9a-f]{2}:){5}[0-9a-f]{2})\b", "02:00:00:00:00:{n:02x}"),
    _rule(r"\b([0-9a-f]{2}(?:-[0-9a-f]{2}){7})\b", "00-00-00-00-00-00-00-{n:02x}"),
    _rule(r"\b((?:i|ami|vol|eni|subnet|vpc|sg|eipalloc|cr|lt|r)-[0-9a-f]{8,17})\b",
          "i-{n:017x}"),
    _rule(r"\barn:aws[\w-]*:\w+:[\w-]*:(\d{12})\b", "{n:012d}"),
    # Twelve digits alone may as well be a size: only where something says account.
    _rule(r"\baccount[ _-]?(?:id)?\"?\s*[:=]\s*\"?(\d{12})\b", "{n:012d}"),
    _rule(r"\b((?:AKIA|ASIA)[0-9A-Z]{16})\b", "AKIA{n:016d}"),
    _rule(r"\bprojects/([\w-]+)", "project-{n}"),
    _rule(r"\b([\w.+-]+@[\w-]+\.[\w.-]+)\b", "nobody{n}@example.org"),
    _rule(r"(?:serial(?: number)?|asset tag|board id|guid)\"?\s*[:=]\s*\"?([\w:.-]{4,})",
          "SERIAL{n:06d}"),
    _rule(r"\b(0x(?!0000)[0-9a-f]{16}|[0-9a-f]{4}(?::[0-9a-f]{4}){3})\b", "0x{n:016x}"),
    _rule(r"\b((?:fe80|2[0-9a-f]{3}|fd[0-9a-f]{2})(?::[0-9a-f]{0,4}){2,7})\b", "2001:db8::{n:x}"),
    _rule(r"\b(ip-\d+-\d+-\d+-\d+)\b", "host-{n}"),
)  # fmt: skip
_IPV4 = re.compile(r"(?<![\d.])(\d{1,3}(?:\.\d{1,3}){3})(?![\d.])")


class Scrubber:
    """Replaces secrets, remembering each."""

    def __init__(self, names: tuple[str, ...] = ()) -> None:
        self.known: dict[tuple[int, str], str] = {}
        self.names = tuple(name for name in names if len(name) > 3)

    def text(self, text: str) -> str:
        for number, rule in enumerate(RULES):
            text = rule.pattern.sub(lambda hit, n=number, r=rule: self._swap(hit, n, r), text)
        text = _IPV4.sub(self._address, text)
        for name in self.names:
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "host-0", text)
        return text

    def _swap(self, hit: re.Match[str], number: int, rule: Rule) -> str:
        secret = hit[1]
        if set(secret) <= set("0x:.-") or secret.lower() in ("n/a", "none", "unknown"):
            return hit[0]
        whole, start = hit[0], hit.start(1) - hit.start()
        return (
            whole[:start]
            + self._known(number, secret, rule.stand_in)
            + whole[start + len(secret) :]
        )

    def _address(self, hit: re.Match[str]) -> str:
        address = hit[1]
        parts = [int(part) for part in address.split(".")]
        if max(parts) > 255 or address.startswith(KEPT_ADDRESSES):
            return address
        return self._known(-1, address, lambda n: f"192.0.2.{n % 256}")

    def _known(self, number: int, secret: str, stand_in: Callable[[int], str]) -> str:
        key = (number, secret.lower())
        if key not in self.known:
            count = sum(1 for rule, _ in self.known if rule == number)
            self.known[key] = stand_in(count + 1)
        return self.known[key]


def recording(found: Recording) -> Recording:
    """The recording without what identifies."""
    hostname = (found.files.get("/proc/sys/kernel/hostname") or "").strip()
    scrubber = Scrubber((hostname, hostname.split(".")[0]))
    files: dict[str, str] = {}
    for path, text in found.files.items():
        if path in WHOLE or path.endswith("/serial"):
            files[scrubber.text(path)] = "scrubbed\n"
        else:
            files[scrubber.text(path)] = scrubber.text(text)
    return found._replace(
        commands=tuple(_command(done, scrubber) for done in found.commands),
        files=files,
        folders={
            scrubber.text(path): tuple(scrubber.text(name) for name in names)
            for path, names in found.folders.items()
        },
        links={scrubber.text(p): scrubber.text(t) for p, t in found.links.items()},
        present=tuple(scrubber.text(path) for path in found.present),
    )


def _command(done: Done, scrubber: Scrubber) -> Done:
    out = scrubber.text(done.out)
    if done.argv[-1].endswith("/api/token"):
        # The metadata service's answer: its headers, and the token behind an empty line.
        out = re.sub(r"(\r?\n\r?\n).*", r"\1scrubbed", out, flags=re.S)
    return done._replace(
        argv=tuple(scrubber.text(part) for part in done.argv),
        out=out,
        err=scrubber.text(done.err),
    )
