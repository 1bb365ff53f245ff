"""What profiling costs, beside torch.profiler: in every round each runs once, and is compared with the plain run."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable
from contextlib import AbstractContextManager

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from acceptance.checks import Part
from acceptance.machine import Machine, notes
from acceptance.models import Chain, resnet50

# The worst that may be said of a block beside torch.profiler where it records as much (shapes, FLOPs, and the stacks
# that name the module of an op), and of a timed call of run() beside it where it records the device alone.
MOST = 1.15
MOST_OF_RUN = 1.05
ROUNDS = 5
STEPS = 10


def measure(part: Part, machine: Machine, label: str, model: nn.Module, args: torch.Tensor) -> None:
    def step() -> None:
        with torch.no_grad():
            model(args)

    blocks = [machine.profiler(model)]

    def ours() -> AbstractContextManager:
        blocks[0] = machine.profiler(model)
        return blocks[0]

    gpu, both = [ProfilerActivity.CUDA], [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    tools: dict[str, Callable[[], AbstractContextManager]] = {"plain": contextlib.nullcontext, "roofprof": ours}
    if not machine.simulated:
        tools["torch.profiler, GPU alone"] = lambda: profile(activities=gpu)
        tools["torch.profiler"] = lambda: profile(activities=both)
        full = {"record_shapes": True, "with_flops": True, "with_stack": True}
        tools["torch.profiler, shapes, FLOPs and stacks"] = lambda: profile(activities=both, **full)
    taken: dict[str, list[float]] = {tool: [] for tool in tools}
    for turn in range(machine.size(ROUNDS, 1) + 1):  # the first one warms up
        for tool, opened in tools.items():
            with opened():
                seconds = machine.timed(step, machine.size(STEPS, 2))
            if turn:
                taken[tool].append(statistics.median(seconds))
    ratios = {
        tool: statistics.median(one / plain for one, plain in zip(seconds, taken["plain"], strict=True))
        for tool, seconds in taken.items()
    }
    part.fact(f"{label}: a step, ms", {tool: 1e3 * statistics.median(seconds) for tool, seconds in taken.items()})
    part.fact(f"{label}: a step over a plain one", ratios)
    # A cost is one of something: the block that was timed has its kernels.
    report = blocks[0].report()
    part.holds(f"{label}: the timed block has kernels", report.total.kernel_count, notes(report))
    if isinstance(model, Chain) and not machine.simulated:
        part.equal(f"{label}: kernels of the timed block", report.total.kernel_count, STEPS * model.length)
    report = machine.profile(f"cost of {label}", model, args, counters="off", repeat=machine.size(10, 2))
    runs = report.to_dict()["runs"]
    observed = statistics.median(runs["total_ns"]) / statistics.median(runs["bare_ns"])
    part.fact(f"{label}: a timed call of run() over a bare one", observed)
    if not machine.simulated:
        block = ratios["roofprof"] / ratios["torch.profiler, shapes, FLOPs and stacks"]
        part.between(f"{label}: a step under roofprof over one under torch.profiler", block, 0, MOST)
        timed = observed / ratios["torch.profiler, GPU alone"]
        part.between(f"{label}: run() over torch.profiler of the device", timed, 0, MOST_OF_RUN)


def run(part: Part, machine: Machine) -> None:
    resnet = machine.model(resnet50((1,) if machine.simulated else (3, 4, 6, 3)))
    images = machine.rand(machine.size(32, 1), 3, machine.size(224, 32), machine.size(224, 32))
    length = machine.size(2000, 50)
    few = machine.rand(16)
    for label, model, args in (
        ("resnet50", resnet, images),
        ("resnet50, batch 1", resnet, images[:1]),
        (f"{length} additions of 16 numbers", machine.model(Chain(length)), few),
    ):
        with part.stage(label):
            measure(part, machine, label, model, args)
