"""Excerpts of what real machines printed, from public reports; each with its address.

Excerpts only, cut to the lines that a check reads; identities are replaced.
"""

# ruff: noqa: E501 (as printed)
from __future__ import annotations

from typing import NamedTuple


class Log(NamedTuple):
    """`what` names the tool, `address` where it was published, `text` the lines."""

    what: str
    address: str
    text: str


V100_LINKS = Log(
    "nvidia-smi nvlink -s",
    "https://github.com/Azure/azhpc-diagnostics/issues/73",
    """GPU 3: Tesla V100-SXM2-32GB (UUID: GPU-00000000-0000-4000-8000-000000000001)
\t Link 0: 25.781 GB/s
\t Link 1: 25.781 GB/s
\t Link 2: 25.781 GB/s
\t Link 3: <inactive>
\t Link 4: 25.781 GB/s
\t Link 5: <inactive>
""",
)
GB200_LINKS = Log(
    "nvidia-smi nvlink -s",
    "https://github.com/NVIDIA/k8s-test-infra/issues/371",
    "GPU 0: NVIDIA GB200 (UUID: GPU-00000000-0000-4000-8000-000000000001)\n"
    + "".join(f"\t Link {n}: 53.125 GB/s\n" for n in range(18)),
)
B200_MATRIX = Log(
    "nvidia-smi topo -m",
    "https://github.com/vllm-project/vllm/issues/16336",
    """        GPU0    GPU1    GPU2    GPU3
GPU0     X      NV18    NODE    NV18
GPU1    NV18     X      NODE    NV18
GPU2    NODE    NODE     X      NODE
GPU3    NV18    NV18    NODE     X
""",
)
NIC_MATRIX = Log(
    "nvidia-smi topo -m",
    "https://github.com/NVIDIA/nccl/issues/1617",
    """        GPU0    GPU1    GPU2    GPU3    NIC0    NIC1    NIC2    NIC3    CPU Affinity    NUMA Affinity   GPU NUMA ID
GPU0     X      NV6     NV6     NV6     PIX     SYS     SYS     SYS     6,14,22,30      3               N/A
GPU1    NV6      X      NV6     NV6     SYS     PIX     SYS     SYS     4,12,20,28      1               N/A
GPU2    NV6     NV6      X      NV6     SYS     SYS     PIX     SYS     7,15,23,31      7               N/A
GPU3    NV6     NV6     NV6      X      SYS     SYS     SYS     PIX     5,13,21,29      5               N/A
NIC0    PIX     SYS     SYS     SYS      X      SYS     SYS     SYS
NIC1    SYS     PIX     SYS     SYS     SYS      X      SYS     SYS
""",
)
VGPU_DETAILS = Log(
    "nvidia-smi -q",
    "https://github.com/ollama/ollama/issues/6364",
    """==============NVSMI LOG==============

Timestamp                                 : Wed Aug 14 23:19:54 2024
Driver Version                            : 535.161.08
CUDA Version                              : 12.2

Attached GPUs                             : 1
GPU 00000000:01:00.0
    Product Name                          : GRID P40-24Q
    Product Brand                         : NVIDIA RTX Virtual Workstation
    Persistence Mode                      : Enabled
    MIG Mode
        Current                           : Disabled
        Pending                           : Disabled
    Serial Number                         : N/A
    Minor Number                          : 0
""",
)
SLICE_BANNER = Log(
    "nvidia-smi",
    "https://github.com/awslabs/amazon-eks-ami/issues/2443",
    "| NVIDIA-SMI 570.172.08             Driver Version: 570.172.08     CUDA Version: 12.8     |\n"
    "|   0  NVIDIA L4-12Q                  On  |   00000000:31:00.0 Off |                    0 |\n",
)
NO_DRIVER = Log(
    "nvidia-smi",
    "https://github.com/skypilot-org/skypilot/issues/6445",
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n",
)
ALL = (V100_LINKS, GB200_LINKS, B200_MATRIX, NIC_MATRIX, VGPU_DETAILS, SLICE_BANNER, NO_DRIVER)
