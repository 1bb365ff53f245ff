"""Which module each op lands in, whatever the model does to itself; and modules whose forward was not called."""

import copy

import pytest
import torch
from attributed import MACS, Model, calls, linear, macs, x
from given_roofs import profiler
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

import roofprof


def two_parents():
    shared = linear()
    left = Model(lambda self, value: self.inner(value), inner=shared)
    right = Model(lambda self, value: self.inner(value) + self.inner(value), inner=shared)
    return Model(lambda self, value: self.left(value) + self.right(value), left=left, right=right)


def called_by_neither_parent():
    """It gets its first name."""
    left, right = (Model(lambda self, value: value, inner=inner) for inner in [linear()] * 2)
    return Model(lambda self, value: self.left.inner(self.right(value)), left=left, right=right)


def recursion():
    def forward(self, value, depth=4):
        return self.fc(value) if depth == 0 else self(value, depth - 1)

    return Model(forward, fc=linear())


def containers():
    heads = nn.ModuleDict({"a": nn.Linear(4, 2, bias=False), "unused": nn.Linear(4, 2)})
    layers = nn.ModuleList([linear(), nn.ReLU()])
    return Model(lambda self, value: self.heads["a"](self.layers[1](self.layers[0](value))), layers=layers, heads=heads)


def added_inside():
    def forward(self, value):
        if not hasattr(self, "late"):
            self.late = nn.Linear(4, 4, bias=False)
        return self.late(self.fc(value))

    return Model(forward, fc=linear())


def replaced_inside():
    def forward(self, value):
        self.fc = linear()
        return self.fc(value)

    return Model(forward, fc=linear())


class Scale(nn.Module):
    def forward(self, weight):
        return weight * 2


def parametrized():
    fc = linear()
    torch.nn.utils.parametrize.register_parametrization(fc, "weight", Scale())
    return nn.Sequential(fc)


# Calls, MACs, and what was never called.
MODELS = [
    (
        two_parents,
        {"": 1, "left": 1, "left.inner": 1, "right": 1, "right.inner": 2},
        {"left.inner": MACS, "right.inner": 2 * MACS},
        [],
    ),
    (
        called_by_neither_parent,
        {"": 1, "left": 0, "left.inner": 1, "right": 1, "right.inner": 0},
        {"left.inner": MACS},
        [],
    ),
    (recursion, {"": 5, "fc": 1}, {"fc": MACS}, []),
    (
        containers,
        {"": 1, "layers": 0, "layers.0": 1, "layers.1": 1, "heads": 0, "heads.a": 1, "heads.unused": 0},
        {"layers.0": MACS, "heads.a": 2 * 4 * 2},
        ["heads.unused"],
    ),
    (added_inside, {"": 1, "fc": 1}, {"fc": MACS, "": 2 * 4 * 4}, []),
    (replaced_inside, {"": 1, "fc": 0}, {"": MACS}, ["fc"]),
    (
        parametrized,
        {"": 1, "0": 1, "0.parametrizations": 0, "0.parametrizations.weight": 1, "0.parametrizations.weight.0": 1},
        {"0": MACS},
        [],
    ),
]


@pytest.mark.parametrize(("make", "number", "work", "uncalled"), MODELS, ids=lambda each: getattr(each, "__name__", ""))
def test_where_work_lands(make, number, work, uncalled):
    report = profiler(make()).run(x())
    assert calls(report) == number
    assert macs(report) == work
    assert report.coverage.uncalled_modules == uncalled


def test_rows_of_models_that_change():
    report = roofprof.count(two_parents(), x())
    assert [report.row(path).params for path in ("", "left", "right", "left.inner")] == [32] * 4
    notes = profiler(added_inside()).run(x()).coverage.notes
    assert any("late" in note and "no rows" in note for note in notes)
    report = profiler(containers()).run(x())
    assert report.row("layers").time == pytest.approx(report.row("layers.0").time + report.row("layers.1").time)
    report = roofprof.count(parametrized(), x())
    assert report.row("0.parametrizations.weight.0").flops == report.total.params == 32
    report = roofprof.count(nn.Sequential(nn.LazyLinear(4), nn.ReLU()), x())
    row = report.row("0")
    assert (row.type, row.macs, row.params, row.param_bytes) == ("Linear", MACS, 8 * 4 + 4, 4 * (8 * 4 + 4))


def test_copies_of_the_model_are_not_the_model():
    prof = profiler(model := nn.Sequential(linear()))
    with prof:
        copy.deepcopy(model)(x())
    assert macs(prof.report()) == {"(outside)": MACS}
    assert prof.report().coverage.uncalled_modules == ["", "0"]


# ---- those that did their work in other ways


class Backbone(nn.Module):
    """It works by another method than its forward."""

    def __init__(self):
        super().__init__()
        self.stages = nn.Sequential(linear(), nn.ReLU())
        self.spare = linear()

    def forward(self, value):
        return self.stages(value)

    def forward_collab(self, value):
        return self.stages(value)


def test_a_module_that_works_by_another_method_is_not_dead():
    model = Model(lambda self, value: self.backbone.forward_collab(value), backbone=Backbone(), spare=Backbone())
    report = roofprof.count(model, x())
    assert macs(report) == {"backbone.stages.0": MACS}
    inside = ["", ".stages", ".stages.0", ".stages.1", ".spare"]
    assert report.coverage.uncalled_modules == ["backbone.spare", *("spare" + path for path in inside)]
    (note,) = report.coverage.notes
    assert (note.code, note.where) == ("forward-not-called", ["backbone"])
    assert "never called: backbone.spare, spare (5 modules with all below)" in str(report)


def one_after_another(self, value):
    for layer in self.layers:
        value = layer(value)
    return value


class Stages(nn.Sequential):
    """A list with a type of its own."""


class Attention(nn.Module):
    """Its parts are used by functions, as in nn.MultiheadAttention."""

    def __init__(self):
        super().__init__()
        self.projection, self.idle = linear(), linear()
        self.dropout, self.activation = nn.Dropout(0.5), nn.ReLU()

    def forward(self, value):
        value = nn.functional.linear(value, self.projection.weight.detach().t().t())
        return nn.functional.dropout(nn.functional.relu(value), self.dropout.p, training=False)


USED_OTHERWISE = {
    "stages": (lambda: Model(one_after_another, layers=Stages(linear(), nn.ReLU())), []),
    "nested": (lambda: Model(one_after_another, layers=nn.Sequential(nn.Sequential(linear()), nn.ReLU())), []),
    "part of it": (lambda: Model(one_after_another, layers=Stages(linear(), nn.Linear(4, 4))[:1]), []),
    "parameters": (Attention, ["idle", "activation"]),
    "no parameters": (
        lambda: Model(lambda self, v: self.fc(v), fc=linear(), drop=nn.Dropout(), same=nn.Identity()),
        [],
    ),
}


@pytest.mark.parametrize("name", USED_OTHERWISE)
@pytest.mark.parametrize("device", ["cpu", "meta", "fake"])
def test_what_is_used_without_a_call_is_not_dead(name, device):
    make, dead = USED_OTHERWISE[name]
    with FakeTensorMode() if device == "fake" else torch.device(device):
        model, value = make(), x()
    report = roofprof.count(model, value)
    assert report.coverage.uncalled_modules == dead
    used = [("weights-used-elsewhere", ["projection"])] if dead else []
    assert [(note.code, note.where) for note in report.coverage.notes] == used


@pytest.mark.parametrize("training", [True, False])
def test_torchs_attention_uses_its_projection_without_a_call(training):
    """Nor does anything of ours switch off its fused path."""
    model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).train(training)
    for grad in (torch.enable_grad(), torch.no_grad()):
        with grad:
            report = roofprof.count(model, torch.ones(2, 3, 8))
        assert report.coverage.uncalled_modules == []
    assert ("aten::_transformer_encoder_layer_fwd" in report.by_operator()) is not training


def test_what_the_optimizer_reads_is_not_used():
    model = Model(lambda self, value: self.fc(value), fc=linear(), spare=linear())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.1)
    prof = profiler(model)
    with prof:
        (model(x()).sum() + sum(p.pow(2).sum() for p in model.parameters())).backward()
        optimizer.step()
    assert prof.report().coverage.uncalled_modules == ["spare"]
