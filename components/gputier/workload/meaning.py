"""What a declaration means, as a digest for the lock.

Equal for equal meaning, whatever the order of keys, the spelling of units or the spelt-out defaults
of the file; and equal for the engine's reading of a stack's config and our own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from gputier.workload.base import Spec
from gputier.workload.ml import Model
from gputier.workload.model import Discount, Workload
from gputier.workload.shapes import as_items, as_map


def digest(workload: Workload, environment: str = "dev", discounts: Sequence[Discount] = ()) -> str:
    """16 hex digits of SHA-256 over what was declared; equal for equal meaning.

    Defaults are left out, so that a release that adds fields keeps every digest. Lists whose order
    means nothing are sorted; a model's `ORDERED` ones keep it. A former name decides nothing: a
    renamed workload keeps its machine.
    """
    told = {
        "environment": environment,
        "discounts": sorted((meaning(d) for d in discounts), key=_canonical),
        "workload": {k: v for k, v in meaning(workload).items() if k != "was"},
    }
    return hashlib.sha256(_canonical(told).encode()).hexdigest()[:16]


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _contents(value: Spec) -> dict[str, str]:
    """A file that a model names decides the machine by what is in it, not by its name."""
    if not isinstance(value, Model):
        return {}
    paths = {"config": value.config_path, "weights_index": value.weights_index_path}
    return {
        f"{name} contents": hashlib.sha256(path.read_bytes()).hexdigest()
        for name, path in paths.items()
        if path is not None and path.is_file()
    }


def meaning(value: object, *, ordered: bool = False) -> Any:
    """The plain values of what was declared, defaults left out."""
    if isinstance(value, Spec):
        fields = type(value).model_fields
        here = {name: getattr(value, name) for name in fields}
        told = {
            n: meaning(v, ordered=n in value.ORDERED)
            for n, v in here.items()
            if v != fields[n].default
        }
        return told | _contents(value)
    if (entries := as_map(value)) is not None:
        return {key: meaning(item) for key, item in entries.items()}
    if (items := as_items(value)) is not None:
        plain = [meaning(item) for item in items]
        return plain if ordered else sorted(plain, key=_canonical)
    if isinstance(value, float):  # 12 digits: 1GB/s and 1000MB/s may differ in the last bit
        return int(value) if value.is_integer() else float(f"{value:.12g}")
    return value
