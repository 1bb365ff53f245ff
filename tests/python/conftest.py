"""Fixtures that all tests share."""

from __future__ import annotations

import inspect
import os

import pytest
import torch
from cpp_project import install
from models import LeNet

# Exact lists of notes must not depend on what else runs here; processes that tests start inherit it.
os.environ["ROOFPROF_SHARED_MACHINE"] = "1"


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.fixture
def one_thread():
    """Small work is done sooner by one thread, on a busy machine above all."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def lenet():
    return LeNet().eval()


@pytest.fixture
def image():
    """What LeNet takes."""
    return torch.rand(1, 1, 32, 32)


@pytest.fixture
def uninitialised(monkeypatch):
    """Large models in no time: parameters keep whatever their memory holds, which no count looks at."""

    def leave(tensor, *_, **__):
        return tensor

    for name, _ in inspect.getmembers(torch.nn.init, inspect.isfunction):
        if name.endswith("_") and not name.startswith("_"):
            monkeypatch.setattr(torch.nn.init, name, leave)


# ---- torch.compile: imported where it is asked for, because its first import takes seconds


@pytest.fixture
def nothing_compiled():
    """A compiler that remembers nothing, before and after."""
    import torch._dynamo

    torch.compiler.reset()
    torch._dynamo.utils.counters.clear()
    yield
    torch.compiler.reset()


@pytest.fixture
def backend():
    """Counts the graphs that it is given, and runs them as AOTAutograd leaves them."""
    from torch._dynamo.testing import CompileCounterWithBackend

    return CompileCounterWithBackend("aot_eager")


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """The folder that the C++ half was installed into, and then moved to."""
    folder = tmp_path_factory.mktemp("prefix")
    install(folder / "first")
    return (folder / "first").rename(folder / "moved")
