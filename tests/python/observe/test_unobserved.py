"""Work that bypasses the dispatcher: found, or declared by the user."""

from __future__ import annotations

import ctypes
import threading

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
        ctx.extra = torch.tensor(0.5)
        ctx.backward = backward
        return forward(value)

    @staticmethod
    def backward(ctx, grad):
        return ctx.backward(grad), None, None


INNOCENT = {
    "gradient reversal": (lambda v: v.view_as(v), torch.neg),
    "straight through": (lambda v: v.clone(), lambda g: g),
    "identity": (lambda v: v, lambda g: g),
    "views": (lambda v: v.t()[0], lambda g: g.expand(8, 2).t()),
    "work": (lambda v: v * 2, lambda g: g * 2),
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


class NumpyProduct(nn.Module):
    """In the manner of an extension with tensors in and tensors out."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8, 4))

    def forward(self, value):
        return torch.from_numpy(value.detach().numpy() @ self.weight.detach().numpy())


MODULES = {
    "numpy": (NumpyProduct, {"NumpyProduct": 1}),
    "extension": (lambda: Model(lambda _, v: {"out": [doubled_by_c(v)]}), {"Model": 1}),
    "number": (lambda: Model(lambda _, v: torch.from_numpy(np.asarray(v.numpy().sum()))), {"Model": 1}),
    "child explains it": (lambda: nn.Sequential(nn.Sequential(NumpyProduct())), {"NumpyProduct": 1}),
    "function explains it": (lambda: Model(lambda _, v: NumpySine.apply(v)), {"NumpySine": 1}),
    "work before it": (lambda: nn.Sequential(linear(), Model(lambda _, v: doubled_by_c(v))), {"Model": 1}),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_whose_output_no_op_made_are_named(name):
    make, expected = MODULES[name]
    report = roofprof.count(make().requires_grad_(requires_grad=False), x())
    assert report.coverage.unobserved == expected
    assert report.total.incomplete


def cached_table(model, _):
    return model.table[:1], model.tables["b"], model.child.weight


def in_a_thread(model, value):
    results = []
    thread = threading.Thread(target=lambda: results.append(model.layer(value)))
    thread.start()
    thread.join()
    torch.empty(1)
    return results[0]


def with_attributes(forward):
    model = Model(forward, child=linear())
    model.table, model.tables = torch.ones(3, 3), {"a": None, "b": torch.ones(2)}
    model.register_buffer("kept", torch.ones(4))
    return model


CLEAN = {
    "identity": nn.Identity,
    "flatten": nn.Flatten,
    "dropout": lambda: nn.Dropout().eval(),
    "container": lambda: nn.Sequential(nn.Identity(), nn.Flatten()),
    "buffer": lambda: with_attributes(lambda m, _: (torch.empty(0), m.kept)),
    "cached tables": lambda: with_attributes(cached_table),
    "input in another storage": lambda: Model(lambda _, v: torch.from_numpy(v.numpy())),
    "view and constant": lambda: Model(lambda _, v: (v[0], torch.tensor(0.0))),
    "no tensors": lambda: Model(lambda _, v: {"shape": v.numpy().shape, "note": None, "n": 3}),
    "in place": lambda: Model(lambda _, v: torch.empty_like(v).copy_(v)),
    "uncosted": lambda: Model(lambda _, v: torch.linalg.eigvals(v @ v.t())),
    "in a thread": lambda: Model(in_a_thread, layer=linear()),
    "work": linear,
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
    assert len(report.run_times) == 2


def test_declared_as_a_statement_or_made_beforehand():
    before = roofprof.work("before", macs=1)

    def run():
        roofprof.work("plain", flops=5, int_ops=2)
        x().add(1)
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
    assert groups.pop("aten::ones")[0] == 1
    assert groups == {"plain": (1, 0, 5, 2), "aten::add": (1, 0, 16, 0), "before": (3, 3, 6, 0), "whole": (1, 1, 2, 0)}
    assert [row.path for row in report.rows] == [""]


def test_declared_in_a_function_it_stands_in_its_module_and_phase():
    class Declares(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            with roofprof.work("sine", flops=16):
                return NumpySine.forward(ctx, value)

        @staticmethod
        def backward(ctx, grad):
            roofprof.work("cosine", flops=32)
            return NumpySine.backward(ctx, grad)

    model = Model(lambda m, v: m.inner(v).sum(), inner=Model(lambda _, v: Declares.apply(v)))
    leaf = x().requires_grad_()
    prof = profiler(model)
    with prof:
        model(leaf).backward()
    report = prof.report()
    assert report.coverage.unobserved == {}
    flops = {
        tuple(group.keys): group.flops for group in report.group("op", "module", "phase") if "sine" in group.keys[0]
    }
    assert flops == {("sine", "inner", "forward"): 16, ("cosine", "inner", "backward"): 32}


def test_an_op_without_a_cost_is_explained_by_work_declared_inside():
    @torch.library.custom_op("unobserved::opaque", mutates_args=())
    def opaque(value: torch.Tensor) -> torch.Tensor:
        roofprof.work("kernel", macs=7)
        return doubled_by_c(value)

    report = roofprof.count(lambda: opaque(x()))
    assert report.coverage.uncosted == {}
    assert report.total.macs == 7


def test_many_different_works_share_a_bucket_with_exact_sums():
    def run():
        for number in range(200):
            with roofprof.work("varies", macs=number):
                pass

    group = roofprof.count(run).by_operator()["varies"]
    assert (group.calls, group.macs) == (200, 199 * 200 // 2)


def test_exceptions_leave_the_rest_observed():
    def run():
        with pytest.raises(KeyError), roofprof.work("fails", macs=1):
            raise KeyError
        x().add(1)

    report = roofprof.count(run)
    assert report.by_operator()["aten::add"].calls == 1
    assert report.total.macs == 1


@pytest.mark.parametrize(
    ("counts", "error", "message"),
    [
        ({"macs": -1}, ValueError, "macs must be finite and 0 or more, not -1"),
        ({"flops": float("inf")}, ValueError, "flops must be finite and 0 or more, not inf"),
        ({"macs": True}, TypeError, "macs must be a number, not True"),
        ({"bytes": "64"}, TypeError, "bytes must be a number, not '64'"),
        ({"macs": None}, TypeError, "macs must be a number, not None"),
        ({"dtype": "fp16"}, TypeError, "dtype must be a torch.dtype, not 'fp16'"),
        ({"flops": 1, "dtype": torch.int8}, ValueError, "give them as int_ops"),
    ],
)
def test_counts_are_checked_outside_a_profile_too(counts, error, message):
    with pytest.raises(error, match=message):
        roofprof.work("x", **counts)


# ---- operators of an extension's, of which nothing is known


@torch.library.custom_op("unobserved::product_and_sum", mutates_args=())
def product_and_sum(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(a.numpy() @ b.numpy()) + 1


@torch.library.custom_op("unobserved::doubled_and_one", mutates_args=())
def doubled_and_one(a: torch.Tensor) -> torch.Tensor:
    return doubled_by_c(a) + 1


@torch.library.custom_op("unobserved::twice_and_one", mutates_args=())
def twice_and_one(a: torch.Tensor) -> torch.Tensor:
    return a * torch.tensor(2.0) + 1


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: product_and_sum(torch.ones(2, 8), torch.ones(8, 4)), "unobserved::product_and_sum"),
        (lambda: doubled_and_one(torch.ones(2, 4)), "unobserved::doubled_and_one"),
    ],
)
def test_an_operator_whose_kernel_does_more_than_it_dispatches(call, name):
    report = profiler(call).run()
    assert report.coverage.uncosted == {name: 1}
    assert report.total.incomplete
    assert report.total.flops == 8  # of the addition, which is seen
    assert report.by_operator()[name].time > 0


def test_an_operator_that_dispatches_all_it_does_is_known():
    report = roofprof.count(lambda: twice_and_one(torch.ones(2, 4)))
    assert report.coverage.uncosted == {}
    assert not report.total.incomplete
    assert report.by_operator()["aten::mul"].flops == report.by_operator()["aten::add"].flops == 8
