"""Models that are counted without a device: nothing is computed, so sizes may be those of real ones."""

import torch
from torch import nn

import roofprof


def counted(make, *shape, dtype=torch.float32):
    """The count of one call of what `make` makes, all of it in `dtype`."""
    with torch.device("meta"), torch.no_grad():
        return roofprof.count(make().eval().to(dtype), torch.empty(*shape, dtype=dtype))


def relus(elements, number=1):
    """Elementwise ops: a read and a write of each element, and nothing else."""
    return counted(lambda: nn.Sequential(*(nn.ReLU() for _ in range(number))), elements)


def mlp():
    return nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 10))


def convolutions():
    """With and without groups and bias; 13 x 13 is left of 32 x 32."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, bias=False),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, groups=2),
        nn.Flatten(),
        nn.Linear(16 * 13 * 13, 10),
    )


def trained(model, *shape):
    """Forward, backward and optimizer in one block."""
    with torch.device("meta"):
        made, x = model(), torch.empty(*shape)
    optimizer = torch.optim.Adam(made.parameters())
    profiler = roofprof.RooflineProfiler(made, ceilings=roofprof.Ceilings())
    with profiler:
        made(x).sum().backward()
        optimizer.step()
    return profiler.report()
