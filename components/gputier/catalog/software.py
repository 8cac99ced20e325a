"""What software asks of a card and a driver: wheels, CUDA, driver branches, machine images.

Read when it is first asked for: most commands plan nothing that needs it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from gputier.catalog.tables import Row, Source, records

SOURCED, UNVERIFIED = "sourced", "unverified"
_VERSION = re.compile(r"\d+(\.\d+)*")
_CAPABILITY = re.compile(r"(\d+)\.(\d+)(\+PTX)?")

Version = tuple[int, ...]


@lru_cache(maxsize=4096)
def parse_version(text: str) -> Version:
    """`580.95.05` as numbers that compare. Raises ValueError for anything else."""
    if not _VERSION.fullmatch(text):
        raise ValueError(f"`{text}` is no version")
    return tuple(int(part) for part in text.split("."))


class Capability(NamedTuple):
    """One architecture that a wheel has code for; `ptx`: newer ones compile it themselves."""

    major: int
    minor: int
    ptx: bool

    def serves(self, card: float) -> bool:
        """Whether code for this runs on a card of that compute capability: in the same major
        version on any newer minor one (docs.nvidia.com/cuda, binary compatibility)."""
        major, minor = divmod(round(card * 10), 10)
        if self.ptx:
            return (major, minor) >= (self.major, self.minor)
        return major == self.major and minor >= self.minor

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}{'+PTX' if self.ptx else ''}"


class Wheel(NamedTuple):
    """One build of one release of a framework. `default` is what its own index page gives."""

    framework: str
    version: str
    build: str
    cuda: str
    default: bool
    cpu_arch: str
    capabilities: tuple[Capability, ...]
    index_url: str
    source: str
    as_of: str
    status: str

    @property
    def cuda_major(self) -> int:
        return parse_version(self.cuda)[0]

    def serves(self, card: float) -> bool:
        """Whether it has code for a card of that compute capability."""
        return any(one.serves(card) for one in self.capabilities)

    def is_of(self, version: str) -> bool:
        """Whether the row speaks of a version: `2.9` of 2.9 and of every 2.9.x."""
        return version == self.version or version.startswith(f"{self.version}.")


class CardDriver(NamedTuple):
    """The oldest driver for a card, and its kernel module: open, proprietary or either."""

    gpu_model: str
    driver_min: str
    module: str
    source: str
    as_of: str
    status: str


class Branch(NamedTuple):
    """A driver branch: the CUDA version it came with, its newest known release, and the one that
    is installed: the newest of which packages are known for the systems here, None without any."""

    branch: str
    kind: str  # lts, production, new-feature or ended
    cuda: str
    newest: str | None
    install: str | None
    source: str
    as_of: str
    status: str


class CudaDriver(NamedTuple):
    """The oldest driver that runs what is built for a major version of CUDA."""

    cuda_major: int
    driver_min: str
    source: str
    as_of: str
    status: str


class MachineImage(NamedTuple):
    """An image that a cloud publishes: `driver` None where it has none, `machines` () is any."""

    cloud: str
    name: str
    os: str
    cpu_arch: str
    driver: str | None
    cuda: str | None
    framework: str | None
    machines: frozenset[str]  # instance types, families, or family:card
    source: str
    as_of: str
    status: str


class SoftwareFacts(NamedTuple):
    """The five tables, each in the order of its file."""

    wheels: tuple[Wheel, ...]
    cards: Mapping[str, CardDriver]
    branches: tuple[Branch, ...]
    cuda: Mapping[int, CudaDriver]
    images: tuple[MachineImage, ...]


def software_facts(source: Source) -> SoftwareFacts:
    """Raises InvalidInput for a cell that is not what its column holds, with file and line."""
    tables = source.tables
    return SoftwareFacts(
        wheels=tuple(records(tables["wheels"], _wheel)),
        cards=MappingProxyType(
            {one.gpu_model: one for one in records(tables["gpu_drivers"], _card)}
        ),
        branches=tuple(records(tables["driver_branches"], _branch)),
        cuda=MappingProxyType(
            {one.cuda_major: one for one in records(tables["cuda_drivers"], _cuda)}
        ),
        images=tuple(records(tables["images"], _image)),
    )


def _version(row: Row, column: str) -> str:
    text = row.text(column)
    try:
        parse_version(text)
    except ValueError:
        raise ValueError(f"{column} is `{text}`, which is no version") from None
    return text


def _maybe_version(row: Row, column: str) -> str | None:
    return _version(row, column) if row.text(column) else None


def _one_of(row: Row, column: str, words: tuple[str, ...]) -> str:
    word = row.text(column)
    if word not in words:
        raise ValueError(f"{column} is `{word}`, not one of {', '.join(words)}")
    return word


def _rest(row: Row) -> tuple[str, str, str]:
    return (
        row.text("source"),
        row.text("as_of"),
        _one_of(row, "status", (SOURCED, UNVERIFIED)),
    )


def _capability(text: str) -> Capability:
    found = _CAPABILITY.fullmatch(text)
    if found is None:
        raise ValueError(f"architectures has `{text}`, which is no compute capability")
    return Capability(int(found[1]), int(found[2]), bool(found[3]))


def _wheel(row: Row) -> Wheel:
    return Wheel(
        row.text("framework"),
        _version(row, "version"),
        row.text("build"),
        _version(row, "cuda"),
        bool(row.truth("default")),
        _one_of(row, "cpu_arch", ("x86_64", "arm64")),
        tuple(_capability(one) for one in row.text("architectures").split("|")),
        row.text("index_url"),
        *_rest(row),
    )


def _card(row: Row) -> CardDriver:
    return CardDriver(
        row.text("gpu_model"),
        _version(row, "driver_min"),
        _one_of(row, "module", ("open", "proprietary", "either")),
        *_rest(row),
    )


def _branch(row: Row) -> Branch:
    return Branch(
        _version(row, "branch"),
        _one_of(row, "kind", ("lts", "production", "new-feature", "ended")),
        _version(row, "cuda"),
        _maybe_version(row, "newest"),
        _maybe_version(row, "install"),
        *_rest(row),
    )


def _cuda(row: Row) -> CudaDriver:
    return CudaDriver(int(row.required("cuda_major")), _version(row, "driver_min"), *_rest(row))


def _image(row: Row) -> MachineImage:
    machines = row.text("machines")
    return MachineImage(
        row.text("cloud"),
        row.text("name"),
        row.text("os"),
        _one_of(row, "cpu_arch", ("x86_64", "arm64")),
        _maybe_version(row, "driver"),
        _maybe_version(row, "cuda"),
        row.maybe("framework"),
        frozenset(machines.split("|")) if machines else frozenset(),
        *_rest(row),
    )
