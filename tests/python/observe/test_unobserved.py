"""Work that bypasses the dispatcher: found, or declared by the user."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import torch
from attributed import MACS, Model, linear, x
from given_roofs import profiler
from torch import nn

import roofprof


class NumpySine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        ctx.save_for_backward(value)
        return torch.from_numpy(np.sin(value.detach().numpy()))

    @staticmethod
    def backward(ctx, grad):
        (value,) = ctx.saved_tensors
        return torch.from_numpy(np.cos(value.detach().numpy()) * grad.numpy())


def doubled_by_c(value):
    """As an extension does: memory from torch, filled by code that torch does not see."""
    result = torch.empty_like(value)
    ctypes.memmove(result.data_ptr(), value.data_ptr(), value.nbytes)
    return result


class Extension(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return doubled_by_c(value)

    @staticmethod
    def backward(ctx, grad):
        return doubled_by_c(grad)


def step(function):
    leaf = x().requires_grad_()
    return lambda: function.apply(leaf).sum().backward()


def unobserved(run, *args):
    return roofprof.count(run, *args).coverage.unobserved


# ---- autograd functions


@pytest.mark.parametrize("function", [NumpySine, Extension])
def test_functions_with_nothing_inside_are_named(function):
    name = function.__name__
    report = roofprof.count(step(function))
    assert report.coverage.unobserved == {name: 1, f"{name}Backward": 1}
    assert not report.coverage.uncosted
    assert report.total.incomplete
    assert "not observed, bypasses the dispatcher: " + name in str(report)
    assert unobserved(function.apply, x()) == {name: 1}


def test_they_stand_in_the_module_that_called_them_once():
    inner = Model(lambda m, v: NumpySine.apply(m.layer(v)), layer=linear())
    report = profiler(Model(lambda m, v: m.inner(m.inner(v[..., :8]).repeat(1, 2)), inner=inner)).run(x())
    assert report.coverage.unobserved == {"NumpySine": 2}
    assert len(report.run_times) == 2
    assert {row.path: row.self_incomplete for row in report.rows} == {"": False, "inner": True, "inner.layer": False}
    assert report.row("").incomplete


class Function(torch.autograd.Function):
    """An autograd function made of the forward and backward that a test gives it."""

    @staticmethod
    def forward(ctx, value, forward, backward):
        ctx.backward = backward
        return forward(value)

    @staticmethod
    def backward(ctx, grad):
        return ctx.backward(grad), None, None


INNOCENT = {
    "gradient reversal": (lambda v: v.view_as(v), torch.neg),
    "views": (lambda v: v.t()[0], lambda g: g.expand(8, 2).t()),
    "uncosted work is listed as such": (lambda v: doubled_by_c(v) + 1, lambda g: g),
}


@pytest.mark.parametrize("name", INNOCENT)
@pytest.mark.parametrize("needs_grad", [True, False])
def test_functions_that_do_nothing_or_their_work_in_ops_are_not_named(name, needs_grad):
    forward, backward = INNOCENT[name]
    leaf = x().requires_grad_(needs_grad)

    def run():
        result = Function.apply(leaf, forward, backward)
        if needs_grad:
            result.sum().backward()

    assert unobserved(run) == {}


# ---- modules

TABLE = np.eye(4, dtype=np.float32)


def multiplied(value):
    return torch.from_numpy(np.tanh(value.detach().numpy() @ np.ones((value.shape[-1], 4), np.float32)) @ TABLE)


class SineAndOne(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return torch.from_numpy(np.sin(value.numpy())) + 1


class Product(nn.Module):
    def forward(self, value):
        return torch.from_numpy(value.numpy() @ np.ones((8, 4), np.float32))


def module(forward, **children):
    return lambda: Model(lambda m, v: forward(v), **children)


def with_layer(forward, **children):
    """A model whose forward takes itself and what its linear layer gave."""
    return lambda: Model(lambda m, v: forward(m, m.layer(v)), layer=linear(), **children)


def around_a_child(model, value):
    return model.child(torch.from_numpy(value.numpy() @ TABLE).repeat(1, 2)) + 1


READER, WRITER = Model(lambda _, v: v.detach().numpy()), Model(lambda _, a: torch.from_numpy(a @ TABLE) + 1)
OF_MODEL = {"Model": 1}
NAMED = {
    "numpy": (module(multiplied), OF_MODEL),
    "extension": (module(lambda v: {"out": [doubled_by_c(v)]}), OF_MODEL),
    "number": (module(lambda v: torch.from_numpy(np.asarray(v.numpy().sum()))), OF_MODEL),
    "child explains it": (lambda: nn.Sequential(nn.Sequential(Product())), {"Product": 1}),
    "function explains it": (module(NumpySine.apply), {"NumpySine": 1}),
    "after an op": (with_layer(lambda _, v: multiplied(v)), OF_MODEL),
    "after a child": (lambda: nn.Sequential(linear(), Model(lambda _, v: doubled_by_c(v))), OF_MODEL),
    "between ops": (with_layer(lambda _, v: multiplied(v) + 1), OF_MODEL),
    "copied into a tensor": (with_layer(lambda _, v: torch.tensor(v.numpy() @ TABLE) + 1), OF_MODEL),
    "converted": (with_layer(lambda _, v: torch.as_tensor(v.numpy() @ TABLE, dtype=torch.float64) + 1), OF_MODEL),
    "a function of NumPy's": (with_layer(lambda _, v: np.sin(v) + 1), OF_MODEL),
    "read by one child, written by another": (
        with_layer(lambda m, v: m.writer(m.reader(v)) + 1, reader=READER, writer=WRITER),
        OF_MODEL,
    ),
    "in a child": (lambda: nn.Sequential(linear(), Model(lambda _, v: multiplied(v) + 1)), OF_MODEL),
    "in the parent and in a child": (
        with_layer(around_a_child, child=Product()),
        OF_MODEL | {"Product": 1},
    ),
    "in a function with other work": (with_layer(lambda _, v: SineAndOne.apply(v)), OF_MODEL),
}


@pytest.mark.filterwarnings("ignore:__array_wrap__")  # torch's, of an older NumPy's kind
@pytest.mark.parametrize("name", NAMED)
def test_modules_that_work_elsewhere_are_named_once(name):
    make, expected = NAMED[name]
    model = make().requires_grad_(requires_grad=False)
    report = roofprof.count(model, x())
    assert report.coverage.unobserved == expected
    assert report.total.incomplete
    with profiler(model) as prof:
        model(x())
        model(x())
    assert prof.report().coverage.unobserved == {name: 2 * calls for name, calls in expected.items()}


def cached_table(model, _):
    return model.table[:1], model.tables["b"], model.child.weight


def logged_beside_constants(model, value):
    result = value * torch.from_numpy(np.arange(4.0, dtype=np.float32))
    model.log = result.numpy().copy()
    return result + torch.tensor([1.0, 2.0, 3.0, 4.0]) + torch.as_tensor(model.table)[0]


def logged_input(model, value, table):
    value = torch.from_numpy(value)
    value.numpy()
    return model.layer(value) + torch.from_numpy(table)[0]


def with_attributes(forward):
    model = Model(forward, child=linear())
    model.table, model.tables = torch.ones(3, 3), {"a": None, "b": torch.ones(2)}
    model.register_buffer("kept", torch.ones(4))
    return model


CLEAN = {
    "dropout": lambda: nn.Dropout().eval(),
    "nothing": lambda: nn.Sequential(nn.Identity(), nn.Flatten()),
    "buffer": lambda: with_attributes(lambda m, _: (torch.empty(0), m.kept)),
    "cached tables": lambda: with_attributes(cached_table),
    "input in another storage": module(lambda v: torch.from_numpy(v.numpy())),
    "view and constant": module(lambda v: (v[0], torch.tensor(0.0))),
    "no tensors": module(lambda v: {"shape": v.numpy().shape, "note": None, "n": 3}),
    "in place": module(lambda v: torch.empty_like(v).copy_(v)),
    "uncosted": module(lambda v: torch.linalg.eigvals(v @ v.t())),
    "logged, with constants": with_layer(logged_beside_constants, table=TABLE),
    "number": with_layer(lambda _, v: v * v.max().item()),
    "number of NumPy's": with_layer(lambda _, v: v * torch.as_tensor(v.numpy().max())),
    "there and back": with_layer(lambda _, v: torch.from_numpy(v.numpy()) + 1),
    "a part of it": with_layer(lambda _, v: torch.from_numpy(v.numpy()[:, 1:]) + 1),
    "an array among the inputs": lambda: Model(
        lambda m, v: m.inner(v.numpy(), TABLE), inner=Model(logged_input, layer=linear())
    ),
    "read only after": with_layer(lambda _, v: (v + torch.from_numpy(TABLE[:2].copy())).numpy().sum()),
}


@pytest.mark.parametrize("name", CLEAN)
def test_other_modules_are_not_named(name):
    assert unobserved(CLEAN[name]().requires_grad_(requires_grad=False), x()) == {}


# ---- declared work


def declared(value):
    with roofprof.work("spconv", macs=100, bytes=64, dtype=torch.float16):
        return torch.from_numpy(value.numpy() * 1) @ torch.ones(8, 4)


def test_declared_work_counts_instead_of_what_is_inside():
    inner = Model(lambda m, v: declared(m.layer(v).repeat(1, 2)), layer=linear())
    report = profiler(Model(lambda m, v: m.inner(v), inner=inner).requires_grad_(requires_grad=False)).run(x())
    assert report.coverage.unobserved == {}
    assert not report.total.incomplete
    group = report.by_module_and_operator()["inner", "spconv"]
    assert (group.calls, group.macs, group.flops, group.bytes) == (1, 100, 200, 64)
    assert report.group("op", "dtype")[-1].keys == ["spconv", "fp16"]
    assert group.time > 0
    assert report.total.macs == MACS + 100


def test_declared_as_a_statement_or_made_beforehand():
    before = roofprof.work("before", macs=1)

    def run():
        roofprof.work("plain", flops=5, int_ops=2)
        for _ in range(3):
            with before:
                x().add(1)
        with roofprof.work("whole", macs=1):
            roofprof.work("part", macs=1)
            with roofprof.work("part", macs=1), roofprof.scope("hidden"):
                x().add(1)

    report = roofprof.count(run)
    groups = {
        name: (group.calls, group.macs, group.flops, group.int_ops) for name, group in report.by_operator().items()
    }
    assert groups == {"plain": (1, 0, 5, 2), "before": (3, 3, 6, 0), "whole": (1, 1, 2, 0)}
    assert [row.path for row in report.rows] == [""]


@torch.library.custom_op("unobserved::opaque", mutates_args=())
def opaque(value: torch.Tensor) -> torch.Tensor:
    roofprof.work("kernel", macs=7)
    return doubled_by_c(value)


def test_an_op_without_a_cost_is_explained_by_work_declared_inside():
    report = roofprof.count(lambda: opaque(x()))
    assert report.coverage.uncosted == {}
    assert report.total.macs == 7


def test_many_different_works_share_a_bucket_with_exact_sums_and_exceptions_end_them():
    def run():
        for number in range(200):
            with pytest.raises(KeyError), roofprof.work("varies", macs=number):
                raise KeyError
        x().add(1)

    groups = roofprof.count(run).by_operator()
    assert (groups["varies"].calls, groups["varies"].macs) == (200, 199 * 200 // 2)
    assert groups["aten::add"].calls == 1


@pytest.mark.parametrize(
    ("counts", "error", "message"),
    [
        ({"macs": -1}, ValueError, "macs must be finite and 0 or more, not -1"),
        ({"bytes": "64"}, TypeError, "bytes must be a number, not '64'"),
        ({"dtype": "fp16"}, TypeError, "dtype must be a torch.dtype, not 'fp16'"),
        ({"flops": 1, "dtype": torch.int8}, ValueError, "give them as int_ops"),
    ],
)
def test_counts_are_checked_outside_a_profile_too(counts, error, message):
    with pytest.raises(error, match=message):
        roofprof.work("x", **counts)


# ---- operators of an extension's, of which nothing is known


@pytest.fixture(params=["custom_op", "CompositeImplicitAutograd", "CompositeExplicitAutograd", "CPU"])
def registered(request):
    """A way to register a function, which gives the operator."""
    library = torch.library.Library("unobserved", "FRAGMENT")

    def register(function):
        name = f"{function.__name__}_{request.param}"
        if request.param == "custom_op":
            return torch.library.custom_op(f"unobserved::{name}", function, mutates_args=())
        library.define(name + torch.library.infer_schema(function, mutates_args=()))
        library.impl(name, function, request.param)
        return getattr(torch.ops.unobserved, name)

    yield register
    library._destroy()


def on_raw_memory(value: torch.Tensor) -> torch.Tensor:
    return doubled_by_c(value)


def by_numpy_and_more(value: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(value.numpy() * 2) + 1


def of_ops(value: torch.Tensor) -> torch.Tensor:
    return value * torch.tensor(2.0) + 1


@pytest.mark.parametrize(
    ("function", "flops", "known"), [(on_raw_memory, 0, False), (by_numpy_and_more, 8, False), (of_ops, 16, True)]
)
def test_an_operator_is_known_where_it_dispatches_all_it_does(function, flops, known, registered):
    op = registered(function)
    report = roofprof.count(nn.Sequential(Model(lambda _, value: op(value))), torch.ones(2, 4))
    assert [name.startswith(f"unobserved::{function.__name__}_") for name in report.coverage.uncosted] == [True] * (
        not known
    )
    assert {row.path: row.self_incomplete for row in report.rows} == {"": False, "0": not known}
    assert report.total.flops == flops
