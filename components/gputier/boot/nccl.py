"""Variables of NCCL by fabric: what makes it use the fabric, and say so when it cannot.

The most expensive failure is the silent one, where NCCL falls back to TCP on machines that were
bought for their fabric: so the way is named, not left to be found.
"""

from __future__ import annotations

from collections.abc import Mapping

#: libfabric's provider and nothing else (github.com/awslabs/awsome-distributed-ai 95b939c,
#: efa-cheatsheet.md). Ranks meet over IP first, and never over docker's bridge. Not among them:
#: FI_EFA_USE_DEVICE_RDMA, which aborts every rank on types without RDMA read (g5), and which
#: libfabric has decided by itself since 1.18.
EFA = {
    "FI_PROVIDER": "efa",
    "NCCL_SOCKET_IFNAME": "^lo,docker,veth",
}

#: github.com/GoogleCloudPlatform/cluster-toolkit 1047080, run-nccl-tests.sh of A3 High: names of
#: the network interfaces, cores and chunk sizes are this machine's.
TCPX = {
    "NCCL_NET": "GPUDirectTCPX_v7",
    "NCCL_SOCKET_IFNAME": "enp0s12",
    "NCCL_GPUDIRECTTCPX_CTRL_DEV": "enp0s12",
    "NCCL_GPUDIRECTTCPX_SOCKET_IFNAME": "enp6s0,enp12s0,enp134s0,enp140s0",
    "NCCL_GPUDIRECTTCPX_TX_BINDINGS": "enp6s0:8-21,112-125;enp12s0:8-21,112-125;"
    "enp134s0:60-73,164-177;enp140s0:60-73,164-177",
    "NCCL_GPUDIRECTTCPX_RX_BINDINGS": "enp6s0:22-35,126-139;enp12s0:22-35,126-139;"
    "enp134s0:74-87,178-191;enp140s0:74-87,178-191",
    "NCCL_GPUDIRECTTCPX_PROGRAM_FLOW_STEERING_WAIT_MICROS": "500000",
    "NCCL_CROSS_NIC": "0",
    "NCCL_ALGO": "Ring",
    "NCCL_PROTO": "Simple",
    "NCCL_NSOCKS_PERTHREAD": "4",
    "NCCL_SOCKET_NTHREADS": "1",
    "NCCL_DYNAMIC_CHUNK_SIZE": "524288",
    "NCCL_P2P_NET_CHUNKSIZE": "524288",
    "NCCL_P2P_PCI_CHUNKSIZE": "524288",
    "NCCL_P2P_NVL_CHUNKSIZE": "1048576",
    "NCCL_BUFFSIZE": "4194304",
    "NCCL_NET_GDR_LEVEL": "PIX",
    "NCCL_P2P_PXN_LEVEL": "0",
}

#: The same repository, A3 Mega: what it sets over /var/lib/tcpxo/lib64/nccl-env-profile.sh.
TCPXO = {
    "NCCL_FASTRAK_CTRL_DEV": "enp0s12",
    "NCCL_FASTRAK_IFNAME": "enp6s0,enp7s0,enp13s0,enp14s0,enp134s0,enp135s0,enp141s0,enp142s0",
    "NCCL_SOCKET_IFNAME": "enp0s12",
    "NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY": "/dev/aperture_devices",
}

#: gIB on A3 Ultra, A4 and A4X: what /usr/local/gib/scripts/set_nccl_env.sh sets on all of them
#: (package nccl-gib of us-apt.pkg.dev/projects/gce-ai-infra gpudirect-gib-apt, 2026-04).
ROCE = {
    "NCCL_NET": "gIB",
    "NCCL_CROSS_NIC": "0",
    "NCCL_NET_GDR_LEVEL": "PIX",
    "NCCL_P2P_NET_CHUNKSIZE": "131072",
    "NCCL_NVLS_CHUNKSIZE": "524288",
    "NCCL_IB_ADAPTIVE_ROUTING": "1",
    "NCCL_IB_GID_INDEX": "3",
    "NCCL_IB_QPS_PER_CONNECTION": "4",
    "NCCL_IB_TC": "52",
    "NCCL_IB_FIFO_TC": "84",
}

#: G4 has no plugin: GPUs talk across PCIe, further apart on eight than on two or four
#: (docs.cloud.google.com/compute/docs/accelerator-optimized-machines, 2026-04-13).
P2P_LEVEL = {2: "PHB", 4: "PHB", 8: "SYS"}


BY_FABRIC: Mapping[str, Mapping[str, str]] = {
    "efa": EFA,
    "gpudirect-tcpx": TCPX,
    "gpudirect-tcpxo": TCPXO,
    "roce": ROCE,
}


def nccl(fabric: str, family: str, gpus: int) -> Mapping[str, str]:
    """The variables for a machine of a `family` with so many GPUs. Empty where NCCL's own choice
    is right."""
    found = BY_FABRIC.get(fabric, {})
    if family == "g4" and gpus in P2P_LEVEL:
        return {**found, "NCCL_P2P_LEVEL": P2P_LEVEL[gpus]}
    return found
