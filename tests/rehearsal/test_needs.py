"""The machinery of rehearsals itself: what it refuses, what it keeps, what it leaves behind."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.rehearsal import conftest, image, needs, qemu_model
from tests.rehearsal.image import Image
from tests.rehearsal.layer import Layer
from tests.rehearsal.network import METADATA, SERVICES, Network
from tests.rehearsal.scene import Part, in_container


def test_packages_that_are_missing_are_named_once() -> None:
    none: list[str] = needs.missing(lambda _: None)
    assert {"qemu-system-x86", "mmdebstrap", "systemd-container"} <= set(none)
    assert len(none) == len(set(none))
    assert set(needs.missing(lambda name: f"/bin/{name}")) <= set(needs.FILES.values())


def test_without_root_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    needs.ready.cache_clear()
    with pytest.raises(needs.CannotRehearse, match="need root; run it as root"):
        needs.ready()
    needs.ready.cache_clear()


@pytest.mark.parametrize(
    ("ci", "ends"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)]
)
def test_a_machine_that_cannot_rehearse_is_skipped_on_a_desk_and_fails_in_ci(
    ci: str, ends: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(ends, match="no rehearsal on this machine: no root here"):
        conftest.cannot(needs.CannotRehearse("no root here"))


def test_an_image_is_kept_by_what_builds_it_and_not_by_the_date(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = image.key()
    assert image.key() == before
    changed = tmp_path / "build-image.sh"
    changed.write_bytes(image.BUILDER.read_bytes() + b"# another word\n")
    monkeypatch.setattr(image, "BUILDER", changed)
    assert image.key() != before


def test_only_images_that_nobody_used_for_long_are_forgotten(tmp_path: Path) -> None:
    old, young, broken, other = (
        tmp_path / name for name in ("trixie-old", "trixie-young", "building-1", "bundle.pyz")
    )
    for folder in (old, young, broken):
        folder.mkdir()
    other.write_text("", encoding="utf-8")
    long_ago = time.time() - (image.KEEP_DAYS + 1) * 86400
    os.utime(old, (long_ago, long_ago))
    image.forget_old(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bundle.pyz", "trixie-young"]


# --- QEMU's model -------------------------------------------------------------------------------


def program(uses: int = 1) -> bytes:
    """The smallest ELF file with a .text that loads the model and a .rodata that has it."""
    rodata = qemu_model.ORIGINAL + qemu_model.UNUSED + b"\0"
    names = b"\0.text\0.rodata\0.shstrtab\0"
    text_at, rodata_at = 0x40, 0x80
    names_at = rodata_at + len(rodata)
    target = rodata_at + 1
    text = b"".join(
        b"\x48\x8d\x05" + struct.pack("<i", target - (text_at + 7 * (n + 1))) for n in range(uses)
    )
    sections_at = names_at + len(names)

    def section(name: int, at: int, size: int) -> bytes:
        return struct.pack("<IIQQQQIIQQ", name, 1, 0, at, at, size, 0, 0, 1, 0)

    table = section(0, 0, 0) + section(1, text_at, len(text) + 7)
    table += section(7, rodata_at, len(rodata)) + section(15, names_at, len(names))
    head = bytearray(64)
    head[:5] = b"\x7fELF\x02"
    struct.pack_into("<Q", head, 0x28, sections_at)
    struct.pack_into("<HHH", head, 0x3A, 64, 4, 3)
    return bytes(head) + text.ljust(rodata_at - text_at, b"\x90") + rodata + names + table


def test_the_one_reference_to_qemus_model_is_led_to_another_text() -> None:
    changed = qemu_model.with_model(program(), "Amazon EC2 NVMe Instance Storage")
    (offset,) = struct.unpack_from("<i", changed, 0x40 + 3)
    at = 0x40 + 7 + offset
    assert changed[at : changed.index(0, at)] == b"Amazon EC2 NVMe Instance Storage"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (program(uses=2), "in 2 places, not in one"),
        (program(uses=0), "in 0 places, not in one"),
        (program().replace(b"QEMU NVMe", b"QEMU XXMe"), "nowhere: its model cannot be changed"),
        (b"#!/bin/sh\n", "not a 64-bit ELF file"),
    ],
)
def test_a_qemu_that_is_not_as_expected_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(needs.CannotRehearse, match=words):
        qemu_model.with_model(data, "Another")


# --- layers and networks ------------------------------------------------------------------------


def test_a_layer_lays_files_links_and_modes(tmp_path: Path) -> None:
    layer = Layer()
    layer.script("/usr/local/bin/tool", "#!/bin/sh\n")
    layer.put("/etc/x", "1\n")
    layer.enable("a.service")
    layer.write(tmp_path)
    assert (tmp_path / "usr/local/bin/tool").stat().st_mode & 0o777 == 0o755
    link = tmp_path / "etc/systemd/system/multi-user.target.wants/a.service"
    assert link.readlink() == Path("/etc/systemd/system/a.service")


@pytest.mark.rehearsal(seconds=1)
@pytest.mark.enable_socket
def test_a_network_has_the_stand_ins_addresses_and_leads_nowhere(image: Image) -> None:
    network = Network()

    def listens(address: str) -> bool:
        with socket.create_server((address, 0)):
            return True

    def reaches_out() -> bool:
        try:
            socket.create_connection(("192.0.2.1", 80), 1).close()
        except OSError:
            return False
        return True

    assert network.call(lambda: listens(METADATA))
    assert network.call(lambda: listens(SERVICES))
    assert not network.call(reaches_out)
    with pytest.raises(ZeroDivisionError):
        network.call(lambda: 1 // 0)
    network.close()


HELD = """
import sys, time
from pathlib import Path
from tests.rehearsal.image import built
from tests.rehearsal.scene import Part, in_container
with in_container(built(), Path(sys.argv[1]), Part("group")) as scene:
    print("up", flush=True)
    time.sleep(600)
"""


@pytest.mark.rehearsal(seconds=10)
def test_a_rehearsal_that_is_killed_leaves_no_process_and_no_mount(
    image: Image, root: Path, tmp_path: Path
) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HELD, str(tmp_path)], cwd=root, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout
    try:
        assert holder.stdout.readline() == "up\n"
        until = time.monotonic() + 10
        while not left(tmp_path) and time.monotonic() < until:
            time.sleep(0.05)
        assert left(tmp_path), "its processes name its folder"
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        holder.stdout.close()
    until = time.monotonic() + 10
    while left(tmp_path) and time.monotonic() < until:
        time.sleep(0.1)
    assert left(tmp_path) == []
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text(encoding="utf-8")


def left(place: Path) -> list[str]:
    """Commands of processes that name a folder, the holder's own aside."""
    found: list[str] = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if str(place) in words and "-c" not in words.split()[:2]:
            found.append(words)
    return found


@pytest.mark.rehearsal(seconds=5)
@pytest.mark.enable_socket
def test_a_rehearsal_that_fails_cleans_up_and_shows_the_console(
    image: Image, tmp_path: Path
) -> None:
    with (
        pytest.raises(AssertionError, match=r"wanted reboot, gate told 'NO' within 3 s"),
        in_container(image, tmp_path, Part("group")) as scene,
    ):
        scene.ends("reboot", "NO", 3)
    assert left(tmp_path) == []
    assert not (tmp_path / Part().instance).exists()
