"""Tensor subclasses and modes: what their handlers dispatch is the work, and what they were called with is not."""

import pytest
import torch
from models import Gpt2, LeNet
from torch import nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from truths import assert_conserved, counts, macs_by, observe

pytestmark = pytest.mark.usefixtures("one_thread")

ROWS, IN, OUT = 4, 8, 6
PRODUCT = ROWS * IN * OUT


# ---- a quantised weight, as torchao has them


class Quantised(torch.Tensor):
    """Eight-bit rows with a scale each, which become floats in every product."""

    @staticmethod
    def __new__(cls, values, scale):
        return torch.Tensor._make_wrapper_subclass(cls, values.shape, dtype=scale.dtype, device=values.device)

    def __init__(self, values, scale):
        self.values = values
        self.scale = scale

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        if function in {torch.ops.aten.t.default, torch.ops.aten.detach.default}:
            return cls(function(args[0].values), function(args[0].scale))
        return function(*(arg.dequantised() if isinstance(arg, cls) else arg for arg in args), **(kwargs or {}))

    def dequantised(self):
        return self.values.to(self.scale.dtype) * self.scale


@pytest.fixture
def layer():
    layer = nn.Linear(IN, OUT)
    values = torch.randint(-128, 127, (OUT, IN), dtype=torch.int8)
    layer.weight = nn.Parameter(Quantised(values, torch.rand(OUT, 1)), requires_grad=False)
    return layer


# The cast reads a byte and writes four for each weight, the product with the scales comes on top.
CAST = OUT * IN * (1 + 4)
SCALED = 4 * (OUT * IN + OUT + OUT * IN)
LINEAR = 4 * (ROWS * IN + OUT * IN + OUT + ROWS * OUT)


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_a_quantised_weight(layer, mode):
    value = torch.rand(ROWS, IN)
    with mode():
        report = observe(layer, lambda: layer(value))
    assert not report.coverage.uncosted
    assert report.total.macs == PRODUCT
    assert report.total.flops == 2 * PRODUCT + ROWS * OUT + OUT * IN
    assert report.total.bytes == CAST + SCALED + LINEAR


class Hidden(Quantised):
    """Does its work with NumPy, where no operator is dispatched."""

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        left, right = (arg.values if isinstance(arg, cls) else arg for arg in args)
        return torch.from_numpy(left.numpy() @ right.numpy())


class Twice(Quantised):
    """Twice the work in another dtype: what was called says neither."""

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        wide = [(arg.values if isinstance(arg, cls) else arg).double() for arg in args]
        return function(*wide) + function(*wide)


@pytest.mark.parametrize(("kind", "work"), [(Hidden, {"fp32": PRODUCT}), (Twice, {"fp64": 2 * PRODUCT})])
def test_a_handler_that_does_something_else(kind, work):
    left, right = kind(torch.rand(ROWS, IN), torch.ones(ROWS)), torch.rand(IN, OUT)
    report = observe(None, lambda: torch.mm(left, right))
    assert macs_by(report, "dtype") == work


# ---- modes


class Passing(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


class PassingFunctions(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("mode", [Passing, PassingFunctions])
@pytest.mark.parametrize(
    ("build", "sample"), [(LeNet, lambda: torch.rand(2, 1, 32, 32)), (Gpt2, lambda: torch.randint(97, (2, 5)))]
)
def test_modes_that_pass_everything_on(mode, build, sample):
    model, value = build(), sample()

    def run():
        model.zero_grad()
        model(value).square().mean().backward()

    plain = observe(model, run)
    with mode():
        report = observe(model, run)
    assert macs_by(report, "module", "phase") == macs_by(plain, "module", "phase")
    assert [row.flops for row in report.rows] == [row.flops for row in plain.rows]
    assert not report.coverage.uncosted
    assert_conserved(report)


def test_a_mode_that_does_the_work_twice():
    class Checking(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            function(*args, **(kwargs or {}))
            return function(*args, **(kwargs or {}))

    left, right = torch.rand(ROWS, IN), torch.rand(IN, OUT)
    with Checking():
        report = observe(None, lambda: torch.mm(left, right))
    assert report.total.macs == 2 * PRODUCT


# ---- jagged tensors, against their components


@pytest.fixture
def parts():
    return [torch.rand(3, IN), torch.rand(5, IN)]


JAGGED = {
    "linear": (lambda value, weight: F.linear(value, weight), 8 * IN * OUT),
    "softmax": (lambda value, _: F.softmax(value, dim=-1), 0),
    "relu": (lambda value, _: F.relu(value), 0),
    "arithmetic": (lambda value, _: value * 2 + value, 0),
}


@pytest.mark.parametrize("name", JAGGED)
def test_jagged_tensors(name, parts):
    function, macs = JAGGED[name]
    weight = torch.rand(OUT, IN)
    jagged = torch.nested.nested_tensor(parts, layout=torch.jagged)
    whole = torch.cat(parts)
    report = observe(None, lambda: function(jagged, weight))
    assert not report.coverage.uncosted
    assert report.total.macs == macs
    assert counts(report.total) == counts(observe(None, lambda: function(whole, weight)).total)


# ---- what is no wrapper at all
