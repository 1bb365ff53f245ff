"""The device under test, and how things are profiled on it."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

import roofprof
from acceptance.checks import NotOnThisMachineError
from acceptance.closed_forms import array_bytes
from acceptance.simulation import Simulation

DEVICE = "cuda:0"
# Of capabilities(7).
CAP_SETUID, CAP_SYS_ADMIN = 7, 21
_SIMULATED_ARRAY = 1 << 16


@dataclass
class Machine:
    """A GPU; or, to try the scripts themselves, stand-ins of its libraries with all tensors on the CPU."""

    folder: Path  # for what is recorded
    simulated: bool = False
    device: str = DEVICE  # what roofprof is told

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
            return _SIMULATED_ARRAY
        free, _ = torch.cuda.mem_get_info(self.device)
        return array_bytes(torch.cuda.get_device_properties(self.device).L2_cache_size, free)

    def size(self, real: int, simulated: int) -> int:
        """A size that makes sense on a GPU, or one that is done at once."""
        return simulated if self.simulated else real

    def synchronize(self) -> None:
        if not self.simulated:
            torch.cuda.synchronize(self.device)

    @property
    def counters_permitted(self) -> bool:
        """Whether this process may read hardware counters: one with CAP_SYS_ADMIN, all where the driver was told so.

        Root in a container need not have that capability.
        """
        params = Path("/proc/driver/nvidia/params")
        open_to_all = params.exists() and "RmProfilingAdminOnly: 0" in params.read_text()
        return self.simulated or open_to_all or has_capability(CAP_SYS_ADMIN)

    def profiler(self, what: Callable[..., Any] | None, **options: Any) -> roofprof.RooflineProfiler:
        """Without roofs: those have a part of their own."""
        options = {"warmup": 1, "repeat": 3, "ceilings": roofprof.Ceilings(), "device": self.device} | options
        return roofprof.RooflineProfiler(what, **options)

    def profile(self, label: str, what: Callable[..., Any], *args: Any, **options: Any) -> roofprof.Report:
        """The report of a call; its JSON is kept among what is recorded."""
        with torch.no_grad():
            return self.keep(label, self.profiler(what, **options).run(*args))

    def keep(self, label: str, report: roofprof.Report) -> roofprof.Report:
        self.folder.mkdir(parents=True, exist_ok=True)
        name = "".join(letter if letter.isalnum() else "_" for letter in label)
        report.to_json(self.folder / f"{'simulated_' if self.simulated else ''}{name}.json")
        return report

    def call(self, call: Callable[[], object], **work: float) -> Callable[[], object]:
        """The call as it is; where there is no GPU, one that lets the stand-ins run a kernel with that work."""
        return Simulation().after(call, **work) if self.simulated else call

    def model(self, model: nn.Module) -> nn.Module:
        """The model on this device; where there is none, with a kernel of the stand-ins' in each innermost module."""
        if self.simulated:
            Simulation().in_modules(model)
        return model.to(self.tensors)

    def needs_gpu(self) -> None:
        """Raises where stand-ins cannot do what follows."""
        if self.simulated:
            raise NotOnThisMachineError("needs a GPU, this run is simulated")


def has_capability(number: int, status: str | None = None) -> bool:
    """Whether this process has one of the kernel's capabilities. status: /proc/self/status."""
    lines = (Path("/proc/self/status").read_text() if status is None else status).splitlines()
    masks = [int(line.split()[1], 16) for line in lines if line.startswith("CapEff:")]
    return bool(masks) and bool(masks[0] >> number & 1)


def notes(report: roofprof.Report) -> str:
    """What a report says about what it lacks."""
    return " | ".join(str(note) for note in report.coverage.notes) or "the report has no note"
