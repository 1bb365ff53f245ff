"""Modules whose forward was not called: dead ones, and those that did their work in other ways."""

import pytest
import torch
from attributed import MACS, Model, linear, macs, x
from given_roofs import profiler
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

import roofprof


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
    assert report.coverage.uncalled_modules == [
        "backbone.spare",
        "spare",
        "spare.stages",
        "spare.stages.0",
        "spare.stages.1",
        "spare.spare",
    ]
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


def with_idle_parts():
    return Model(lambda self, value: self.fc(value), fc=linear(), dropout=nn.Dropout(), same=nn.Identity())


USED_OTHERWISE = {
    "sequential": (lambda: Model(one_after_another, layers=nn.Sequential(linear(), nn.ReLU())), []),
    "stages": (lambda: Model(one_after_another, layers=Stages(linear(), nn.ReLU())), []),
    "nested": (lambda: Model(one_after_another, layers=nn.Sequential(nn.Sequential(linear()), nn.ReLU())), []),
    "part of it": (lambda: Model(one_after_another, layers=Stages(linear(), nn.Linear(4, 4))[:1]), []),
    "parameters": (Attention, ["idle", "activation"]),
    "no parameters": (
        lambda: Model(lambda self, value: self.fc(value), fc=linear(), drop=nn.Dropout(), same=nn.Identity()),
        [],
    ),
    "parameters, of a frozen one": (lambda: Attention().requires_grad_(requires_grad=False), ["idle", "activation"]),
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
    model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).train(training)
    prof = profiler(model)
    for grad in (torch.enable_grad(), torch.no_grad()):
        with grad, prof:
            model(torch.ones(2, 3, 8))
        assert prof.report().coverage.uncalled_modules == []


def test_what_the_optimizer_reads_is_not_used():
    model = Model(lambda self, value: self.fc(value), fc=linear(), spare=linear())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.1)
    prof = profiler(model)
    with prof:
        (model(x()).sum() + sum(p.pow(2).sum() for p in model.parameters())).backward()
        optimizer.step()
    assert prof.report().coverage.uncalled_modules == ["spare"]
