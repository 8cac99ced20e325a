"""`prepare` makes what is planned, and would rather do nothing than wipe the wrong disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.node.cases import unmounted
from tests.node.machines import Machine

from gputier.node import expect, preparing
from gputier.node.cli import main
from gputier.node.engine import Context
from gputier.node.preparing import Refused

BLANK = ""


def bare(kind: str = "g6.12xlarge") -> Machine:
    """A machine at its first boot: nothing mounted, disks blank, no array."""
    machine = Machine(kind)
    unmounted(machine)
    for path in [path for path in machine.files if "/md127/" in path]:
        del machine.files[path]
    for n in range(1, machine.kind.disks + 1):
        machine.says(f"blkid -p -o export /dev/nvme{n}n1", 2)
    for tool in ("mdadm", "mkfs.xfs", "mount", "mkdir", "systemctl stop", "modprobe"):
        machine.says(tool, 0)
    return machine


def ctx(machine: Machine, **changes: Any) -> Context:
    return Context(machine, expect.read(json.dumps({**machine.expectation(), **changes})))


def commands(machine: Machine) -> list[str]:
    quiet = ("blkid", "dd", "lspci", "journalctl")
    return [
        " ".join(c) for c in machine.calls if c[0] not in quiet and "--query" not in " ".join(c)
    ]


def signed(machine: Machine, disk: int, text: str) -> None:
    machine.says(f"blkid -p -o export /dev/nvme{disk}n1", 0, text)


OURS = "DEVNAME=/dev/x\nLABEL=host:gputier\nTYPE=linux_raid_member\n"


def test_blank_disks_become_one_array_that_is_mounted_by_label() -> None:
    machine = bare()
    found = preparing.prepare(ctx(machine), dry=False)
    assert found.failed == ()
    done = commands(machine)
    (create,) = (c for c in done if c.startswith("mdadm --create"))
    assert "--level=0 --raid-devices=4" in create
    assert create.endswith("/dev/nvme1n1 /dev/nvme2n1 /dev/nvme3n1 /dev/nvme4n1")
    assert "nvme0n1" not in " ".join(done), "the root volume is never touched"
    assert "mkfs.xfs -K -l su=8b -L gputier /dev/md/gputier" in done
    assert "LABEL=gputier /scratch xfs defaults,noatime,nofail" in machine.written["/etc/fstab"]
    assert done.index("mkdir -p /scratch") < done.index("mount /scratch")


def test_one_disk_needs_no_array() -> None:
    machine = bare("g4dn.xlarge")
    preparing.prepare(ctx(machine), dry=False)
    assert "mkfs.xfs -K -L gputier /dev/nvme1n1" in commands(machine)
    assert not any(c.startswith("mdadm") for c in commands(machine))


def test_our_own_array_is_assembled_again_and_keeps_its_data() -> None:
    machine = bare()
    for n in range(1, 5):
        signed(machine, n, OURS)
    preparing.prepare(ctx(machine), dry=False)
    done = commands(machine)
    assert any(c.startswith("mdadm --assemble /dev/md/gputier") for c in done)
    assert not any("mkfs" in c or "--create" in c for c in done)


def test_what_is_mounted_already_is_left_alone() -> None:
    machine = Machine("g6.12xlarge")
    preparing.prepare(ctx(machine), dry=False)
    assert commands(machine) == ["nvidia-smi -pm 1"]


FOREIGN = {
    "a file system": "TYPE=ext4\nLABEL=data\n",
    "somebody's array": "TYPE=linux_raid_member\nLABEL=host:0\n",
    "LVM": "TYPE=LVM2_member\n",
    "a partition table": "PTTYPE=gpt\n",
    "XFS of another label": "TYPE=xfs\nLABEL=gputier2\n",
}


@pytest.mark.parametrize("text", FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_signature_on_one_disk_stops_everything(text: str) -> None:
    machine = bare()
    signed(machine, 3, text)
    with pytest.raises(Refused, match="not ours on /dev/nvme3n1"):
        preparing.prepare(ctx(machine), dry=False)
    for disk in range(1, 5):
        signed(machine, disk, text)
    with pytest.raises(Refused, match="not ours on /dev/nvme1n1"):
        preparing.prepare(ctx(machine), dry=False)
    assert not any(c.startswith(("mdadm", "mkfs", "mount")) for c in commands(machine))


def test_a_disk_that_cannot_be_looked_at_counts_as_foreign() -> None:
    machine = bare()
    machine.says("blkid -p -o export /dev/nvme2n1", 1, "", "Input/output error")
    with pytest.raises(Refused, match="Input/output error"):
        preparing.prepare(ctx(machine), dry=False)


def test_half_an_array_of_ours_is_not_made_anew() -> None:
    machine = bare()
    signed(machine, 1, OURS)
    with pytest.raises(Refused, match="broken"):
        preparing.prepare(ctx(machine), dry=False)


def test_a_disk_with_partitions_or_in_use_is_refused() -> None:
    machine = bare()
    machine.files["/sys/block/nvme2n1/nvme2n1p1/size"] = "1"
    with pytest.raises(Refused, match="partitions"):
        preparing.prepare(ctx(machine), dry=False)
    machine = bare()
    machine.files["/proc/self/mountinfo"] += "60 20 0:0 / /data rw - ext4 /dev/nvme2n1 rw\n"
    with pytest.raises(Refused, match="in use"):
        preparing.prepare(ctx(machine), dry=False)


def test_too_few_disks_are_not_made_into_a_smaller_array() -> None:
    machine = bare()
    for path in [path for path in machine.files if "/nvme4n1/" in path]:
        del machine.files[path]
    with pytest.raises(Refused, match="3 local disks instead of 4"):
        preparing.prepare(ctx(machine), dry=False)


def test_an_array_that_the_image_made_is_used_and_not_fought() -> None:
    """DLAMIs mount the instance store at /opt/dlami/nvme themselves."""
    machine = Machine("g6.12xlarge")
    path = "/proc/self/mountinfo"
    machine.files[path] = machine.files[path].replace("/scratch", "/opt/dlami/nvme")
    machine.says("mount", 0)
    machine.says("mkdir", 0)
    preparing.prepare(ctx(machine), dry=False)
    assert commands(machine)[-1] == "mount --bind /opt/dlami/nvme /scratch"


def test_a_step_that_fails_ends_the_work_and_is_named() -> None:
    machine = bare()
    machine.says("mkfs.xfs", 1, "", "cannot open")
    found = preparing.prepare(ctx(machine), dry=False)
    assert "cannot open" in found.failed[0]
    assert not any(c.startswith("mount") for c in commands(machine))


def test_a_dry_run_touches_nothing() -> None:
    machine = bare()
    found = preparing.prepare(ctx(machine), dry=True)
    assert len(found.steps) >= 5
    assert commands(machine) == []
    assert machine.written == {}


def test_the_limit_of_locked_memory_is_lifted_for_a_fabric() -> None:
    machine = Machine("p5.48xlarge")
    preparing.prepare(ctx(machine), dry=False)
    assert "* - memlock unlimited" in machine.written[preparing.LIMITS]
    machine = Machine("g4dn.xlarge")
    preparing.prepare(ctx(machine), dry=False)
    assert preparing.LIMITS not in machine.written


def mig_machine(mode: str, layout: bool) -> Machine:
    machine = Machine("a2-highgpu-1g")
    machine.gpus[0].fields["mig.mode.current"] = mode
    for tool in ("nvidia-smi -i", "nvidia-smi mig", "systemctl stop", "modprobe"):
        machine.says(tool, 0)
    if not layout:
        machine.says("nvidia-smi -L", 0, "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1)\n")
    return machine


def test_the_mig_layout_is_made_after_its_clients_are_stopped() -> None:
    machine = mig_machine("Disabled", layout=False)
    found = preparing.prepare(ctx(machine), dry=False)
    done = commands(machine)
    layout = ",".join(["1g.5gb"] * 7)
    assert done.index("modprobe -r nvidia_drm") < done.index("nvidia-smi -i 0 -mig 1")
    assert done.index("nvidia-smi -i 0 -mig 1") < done.index(
        f"nvidia-smi mig -i 0 -cgi {layout} -C"
    )
    assert found.reboot, "the mode is on after a reset only"


def test_a_mig_layout_that_is_there_is_left_alone() -> None:
    machine = mig_machine("Enabled", layout=True)
    preparing.prepare(ctx(machine), dry=False)
    assert [c for c in commands(machine) if "mig" in c] == []


def test_a_refusal_exits_as_a_configuration_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPUTIER_SYSROOT", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    wanted = tmp_path / "e.json"
    wanted.write_text('{"scratch": {"count": 4, "mount": "/scratch"}}', encoding="utf-8")
    assert main(["prepare", "--expect", str(wanted)]) == 30
    assert "0 local disks instead of 4" in capsys.readouterr().err
    wanted.write_text("{}", encoding="utf-8")
    assert main(["prepare", "--expect", str(wanted), "--dry-run"]) == 0
