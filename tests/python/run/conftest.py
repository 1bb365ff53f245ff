import pytest
import torch
from memory_of_mlp import no_listening
from torch._subclasses.fake_tensor import FakeTensorMode


@pytest.fixture(params=["cpu", "meta", "fake", "by sizes"])
def place(request):
    """What is made in here holds data on the CPU, heard of or watched, or sizes alone."""
    if request.param == "by sizes":
        context = no_listening()
    else:
        context = FakeTensorMode() if request.param == "fake" else torch.device(request.param)
    with context:
        yield request.param
