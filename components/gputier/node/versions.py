"""Versions as they are compared, and which driver a CUDA version needs."""

from __future__ import annotations

import re
from typing import NamedTuple

_VERSION = re.compile(r"^\s*v?(\d+(?:\.\d+)*)([a-z]+\d*)?(?:\+([\w.]+))?")


class Version(NamedTuple):
    numbers: tuple[int, ...]
    local: str

    @property
    def major(self) -> int:
        return self.numbers[0]


def parse(text: str | None) -> Version | None:
    """`2.9.0+cu128` → (2, 9, 0) and `cu128`; None when it does not start with a number."""
    found = _VERSION.match(text or "")
    if not found:
        return None
    return Version(tuple(int(part) for part in found[1].split(".")), found[3] or "")


def padded(version: Version, length: int) -> tuple[int, ...]:
    """Its numbers, with zeros for the parts that are not named."""
    return (version.numbers + (0,) * length)[:length]


def release(cuda: str) -> str:
    """`13.0.2` → 13.0: of a CUDA version, what drivers, toolkits and frameworks show."""
    return ".".join(cuda.split(".")[:2])


def at_least(have: str, floor: str) -> bool:
    """Whether `have` is `floor` or newer; parts that the floor leaves out are zero."""
    left, right = parse(have), parse(floor)
    if left is None or right is None:
        return False
    length = max(len(left.numbers), len(right.numbers))
    return padded(left, length) >= padded(right, length)


def at_most(have: str, ceiling: str) -> bool:
    """Whether `have` is `ceiling` or older; `580` takes every 580.x."""
    left, right = parse(have), parse(ceiling)
    if left is None or right is None:
        return False
    return left.numbers[: len(right.numbers)] <= right.numbers


def same(have: str, wanted: str) -> bool:
    """Whether `have` is the version `wanted` means: as many parts as it names, and its local part.

    `2.9` takes 2.9.1; `2.9.0+cu128` takes neither 2.9.0+cu126 nor a bare 2.9.0.
    """
    left, right = parse(have), parse(wanted)
    if left is None or right is None:
        return False
    if right.local and left.local != right.local:
        return False
    length = len(right.numbers)
    return padded(left, length) == right.numbers


def cuda_of_index(index: str | None) -> str | None:
    """`https://download.pytorch.org/whl/cu128` → 12.8; None when it names no CUDA."""
    found = re.search(r"cu(\d{2})(\d)\b", index or "")
    return f"{found[1]}.{found[2]}" if found else None


class CudaDriver(NamedTuple):
    """CUDA `major` needs at least this driver branch on Linux."""

    major: int
    branch: int
    source: str
    date: str


COMPATIBILITY = "https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html"
CUDA_DRIVERS = (
    CudaDriver(11, 450, COMPATIBILITY, "2026-08"),
    CudaDriver(12, 525, COMPATIBILITY, "2026-08"),
    CudaDriver(13, 580, COMPATIBILITY, "2026-08"),
)


def branch_for(cuda: str) -> CudaDriver | None:
    """The oldest driver branch that runs this CUDA version, None when the table has no row."""
    version = parse(cuda)
    return next((row for row in CUDA_DRIVERS if version and row.major == version.major), None)
