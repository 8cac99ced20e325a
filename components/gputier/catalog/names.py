"""GPU names as people write them, against the catalogue's exact model names."""

from __future__ import annotations

import re
from collections.abc import Iterable

_BRANDS = re.compile(r"^(?:(?:NVIDIA|TESLA|GEFORCE)[-\s_]+)+", re.IGNORECASE)
_SEPARATORS = re.compile(r"[-\s_]+")


def _compact(text: str) -> str:
    return _SEPARATORS.sub("", text).upper()


def match_gpus(text: str, models: Iterable[str]) -> tuple[str, ...]:
    """The models that `text` names, sorted: an exact name alone, else every variant it begins.

    Matching ends at a name's own word boundaries, so `H20` is never H200, `A10` never A10G and
    `RTX 6000` neither the Turing nor the Blackwell card. Case, spaces, underscores, hyphens and
    the words NVIDIA, Tesla and GeForce do not matter.
    """
    wanted = _compact(_BRANDS.sub("", text.strip()))
    if not wanted:
        return ()
    names = sorted(models)
    exact = tuple(name for name in names if _compact(name) == wanted)
    return exact or tuple(name for name in names if wanted in _beginnings(name))


def _beginnings(name: str) -> set[str]:
    words = name.upper().split("-")
    return {"".join(words[:end]) for end in range(1, len(words) + 1)}
