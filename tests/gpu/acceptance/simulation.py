"""Work for the stand-ins of NVIDIA's libraries (tests/fakes): what a GPU would launch, told by hand.

It lets the acceptance run through without a GPU. What comes out was put in: it tests the scripts and roofprof's own
arithmetic, and says nothing about a device.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

from fake_launch import FakeLaunch, load
from torch import nn

KERNEL, COPY = 0, 1
_DEVICE_TO_DEVICE = 8
_NANOSECONDS = 20_000


class Simulation:
    """The stand-ins' control, found beside the library that ROOFPROF_CUDA_LIB names."""

    def __init__(self) -> None:
        folder = Path(os.environ["ROOFPROF_CUDA_LIB"]).resolve().parent
        self._library = load(folder.parent / "libroofprof_fakes.so")

    def launch(self, name: str, *, dram_bytes: float = 0, flops: float = 0, copied: int = 0) -> None:
        """One kernel that reads half of its DRAM bytes and writes half; or, with `copied`, a copy on the device."""
        launch = FakeLaunch(
            kind=COPY if copied else KERNEL,
            name=name.encode(),
            duration_ns=_NANOSECONDS,
            grid=(132, 1, 1),
            block=(256, 1, 1),
            bytes=copied,
            copy_kind=_DEVICE_TO_DEVICE if copied else 0,
            dram_read_bytes=dram_bytes / 2,
            dram_write_bytes=dram_bytes / 2,
            l2_bytes=dram_bytes,
            l1_bytes=dram_bytes,
            flops=flops,
        )
        self._library.fake_launch(ctypes.byref(launch))

    def after(self, call: Callable[[], object], **work: float) -> Callable[[], object]:
        """The call, and then one launch with that work."""

        def both() -> object:
            result = call()
            self.launch("simulated_kernel", **work)
            return result

        return both

    def in_modules(self, model: nn.Module) -> None:
        """Each call of a module without children launches one kernel, inside it."""
        for name, module in model.named_modules():
            if not any(module.children()):
                module.register_forward_pre_hook(lambda _m, _a, name=name: self.launch(name, dram_bytes=4096))
