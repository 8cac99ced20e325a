"""A copy of QEMU whose NVMe controllers say another model.

QEMU writes "QEMU NVMe Ctrl" and has no property to change it, but local disks are told from
network volumes by their model and by nothing else. The one instruction that refers to the text is
pointed at a help text that nobody reads here, overwritten with the model. A QEMU that is not as
expected is refused, with what differs.
"""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path
from typing import NamedTuple

from tests.rehearsal.needs import CannotRehearse, alone, cache_folder

ORIGINAL = b"\0QEMU NVMe Ctrl\0"
UNUSED = b"-win2k-hack     use it when installing Windows 2000"
LONGEST = 40
#: `lea reg, [rip + offset]`: REX.W with or without REX.R, 8D, and a ModRM that says rip-relative.
LEA_PREFIXES, LEA, MOD_RM_MASK, RIP_RELATIVE, LEA_BYTES = (0x48, 0x4C), 0x8D, 0xC7, 0x05, 7


class Section(NamedTuple):
    """Where a section is in memory and in the file."""

    address: int
    offset: int
    size: int


def patched(program: Path, model: str) -> Path:
    """The copy for this model, made once per QEMU. Raises `CannotRehearse`."""
    data = program.read_bytes()
    digest = hashlib.sha256(data + model.encode()).hexdigest()[:16]
    place = cache_folder()
    out = place / f"qemu-{digest}"
    with alone(place, "qemu"):
        if not out.exists():
            part = out.with_suffix(".part")
            part.write_bytes(with_model(data, model))
            part.chmod(0o755)
            part.replace(out)
    return out


def with_model(program: bytes, model: str) -> bytes:
    """The program's bytes with another model. Raises `CannotRehearse` where it is unexpected."""
    if program[:5] != b"\x7fELF\x02":
        raise CannotRehearse("QEMU's program is not a 64-bit ELF file: its model cannot be changed")
    if len(model) > LONGEST:
        raise ValueError(f"a model has {LONGEST} characters at most, {model!r} has more")
    found = sections(program)
    text, constants = found[".text"], found[".rodata"]
    old = _only(program, constants, ORIGINAL) + 1
    new = _only(program, constants, UNUSED)
    old_address = constants.address + old - constants.offset
    new_address = constants.address + new - constants.offset
    uses = references(program, text, old_address)
    if len(uses) != 1:
        raise CannotRehearse(f"QEMU refers to its NVMe model in {len(uses)} places, not in one")
    (at,) = uses
    after = text.address + at - text.offset + LEA_BYTES
    changed = bytearray(program)
    struct.pack_into("<i", changed, at + 3, new_address - after)
    changed[new : new + len(model) + 1] = model.encode() + b"\0"
    return bytes(changed)


def sections(program: bytes) -> dict[str, Section]:
    """The sections of a 64-bit ELF file, by name."""
    (start,) = struct.unpack_from("<Q", program, 0x28)
    size, count, names = struct.unpack_from("<HHH", program, 0x3A)
    rows = [struct.unpack_from("<IIQQQQ", program, start + i * size) for i in range(count)]
    base = rows[names][4]

    def name(row: tuple[int, ...]) -> str:
        begin = base + row[0]
        return program[begin : program.index(0, begin)].decode("ascii")

    return {name(row): Section(row[3], row[4], row[5]) for row in rows}


def references(program: bytes, text: Section, address: int) -> list[int]:
    """File offsets of the instructions that load this address."""
    found: list[int] = []
    end = text.offset + text.size - LEA_BYTES
    at = program.find(LEA, text.offset + 1, end)
    while at > 0:
        begin = at - 1
        if (
            program[begin] in LEA_PREFIXES
            and program[at + 1] & MOD_RM_MASK == RIP_RELATIVE
            and text.address + begin - text.offset + LEA_BYTES
            + struct.unpack_from("<i", program, at + 2)[0] == address
        ):  # fmt: skip
            found.append(begin)
        at = program.find(LEA, at + 1, end)
    return found


def _only(program: bytes, section: Section, words: bytes) -> int:
    """The one place of these bytes in a section."""
    end = section.offset + section.size
    first = program.find(words, section.offset, end)
    again = program.find(words, first + 1, end) if first >= 0 else -1
    if first < 0 or again >= 0:
        many = "nowhere" if first < 0 else "more than once"
        raise CannotRehearse(f"QEMU has the text {words!r} {many}: its model cannot be changed")
    return first
