"""Operators that a user's code registers: where nothing inside computed, their work is not known."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import torch

import roofprof


def double(source, target):
    """As a kernel does: on the raw memory."""
    values = np.ctypeslib.as_array(ctypes.cast(target.data_ptr(), ctypes.POINTER(ctypes.c_float)), (target.numel(),))
    ctypes.memmove(target.data_ptr(), source.data_ptr(), source.nbytes)
    values *= 2


def in_zeros(value: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(value)
    double(value, out)
    return out


def in_buffer(value: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(value)
    double(value, out)
    return out


def in_a_copy(value: torch.Tensor) -> torch.Tensor:
    out = value.clone()
    double(value, out)
    return out


def from_blob(value: torch.Tensor) -> torch.Tensor:
    out = (ctypes.c_float * value.numel())()
    ctypes.memmove(out, value.data_ptr(), value.nbytes)
    return torch.frombuffer(out, dtype=torch.float32).view(value.shape).clone()


def in_place(value: torch.Tensor) -> None:
    double(value, value)


KERNELS = (in_zeros, in_buffer, in_a_copy, from_blob)


@pytest.fixture(params=["custom_op", "implicit", "explicit", "cpu"])
def registered(request):
    """A way to register a function, which gives the operator."""
    library = torch.library.Library("extension_in_python", "FRAGMENT")

    def register(function, mutates=()):
        name = f"{function.__name__}_{request.param}"
        if request.param == "custom_op":
            return torch.library.custom_op(f"extension_in_python::{name}", function, mutates_args=mutates)
        schema = torch.library.infer_schema(function, mutates_args=mutates)
        library.define(name + schema)
        keys = {"implicit": "CompositeImplicitAutograd", "explicit": "CompositeExplicitAutograd", "cpu": "CPU"}
        library.impl(name, function, keys[request.param])
        return getattr(torch.ops.extension_in_python, name)

    yield register
    library._destroy()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_a_kernel_on_raw_memory_is_listed(kernel, registered):
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
    op = registered(kernel)
    model[1].forward = op
    with torch.no_grad():
        report = roofprof.count(model, torch.rand(4, 8))
    assert list(report.coverage.uncosted.values()) == [1]
    assert next(iter(report.coverage.uncosted)).startswith(f"extension_in_python::{kernel.__name__}")
    assert {row.path: row.self_incomplete for row in report.rows} == {"": False, "0": False, "1": True}
    assert report.total.macs == 4 * 8 * 8


def test_a_kernel_that_writes_in_place_is_listed(registered):
    op = registered(in_place, mutates=("value",))
    report = roofprof.count(lambda: op(torch.ones(4)))
    assert list(report.coverage.uncosted.values()) == [1]
    assert report.total.incomplete


def composed(value: torch.Tensor) -> torch.Tensor:
    return value * 2 + 1


def with_a_mask(value: torch.Tensor) -> torch.Tensor:
    mask = torch.zeros_like(value)
    mask[0] = 1
    return value * mask


@pytest.mark.parametrize(("function", "flops"), [(composed, 2 * 4), (with_a_mask, 4)])
def test_an_operator_that_dispatches_all_that_it_does_is_known(function, flops, registered):
    report = roofprof.count(registered(function), torch.rand(4))
    assert report.coverage.uncosted == {}
    assert not report.total.incomplete
    assert report.total.flops == flops
