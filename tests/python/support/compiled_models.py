"""What the tests of torch.compile share: a model and ways to compile it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

LINEAR = 4 * 8 * 8  # MACs of Linear(8, 8) on 4 rows


class Net(nn.Module):
    """Two stages of two linear layers each."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
        self.second = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))

    def forward(self, x):
        return self.second(self.first(x)) + x


EVERY_LINEAR = dict.fromkeys(("first.0", "first.2", "second.0", "second.1"), LINEAR)


def x() -> torch.Tensor:
    return torch.ones(4, 8)


def wrapped(model, backend):
    return torch.compile(model, backend=backend)


def in_place(model, backend):
    model.compile(backend=backend)
    return model


def in_part(model, backend):
    model.first = torch.compile(model.first, backend=backend)
    return model


WAYS = pytest.mark.parametrize("compiled", [wrapped, in_place, in_part])
