"""The expectation: what the plan says this machine is. One JSON file, every key optional.

`docs/node.md` lists the keys for people who write one by hand; `FIELDS` below is that list. A key
that is not in it is a warning in the result, never an error: an older validator has to be able to
read a newer plan. A value of the wrong kind is an error, all of them named at once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from gputier.node import WrongInput, plain, versions

GATES = ("off", "report", "enforce")
DEPTHS = ("quick", "standard", "burn-in")
FABRICS = ("none", "efa", "gpudirect-tcpx", "gpudirect-tcpxo", "roce", "infiniband", "erdma")
FRAMEWORKS = {"torch": "torch", "pytorch": "torch", "tensorflow": "tensorflow", "jax": "jax"}


class BadExpectation(WrongInput):
    """The file cannot be used; `problems` says where and why, one line each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(*(f"expectation: {problem}" for problem in problems))
        self.problems = tuple(problems)


class Kind(NamedTuple):
    """What a value has to be: a phrase for the message, and a reader that raises ValueError."""

    phrase: str
    read: Callable[[Any], Any]


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError
    if not 0 <= value < math.inf:  # false for NaN too
        raise ValueError
    return float(value)


def _positive(value: Any) -> float:
    number = _number(value)
    if number <= 0:
        raise ValueError
    return number


def _count(value: Any) -> int:
    number = _number(value)
    if number != int(number):
        raise ValueError
    return int(number)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError
    return value.strip()


def _path(value: Any) -> str:
    text = _text(value)
    if not text.startswith("/"):
        raise ValueError
    return text


def _version(value: Any) -> str:
    text = str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not versions.parse(text):
        raise ValueError
    return text.strip()


def _texts(value: Any) -> tuple[str, ...]:
    items = plain.sequence(value)
    if items is None:
        raise ValueError
    return tuple(_text(item) for item in items)


def _seconds(value: Any) -> dict[str, float]:
    items = plain.mapping(value)
    if items is None:
        raise ValueError
    return {_text(name): _positive(seconds) for name, seconds in items.items()}


def _one_of(words: Sequence[str]) -> Kind:
    def read(value: Any) -> str:
        if value not in words:
            raise ValueError
        return str(value)

    return Kind("one of " + ", ".join(words), read)


def _framework(value: Any) -> str:
    name = FRAMEWORKS.get(_text(value).lower())
    if name is None:
        raise ValueError
    return name


NUMBER = Kind("a number that is not negative", _number)
COUNT = Kind("a whole number that is not negative", _count)
SECONDS = Kind("a number of seconds above 0", _positive)
TEXT = Kind("text", _text)
PATH = Kind("an absolute path", _path)
VERSION = Kind("a version such as 580.95.05", _version)
TEXTS = Kind("a list of texts", _texts)
LIMITS = Kind("a map of check name to seconds", _seconds)

# Path of the key → its kind and what it means: documentation, reader and test in one.
FIELDS: dict[str, tuple[Kind, str]] = {
    "gpu.model": (TEXT, "catalogue name (`H100-80GB`) or what nvidia-smi prints"),
    "gpu.count": (COUNT, "GPUs (devices, not fractions) in this machine"),
    "gpu.memory_mib": (
        NUMBER,
        "memory of one GPU as nvidia-smi shows it, MiB; without it, what the model shows",
    ),
    "gpu.pci_ids": (TEXTS, "PCI device ids that count as right: `10de:2330` or `2330`"),
    "gpu.nvlinks": (COUNT, "NVLinks per GPU that have to be up"),
    "gpu.mig.profile": (TEXT, "MIG profile of every instance: `1g.10gb`"),
    "gpu.mig.count": (COUNT, "MIG instances per GPU (above 7: of the whole machine)"),
    "driver.min": (VERSION, "oldest driver that will do; a branch such as `570` is enough"),
    "driver.max": (VERSION, "newest driver that will do; `580` takes all of branch 580"),
    "cuda.min": (VERSION, "oldest CUDA version that the driver must offer"),
    "framework.name": (Kind("one of torch, tensorflow, jax", _framework), "the framework"),
    "framework.version": (VERSION, "its version; a local part (`2.9.0+cu128`) has to match too"),
    "framework.cuda": (VERSION, "CUDA version it is built for"),
    "framework.index": (TEXT, "wheel index it comes from; `…/cu128` names its CUDA"),
    "framework.python": (PATH, "the python that has it; else python3, else the image's"),
    "fabric.kind": (_one_of(FABRICS), "how machines talk to each other"),
    "fabric.interfaces": (COUNT, "fabric devices in this machine"),
    "fabric.gbps": (NUMBER, "speed of one fabric interface, Gbit/s"),
    "fabric.peers": (TEXTS, "other machines of the fleet, for the pairwise burn-in"),
    "scratch.count": (COUNT, "local NVMe disks"),
    "scratch.gib": (NUMBER, "their size, all disks together, GiB"),
    "scratch.mount": (PATH, "where they are mounted"),
    "scratch.mb_s": (NUMBER, "sequential read speed to reach, MB/s, all disks together"),
    "pcie.generation": (COUNT, "PCIe generation of a GPU's link under load"),
    "pcie.width": (COUNT, "lanes of a GPU's link"),
    "host.vcpus": (COUNT, "vCPUs"),
    "host.memory_gib": (NUMBER, "host memory as it is sold, GiB"),
    "host.network_gbps": (NUMBER, "network bandwidth of the machine, Gbit/s"),
    "machine.cloud": (TEXT, "aws, gcp, azure, …"),
    "machine.instance_type": (TEXT, "for the report"),
    "machine.usd_per_hour": (NUMBER, "for the report's dollars"),
    "container.image": (TEXT, "an image on the machine in which nvidia-smi must run"),
    "gate": (_one_of(GATES), "off, report, or enforce (the default)"),
    "depth": (_one_of(DEPTHS), "quick (the default), standard or burn-in"),
    "limits.total_seconds": (SECONDS, "for all checks together"),
    "limits.checks": (LIMITS, "seconds for a check by its name"),
    "require": (TEXTS, "checks or tools that must run whatever the depth"),
}
SECTIONS = {path.rsplit(".", 1)[0] for path in FIELDS if "." in path} | {"gpu"}


class Expectation:
    """The values by path; `get` for one that may be absent. Never changes."""

    def __init__(self, values: Mapping[str, Any], warnings: Sequence[str] = ()) -> None:
        self._values = dict(values)
        self.warnings = tuple(warnings)

    def has(self, path: str) -> bool:
        return path in self._values

    def number(self, path: str) -> float | None:
        value = self._values.get(path)
        return None if value is None else float(value)

    def count(self, path: str) -> int | None:
        value = self._values.get(path)
        return None if value is None else int(value)

    def text(self, path: str) -> str | None:
        value = self._values.get(path)
        return None if value is None else str(value)

    def texts(self, path: str) -> tuple[str, ...]:
        return tuple(self._values.get(path, ()))

    def mig(self) -> bool:
        """Whether the GPUs are to be divided: a profile or a number of instances is named."""
        return self.has("gpu.mig.profile") or bool(self.count("gpu.mig.count"))

    def limits(self) -> dict[str, float]:
        return dict(self._values.get("limits.checks", {}))

    @property
    def gate(self) -> str:
        return self.text("gate") or "enforce"

    @property
    def depth(self) -> str:
        return self.text("depth") or "quick"

    @property
    def fabric(self) -> str | None:
        """The fabric's kind, None where the plan has none."""
        kind = self.text("fabric.kind")
        return None if kind in (None, "none") else kind


def read(text: str) -> Expectation:
    """The expectation in a JSON text. Raises BadExpectation with every problem."""
    try:
        data = plain.mapping(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise BadExpectation([f"not JSON: {error}"]) from None
    if data is None:
        raise BadExpectation(["the file must hold one JSON object"])
    values: dict[str, Any] = {}
    problems: list[str] = []
    warnings: list[str] = []
    _walk("", data, values, problems, warnings)
    if problems:
        raise BadExpectation(problems)
    return Expectation(values, warnings)


def _walk(
    prefix: str,
    data: Mapping[str, Any],
    values: dict[str, Any],
    problems: list[str],
    warnings: list[str],
) -> None:
    for key, value in data.items():
        path = f"{prefix}{key}"
        if value is None:
            continue
        if path in SECTIONS:
            section = plain.mapping(value)
            if section is not None:
                _walk(f"{path}.", section, values, problems, warnings)
            else:
                problems.append(f"{path}: {json.dumps(value)} is not an object")
        elif path in FIELDS:
            kind = FIELDS[path][0]
            try:
                values[path] = kind.read(value)
            except ValueError:
                problems.append(f"{path}: {json.dumps(value)} is not {kind.phrase}")
        else:
            warnings.append(f"`{path}` is not a key that this version reads; it was ignored")
