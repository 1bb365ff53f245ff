"""A small MLP whose memory has closed forms, and places that it can be counted in."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator

import pytest
import torch
from cpp_project import BUILD
from torch import nn

import roofprof

BATCH, INPUTS, HIDDEN, OUTPUTS = 4, 8, 16, 3
HELD = BATCH * HIDDEN * 4  # bytes of one hidden activation
RETURNED = BATCH * OUTPUTS * 4


def mlp(activation: nn.Module | None = None) -> nn.Sequential:
    """Return two linear layers with an activation between them."""
    return nn.Sequential(nn.Linear(INPUTS, HIDDEN), activation or nn.ReLU(), nn.Linear(HIDDEN, OUTPUTS))


def images(device: str | None = None) -> torch.Tensor:
    """Return a batch of its inputs."""
    return torch.rand(BATCH, INPUTS, device=device)


@contextlib.contextmanager
def no_listening() -> Iterator[None]:
    """The CPU has another allocator than the one that was listened to before, so that is let be, as a GPU's is."""
    library = BUILD / "tests" / "fakes" / "lib" / "libroofprof_fake_cpu_allocator.so"
    if not library.exists():
        pytest.skip("the C++ tests are not built")
    roofprof.count(nn.ReLU(), images())
    fake = ctypes.CDLL(library)
    fake.fake_cpu_allocator_install()
    try:
        yield
    finally:
        fake.fake_cpu_allocator_uninstall()
