"""Which module each op lands in, whatever the model does to itself."""

import copy

import pytest
import torch
from attributed import MACS, Model, calls, linear, macs, x
from given_roofs import profiler
from torch import nn

import roofprof

# ---- who ran


def test_module_called_twice():
    model = Model(lambda self, value: self.fc(value) + self.fc(value), fc=linear())
    report = roofprof.count(model, x())
    assert calls(report) == {"": 1, "fc": 2}
    assert macs(report) == {"fc": 2 * MACS}


def test_one_module_under_two_parents():
    shared = linear()
    left = Model(lambda self, value: self.inner(value), inner=shared)
    right = Model(lambda self, value: self.inner(value) + self.inner(value), inner=shared)
    model = Model(lambda self, value: self.left(value) + self.right(value), left=left, right=right)
    report = roofprof.count(model, x())
    assert calls(report) == {"": 1, "left": 1, "left.inner": 1, "right": 1, "right.inner": 2}
    assert macs(report) == {"left.inner": MACS, "right.inner": 2 * MACS}
    assert report.total.params == 32
    assert [report.row(path).params for path in ("", "left", "right", "left.inner")] == [32] * 4


def test_one_module_under_two_parents_deeper_down_and_through_containers():
    shared = linear()
    left = Model(lambda self, value: self.layers[0](value), layers=nn.ModuleList([shared]))
    right = Model(lambda self, value: self.layers["a"](value), layers=nn.ModuleDict({"a": shared}))
    model = Model(lambda self, value: self.right(value) + self.left(value), left=left, right=right)
    assert macs(roofprof.count(model, x())) == {"left.layers.0": MACS, "right.layers.a": MACS}


def test_shared_module_called_by_neither_parent_gets_its_first_name():
    shared = linear()
    left = Model(lambda self, value: value, inner=shared)
    right = Model(lambda self, value: value, inner=shared)
    model = Model(lambda self, value: self.left.inner(self.right(value)), left=left, right=right)
    assert macs(roofprof.count(model, x())) == {"left.inner": MACS}


def test_same_module_twice_in_a_sequential():
    fc = nn.Linear(8, 8, bias=False)
    report = roofprof.count(nn.Sequential(fc, nn.ReLU(), fc), x())
    assert calls(report) == {"": 1, "0": 2, "1": 1}
    assert report.row("0").macs == 2 * 2 * 8 * 8
    assert report.total.params == 64


def test_other_method_of_a_child_falls_to_the_caller():
    class Child(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(8, 4))

        def forward(self, value):
            return value

        def project(self, value):
            return value @ self.weight

    report = roofprof.count(Model(lambda self, value: self.child.project(value), child=Child()), x())
    assert macs(report) == {"": MACS}
    assert report.coverage.uncalled_modules == []
    (note,) = report.coverage.notes
    assert (note.code, note.where) == ("weights-used-elsewhere", ["child"])


def test_forward_called_directly_is_the_modules_own():
    report = roofprof.count(Model(lambda self, value: self.fc.forward(value), fc=linear()), x())
    assert macs(report) == {"fc": MACS}
    assert calls(report) == {"": 1, "fc": 1}
    assert report.coverage.uncalled_modules == []


def test_recursion():
    def forward(self, value, depth):
        return self.fc(value) if depth == 0 else self(value, depth - 1)

    report = profiler(Model(forward, fc=linear())).run(x(), 4)
    assert calls(report) == {"": 5, "fc": 1}
    assert macs(report) == {"fc": MACS}
    assert report.total.time == pytest.approx(report.row("").time)


def test_containers_have_no_calls_and_are_never_uncalled():
    class Container(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([linear(), nn.ReLU()])
            self.heads = nn.ModuleDict({"a": nn.Linear(4, 2), "unused": nn.Linear(4, 2)})
            self.weights = nn.ParameterList([nn.Parameter(torch.ones(4))])

        def forward(self, value):
            return self.heads["a"](self.layers[1](self.layers[0](value))) * self.weights[0][:2]

    report = profiler(Container()).run(x())
    assert report.coverage.uncalled_modules == ["heads.unused"]
    assert {path: number for path, number in calls(report).items() if path in {"layers", "heads", "weights"}} == {
        "layers": 0,
        "heads": 0,
        "weights": 0,
    }
    assert report.row("layers").macs == MACS
    assert report.row("layers").self_macs == 0
    assert report.row("layers").time == pytest.approx(report.row("layers.0").time + report.row("layers.1").time)


def test_modules_that_never_run_are_listed():
    model = Model(lambda self, value: self.fc(value), fc=linear(), spare=nn.Sequential(nn.Linear(3, 3)))
    report = roofprof.count(model, x())
    assert report.coverage.uncalled_modules == ["spare", "spare.0"]
    assert report.row("spare").macs == 0
    assert report.row("spare").calls == 0


def test_deep_nesting():
    model = linear()
    for _ in range(40):
        model = nn.Sequential(model)
    report = roofprof.count(model, x())
    path = ".".join("0" for _ in range(40))
    assert macs(report) == {path: MACS}
    assert report.row(path).depth == 40
    assert all(row.macs == MACS and row.calls == 1 for row in report.rows)


# ---- modules that come and go


def test_module_added_inside_forward():
    def forward(self, value):
        if not hasattr(self, "late"):
            self.late = nn.Linear(4, 4, bias=False)
        return self.late(self.fc(value))

    report = profiler(Model(forward, fc=linear())).run(x())
    assert macs(report) == {"fc": MACS, "": 2 * 4 * 4}
    assert any("late" in note and "no rows" in note for note in report.coverage.notes)


def test_module_replaced_inside_every_forward():
    def forward(self, value):
        self.fc = linear()
        return self.fc(value)

    model = Model(forward, fc=linear())
    before = model.fc
    report = profiler(model).run(x())
    assert macs(report) == {"": MACS}
    assert model.fc is not before
    assert report.coverage.uncalled_modules == ["fc"]
    # A second run knows the module that stands there by then, until it is replaced as well.
    assert macs(profiler(model).run(x())) == {"": MACS}


def test_lazy_modules():
    model = nn.Sequential(nn.LazyLinear(4), nn.ReLU())
    report = roofprof.count(model, x())
    assert report.row("0").macs == MACS
    assert report.row("0").params == 8 * 4 + 4
    assert report.row("0").param_bytes == 4 * (8 * 4 + 4)
    assert report.row("0").type == "Linear"
    assert report.total.params == 8 * 4 + 4


def test_tied_weights():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(10, 8)
            self.head = nn.Linear(8, 10, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, ids):
            return self.head(self.embed(ids))

    report = roofprof.count(Tied(), torch.tensor([[1, 2, 3]]))
    assert [report.row(path).params for path in ("", "embed", "head")] == [80, 80, 80]
    assert report.total.param_bytes == 320
    assert macs(report) == {"head": 3 * 8 * 10}


def test_parametrized_weight():
    class Scale(nn.Module):
        def forward(self, weight):
            return weight * 2

    fc = linear()
    torch.nn.utils.parametrize.register_parametrization(fc, "weight", Scale())
    report = roofprof.count(nn.Sequential(fc), x())
    assert macs(report) == {"0": MACS}
    assert report.row("0.parametrizations.weight.0").flops == 8 * 4
    assert report.row("0.parametrizations.weight.0").calls == 1
    assert report.total.params == 32
    assert report.coverage.uncalled_modules == []


def test_functional_call():
    model = nn.Sequential(linear(), nn.ReLU())
    weights = {"0.weight": torch.zeros(4, 8)}
    report = roofprof.count(lambda value: torch.func.functional_call(model, weights, (value,)), x())
    assert report.total.macs == MACS
    prof = profiler(model)
    with prof:
        torch.func.functional_call(model, weights, (x(),))
    assert macs(prof.report()) == {"0": MACS}


def test_copies_of_the_model_are_not_the_model():
    prof = profiler(model := nn.Sequential(linear()))
    with prof:
        copy.deepcopy(model)(x())
    assert macs(prof.report()) == {"(outside)": MACS}
    assert prof.report().coverage.uncalled_modules == ["", "0"]
