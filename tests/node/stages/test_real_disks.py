"""The same stages with the real blkid, mkfs, dd, mount and resize2fs of this machine.

On files where that is enough; on a loop device where a mount is needed, which wants root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from tests.node.stages.box import done, work

from gputier.node import blocks, expect, filesystems, fstab, settings
from gputier.node.host import Done, Host
from gputier.node.stages import StageResult, Work, data

MIB = blocks.MIB
TOOLS = ("blkid", "mkfs.ext4", "dd", "dumpe2fs", "resize2fs", "mount", "mountpoint")
absent = [name for name in TOOLS if Host().which(name) is None]
pytestmark = pytest.mark.skipif(bool(absent), reason=f"not on this machine: {', '.join(absent)}")


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    path = tmp_path / "disk"
    with path.open("wb") as file:
        file.truncate(96 * MIB)
    return path


def job() -> Work:
    text = f'{{"schema": "{settings.SCHEMA}"}}'
    return Work(Host(), expect.read("{}"), settings.read(text), 60.0)


def test_a_blank_disk_is_blank_for_the_real_tools(disk: Path) -> None:
    found = blocks.look(job(), str(disk))
    assert found.blank
    assert blocks.written_at(job(), str(disk), 96 * MIB) is None


@pytest.mark.parametrize("place", [0, 95])
def test_one_byte_makes_it_written(disk: Path, place: int) -> None:
    with disk.open("r+b") as file:
        file.seek(place * MIB + 4711)
        file.write(b"\x01")
    assert blocks.look(job(), str(disk)).blank, "no signature"
    assert blocks.written_at(job(), str(disk), 96 * MIB) == place * MIB


def test_a_file_system_that_we_made_is_known_again(disk: Path) -> None:
    uuid = filesystems.make(job(), str(disk), filesystems.New("ext4", blocks.LABEL))
    found = blocks.look(job(), str(disk))
    assert (found.kind, found.label, found.uuid, found.ours) == ("ext4", "gputier", uuid, True)
    size = filesystems.size(job(), "ext4", str(disk), "")
    assert size is not None
    assert abs(size - 96 * MIB) < MIB


@pytest.mark.parametrize("mark", [b"LABELONE", b"\xeb\x3c\x90MSDOS5.0"])
def test_a_signature_of_somebody_else_is_not_blank(disk: Path, mark: bytes) -> None:
    """An LVM label in the second sector; a boot sector with a partition table behind it."""
    sector = bytearray(1024)
    if mark == b"LABELONE":
        subprocess.run(["mkswap", str(disk)], check=True, capture_output=True)
    else:
        sector[510:512] = b"\x55\xaa"
        sector[446:462] = bytes.fromhex("80010100830f3f0c3f000000c1bf0200")
        with disk.open("r+b") as file:
            file.write(sector)
    found = blocks.look(job(), str(disk))
    assert not found.blank
    assert not found.ours


def test_a_device_that_is_not_there_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(blocks.Unreadable):
        blocks.written_at(job(), str(tmp_path / "no-such"), 96 * MIB)


# --- a whole life on a loop device --------------------------------------------------------------


class Looped(Host):
    """This machine, where one loop device is Google's data volume and fstab is a file of ours."""

    def __init__(self, device: str, table: Path) -> None:
        super().__init__()
        self.device, self.table = device, table
        self.made: list[str] = []

    def run(
        self,
        argv: Sequence[str],
        limit: float,
        env: Mapping[str, str] | None = None,
        during: Callable[[], None] | None = None,
    ) -> Done:
        if argv[0] in ("systemctl", "udevadm"):
            return Done(tuple(argv), 0, "", "", 0.0, "exited")
        if argv[0].startswith(("mkfs", "resize2fs")):
            self.made.append(argv[0])
        if argv[0] == "mount":
            argv = ("mount", "-T", str(self.table), *argv[1:])
        return super().run(argv, limit, env, during)

    def read(self, path: str) -> str | None:
        return self.table.read_text("utf-8") if path == fstab.PATH else super().read(path)

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        assert mode == 0o644
        assert path == fstab.PATH, "nothing else of this machine is written"
        self.table.write_text(text, encoding="utf-8")

    def names(self, path: str) -> tuple[str, ...]:
        return ("google-data",) if path == "/dev/disk/by-id" else super().names(path)

    def link(self, path: str) -> str | None:
        if path == "/dev/disk/by-id/google-data":
            return "../../" + self.device.rsplit("/", 1)[-1]
        return super().link(path)


@pytest.fixture
def looped(tmp_path: Path) -> Iterator[tuple[Looped, Path, Path]]:
    """A host, the file below its loop device, and where it is mounted."""
    if os.geteuid() != 0 or shutil.which("losetup") is None:
        pytest.skip("a loop device wants root and losetup")
    disk, point, table = tmp_path / "volume", tmp_path / "data", tmp_path / "fstab"
    with disk.open("wb") as file:
        file.truncate(600 * MIB)
    found = subprocess.run(["losetup", "-f", "--show", str(disk)], capture_output=True, text=True)
    if found.returncode:
        pytest.skip(f"no loop device: {found.stderr.strip()}")
    device = found.stdout.strip()
    table.write_text("# nothing\n", encoding="utf-8")
    try:
        yield Looped(device, table), disk, point
    finally:
        subprocess.run(["umount", str(point)], capture_output=True)
        subprocess.run(["losetup", "-d", device], capture_output=True)


def run(host: Looped, point: Path) -> StageResult:
    declared = {"mount": str(point), "filesystem": "ext4"}
    made = work(host, 120.0, cloud="gcp", data=declared)
    return done(data.run, made)._replace(warnings=tuple(made.warnings))


def test_a_real_volume_is_made_once_kept_grown_and_mounted_again(
    looped: tuple[Looped, Path, Path],
) -> None:
    host, disk, point = looped
    first = run(host, point)
    if "mount" in first.evidence and "permission denied" in first.evidence.lower():
        pytest.skip("this sandbox may not mount")
    assert first.ok, first.evidence
    assert first.changed
    (point / "model").write_text("weights", encoding="utf-8")
    assert not run(host, point).changed
    assert host.made == ["mkfs.ext4"]

    subprocess.run(["umount", str(point)], check=True)
    with disk.open("r+b") as file:
        file.truncate(1200 * MIB)
    subprocess.run(["losetup", "-c", host.device], check=True)
    second = run(host, point)
    assert second.ok, second.evidence
    assert (point / "model").read_text("utf-8") == "weights"
    assert host.made[0] == "mkfs.ext4"
    assert "mkfs.ext4" not in host.made[1:], "never formatted again"
    if any("Permission denied to resize" in warning for warning in second.warnings):
        pytest.skip("all but the growing is shown: this sandbox may not resize what is mounted")
    assert "grown" in second.evidence
    assert host.made == ["mkfs.ext4", "resize2fs"]
    assert not run(host, point).changed
    assert host.table.read_text("utf-8").count(str(point)) == 1
