"""Fixtures that all tests share."""

import inspect
import os
import re
import sys
from pathlib import Path

import pytest
import torch
from cpp_project import install
from models import LeNet

# Exact lists of notes must not depend on what else runs here; processes that tests start inherit it.
os.environ["ROOFPROF_SHARED_MACHINE"] = "1"

# ---- integrations: tests that need a package of pyproject.toml's list of that name have the mark `integration`

# Where a package is not imported by the name that pip knows.
IMPORTED_AS = {
    "ipython": "IPython",
    "mlflow-skinny": "mlflow",
    "myst-parser": "myst_parser",
    "pyyaml": "yaml",
}


def only_the_core(config):
    """Return whether `make test` runs, which installs none of these packages."""
    return "not integration" in config.option.markexpr


def pytest_configure(config):
    """Make the core the same where the packages are installed: importing one fails, so that no mark is forgotten."""
    if not only_the_core(config):
        return
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    listed = re.search(r"^integrations = \[\n(.*?)^\]", project, re.MULTILINE | re.DOTALL)[1]
    packages = {IMPORTED_AS.get(name, name) for name in re.findall(r'^  "([\w-]+)', listed, re.MULTILINE)}
    sys.modules.update(dict.fromkeys(packages))
    skip_without = pytest.importorskip

    def fail_without(name, *args, **kwargs):
        if name.partition(".")[0] in packages:
            pytest.fail(f"this test asks for {name}: it needs the mark `integration`")
        return skip_without(name, *args, **kwargs)

    pytest.importorskip = fail_without


def pytest_ignore_collect(collection_path, config):
    """Leave files of integrations out before they import what may be absent."""
    if only_the_core(config) and collection_path.suffix == ".py":
        text = collection_path.read_text()
        return bool(re.search(r"^pytestmark = (\[\s*)?pytest\.mark\.integration\b", text, re.MULTILINE)) or None
    return None


# ---- fixtures


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def modes_of_torch():
    """What a test leaves switched would fail whichever test comes next."""
    yield
    assert torch._C._is_torch_function_enabled()
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()


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
