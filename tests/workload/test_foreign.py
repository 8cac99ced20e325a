"""Accelerators that are not NVIDIA's get a clear answer; NVIDIA's are never taken for them."""

from __future__ import annotations

import pytest

from gputier import catalog
from gputier.workload.foreign import other_accelerator

OTHERS = {
    "a Google TPU": "v5e, v5p-8, TPU v4, cloud-tpu, v5litepod-8, Trillium, ct5lp-hightpu-4t, tpu",
    "an AWS Trainium accelerator": "Trainium2, trn1.32xlarge, trn2.48xlarge",
    "an AWS Inferentia accelerator": "inferentia2, inf2.48xlarge",
    "an AMD GPU": "MI300X, mi250, AMD Instinct MI300X, Radeon Pro V520, V620, g4ad.4xlarge,"
    " Standard_ND96isr_MI300X_v5, Standard_NV4as_v4, RX 7900",
    "an Intel accelerator": "Gaudi2, habana-gaudi, Intel Max 1550, dl1.24xlarge, dl2q.24xlarge",
}


@pytest.mark.parametrize(
    ("name", "what"), [(name, what) for what, names in OTHERS.items() for name in names.split(", ")]
)
def test_another_makers_accelerator_is_known_for_what_it_is(name: str, what: str) -> None:
    assert other_accelerator(name) == what


def test_nothing_of_the_catalogue_is_taken_for_another_makers() -> None:
    known = catalog.load()
    names = {*known.gpus, *(gpu.display_name for gpu in known.gpus.values())}
    names |= {name for _, name in known.types}
    assert len(names) > 300
    assert {name: other for name in names if (other := other_accelerator(name))} == {}
