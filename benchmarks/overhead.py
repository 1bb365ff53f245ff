"""Measures what observing costs: roofprof, torch's flop_counter and profiler, and fvcore, against the plain model.

One thread. In every round all of them run once, one after the other, and each is compared with the plain run of the
same round. A tool's block is opened, one step warms it up, and the next ones are timed, so the figure is the cost of a
step inside an open block. `whole` includes opening and closing (for fvcore, which has no blocks, its whole analysis),
for one step.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib.util
import os
import statistics
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
import torchvision
from common import environment, paired_ratio, print_table, seconds
from models import AddChain, Gpt2, Repeated
from torch import Tensor, nn
from torch.profiler import ProfilerActivity
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

import roofprof

Open = Callable[[], AbstractContextManager[Any]]
Clock = Callable[[], float]


@dataclass
class Workload:
    """A model, its input, and how many steps make one timing long enough."""

    name: str
    model: nn.Module
    inputs: Tensor
    steps: int
    rounds: int
    calls: int | None = None  # that a step makes of one function; None: its ops are counted

    def step(self) -> object:
        return self.model(self.inputs)


@dataclass
class Timing:
    """Seconds of one step in each round."""

    inside: list[float]
    whole: list[float]


def workloads(*, quick: bool) -> list[Workload]:
    torch.manual_seed(0)
    few = 4 if quick else 1
    resnet = torchvision.models.resnet18().eval()
    tokens = torch.randint(0, 50257, (1, 32))
    bias, weight = torch.randn(16), torch.randn(16, 16)
    repeated = {
        "addmm": Repeated(lambda x: torch.addmm(bias, x, weight)),
        "t": Repeated(torch.t),
        "Linear": Repeated(nn.Linear(16, 16)),
    }
    return [
        Workload("2000 adds of 16 elements", AddChain(2000), torch.randn(16), steps=10, rounds=40 // few),
        *(
            Workload(f"500 of {name}, 1x16", model, torch.randn(1, 16), steps=10, rounds=40 // few, calls=500)
            for name, model in repeated.items()
        ),
        Workload("resnet18, 1x3x64x64", resnet, torch.randn(1, 3, 64, 64), steps=5, rounds=40 // few),
        Workload("resnet18, 1x3x224x224", resnet, torch.randn(1, 3, 224, 224), steps=2, rounds=20 // few),
        Workload("GPT-2 small, 32 tokens", Gpt2().eval(), tokens, steps=2, rounds=20 // few),
    ]


def tools(workload: Workload) -> dict[str, Open]:
    """Each tool as its users write it."""
    cpu = [ProfilerActivity.CPU]
    return {
        "plain": contextlib.nullcontext,
        "roofprof": lambda: roofprof.RooflineProfiler(workload.model),
        "torch flop_counter": lambda: FlopCounterMode(display=False),
        "torch.profiler": lambda: torch.profiler.profile(activities=cpu),
        "torch.profiler with_flops": lambda: torch.profiler.profile(activities=cpu, with_flops=True),
    }


def run_once(workload: Workload, open_block: Open, clock: Clock) -> tuple[float, float]:
    """Seconds of a step inside an open block, and of a block with one step."""
    with open_block():
        workload.step()
        inside = seconds(lambda: [workload.step() for _ in range(workload.steps)], clock) / workload.steps

    def whole() -> None:
        with open_block():
            workload.step()

    return inside, seconds(whole, clock)


def run_fvcore(workload: Workload, clock: Clock) -> float:
    """Return the seconds of fvcore's analysis, which traces the model and reads the graph: it has no steady state."""
    from fvcore.nn import FlopCountAnalysis

    analysis = FlopCountAnalysis(workload.model, workload.inputs).unsupported_ops_warnings(False)
    return seconds(analysis.uncalled_modules_warnings(False).total, clock)


class CountOps(TorchDispatchMode):
    """Counts the ops that reach the kernels, by which "per op" divides."""

    def __init__(self) -> None:
        super().__init__()
        self.ops = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.ops += 1
        return func(*args, **(kwargs or {}))


def measure(workload: Workload, clock: Clock) -> dict[str, Timing]:
    timings = {name: Timing([], []) for name in tools(workload)}
    if importlib.util.find_spec("fvcore"):  # `make bench` brings it
        timings["fvcore"] = Timing([], [])
    gc.disable()  # as timeit does: a collection belongs to no tool in particular
    for _ in range(workload.rounds):
        for name, open_block in tools(workload).items():
            inside, whole = run_once(workload, open_block, clock)
            timings[name].inside.append(inside)
            timings[name].whole.append(whole)
            gc.collect()
        if "fvcore" in timings:
            timings["fvcore"].whole.append(run_fvcore(workload, clock))
            gc.collect()
    gc.enable()
    return timings


def report(workload: Workload, timings: dict[str, Timing]) -> None:
    with CountOps() as counter:
        workload.step()
    ops = workload.calls or counter.ops
    plain = timings["plain"]
    print(f"\n{workload.name}: {ops} {'calls' if workload.calls else 'ops'}, {workload.rounds} rounds")
    rows = []
    for name, timing in timings.items():
        inside = timing.inside or timing.whole
        ratios = [a / b for a, b in zip(inside, plain.inside, strict=True)]
        low, _, high = statistics.quantiles(ratios, n=4)
        added = statistics.median(a - b for a, b in zip(inside, plain.inside, strict=True)) / ops * 1e6
        against_plain = [f"{statistics.median(ratios):.3f}", f"{low:.3f} to {high:.3f}", f"{added:.2f}"]
        whole = f"{paired_ratio(timing.whole, plain.inside):.3f}"
        time = f"{statistics.median(inside) * 1e3:.3f}"
        rows.append([name, time, *(["", "", ""] if name == "plain" else against_plain), whole])
    print_table(["", "ms a step", "ratio", "middle half", "added us an op", "whole, ratio"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a quarter of the rounds")
    parser.add_argument("--only", default="", help="workloads whose name has this in it")
    parser.add_argument("--cpu-time", action="store_true", help="CPU time of the thread, for busy machines")
    options = parser.parse_args()
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch.profiler's own log lines would drown the tables
    warnings.filterwarnings("ignore", category=FutureWarning)  # fvcore's, about torch.jit
    torch.set_num_threads(1)
    print(environment())
    with torch.no_grad():
        for workload in workloads(quick=options.quick):
            if options.only in workload.name:
                report(workload, measure(workload, time.thread_time if options.cpu_time else time.perf_counter))


if __name__ == "__main__":
    main()
