"""Measures how much profiling adds to a training step of several ranks: DistributedDataParallel over gloo, plain, in
a block of roofprof and under torch.profiler, in turn in one run.

    torchrun --nproc-per-node 4 benchmarks/ddp_overhead.py
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections.abc import Callable, Iterator

import torch
import torch.distributed as dist
from common import environment, paired_ratio, print_table, seconds
from torch import nn

import roofprof


def build(width: int, layers: int) -> nn.Module:
    return nn.Sequential(*(module for _ in range(layers) for module in (nn.Linear(width, width), nn.ReLU())))


@contextlib.contextmanager
def in_block(profiler: roofprof.RooflineProfiler) -> Iterator[Callable[[], None]]:
    with profiler:
        yield profiler.step


@contextlib.contextmanager
def under_torch_profiler() -> Iterator[Callable[[], None]]:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        yield profiler.step


@contextlib.contextmanager
def plain() -> Iterator[Callable[[], None]]:
    yield lambda: None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = nn.parallel.DistributedDataParallel(build(768, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    inputs = torch.rand(128, 768)
    profiler = roofprof.RooflineProfiler(model)

    def steps(tool: Callable[[], contextlib.AbstractContextManager[Callable[[], None]]]) -> tuple[float, float]:
        """Seconds of some steps on all ranks, without opening and closing the tool, and this rank's CPU seconds."""
        with tool() as step_done:
            dist.barrier()

            def run() -> None:
                for _ in range(options.steps):
                    optimizer.zero_grad()
                    model(inputs).square().mean().backward()
                    optimizer.step()
                    step_done()
                dist.barrier()

            cpu_before = time.process_time()
            took = seconds(run)
            return took, time.process_time() - cpu_before

    tools = {"plain": plain, "roofprof": lambda: in_block(profiler), "torch.profiler": under_torch_profiler}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in tools}
    for turn in range(options.rounds + 1):
        names = list(tools) if turn % 2 else list(reversed(tools))
        for name in names:
            took = steps(tools[name])
            if turn:  # the first round sets up
                times[name].append(took)
    if dist.get_rank() == 0:
        print(environment())
        print(f"{dist.get_world_size()} ranks, {options.rounds} rounds of {options.steps} steps; medians")
        rows = []
        for name, own in times.items():
            walls, cpus = ([pair[which] for pair in own] for which in (0, 1))
            plain_walls, plain_cpus = ([pair[which] for pair in times["plain"]] for which in (0, 1))
            ratios = paired_ratio(walls, plain_walls), paired_ratio(cpus, plain_cpus)
            step = f"{statistics.median(walls) / options.steps * 1e3:.1f} ms"
            rows.append([name, step, *(f"{ratio:.3f}" for ratio in ratios)])
        print_table(["", "a step", "ratio to plain", "of CPU time"], rows)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
