"""fake_control.h for Python: a launch on a simulated device, and the library that takes it."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import ClassVar


class FakeLaunch(ctypes.Structure):
    """As fake_control.h has it, field by field; ``load`` compares the sizes."""

    _fields_: ClassVar = [
        ("kind", ctypes.c_int),
        ("name", ctypes.c_char_p),
        ("device", ctypes.c_uint),
        ("stream", ctypes.c_uint),
        ("duration_ns", ctypes.c_longlong),
        ("grid", ctypes.c_int * 3),
        ("block", ctypes.c_int * 3),
        ("bytes", ctypes.c_ulonglong),
        ("copy_kind", ctypes.c_int),
        ("graph", ctypes.c_uint),
        ("graph_node", ctypes.c_ulonglong),
        ("correlation", ctypes.c_uint),
        ("incomplete", ctypes.c_int),
        ("dram_read_bytes", ctypes.c_double),
        ("dram_write_bytes", ctypes.c_double),
        ("l2_bytes", ctypes.c_double),
        ("l1_bytes", ctypes.c_double),
        ("flops", ctypes.c_double),
        ("to_device", ctypes.c_uint),
        ("from_memory", ctypes.c_int),
        ("to_memory", ctypes.c_int),
    ]


def load(path: Path) -> ctypes.CDLL:
    """libroofprof_fakes.so, whose FakeLaunch is this one."""
    library = ctypes.CDLL(str(path))
    theirs = ctypes.c_ulong.in_dll(library, "fake_launch_size").value
    ours = ctypes.sizeof(FakeLaunch)
    if theirs != ours:
        message = f"{path} was built with a FakeLaunch of {theirs} bytes, {Path(__file__).name} has {ours}"
        raise RuntimeError(message)
    library.fake_launch.argtypes = [ctypes.POINTER(FakeLaunch)]
    return library
