"""Accelerators that are not NVIDIA's, so that asking for one gets a clear answer."""

from __future__ import annotations

import re

_OTHERS = (
    ("a Google TPU", r"(cloud[ _-]?)?tpu([ _-]?v?\d.*)?|v[2-6](e|p|litepod|lite)?(-\d+)?|trillium|ironwood"
     r"|ct\d\w+-.*"),
    ("an AWS Trainium accelerator", r"trainium.*|trn\d.*"),
    ("an AWS Inferentia accelerator", r"inferentia.*|inf\d(\..*)?"),
    ("an AMD GPU", r"(amd|radeon|instinct)\b.*|mi\d{2,3}[a-z]?\b.*|v620|v520|g4ad\..*|w7900|rx[ _-]?\d{4}.*"
     r"|standard_n(d|v)\w*mi\d+\w*|standard_nv\w*v4|standard_ng\w+"),
    ("an Intel accelerator", r"(intel|gaudi|habana|ponte)\b.*|gaudi\d.*|hl-\d+.*|dl\d[a-z]?\..*|arc[ _-]?\w+"
     r"|max[ _-]?1\d{3}"),
)  # fmt: skip
_COMPILED = tuple((what, re.compile(pattern, re.IGNORECASE)) for what, pattern in _OTHERS)


def other_accelerator(name: str) -> str | None:
    """What `name` (a GPU or instance type) is when it is another maker's accelerator, else None."""
    stripped = name.strip()
    return next((what for what, form in _COMPILED if form.fullmatch(stripped)), None)
