"""The proxy as everybody wants to be told of it. Metadata never goes through one.

A proxy would answer the metadata's questions about itself, or not at all, and the node would take
another machine's identity for its own.
"""

from __future__ import annotations

import re
import urllib.parse

from gputier.node.settings import Settings

# The metadata services by address and name (AWS also by IPv6), and this machine.
ALWAYS = ("localhost", "127.0.0.1", "::1", "169.254.169.254", "fd00:ec2::254",
          "metadata.google.internal", "metadata")  # fmt: skip
# What a shell in single quotes, systemd and apt all read without a meaning of its own.
PLAIN = ":/?#[]@!&()*+,;=-._~%"


def variables(settings: Settings) -> dict[str, str]:
    """The variables, in both spellings; empty where the plan has no proxy.

    curl reads http_proxy in small letters only, others only in capitals.
    """
    found: dict[str, str] = {}
    for kind in ("http", "https"):
        address = settings.text(f"proxy.{kind}")
        if address:
            found[f"{kind}_proxy"] = urllib.parse.quote(address, safe=PLAIN)
    if found:
        found["no_proxy"] = ",".join(exempt(settings))
    return {**found, **{name.upper(): value for name, value in found.items()}}


def exempt(settings: Settings) -> list[str]:
    """Hosts that are asked directly: those of the plan, and metadata always."""
    asked = re.split(r"[,\s]+", settings.text("proxy.no_proxy") or "")
    named = [urllib.parse.quote(name, safe=PLAIN) for name in asked if name]
    return list(dict.fromkeys([*ALWAYS, *named]))
