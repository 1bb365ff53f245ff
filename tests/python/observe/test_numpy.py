"""Work that NumPy does between ops, in a module's plain forward."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from attributed import Model, linear, x
from given_roofs import profiler
from torch import nn

import roofprof

pytestmark = pytest.mark.filterwarnings("ignore:__array_wrap__")  # torch's, of an older NumPy's kind

TABLE = np.eye(4, dtype=np.float32)


def multiplied(value):
    return torch.from_numpy(np.tanh(value.detach().numpy() @ TABLE) @ TABLE)


class Product(nn.Module):
    def forward(self, value):
        return torch.from_numpy(value.numpy() @ np.ones((8, 4), dtype=np.float32))


class Sine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return torch.from_numpy(np.sin(value.numpy()))


class SineAndOne(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return torch.from_numpy(np.sin(value.numpy())) + 1


@torch.library.custom_op("numpy::product", mutates_args=())
def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(a.numpy() @ b.numpy()) + 1


def declared(value):
    with roofprof.work("multiplied", macs=100):
        return multiplied(value)


def unobserved(run, *args):
    return roofprof.count(run, *args).coverage.unobserved


class Reader(nn.Module):
    def forward(self, value):
        return value.detach().numpy()


class Writer(nn.Module):
    def forward(self, array):
        return torch.from_numpy(array @ TABLE) + 1


def between_children(model, value):
    return model.writer(model.reader(model.layer(value))) + 1


def after_a_child_of_that_kind(model, value):
    return model.child(torch.from_numpy(model.layer(value).numpy() @ TABLE).repeat(1, 2)) + 1


def with_layer(forward, **children):
    return lambda: Model(forward, layer=linear(), **children)


BETWEEN_OPS = {
    "before an op": (with_layer(lambda m, v: multiplied(m.layer(v)) + 1), {"Model": 1}),
    "after an op": (with_layer(lambda m, v: multiplied(m.layer(v))), {"Model": 1}),
    "copied into a tensor": (with_layer(lambda m, v: torch.tensor(m.layer(v).numpy() @ TABLE) + 1), {"Model": 1}),
    "converted": (
        with_layer(lambda m, v: torch.as_tensor(m.layer(v).numpy() @ TABLE, dtype=torch.float64) + 1),
        {"Model": 1},
    ),
    "a function of NumPy's": (with_layer(lambda m, v: np.sin(m.layer(v)) + 1), {"Model": 1}),
    "twice in a call": (with_layer(lambda m, v: multiplied(multiplied(m.layer(v)) + 1) + 1), {"Model": 1}),
    "read by one child, written by another": (
        with_layer(between_children, reader=Reader(), writer=Writer()),
        {"Model": 1},
    ),
    "in a child": (lambda: nn.Sequential(linear(), Model(lambda _, v: multiplied(v) + 1)), {"Model": 1}),
    "in the parent and in a child": (
        with_layer(after_a_child_of_that_kind, child=Product()),
        {"Model": 1, "Product": 1},
    ),
    "in a function": (with_layer(lambda m, v: Sine.apply(m.layer(v)) + 1), {"Sine": 1}),
    "in a function with other work": (
        with_layer(lambda m, v: SineAndOne.apply(m.layer(v))),
        {"Model": 1},
    ),
}


@pytest.mark.parametrize("name", BETWEEN_OPS)
def test_numpy_between_ops_is_named_once(name):
    make, expected = BETWEEN_OPS[name]
    model = make().requires_grad_(requires_grad=False)
    report = roofprof.count(model, x())
    assert report.coverage.unobserved == expected
    assert report.total.incomplete
    prof = profiler(model)
    with prof:
        model(x())
        model(x())
    assert prof.report().coverage.unobserved == {name: 2 * calls for name, calls in expected.items()}


def logged(model, value):
    model.log = model.layer(value).numpy().mean()
    return model.layer(value)


def logged_beside_constants(model, value):
    scale = torch.from_numpy(np.arange(4.0, dtype=np.float32))
    result = model.layer(value) * scale
    model.log = result.numpy().copy()
    return result + torch.tensor([1.0, 2.0, 3.0, 4.0]) + torch.as_tensor(model.table)[0]


def with_table(forward):
    model = Model(forward, layer=linear())
    model.table = TABLE
    return model


IN_PASSING = {
    "logged": with_layer(logged),
    "logged, with constants": lambda: with_table(logged_beside_constants),
    "number": with_layer(lambda m, v: m.layer(v) * m.layer(v).max().item()),
    "number of NumPy's": with_layer(lambda m, v: m.layer(v) * torch.as_tensor(m.layer(v).numpy().max())),
    "shape": with_layer(lambda m, v: m.layer(v).reshape(torch.tensor(m.layer(v).numpy().shape).tolist())),
    "list": with_layer(lambda m, v: m.layer(v) * torch.tensor(m.layer(v)[0].tolist())),
    "there and back": with_layer(lambda m, v: torch.from_numpy(m.layer(v).numpy()) + 1),
    "a part of it": with_layer(lambda m, v: torch.from_numpy(m.layer(v).numpy()[:, 1:]) + 1),
    "an array among the inputs": lambda: Model(
        lambda m, v: m.inner(v.numpy(), TABLE), inner=Model(logged_input, layer=linear())
    ),
    "read only after": with_layer(lambda m, v: (m.layer(v) + torch.from_numpy(TABLE[:2].copy())).numpy().sum()),
}


def logged_input(model, value, table):
    value = torch.from_numpy(value)
    value.numpy()
    return model.layer(value) + torch.from_numpy(table)[0]


@pytest.mark.parametrize("name", IN_PASSING)
def test_numpy_in_passing_is_not_named(name):
    assert unobserved(IN_PASSING[name]().requires_grad_(requires_grad=False), x()) == {}


def test_numpy_inside_declared_work_is_declared():
    model = Model(lambda m, v: declared(m.layer(v)) + 1, layer=linear())
    assert unobserved(model.requires_grad_(requires_grad=False), x()) == {}


def test_an_operator_without_a_cost_explains_its_numpy():
    model = Model(lambda m, v: product(m.layer(v), torch.ones(4, 4)), layer=linear())
    report = roofprof.count(model.requires_grad_(requires_grad=False), x())
    assert report.coverage.unobserved == {}
    assert report.coverage.uncosted == {"numpy::product": 1}
