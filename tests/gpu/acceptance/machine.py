"""The device under test, and how things are profiled on it."""

from __future__ import annotations

import ctypes
import functools
import json
import math
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.profiler import ProfilerActivity

import roofprof
from acceptance.checks import NotOnThisMachineError
from roofprof.cli import doctor

GIB = 1 << 30
_ON_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}


@dataclass
class Machine:
    """A GPU; or, to try the scripts themselves, stand-ins of its libraries with all tensors on the CPU."""

    folder: Path  # for what is recorded
    simulated: bool = False
    device: str = "cuda:0"  # what roofprof is told

    @staticmethod
    def here(folder: Path) -> Machine | None:
        """None where there is neither a GPU nor a stand-in."""
        if torch.cuda.is_available():
            return Machine(folder)
        return Machine(folder, simulated=True) if "ROOFPROF_CUDA_LIB" in os.environ else None

    @property
    def tensors(self) -> str:
        """Where tensors lie."""
        return "cpu" if self.simulated else self.device

    @property
    def name(self) -> str:
        return "simulated" if self.simulated else torch.cuda.get_device_name(self.device)

    @functools.cached_property
    def array_bytes(self) -> int:
        """Of one array in tests of DRAM traffic."""
        if self.simulated:
            return 1 << 16
        l2_bytes = torch.cuda.get_device_properties(self.device).L2_cache_size
        return array_bytes(l2_bytes, torch.cuda.mem_get_info(self.device)[0])

    def size(self, real: int, simulated: int) -> int:
        """A size that makes sense on a GPU, or one that is done at once."""
        return simulated if self.simulated else real

    def rand(self, *size: int) -> torch.Tensor:
        return torch.rand(*size, device=self.tensors)

    def synchronize(self) -> None:
        if not self.simulated:
            torch.cuda.synchronize(self.device)

    @functools.cached_property
    def counters_permitted(self) -> bool:
        """Whether this process may read hardware counters (docs/gpu.md), by the driver and the process."""
        return self.simulated or not any("no permission" in finding.found for finding in doctor.findings())

    @property
    def roofs(self) -> roofprof.Ceilings | None:
        """For reports with roofs: None has them measured here, once for all parts. Simulated ones are published."""
        return roofprof.Ceilings.published("H100 SXM") if self.simulated else None

    def profiler(self, what: Callable[..., Any] | None, **options: Any) -> roofprof.RooflineProfiler:
        """Without roofs, where no `ceilings` are given."""
        options = {"warmup": 1, "repeat": 3, "ceilings": roofprof.Ceilings(), "device": self.device} | options
        return roofprof.RooflineProfiler(what, **options)

    def profile(self, label: str, what: Callable[..., Any], *args: Any, **options: Any) -> roofprof.Report:
        """The report of a call; its JSON is kept among what is recorded."""
        with torch.no_grad():
            return self.keep(label, self.profiler(what, **options).run(*args))

    def keep(self, label: str, report: roofprof.Report) -> roofprof.Report:
        name = "".join(letter if letter.isalnum() else "_" for letter in label)
        report.to_json(self.folder / f"{'simulated_' if self.simulated else ''}{name}.json")
        return report

    def call(self, call: Callable[[], object], **work: float) -> Callable[[], object]:
        """The call as it is; where there is no GPU, one that lets the stand-ins run a kernel with that work."""
        if not self.simulated:
            return call
        return lambda: (call(), simulate("simulated_kernel", **work))[0]

    def model(self, model: nn.Module) -> nn.Module:
        """The model on this device; where there is none, with a kernel of the stand-ins' in each innermost module."""
        for name, module in model.named_modules() if self.simulated else ():
            if not any(module.children()):
                module.register_forward_pre_hook(lambda _m, _a, name=name: simulate(name, dram_read_bytes=4096))
        return model.to(self.tensors)

    def timed(self, call: Callable[[], object], calls: int = 1) -> list[float]:
        """Seconds of each of some calls that wait for the device; nothing observes them."""
        found = []
        for _ in range(calls):
            self.synchronize()
            begin = time.perf_counter()
            call()
            self.synchronize()
            found.append(time.perf_counter() - begin)
        return found

    def by_torch(self, call: Callable[[], object]) -> dict[str, Any]:
        """What torch.profiler's records of the device alone say of a call."""
        with torch.profiler.profile(activities=[ProfilerActivity.CUDA]) as profiler:
            call()
            self.synchronize()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            profiler.export_chrome_trace(str(path))
            return on_device(json.loads(path.read_text()))

    def needs_gpu(self) -> None:
        """Raises where stand-ins cannot do what follows."""
        if self.simulated:
            raise NotOnThisMachineError("needs a GPU, this run is simulated")


def simulate(name: str, **work: float) -> None:
    """One launch of the stand-ins (tests/fakes), whose control lies beside the library that ROOFPROF_CUDA_LIB names.

    What comes out was put in: it tests the scripts and roofprof's own arithmetic, and says nothing about a device.
    """
    folder = Path(os.environ["ROOFPROF_CUDA_LIB"]).resolve().parent
    fields = "".join(f"{field}={value} " for field, value in ({"duration_ns": 20_000} | work).items())
    ctypes.CDLL(str(folder.parent / "libroofprof_fakes.so")).fake_launch_text(f"{fields}name={name}".encode())


def on_device(trace: dict[str, Any]) -> dict[str, Any]:
    """Of a trace that torch.profiler exported: the number of kernels, and the seconds of all kernels, copies and fills.

    busy: the seconds in which at least one ran. The driver runs large fills of a graph as the kernel memset32.
    """
    events = [event for event in trace["traceEvents"] if event.get("ph") == "X" and event.get("cat") in _ON_DEVICE]
    kernels = sum(event["cat"] == "kernel" and event["name"] != "memset32" for event in events)
    busy, until = 0.0, -math.inf
    for begin, end in sorted((event["ts"], event["ts"] + event["dur"]) for event in events):
        busy += max(0.0, end - max(begin, until))
        until = max(until, end)
    return {"kernels": kernels, "seconds": sum(event["dur"] for event in events) * 1e-6, "busy": busy * 1e-6}


def array_bytes(l2_bytes: int, free_bytes: int) -> int:
    """Of one array: the power of two that holds 32 L2 caches, less on a card without room for eight such arrays."""
    wanted = 1 << (max(32 * l2_bytes, GIB) - 1).bit_length()
    while wanted * 8 > free_bytes:
        wanted //= 2
    return wanted


def notes(report: roofprof.Report) -> str:
    """What a report says about what it lacks."""
    return " | ".join(str(note) for note in report.coverage.notes) or "the report has no note"
