"""The floors of the tiers and purposes, written down a second time and by hand."""

from __future__ import annotations

#: A floor: (value, per, at least, at most); tiers.toml says what each means.
Figure = tuple[object, str, float | None, float | None]
DESIGNED: dict[str, dict[str, Figure]] = {
    "entry": {
        "gpu_memory": (8, "", None, None),
        "vcpu": (0.5, "needed", 4, None),
        "host_memory": (4, "needed", None, 32),
    },
    "mid": {
        "gpu_memory": (24, "", None, None),
        "vcpu": (0.5, "needed", 8, None),
        "host_memory": (2, "needed", None, None),
        "network": (10, "", None, None),
        "disk_throughput": (500, "", None, None),
    },
    "high-end": {
        "gpu_memory": (80, "", None, None),
        "gpu_count": (2, "", None, None),
        "vcpu": (12, "gpu", None, None),
        "host_memory": (1, "installed", None, None),
        "ecc": (True, "", None, None),
        "nvlink": (600, "", None, None),
        "network": (100, "", None, None),
        "fabric": ("rdma", "", None, None),
        "scratch": (1, "", None, None),
        "disk_throughput": (1000, "", None, None),
        "placement": ("cluster", "", None, None),
    },
    "development": {},
    "inference": {"int8": (True, "", None, None)},
    "fine-tuning": {},
    "training": {},
    "rendering": {
        "gpu_memory": (48, "", None, None),
        "graphics": (("opengl", "vulkan"), "", None, None),
    },
    "hpc": {"gpu_memory": (32, "", None, None), "fp64": (0.45, "", None, None)},
    "vdi": {
        "gpu_memory": (8, "", None, None),
        "video_encode": (True, "", None, None),
        "graphics": (("opengl", "vulkan"), "", None, None),
        "vgpu": (True, "", None, None),
    },
}
