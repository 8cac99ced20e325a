"""The proxy, told to everything that goes out: shells, services, package managers, docker."""

from __future__ import annotations

import urllib.parse

from gputier.node import ini, proxies, units
from gputier.node.stages import StageResult, Work, ok

SESSIONS = "/etc/environment.d/90-gputier-proxy.conf"
SHELLS = "/etc/profile.d/gputier-proxy.sh"
APT = "/etc/apt/apt.conf.d/95gputier-proxy"
DNF = "/etc/dnf/dnf.conf"
MANAGER = "/etc/systemd/system.conf.d/10-gputier-proxy.conf"
# They are started before us, and keep the environment that they were started with.
DAEMONS = ("docker", "containerd")


def run(work: Work) -> StageResult:
    """Every file that says where the proxy is, and the running managers told of it."""
    found = proxies.variables(work.settings)
    text = "".join(f"{name}={value}\n" for name, value in sorted(found.items()))
    changed = work.put(SESSIONS, text)
    exports = "".join(f"export {name}='{found[name]}'\n" for name in sorted(found))
    changed = work.put(SHELLS, exports) or changed
    changed = _packages(work) or changed
    changed = _services(work, found) or changed
    shown = ", ".join(
        f"{kind} by {host(work, kind)}" for kind in ("http", "https") if host(work, kind)
    )
    return ok(f"{shown}; not for {', '.join(proxies.exempt(work.settings)[3:5])} …", changed)


def host(work: Work, kind: str) -> str:
    """The proxy's host and port: a name and a password in the address stay out of what is told."""
    address = urllib.parse.urlsplit(work.settings.text(f"proxy.{kind}") or "")
    return address.netloc.rsplit("@", 1)[-1]


def _packages(work: Work) -> bool:
    changed = False
    if work.host.which("apt-get"):
        lines = [
            f'Acquire::{kind}::Proxy "{address}";\n'
            for kind in ("http", "https")
            for address in [proxies.variables(work.settings).get(f"{kind}_proxy")]
            if address
        ]
        changed = work.put(APT, "".join(lines))
    address = work.settings.text("proxy.https") or work.settings.text("proxy.http")
    if work.host.which("dnf") and address:
        content = work.host.read(DNF) or "[main]\n"
        changed = work.put(DNF, ini.with_key(content, "main", "proxy", address)) or changed
    return changed


def _services(work: Work, found: dict[str, str]) -> bool:
    """For services of now and of later boots; daemons that run already are started again."""
    given = [units.assignment(name, value) for name, value in sorted(found.items())]
    changed = work.put(MANAGER, f"[Manager]\nDefaultEnvironment={' '.join(given)}\n")
    if changed:
        pairs = [f"{name}={value}" for name, value in sorted(found.items())]
        work.must("tell systemd", "systemctl", "set-environment", *pairs, limit=10.0)
    drop_in = "[Service]\n" + "".join(f"Environment={one}\n" for one in given)
    written = [
        daemon
        for daemon in DAEMONS
        if work.put(f"{units.FOLDER}/{daemon}.service.d/10-gputier-proxy.conf", drop_in)
    ]
    if written:
        units.reload(work)
        for daemon in written:
            work.must(f"tell {daemon}", "systemctl", "try-restart", daemon, limit=20.0)
    return changed or bool(written)
