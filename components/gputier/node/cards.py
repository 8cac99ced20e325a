"""What a card is, as a table: how it names itself and what it can do.

Names are those of gputier's catalogue (a test compares the two). PCI device ids are what DCGM keys
its own table by (github.com/NVIDIA/DCGM, nvvs/diag-skus.yaml.in, 4.6.0, 2026-07-06) and, for the
rest, the PCI ID database (https://pci-ids.ucw.cz/read/PC/10de, 2026-08). Branches:
NVIDIA's driver release notes (https://docs.nvidia.com/datacenter/tesla/, 2026-08).
"""

# ruff: noqa: E501 (one row of the table, one line)
from __future__ import annotations

import re
from typing import NamedTuple


class Card(NamedTuple):
    """One GPU model. `memory_mib`: what nvidia-smi is known to show, ECC on or off.

    `remap`: repairs memory by remapping rows (Ampere and later HBM and GDDR6 cards), else by
    retiring pages. `module`: which kernel module flavour works. `last_branch`: None is "current".
    `link_gb_s`: what `nvidia-smi nvlink -s` shows for one link.
    """

    name: str
    pattern: str
    ids: tuple[str, ...]
    arch: str
    capability: float
    memory_mib: tuple[int, ...]
    nvlinks: int
    link_gb_s: float
    hbm: bool
    remap: bool
    mig: bool
    module: str
    first_branch: int
    last_branch: int | None
    pcie: tuple[int, int]

    @property
    def blackwell(self) -> bool:
        return self.capability >= 10


_SLICE = r"(?:-\d+[QCB])?"
ANY, OPEN, PROPRIETARY = "any", "open", "proprietary"

# fmt: off
CARDS = (
    Card("T4", r"(?:NVIDIA |Tesla )?T4", ("1eb8",), "Turing", 7.5, (15360, 15109, 16384), 0, 0, False, False, False, ANY, 418, None, (3, 16)),
    Card("T4G", r"(?:NVIDIA )?T4G", ("1eb4",), "Turing", 7.5, (15360, 15109, 16384), 0, 0, False, False, False, ANY, 450, None, (3, 16)),
    Card("V100-16GB", r"(?:NVIDIA |Tesla )?V100-SXM2-16GB.*", ("1db1",), "Volta", 7.0, (16160, 16384), 6, 25.781, True, False, False, PROPRIETARY, 384, 580, (3, 16)),
    Card("V100-32GB", r"(?:NVIDIA |Tesla )?V100-SXM[23]-32GB.*", ("1db5", "1db8"), "Volta", 7.0, (32510, 32768), 6, 25.781, True, False, False, PROPRIETARY, 396, 580, (3, 16)),
    Card("V100-PCIE-16GB", r"(?:NVIDIA |Tesla )?V100-PCIE-16GB", ("1db4",), "Volta", 7.0, (16160, 16384), 0, 0, True, False, False, PROPRIETARY, 384, 580, (3, 16)),
    Card("A100-40GB", r"(?:NVIDIA )?A100-SXM4-40GB", ("20b0",), "Ampere", 8.0, (40960, 40536, 40537), 12, 25.0, True, True, True, ANY, 450, None, (4, 16)),
    Card("A100-80GB", r"(?:NVIDIA )?A100-SXM4-80GB", ("20b2",), "Ampere", 8.0, (81920, 81251, 81252), 12, 25.0, True, True, True, ANY, 450, None, (4, 16)),
    Card("A100-PCIE-80GB", r"(?:NVIDIA )?A100 80GB PCIe", ("20b5",), "Ampere", 8.0, (81920, 81251), 12, 25.0, True, True, True, ANY, 460, None, (4, 16)),
    Card("A10", r"(?:NVIDIA )?A10(?:-\d+[QCB])?", ("2236",), "Ampere", 8.6, (23028, 22731, 24564), 0, 0, False, True, False, ANY, 460, None, (4, 16)),
    Card("A10G", r"(?:NVIDIA )?A10G" + _SLICE, ("2237",), "Ampere", 8.6, (23028, 22731, 22888), 0, 0, False, True, False, ANY, 470, None, (4, 16)),
    Card("A30", r"(?:NVIDIA )?A30", ("20b7",), "Ampere", 8.0, (24576, 24258), 4, 25.0, True, True, True, ANY, 460, None, (4, 16)),
    Card("A40", r"(?:NVIDIA )?A40" + _SLICE, ("2235",), "Ampere", 8.6, (46068, 45634), 4, 14.062, False, True, False, ANY, 460, None, (4, 16)),
    Card("RTX-A6000", r"(?:NVIDIA )?RTX A6000", ("2230",), "Ampere", 8.6, (49140, 46068), 4, 14.062, False, True, False, ANY, 455, None, (4, 16)),
    Card("L4", r"(?:NVIDIA )?L4" + _SLICE, ("27b8",), "Ada", 8.9, (23034, 22731, 22888), 0, 0, False, True, False, ANY, 525, None, (4, 16)),
    Card("L20", r"(?:NVIDIA )?L20", ("26ba",), "Ada", 8.9, (46068, 49140), 0, 0, False, True, False, ANY, 535, None, (4, 16)),
    Card("L40", r"(?:NVIDIA )?L40" + _SLICE, ("26b5",), "Ada", 8.9, (46068, 49140), 0, 0, False, True, False, ANY, 520, None, (4, 16)),
    Card("L40S", r"(?:NVIDIA )?L40S" + _SLICE, ("26b9",), "Ada", 8.9, (46068, 45776, 49140), 0, 0, False, True, False, ANY, 525, None, (4, 16)),
    Card("RTX-6000-ADA", r"(?:NVIDIA )?RTX 6000 Ada Generation", ("26b1",), "Ada", 8.9, (49140, 46068), 0, 0, False, True, False, ANY, 520, None, (4, 16)),
    Card("RTX-4090", r"(?:NVIDIA )?GeForce RTX 4090", ("2684",), "Ada", 8.9, (24564,), 0, 0, False, False, False, ANY, 520, None, (4, 16)),
    Card("RTX-5090", r"(?:NVIDIA )?GeForce RTX 5090", ("2b85",), "Blackwell", 12.0, (32607,), 0, 0, False, False, False, OPEN, 570, None, (5, 16)),
    Card("RTX-PRO-6000-SE", r"(?:NVIDIA )?RTX PRO 6000 Blackwell Server Edition" + _SLICE, ("2bb5",), "Blackwell", 12.0, (97887, 98304, 97253), 0, 0, False, True, True, OPEN, 570, None, (5, 16)),
    Card("RTX-PRO-4500-SE", r"(?:NVIDIA )?RTX PRO 4500 Blackwell Server Edition", (), "Blackwell", 12.0, (32768,), 0, 0, False, True, False, OPEN, 580, None, (5, 16)),
    Card("H100-80GB", r"(?:NVIDIA )?H100 80GB HBM[23]e?", ("2330",), "Hopper", 9.0, (81559, 81920), 18, 26.562, True, True, True, ANY, 525, None, (5, 16)),
    Card("H100-PCIE-80GB", r"(?:NVIDIA )?H100 PCIe", ("2331",), "Hopper", 9.0, (81559, 81920), 12, 26.562, True, True, True, ANY, 525, None, (5, 16)),
    Card("H100-NVL-94GB", r"(?:NVIDIA )?H100 NVL", ("2321",), "Hopper", 9.0, (95830, 96256), 12, 26.562, True, True, True, ANY, 535, None, (5, 16)),
    Card("H20-96GB", r"(?:NVIDIA )?H20", ("2329",), "Hopper", 9.0, (97871, 98304), 18, 26.562, True, True, True, ANY, 535, None, (5, 16)),
    Card("H20-141GB", r"(?:NVIDIA )?H20-3e", (), "Hopper", 9.0, (143771, 144384), 18, 26.562, True, True, True, ANY, 535, None, (5, 16)),
    Card("H200-141GB", r"(?:NVIDIA )?H200", ("2335",), "Hopper", 9.0, (143771, 144384), 18, 26.562, True, True, True, ANY, 535, None, (5, 16)),
    Card("H200-NVL-141GB", r"(?:NVIDIA )?H200 NVL", ("233b",), "Hopper", 9.0, (143771, 144384), 18, 26.562, True, True, True, ANY, 550, None, (5, 16)),
    Card("GH200-96GB", r"(?:NVIDIA )?GH200 480GB", ("2342",), "Hopper", 9.0, (97871, 98304), 0, 0, True, True, True, ANY, 535, None, (5, 16)),
    Card("GH200-144GB", r"(?:NVIDIA )?GH200 144G HBM3e", (), "Hopper", 9.0, (147456,), 0, 0, True, True, True, ANY, 550, None, (5, 16)),
    Card("B200", r"(?:NVIDIA )?B200", ("2901",), "Blackwell", 10.0, (183359, 184320), 18, 53.125, True, True, True, OPEN, 570, None, (5, 16)),
    Card("GB200", r"(?:NVIDIA )?GB200", ("2941",), "Blackwell", 10.0, (189471, 188416, 190464), 18, 53.125, True, True, True, OPEN, 570, None, (5, 16)),
    Card("B300", r"(?:NVIDIA )?B300.*", ("3182",), "Blackwell Ultra", 10.3, (275040, 274432), 18, 53.125, True, True, True, OPEN, 580, None, (6, 16)),
    Card("GB300", r"(?:NVIDIA )?GB300.*", ("31c2",), "Blackwell Ultra", 10.3, (284208, 284672), 18, 53.125, True, True, True, OPEN, 580, None, (6, 16)),
)
# fmt: on


def by_text(text: str | None) -> Card | None:
    """The card of a catalogue name or of what nvidia-smi prints; None when the table lacks it."""
    if not text:
        return None
    plain = " ".join(text.split())
    for card in CARDS:
        if plain.lower() == card.name.lower() or re.fullmatch(card.pattern, plain, re.IGNORECASE):
            return card
    return None


def by_id(device: str) -> Card | None:
    """The card of a PCI device id such as `2330`."""
    return next((card for card in CARDS if device.lower() in card.ids), None)


def is_slice(name: str) -> bool:
    """Whether a name is a provider's slice (a virtual GPU): `NVIDIA L4-12Q`."""
    return bool(re.search(r"-\d+[QCB]$", name.strip())) or name.strip().startswith("GRID ")
