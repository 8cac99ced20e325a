"""Fabrics: modules, devices, plugins; the incidents are those of boots that took TCP silently."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.node.machines import Machine
from tests.node.stages.box import Box, Point, Python, changes, done, work

from gputier.node import efa, gpudirect, running, units
from gputier.node.cloud import endpoints
from gputier.node.stages import StageResult, Work, collectives, fabric
from gputier.node.verbs.common import Run

NICS = ("enp0s12", *(f"enp{n}s0" for n in (6, 7, 13, 14, 134, 135, 141, 142)))


def prepared(box: Box, kind: str, count: int = 8, **declared: object) -> tuple[StageResult, Work]:
    wanted = {"kind": kind, "interfaces": count}
    job = work(box, 420.0, **{"fabric": wanted, **declared})  # type: ignore[arg-type]
    return done(fabric.run, job), job


def with_efa(count: int = 8, others: int = 0) -> Box:
    box = Box()
    box.commands.add("fi_info")
    box.modules |= {"efa", "ib_uverbs"}
    box.efa(count, others)
    box.files["/opt/amazon/ofi-nccl/lib/libnccl-net.so"] = ""
    return box


# --- EFA ----------------------------------------------------------------------------------------


def test_an_image_with_efa_is_left_as_it_is() -> None:
    box = with_efa()
    result, job = prepared(box, "efa")
    assert result.ok
    assert not result.changed
    assert changes(box) == []
    assert "8 devices" in result.evidence
    assert job.warnings == []


def test_efa_is_installed_with_its_vendor_s_signature_where_it_is_absent() -> None:
    box = Box()
    box.signer = efa.FINGERPRINT
    box.absent_modules = ("efa",)
    box.efa(4)
    result, _ = prepared(box, "efa", 4)
    assert result.ok
    assert result.changed
    assert any(f"-o {efa.INSTALLER.path}" in call for call in box.calls)
    assert any("efa_installer.sh -y" in call for call in box.calls)


@pytest.mark.parametrize("signer", ["", "0000000000000000000000000000000000000000"])
def test_an_installer_signed_by_anybody_else_is_not_started(signer: str) -> None:
    box = Box()
    box.signer = signer
    box.absent_modules = ("efa",)
    result, _ = prepared(box, "efa")
    assert result.outcome == "config"
    assert "is not signed by" in result.evidence
    assert not any("efa_installer.sh" in call for call in box.calls)
    assert efa.INSTALLER.path not in box.files


def test_devices_that_enumerate_late_are_waited_for() -> None:
    """p5en shows its EFA devices seconds after the rest."""
    box = with_efa(0)
    box.after(9.0, lambda: box.efa(16))
    result, _ = prepared(box, "efa", 16)
    assert "16 devices" in result.evidence
    assert box.clock >= 9.0


def test_a_missing_device_is_left_to_the_validation_to_judge() -> None:
    result, _ = prepared(with_efa(31), "efa", 32)
    assert result.ok
    assert "31 of 32 devices" in result.evidence


def test_incident_45_mellanox_devices_are_not_efa_and_stay_out_of_the_container() -> None:
    """libfabric#12708: one mlx5 device that cannot be opened takes EFA away: silently on TCP."""
    box = with_efa(8, others=2)
    result, job = prepared(box, "efa", 8, container={"image": "busybox"})
    assert "8 devices" in result.evidence
    made = running.unit(job)
    assert made
    assert made.text.count("--device=/dev/infiniband/uverbs") == 8
    assert "uverbs8" not in made.text
    assert "--device=/dev/infiniband " not in made.text


def test_incident_46_mellanox_ofed_on_aws_is_named() -> None:
    """amzn-drivers#308: efa oopses when it was built against OFED's headers."""
    box = with_efa()
    box.modules.discard("efa")
    box.commands.add("ofed_info")
    box.says("modprobe efa", 1, "", "modprobe: ERROR: could not insert 'efa': Invalid argument")
    result, _ = prepared(box, "efa")
    assert result.outcome == "config"
    assert "Mellanox OFED" in result.evidence


def test_incident_47_a_missing_plugin_is_said_before_nccl_takes_tcp() -> None:
    """nccl#229: sockets although the fabric works."""
    box = with_efa()
    del box.files["/opt/amazon/ofi-nccl/lib/libnccl-net.so"]
    _, job = prepared(box, "efa")
    assert "NCCL would fall back to TCP" in job.warnings[0]
    _, job = prepared(box, "efa", container={"image": "busybox"})
    assert job.warnings == [], "a container brings its own"


@pytest.mark.parametrize(
    "said",
    [
        "Unable to insert remote address into address vector",
        "fi_cq_readerr: Unresponsive receiver (4126), error 4126",
    ],
)
def test_incidents_41_to_44_a_security_group_without_itself_is_our_own_fault(
    run: Callable[..., Run], said: str
) -> None:
    """aws-ofi-nccl#663, gardener#1832, awsome-distributed-ai#546, libfabric#11256: EFA's packets
    are no IP, and 0.0.0.0/0 does not let them through: another machine would be no better."""
    machine = Machine("p5.48xlarge")
    machine.says("fi_pingpong", 1, "", said)
    found = run(machine, "standard").report
    (check,) = (c for c in found["checks"] if c["name"] == "efa-loopback")
    assert check["outcome"] == "config"
    assert said in check["evidence"]
    assert "security group" in check["remedy"]


def test_incident_48_metadata_is_asked_by_its_address_and_no_name() -> None:
    """cloud-init#4085, #3410: metadata.google.internal was not to be resolved yet."""
    assert endpoints.METADATA == "http://169.254.169.254"


# --- RoCE, InfiniBand ---------------------------------------------------------------------------


def verbs(box: Box, count: int, layer: str = "Ethernet") -> Box:
    for n in range(count):
        box.files[f"/sys/class/infiniband/mlx5_{n}/ports/1/link_layer"] = layer
    return box


def test_roce_finds_google_s_plugin_by_the_loader() -> None:
    box = verbs(Box(), 8)
    box.files["/usr/local/gib/lib64/libnccl-net.so"] = ""
    result, _ = prepared(box, "roce", 8, cloud="gcp")
    assert result.ok
    assert box.files[fabric.GIB_CONF] == "/usr/local/gib/lib64\n"
    assert "ldconfig" in box.calls
    assert {"ib_uverbs", "mlx5_ib"} <= box.modules


def test_a_missing_gib_is_installed_or_named_or_left_to_the_container() -> None:
    box = verbs(Box(), 8)
    box.offers |= {"nccl-gib": (), "apt-transport-artifact-registry": ()}
    assert prepared(box, "roce", 8, cloud="gcp")[0].ok
    assert "nccl-gib" in box.installed
    box = verbs(Box(), 8)
    box.offers["apt-transport-artifact-registry"] = ()
    result, _ = prepared(box, "roce", 8, cloud="gcp")
    assert result.outcome == "config"
    assert "gIB is not in the image" in result.evidence
    box = verbs(Box(), 8)
    result, job = prepared(box, "roce", 8, cloud="gcp", container={"image": "busybox"})
    assert result.ok
    assert "the container has to bring it" in job.warnings[0]


def test_infiniband_without_its_module_is_a_fault_of_the_image() -> None:
    box = verbs(Box(), 8, "InfiniBand")
    assert prepared(box, "infiniband", cloud="azure")[0].ok
    box = Box()
    box.absent_modules = ("mlx5_ib",)
    result, _ = prepared(box, "infiniband", cloud="azure")
    assert result.outcome == "config"
    assert "mlx5_ib" in result.evidence


# --- GPUDirect ----------------------------------------------------------------------------------


def mega() -> Box:
    box = Box()
    box.offers |= {"dkms": (), "dmabuf-import-helper": (), "apt-transport-artifact-registry": ()}
    box.registry |= {kind.plugin for kind in gpudirect.KINDS.values()}
    box.registry |= {kind.daemon for kind in gpudirect.KINDS.values()}
    for n, nic in enumerate(NICS):
        box.files[f"/sys/class/net/{nic}/device/vendor"] = "0x1ae0\n"
        box.nics[nic] = f"10.0.{n}.2"
    box.files["/sys/bus/pci/devices/0000:06:00.0/vendor"] = "0x1ae0\n"
    box.files["/sys/bus/pci/devices/0000:06:00.0/device"] = "0x0084\n"
    box.files["/sys/bus/pci/devices/0000:06:00.0/resource0"] = ""
    box.handlers["mount"] = lambda rest: _bind(box, rest)
    return box


def _bind(box: Box, rest: list[str]) -> tuple[int, str, str]:
    box.mounts.append(Point(rest[2], "sysfs", "sysfs"))
    return 0, "", ""


def test_tcpxo_gets_its_devices_plugin_and_receive_daemon() -> None:
    box = mega()
    result, _ = prepared(box, "gpudirect-tcpxo", cloud="gcp")
    assert result.ok, result.evidence
    assert "import_helper" in box.modules
    assert any(m.point == "/dev/aperture_devices/0000:06:00.0" for m in box.mounts)
    text = box.files[f"{units.FOLDER}/{gpudirect.RXDM}"]
    assert "--num_hops=2 --num_nics=8 --uid= --alsologtostderr" in text
    assert "--volume /dev/dmabuf_import_helper:/dev/dmabuf_import_helper" in text
    assert gpudirect.KINDS["gpudirect-tcpxo"].daemon in text
    assert box.units[gpudirect.RXDM]["ActiveState"] == "active"


def test_a_module_that_the_image_lacks_is_built_for_its_kernel() -> None:
    box = mega()
    box.says("modprobe import-helper", 1, "", "modprobe: FATAL: Module import-helper not found")
    result, _ = prepared(box, "gpudirect-tcpxo", cloud="gcp")
    assert "dmabuf-import-helper" in box.installed
    assert result.outcome == "config"
    assert "dmabuf-import-helper" in result.remedy


def test_a_receive_daemon_that_does_not_come_up_is_named() -> None:
    box = mega()
    box.says("/usr/bin/docker logs", 0, "E0000 failed to bind rxq")
    result, _ = prepared(box, "gpudirect-tcpxo", cloud="gcp")
    assert result.outcome == "config"
    assert "failed to bind rxq" in result.evidence


def test_incident_49_every_interface_has_its_address_before_the_fabric_is_begun() -> None:
    """ceph-lcm#50: work before the network; here the first of nine interfaces says "online"."""
    box = mega()
    box.nics["enp142s0"] = ""
    box.after(40.0, lambda: box.nics.update({"enp142s0": "10.0.9.2"}))
    assert prepared(box, "gpudirect-tcpxo", cloud="gcp")[0].ok
    assert box.clock >= 40.0
    box = mega()
    box.nics["enp142s0"] = ""
    result, _ = prepared(box, "gpudirect-tcpxo", cloud="gcp")
    assert result.outcome == "inconclusive"
    assert "no address on enp142s0" in result.evidence


def test_tcpx_needs_a_kernel_that_only_some_images_have() -> None:
    box = mega()
    box.files["/proc/sys/kernel/osrelease"] = "6.8.0-1021-gcp\n"
    result, _ = prepared(box, "gpudirect-tcpx", 4, cloud="gcp")
    assert result.outcome == "config"
    assert "use COS" in result.remedy
    box.files["/proc/sys/kernel/osrelease"] = "5.15.0-1051-gcp-tcpx\n"
    box.files[gpudirect.TOPOLOGY] = "gpu_rxq_configs {}"
    assert prepared(box, "gpudirect-tcpx", 4, cloud="gcp")[0].ok
    text = box.files[f"{units.FOLDER}/{gpudirect.RXDM}"]
    assert f"--gpu_nic_preset manual --gpu_nic_topology {gpudirect.TOPOLOGY}" in text
    assert "--uds_path /run/tcpx" in text


# --- collectives --------------------------------------------------------------------------------

NCCL = {"FI_PROVIDER": "efa", "NCCL_SOCKET_IFNAME": "^lo,docker,veth"}


def test_nccl_s_variables_are_where_every_process_meets_them() -> None:
    box = Box()
    box.files[collectives.NCCL_CONF] = "NCCL_DEBUG=INFO\nNCCL_SOCKET_IFNAME=eth0\n"
    assert done(collectives.run, work(box, nccl=NCCL)).changed
    assert box.files[collectives.ENVIRONMENT] == (
        'FI_PROVIDER="efa"\nNCCL_SOCKET_IFNAME="^lo,docker,veth"\n'
    )
    text = box.files[collectives.NCCL_CONF]
    assert text.index("NCCL_SOCKET_IFNAME=^lo,docker,veth") < text.index("NCCL_SOCKET_IFNAME=eth0")
    assert "NCCL_DEBUG=INFO" in text, "what the image says beside it stays"
    assert "FI_PROVIDER" not in text, "NCCL's own file is NCCL's"
    done(collectives.run, work(box, nccl={"NCCL_DEBUG": "WARN"}))
    assert "veth" not in box.files[collectives.NCCL_CONF]


@pytest.mark.parametrize("name", ["RDMAV_FORK_SAFE", "RDMAV_HUGEPAGES_SAFE"])
def test_what_aws_says_not_to_set_is_not_set(name: str) -> None:
    box = Box()
    result = done(collectives.run, work(box, nccl={**NCCL, name: "1"}))
    assert result.outcome == "config"
    assert name in result.evidence
    assert changes(box) == []


def test_a_vendor_s_own_script_fills_in_what_the_plan_does_not_say() -> None:
    box = Box()
    script, _ = collectives.VENDORS["roce"]
    box.files[script] = "export NCCL_IB_TC=99"
    box.says("env -i", 0, "NCCL_IB_TC=99\nNCCL_TUNER_CONFIG_PATH=/usr/local/gib/a\nPATH=/bin\n")
    declared = {"fabric": {"kind": "roce"}, "nccl": {"NCCL_IB_TC": "52"}}
    done(collectives.run, work(box, 900.0, None, **declared))
    text = box.files[collectives.ENVIRONMENT]
    assert 'NCCL_IB_TC="52"' in text
    assert "NCCL_TUNER_CONFIG_PATH" in text
    assert "PATH=" not in text.replace("CONFIG_PATH=", "")


def test_horovod_is_built_against_nccl_where_the_plan_asks_for_it() -> None:
    box = Box()
    box.files["/opt/pytorch/bin/python3"] = ""
    box.pythons["/opt/pytorch/bin/python3"] = Python(packages={"torch": ("2.9.0+cu128", "12.8")})
    wanted = {"name": "torch", "version": "2.9.0"}
    job = work(box, 1200.0, framework=wanted, mpi="horovod", nccl=NCCL)
    result = done(collectives.run, job)
    assert result.ok
    assert "Horovod 0.28.1 with NCCL and MPI" in result.evidence
    at = next(n for n, call in enumerate(box.calls) if "horovod==" in call)
    assert box.envs[at]["HOROVOD_GPU_OPERATIONS"] == "NCCL"
    assert box.envs[at]["HOROVOD_WITH_PYTORCH"] == "1"
    assert box.calls[at].startswith("/opt/pytorch/bin/python3 -m pip install")
    assert "mpirun" in box.commands
