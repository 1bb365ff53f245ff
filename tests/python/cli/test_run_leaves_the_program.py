"""``roofprof run`` and compiled code: as many compilations as in the plain program, and nothing is left in it."""

import subprocess
import sys

import pytest

import roofprof

PROGRAM = """
import torch
from torch import nn
from torch.nn.modules import module as nn_module

frames = []


def backend(graph, inputs):
    frames.append(len(frames))
    return graph.forward


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 8), nn.ReLU())

    def forward(self, x):
        return self.second(self.first(x))


class Broken(Net):
    def forward(self, x):
        x = self.first(x)
        torch._dynamo.graph_break()
        return self.second(x)


def wrapped(model):
    return model, torch.compile(model, backend=backend)


def in_place(model):
    model.compile(backend=backend)
    return model, model


def in_parts(model):
    model.first.compile(backend=backend)
    model.second.compile(backend=backend)
    return model, model


def is_untouched():
    # No hook is registered, and no attribute of modules or of their class comes from roofprof.
    tables = [value for name, value in vars(nn_module).items() if name.startswith("_global_")]
    modules = [nn.Module, model, *model.modules(), *([call] if isinstance(call, nn.Module) else [])]
    values = [value for module in modules for value in vars(module).values()]
    ours = [each for each in values if "roofprof" in str(getattr(each, "__module__", "")) + type(each).__module__]
    return not any(table for table in tables if isinstance(table, dict)) and not ours


model, call = MAKE
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    call(torch.ones(2, 8)).sum().backward()
    optimizer.step()
assert is_untouched()
counters = torch._dynamo.utils.counters
print([len(frames), dict(counters["frames"]), dict(counters["stats"]), dict(counters["recompiles"])])
"""
KINDS = ["wrapped(Net())", "wrapped(Broken())", "in_place(nn.Sequential(nn.Linear(8, 8)))", "in_parts(Net())"]


@pytest.mark.parametrize("kind", KINDS)
def test_there_are_as_many_compilations_as_without(here, kind):
    (here / "program.py").write_text(PROGRAM.replace("MAKE", kind))
    plain = subprocess.run([sys.executable, "program.py"], capture_output=True, text=True, check=True)
    command = [sys.executable, "-m", "roofprof", "run", "--no-legend", "--steps", "4", "program.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "hooks" not in done.stderr
    assert next(line for line in done.stdout.splitlines() if line.startswith("[")) == plain.stdout.splitlines()[-1]
    report = roofprof.Report.from_json("program.roofprof.json")
    assert report.steps == 4
    assert report.row("").calls == 4


def test_the_program_goes_on_without_anything_of_the_window(run):
    _, streams = run("""
    import gc, sys, warnings, weakref
    finders, filters = list(sys.meta_path), list(warnings.filters)
    class Big(nn.Linear):
        pass
    model = Big(4, 4)
    for step in range(20):
        x = torch.ones(2, 4)
        model(x)
    x = weakref.ref(x)
    gc.collect()
    print(x() is None, [each for each in sys.meta_path if each not in finders])
    print([each for each in warnings.filters if each not in filters])
    """)
    assert streams.out.splitlines()[:2] == ["True []", "[]"]
