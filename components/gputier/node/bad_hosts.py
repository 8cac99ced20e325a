"""Hosts that were given back, so that the same one is known when the provider hands it out again.

`bad-hosts/<workload>.json` holds fingerprints (digests of GPU UUIDs, the physical host where the
cloud tells it) for two weeks: providers repair hosts, and an exchanged card is judged anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gputier.node import plain
from gputier.node.cloud import shared
from gputier.node.cloud.store import Store

SCHEMA = "gputier/bad-hosts/1"
KEPT_SECONDS = 14 * 86400.0
KEPT = 200
# Of what the report calls placement, only these name one host; the others name a neighbourhood.
OF_ONE_HOST = ("physical_host", "host_id")


def key(workload: str) -> str:
    return f"bad-hosts/{workload}.json"


def same_host(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two fingerprints are of one host.

    A GPU that fell off the bus is missing from one of them, so a part of the other is enough; a
    GPU that neither holds in common was exchanged, and the host is another one since. Where only
    one of them shows any GPU the host's name is not enough: a host carries several machines, and
    what shows its GPUs can be judged by them.
    """
    smaller, larger = sorted((_gpus(one), _gpus(other)), key=len)
    for name in OF_ONE_HOST:
        mine, theirs = _placement(one).get(name), _placement(other).get(name)
        if mine and mine == theirs and not larger:
            return True
    return bool(smaller) and smaller <= larger


def met(store: Store, workload: str, fingerprint: Mapping[str, Any]) -> str | None:
    """Why this host is known to be bad, None when it is not. Raises Trouble."""
    data = shared.read(store, key(workload))
    for host in _kept(data, store.now()):
        if same_host(host, fingerprint):
            return (
                f"the same bad host: instance {host.get('instance')} gave it back for "
                f"{host.get('reason')}"
            )
    return None


def add(
    store: Store, workload: str, fingerprint: Mapping[str, Any], instance: str, reason: str
) -> bool:
    """Remember this host; False when it shows nothing to know it by. Raises Trouble."""
    placement = {n: v for n, v in _placement(fingerprint).items() if n in OF_ONE_HOST}
    gpus = sorted(_gpus(fingerprint))
    if not gpus and not placement:
        return False

    def change(data: Mapping[str, Any]) -> Mapping[str, Any] | None:
        now = store.now()
        kept = [host for host in _kept(data, now) if host.get("instance") != instance]
        mine = {
            "gpus": gpus,
            "placement": placement,
            "instance": instance,
            "reason": reason,
            "at": int(now),
        }
        return {"schema": SCHEMA, "hosts": [*kept, mine][-KEPT:]}

    shared.update(store, key(workload), change)
    return True


def _kept(data: Mapping[str, Any], now: float) -> list[dict[str, Any]]:
    hosts = [plain.mapping(item) or {} for item in plain.sequence(data.get("hosts")) or ()]
    return [host for host in hosts if now - _at(host) <= KEPT_SECONDS]


def _at(host: Mapping[str, Any]) -> float:
    at = host.get("at")
    return float(at) if isinstance(at, (int, float)) else 0.0


def _gpus(fingerprint: Mapping[str, Any]) -> set[str]:
    return {str(digest) for digest in plain.sequence(fingerprint.get("gpus")) or ()}


def _placement(fingerprint: Mapping[str, Any]) -> dict[str, Any]:
    return plain.mapping(fingerprint.get("placement")) or {}
