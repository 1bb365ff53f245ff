"""What instructions/count.py runs under callgrind: calls and blocks of Python, outside of a block and in one.

It gets the library that asks callgrind to count, and prints how often each was done.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
from collections.abc import Callable

import torch
from torch import nn

import roofprof

CALLS = 1_024  # whatever samples by powers of two divides it
BLOCKS = 8
FIRST_CALLS = 8_192  # the first calls in a block may be observed more closely than later ones

REQUESTS = ctypes.CDLL(sys.argv[1])


def count(name: str, calls: int, call: Callable[[], object]) -> None:
    """Count the instructions of so many calls."""
    call()
    REQUESTS.instructions_begin()
    for _ in itertools.repeat(None, calls):
        call()
    REQUESTS.instructions_end(name.encode())
    print(f"{name}: {calls}")


def profiler(model: nn.Module) -> roofprof.RooflineProfiler:
    return roofprof.RooflineProfiler(model, ceilings=roofprof.Ceilings())


def count_both(name: str, model: nn.Module, call: Callable[[], object]) -> None:
    """Count the call outside of a block, and in one of the model's."""
    count(f"{name}, plain", CALLS, call)
    with profiler(model):
        for _ in itertools.repeat(None, FIRST_CALLS):
            call()
        count(f"{name}, in a block", CALLS, call)


def basic_block(*, downsamples: bool) -> nn.Module:
    block = nn.Module()
    block.conv1, block.bn1, block.relu = nn.Conv2d(2, 2, 3, bias=False), nn.BatchNorm2d(2), nn.ReLU()
    block.conv2, block.bn2 = nn.Conv2d(2, 2, 3, bias=False), nn.BatchNorm2d(2)
    if downsamples:
        block.downsample = nn.Sequential(nn.Conv2d(2, 2, 1, bias=False), nn.BatchNorm2d(2))
    return block


def like_resnet18() -> nn.Module:
    """Return a model with the modules, parameters and buffers of resnet18, small."""
    model = nn.Module()
    model.conv1, model.bn1, model.relu = nn.Conv2d(2, 2, 7, bias=False), nn.BatchNorm2d(2), nn.ReLU()
    model.maxpool = nn.MaxPool2d(2)
    for number in range(1, 5):
        layer = nn.Sequential(basic_block(downsamples=number > 1), basic_block(downsamples=False))
        model.add_module(f"layer{number}", layer)
    model.avgpool, model.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(2, 2)
    return model


@torch.no_grad()
def main() -> None:
    torch.set_num_threads(1)
    empty, x = nn.Identity(), torch.ones(16)
    count_both("Python: x + x", empty, lambda: x + x)
    count_both("Python: call of an empty module", empty, lambda: empty(x))
    of_resnet18 = profiler(like_resnet18())

    def empty_block() -> None:
        with of_resnet18:
            pass

    count("Python: empty block around resnet18", BLOCKS, empty_block)


if __name__ == "__main__":
    main()
