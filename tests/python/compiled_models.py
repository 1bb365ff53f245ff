"""What the tests of torch.compile share: a model, ways to compile it, a backend that counts."""

from __future__ import annotations

import pytest
import torch
import torch._dynamo
from torch import nn
from torch._dynamo.testing import CompileCounterWithBackend

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


@pytest.fixture(name="fresh")
def fixture_fresh():
    torch.compiler.reset()
    torch._dynamo.utils.counters.clear()
    yield
    torch.compiler.reset()


@pytest.fixture(name="backend")
def fixture_backend():
    """Counts the graphs that it is given, and runs them as AOTAutograd leaves them."""
    return CompileCounterWithBackend("aot_eager")


def wrapped(model, backend):
    return torch.compile(model, backend=backend)


def in_place(model, backend):
    model.compile(backend=backend)
    return model


def in_part(model, backend):
    model.first = torch.compile(model.first, backend=backend)
    return model


WAYS = pytest.mark.parametrize("compiled", [wrapped, in_place, in_part])
