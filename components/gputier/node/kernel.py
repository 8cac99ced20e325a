"""A kernel on every GPU without any framework: a little PTX through libcuda, by ctypes.

Started as a process of its own (`gputier-node kernel`), because a broken driver hangs or kills who
calls it. Prints JSON: {"library", "error", "code", "devices": [{"index", "name", "ok", "error",
"code"}]}. The PTX is for sm_50 and version 6.0: every driver from 384 on compiles it for its card.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LIBRARY = "libcuda.so.1"
NOT_BELOW = "is not below"
PLACES = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib64",
    "/var/lib/nvidia/lib64",
    "/run/opengl-driver/lib",
)
COUNT, BLOCK = 4096, 256
# out[i] = 3 * i + 1: an untouched buffer (zeroed) cannot pass for it.
PTX = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry prove(.param .u64 out)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mad.lo.s32 %r5, %r4, 3, 1;
    mul.wide.s32 %rd3, %r4, 4;
    add.s64 %rd4, %rd2, %rd3;
    st.global.u32 [%rd4], %r5;
    ret;
}
"""


class CudaError(Exception):
    """A call of the driver API that did not return 0."""

    def __init__(self, call: str, code: int, name: str) -> None:
        super().__init__(f"{call}: {code} {name}".strip())
        self.code = code


class Driver:
    """The few calls of libcuda that a kernel needs."""

    def __init__(self, library: Any) -> None:
        self.library = library

    def call(self, name: str, *arguments: Any) -> None:
        code = int(getattr(self.library, name)(*arguments))
        if code:
            raise CudaError(name, code, self.error_name(code))

    def error_name(self, code: int) -> str:
        text = ctypes.c_char_p()
        try:
            self.library.cuGetErrorName(code, ctypes.byref(text))
        except AttributeError:
            return ""
        return (text.value or b"").decode("ascii", "replace")

    def count(self) -> int:
        number = ctypes.c_int()
        self.call("cuInit", 0)
        self.call("cuDeviceGetCount", ctypes.byref(number))
        return number.value

    def name(self, index: int) -> str:
        text = ctypes.create_string_buffer(128)
        device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(device), index)
        self.call("cuDeviceGetName", text, 128, device)
        return text.value.decode("utf-8", "replace")

    def prove(self, index: int) -> None:
        """Context, module, launch, copy back, compare. Raises CudaError or ValueError."""
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), index)
        self.call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
        try:
            self._launch()
        finally:
            self.library.cuCtxDestroy_v2(context)

    def _launch(self) -> None:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        memory = ctypes.c_uint64()
        size = COUNT * 4
        self.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(PTX))
        self.call("cuModuleGetFunction", ctypes.byref(function), module, b"prove")
        self.call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(size))
        self.call("cuMemsetD8_v2", memory, ctypes.c_ubyte(0), ctypes.c_size_t(size))
        arguments = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
        grid = (COUNT // BLOCK, 1, 1, BLOCK, 1, 1)
        self.call("cuLaunchKernel", function, *grid, 0, None, arguments, None)
        self.call("cuCtxSynchronize")
        out = (ctypes.c_uint32 * COUNT)()
        self.call("cuMemcpyDtoH_v2", out, memory, ctypes.c_size_t(size))
        self.call("cuMemFree_v2", memory)
        wrong = next((i for i in range(COUNT) if out[i] != 3 * i + 1), None)
        if wrong is not None:
            raise ValueError(f"wrong result: element {wrong} is {out[wrong]}, not {3 * wrong + 1}")


def places(root: str, search: Sequence[str]) -> list[str]:
    """Files that may be libcuda: of LD_LIBRARY_PATH, then of the known folders below the root."""
    folders = [Path(folder) for folder in search if folder]
    folders += [Path(root) / folder.lstrip("/") for folder in (*search, *PLACES) if folder]
    found = [folder / name for folder in folders for name in (LIBRARY, "libcuda.so")]
    return [str(path) for path in found if path.is_file()]


def load(root: str, search: Sequence[str]) -> tuple[Any, str]:
    """The library and where it was found. Raises OSError."""
    for path in places(root, search):
        return ctypes.CDLL(path), path
    if root == "/":
        return ctypes.CDLL(LIBRARY), LIBRARY
    raise OSError(f"{LIBRARY} {NOT_BELOW} {root}")


def run(root: str) -> dict[str, Any]:
    """The kernel on every GPU that libcuda shows."""
    found: dict[str, Any] = {"library": None, "error": None, "code": None, "devices": []}
    search = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    try:
        library, found["library"] = load(root, search)
    except OSError as error:
        found["error"] = str(error)
        return found
    driver = Driver(library)
    try:
        count = driver.count()
    except CudaError as error:
        found["error"], found["code"] = str(error), error.code
        return found
    found["devices"] = [_device(driver, index) for index in range(count)]
    return found


def _device(driver: Driver, index: int) -> dict[str, Any]:
    device: dict[str, Any] = {"index": index, "name": "", "ok": False, "error": None, "code": None}
    try:
        device["name"] = driver.name(index)
        driver.prove(index)
        device["ok"] = True
    except CudaError as error:
        device["error"], device["code"] = str(error), error.code
    except ValueError as error:
        device["error"] = str(error)
    return device
