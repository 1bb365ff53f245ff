"""The device under test, and how things are profiled on it."""

from __future__ import annotations

import functools
import json
import os
import re
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
from acceptance.closed_forms import array_bytes
from acceptance.simulation import Simulation

DEVICE = "cuda:0"
# Of capabilities(7).
CAP_SYS_ADMIN, CAP_PERFMON = 21, 38
PERFMON_SINCE = 565  # the first driver that CAP_PERFMON is enough for
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
        """Whether this process may read hardware counters: see may_read_counters."""
        return self.simulated or may_read_counters(*(_text(path) for path in (_PARAMS, _VERSION, _STATUS)))

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

    def trace_by_torch(self, call: Callable[[], object], *, device_alone: bool = False) -> dict[str, Any]:
        """What torch.profiler records of a call."""
        host = [] if device_alone else [ProfilerActivity.CPU]
        with torch.profiler.profile(activities=[*host, ProfilerActivity.CUDA]) as profiler:
            call()
            self.synchronize()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            profiler.export_chrome_trace(str(path))
            return json.loads(path.read_text())

    def needs_gpu(self) -> None:
        """Raises where stand-ins cannot do what follows."""
        if self.simulated:
            raise NotOnThisMachineError("needs a GPU, this run is simulated")


def seconds_by_events(call: Callable[[], object], calls: int) -> list[float]:
    """What each of some calls takes on the device, by CUDA's events, which no profiler touches."""
    found = []
    for _ in range(calls):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        call()
        last.record()
        last.synchronize()
        found.append(first.elapsed_time(last) * 1e-3)
    return found


_PARAMS, _VERSION = Path("/proc/driver/nvidia/params"), Path("/proc/driver/nvidia/version")
_STATUS = Path("/proc/self/status")


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def has_capability(number: int, status: str | None = None) -> bool:
    """Whether this process has one of the kernel's capabilities. status: /proc/self/status."""
    lines = (_STATUS.read_text() if status is None else status).splitlines()
    masks = [int(line.split()[1], 16) for line in lines if line.startswith("CapEff:")]
    return bool(masks) and bool(masks[0] >> number & 1)


def may_read_counters(params: str, version: str, status: str) -> bool:
    """Whether NVIDIA's driver gives counters to a process, by its files and the process's (docs/gpu.md).

    To all where it was loaded with NVreg_RestrictProfilingToAdminUsers=0; else to CAP_SYS_ADMIN, and from 565 on to
    CAP_PERFMON alone. Root in a container need not have either.
    """
    if "RmProfilingAdminOnly: 0" in params or has_capability(CAP_SYS_ADMIN, status):
        return True
    driver = re.search(r"^NVRM version:.*?\s(\d+)\.\d", version, re.MULTILINE)
    return driver is not None and int(driver[1]) >= PERFMON_SINCE and has_capability(CAP_PERFMON, status)


def notes(report: roofprof.Report) -> str:
    """What a report says about what it lacks."""
    return " | ".join(str(note) for note in report.coverage.notes) or "the report has no note"
