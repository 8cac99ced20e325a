"""Bytes per parameter of training state, by recipe (docs/sizing.md, "Training state").

    state        weights  gradients  master copy  AdamW moments   together
    mixed           2         4           4             8             18
    pure-16bit      2         2           –             4              8
    fp32            4         4           –             8             16

`mixed` is ZeRO's 16 bytes (arXiv 1910.02054) with gradients gathered in FP32, as DeepSpeed's bf16
engine and Megatron do: 18, the upper end of what recipes use.
"""

from __future__ import annotations

from typing import NamedTuple

from gputier.workload.training import Training


class StateBytes(NamedTuple):
    """Bytes per trained parameter."""

    weights: float
    gradients: float
    master: float
    moment: float
    """One moment of the optimizer in full precision for this state."""


STATES: dict[str, StateBytes] = {
    "mixed": StateBytes(2, 4, 4, 4),
    "pure-16bit": StateBytes(2, 2, 0, 2),
    "fp32": StateBytes(4, 4, 0, 4),
}

EIGHT_BIT_MOMENT = 1.0
"""bitsandbytes keeps each moment in one byte, its block scales are below 2 %."""

MOMENTS: dict[str, int] = {
    "adamw": 2, "adamw-8bit": 2, "paged-adamw-8bit": 2, "lion": 1, "sgd": 1, "adafactor": 0,
    "lomo": 0,
}  # fmt: skip
"""Values the optimizer keeps per parameter. SGD is counted with momentum; Adafactor's factored
moments are a row and a column per matrix; LOMO keeps none and no gradients (arXiv 2306.09782)."""


class Recipe(NamedTuple):
    """Bytes per trained parameter of one way to train."""

    weights: float
    gradients: float
    master: float
    moments: float

    @property
    def optimizer(self) -> float:
        """Master copy and moments."""
        return self.master + self.moments


def recipe(training: Training, state: str) -> Recipe:
    """The recipe of training parameters in this state with a declared optimizer."""
    base = STATES[state]
    lomo = training.optimizer == "lomo"
    eight_bit = training.optimizer.endswith("8bit")
    moment = EIGHT_BIT_MOMENT if eight_bit else base.moment
    return Recipe(
        weights=base.weights,
        gradients=0.0 if lomo or training.optimizer_in_backward else base.gradients,
        master=0.0 if lomo else base.master,
        moments=MOMENTS[training.optimizer] * moment,
    )


def adapter_recipe(training: Training) -> Recipe:
    """The recipe of the adapters of LoRA and QLoRA: they train in FP32, 4 + 4 + 2 × 4 = 16 bytes a
    parameter with AdamW."""
    return recipe(training, "fp32")
