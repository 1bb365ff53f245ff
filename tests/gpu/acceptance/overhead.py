"""What profiling costs, beside torch.profiler: in every round each runs once, and is compared with the plain run."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity

import roofprof
from acceptance.checks import NotOnThisMachineError, Part
from acceptance.machine import Machine, notes
from acceptance.models import Chain, resnet50

# The worst that may be said of roofprof beside torch.profiler where it records as much: shapes, FLOPs, and the stacks
# that name the module of an op.
MOST_OF_TORCH = 1.15
AS_MUCH = "torch.profiler, shapes, FLOPs and stacks"
ROUNDS = 5

Open = Callable[[], AbstractContextManager]


@dataclass
class Workload:
    """A model, its input, and steps enough for one timing."""

    name: str
    model: nn.Module
    inputs: Tensor
    steps: int
    kernels: int | None = None  # launches of one step, where they are known
    ours: list[roofprof.RooflineProfiler] = field(default_factory=list)  # the last block of roofprof's

    def step(self) -> None:
        with torch.no_grad():
            self.model(self.inputs)


def workloads(machine: Machine) -> list[Workload]:
    batch, size, length = machine.size(32, 1), machine.size(224, 32), machine.size(2000, 50)
    resnet = machine.model(resnet50().eval())
    images = torch.rand(batch, 3, size, size, device=machine.tensors)
    few = torch.zeros(16, device=machine.tensors)
    large = [] if machine.simulated else [Workload(f"resnet50, batch {batch}", resnet, images, 10)]
    return [
        *large,
        Workload("resnet50, batch 1", resnet, images[:1], machine.size(20, 1)),
        Workload(f"{length} additions of 16 numbers", machine.model(Chain(length)), few, machine.size(3, 1), length),
    ]


def tools(machine: Machine, workload: Workload) -> dict[str, Open]:
    """Each as its users write it."""

    def ours() -> roofprof.RooflineProfiler:
        workload.ours[:] = [machine.profiler(workload.model)]
        return workload.ours[0]

    found: dict[str, Open] = {"plain": contextlib.nullcontext, "roofprof": ours}
    if not machine.simulated:
        gpu, both = [ProfilerActivity.CUDA], [ProfilerActivity.CPU, ProfilerActivity.CUDA]
        found["torch.profiler, GPU alone"] = lambda: torch.profiler.profile(activities=gpu)
        found["torch.profiler"] = lambda: torch.profiler.profile(activities=both)
        found[AS_MUCH] = lambda: torch.profiler.profile(
            activities=both, record_shapes=True, with_flops=True, with_stack=True
        )
    return found


def timing(machine: Machine, workload: Workload, opened: Open) -> tuple[float, float]:
    """Seconds of a step inside an open block, and of opening, one step and closing."""
    whole = time.perf_counter()
    with opened():
        workload.step()
        machine.synchronize()
        first = time.perf_counter() - whole
        start = time.perf_counter()
        for _ in range(workload.steps):
            workload.step()
        machine.synchronize()
        inside = (time.perf_counter() - start) / workload.steps
        closing = time.perf_counter()
    return inside, first + time.perf_counter() - closing


def measure(machine: Machine, workload: Workload) -> dict[str, dict[str, float]]:
    """Medians over the rounds, and of the ratios to the plain run of the same round."""
    found = tools(machine, workload)
    rounds = [{name: timing(machine, workload, opened) for name, opened in found.items()} for _ in range(ROUNDS + 1)]
    rounds = rounds[1:]  # the first one warms up
    result = {}
    for name in found:
        inside = [taken[name][0] for taken in rounds]
        ratios = [taken[name][0] / taken["plain"][0] for taken in rounds]
        result[name] = {
            "step_ms": 1e3 * statistics.median(inside),
            "step_over_plain": statistics.median(ratios),
            "whole_ms": 1e3 * statistics.median(taken[name][1] for taken in rounds),
        }
        if workload.kernels:
            extra = [taken[name][0] - taken["plain"][0] for taken in rounds]
            result[name]["extra_us_per_launch"] = 1e6 * statistics.median(extra) / workload.kernels
    return result


def check_traced(part: Part, machine: Machine, workload: Workload) -> None:
    """A cost is one of something: the block that was timed has its kernels."""
    report = workload.ours[0].report()
    seen = report.total.kernel_count
    if workload.kernels and not machine.simulated:
        expected = workload.kernels * (workload.steps + 1)
        part.equal(f"{workload.name}: kernels of the timed block", seen, expected, notes(report))
    else:
        part.holds(f"{workload.name}: the timed block has kernels", bool(seen), seen, notes(report))


def was_counted(report: roofprof.Report, counters: str) -> bool:
    figure = report.total.executed_flops if counters == "flops" else report.total.dram_bytes
    return counters == "off" or figure is not None


def cost_of_runs(machine: Machine, workload: Workload) -> tuple[dict[str, float], dict[str, str]]:
    """Seconds of run() with 3 repeats, by what is read from the counters; and why some were not read."""
    result: dict[str, float] = {}
    missing: dict[str, str] = {}
    # Counting FLOPs runs each kernel several times: 48 s for a ResNet-50 of 32 images on an H100.
    choices = ("off", "auto", "modules", "flops") if workload.kernels else ("off", "auto", "modules")
    for counters in choices:
        profiler = machine.profiler(workload.model, counters=counters)
        start = time.perf_counter()
        with torch.no_grad():
            report = profiler.run(workload.inputs)
        if was_counted(report, counters):
            result[counters] = time.perf_counter() - start
        else:
            missing[counters] = notes(report)
    return result, missing


def run(part: Part, machine: Machine) -> None:
    for workload in workloads(machine):
        with part.stage(workload.name):
            figures = measure(machine, workload)
            part.fact(workload.name, figures)
            check_traced(part, machine, workload)
            ours = figures["roofprof"]["step_over_plain"]
            name = f"{workload.name}: a step under roofprof over one under torch.profiler"
            if AS_MUCH not in figures:
                raise NotOnThisMachineError("torch.profiler sees nothing of a simulated GPU")
            theirs = figures[AS_MUCH]["step_over_plain"]
            part.between(name, ours / theirs, 0.0, MOST_OF_TORCH, f"roofprof {ours:.2f}x, {AS_MUCH} {theirs:.2f}x")
        with part.stage(f"{workload.name}: whole runs"):
            runs, missing = cost_of_runs(machine, workload)
            part.fact(f"{workload.name}: seconds of run(), by counters", runs)
            if workload.kernels:
                extra = {name: 1e6 * (seconds - runs["off"]) / workload.kernels for name, seconds in runs.items()}
                part.fact(f"{workload.name}: us for each launch of run(), by counters", extra)
                part.fact(f"{workload.name}: counters that were not read", missing)
