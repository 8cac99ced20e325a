"""Accelerators that are not NVIDIA's, so that asking for one gets a clear answer."""

from __future__ import annotations

import re

# Patterns for the names of accelerators and of the instance types that have them.
_OTHERS = {
    "a Google TPU": r"(cloud[\s_-]?)?tpu([\s_-]?v?\d.*)? v[2-6](e|p|litepod|lite)?(-\d+)?"
    r" ct\d\w+-.* trillium ironwood",
    "an AWS Trainium accelerator": r"trainium.* trn\d.*",
    "an AWS Inferentia accelerator": r"inferentia.* inf\d(\..*)?",
    "an AMD GPU": r"(amd|radeon|instinct)\b.* mi\d{2,3}[a-z]?\b.* v[56]20 rx[\s_-]?\d{4}.* g4ad\..*"
    r" standard_n[dv]\w*mi\d+\w* standard_nv\d+as_v4 standard_ng\w+",
    "an Intel accelerator": r"(intel|gaudi|habana|ponte)\b.* gaudi\d.* hl-\d+.* dl\d[a-z]?\..*"
    r" max[\s_-]?1\d{3}",
}


def other_accelerator(name: str) -> str | None:
    """What `name` (a GPU or instance type) is when it is another maker's accelerator, else None."""
    for what, patterns in _OTHERS.items():
        if any(re.fullmatch(form, name.strip(), re.IGNORECASE) for form in patterns.split(" ")):
            return what
    return None
