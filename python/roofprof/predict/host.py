"""Measures how long this machine's host takes to launch an op: its part of a prediction of eager mode."""

from __future__ import annotations

import functools
import statistics
import time
from typing import Final

MEASURED: Final = "measured"
# A launch on a GPU adds the driver's call to an op's way through torch. Median of 1,029 calls of
# cudaLaunchKernel on the host of an H100, under the profiler (AMD-AGI/TraceLens, tests/traces/h100, Qwen1.5-0.5B); this
# project measured 3.2 us on another host of an H100.
LAUNCH_SECONDS = 3.3e-6
# An op on a GPU takes the host longer than one on the CPU: memory of the caching allocator, cuDNN's and cuBLAS's plans.
# Fitted to one host, that of an H100 (tests/data/gpu/h100): ops of 13 models at batch 1 took 32 us, launch included,
# where the calls below took 9.2 us. One host is thin evidence, and steps that it launched judge nothing.
GPU_OVER_CPU = 3.1
_LAYERS = 50
_SECONDS = 0.5  # of measuring


@functools.cache
def host_seconds() -> float:
    """Return the seconds in which this machine's host would launch an op on a GPU.

    Calls of modules with tensors so small that the CPU computes next to nothing: Python's, the module's and the
    dispatcher's part of an op, in inference; times what an op on a GPU takes longer, and a launch.
    """
    import torch
    from torch import nn

    layers = [layer for _ in range(_LAYERS) for layer in (nn.Linear(8, 8), nn.ReLU(), nn.LayerNorm(8))]
    model, x = nn.Sequential(*layers).eval(), torch.zeros(1, 8)
    taken: list[float] = []
    with torch.no_grad():
        end = time.perf_counter() + _SECONDS
        while time.perf_counter() < end or len(taken) < 5:
            begin = time.perf_counter()
            model(x)
            taken.append(time.perf_counter() - begin)
    return GPU_OVER_CPU * statistics.median(taken) / len(layers) + LAUNCH_SECONDS
