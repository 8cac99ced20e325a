"""Linear-attention and state-space layers: their parameters, and the state they hold a sequence.

Such a layer has no KV cache. Its state is of fixed size however long the sequence is.
"""

from __future__ import annotations

from typing import NamedTuple


class Mixer(NamedTuple):
    """One such layer: its parameters, and the values that one sequence leaves in it."""

    parameters: float
    state: float


def mamba1(hidden: int, inner: int, state: int, rank: int, kernel: int) -> Mixer:
    """Mamba (arXiv 2312.00752): `rank` is that of the time step's projection."""
    projections = hidden * 2 * inner + inner * (rank + 2 * state) + rank * inner + inner * hidden
    return Mixer(projections + inner * (kernel + 1 + state + 2), inner * (state + _kept(kernel)))


def mamba2(hidden: int, inner: int, state: int, shape: tuple[int, int], kernel: int) -> Mixer:
    """Mamba-2 (arXiv 2405.21060). `shape` is (heads, groups)."""
    heads, groups = shape
    convolved = inner + 2 * groups * state
    projections = hidden * (inner + convolved + heads) + inner * hidden
    small = convolved * (kernel + 1) + 3 * heads + inner
    return Mixer(projections + small, inner * state + convolved * _kept(kernel))


class Heads(NamedTuple):
    """Heads of a delta-rule layer: how many, and how wide."""

    keys: int
    values: int
    key_size: int
    value_size: int

    @property
    def key_width(self) -> int:
        """Width of all keys (and of all queries)."""
        return self.keys * self.key_size

    @property
    def value_width(self) -> int:
        """Width of all values."""
        return self.values * self.value_size


def gated_delta(hidden: int, heads: Heads, kernel: int) -> Mixer:
    """Gated DeltaNet (arXiv 2412.06464), as Qwen3-Next has it."""
    convolved = 2 * heads.key_width + heads.value_width
    projections = hidden * (2 * heads.key_width + 2 * heads.value_width + 2 * heads.values)
    small = convolved * kernel + 2 * heads.values + heads.value_size
    return Mixer(projections + small + heads.value_width * hidden, _matrix_state(heads, kernel))


def kimi_delta(hidden: int, heads: Heads, kernel: int) -> Mixer:
    """Kimi Delta Attention (arXiv 2510.26692): two low-rank gates beside q, k, v and o."""
    width = heads.key_width
    gates = 2 * heads.key_size * (hidden + width) + hidden * heads.keys
    small = 3 * width * kernel + heads.keys + width + heads.key_size
    return Mixer(4 * hidden * width + gates + small, _matrix_state(heads, kernel))


def lightning(hidden: int, heads: Heads) -> Mixer:
    """Lightning Attention (arXiv 2401.04658), as MiniMax-01 has it: q, k, v, gate and o."""
    width = heads.key_width
    return Mixer(5 * hidden * width + width, heads.values * heads.key_size * heads.value_size)


def _matrix_state(heads: Heads, kernel: int) -> float:
    """A key × value matrix per head, and the inputs that the convolution still needs."""
    convolved = 2 * heads.key_width + heads.value_width
    return heads.values * heads.key_size * heads.value_size + convolved * _kept(kernel)


def _kept(kernel: int) -> int:
    return max(0, kernel - 1)
