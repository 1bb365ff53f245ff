"""Checks that memory stays constant: 10,000 profiled steps in one block against 100.

The second case never calls backward, so the autograd nodes that a profiler waits for never run.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
from collections.abc import Callable

import torch
from common import environment, print_table, rss_megabytes
from torch import nn

import roofprof

ALLOWED_MEGABYTES = 2.0


def small_model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.LayerNorm(64), nn.Linear(64, 8))


def training_step() -> tuple[nn.Module, Callable[[], object]]:
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    data, target = torch.randn(16, 32), torch.randn(16, 8)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(data), target).backward()
        optimizer.step()

    return model, step


def forward_without_backward() -> tuple[nn.Module, Callable[[], object]]:
    model = small_model()
    data = torch.randn(16, 32)
    return model, lambda: model(data)


CASES: dict[str, Callable[[], tuple[nn.Module, Callable[[], object]]]] = {
    "training steps": training_step,
    "forwards with grad, no backward": forward_without_backward,
}


def resident() -> float:
    gc.collect()
    return rss_megabytes()


def early_and_late(case: str, steps: int) -> tuple[float, float]:
    """Resident megabytes after 100 and after all steps in one block."""
    torch.set_num_threads(1)
    model, step = CASES[case]()
    with roofprof.RooflineProfiler(model):
        for _ in range(100):
            step()
        early = resident()
        for _ in range(steps - 100):
            step()
        return early, resident()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=10_000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(environment())
    print()
    rows, grown = [], 0.0
    # A process for each: what one case has freed could hide what the next one keeps.
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for case in CASES:
            early, late = pool.apply(early_and_late, (case, options.steps))
            grown = max(grown, late - early)
            rows.append([f"{options.steps} {case}", f"{early:.1f}", f"{late:.1f}", f"{late - early:+.2f}"])
    print_table(["resident memory, MB", "after 100", "at the end", "difference"], rows)
    if grown > ALLOWED_MEGABYTES:
        raise SystemExit(f"memory grew by {grown:.2f} MB; {ALLOWED_MEGABYTES:.0f} MB are allowed")


if __name__ == "__main__":
    main()
