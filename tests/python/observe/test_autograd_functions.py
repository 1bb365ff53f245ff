"""The backward phase: whose row it stands in, whoever wrote the backward and however it is run."""

import threading

import pytest
import torch
from attributed import MACS, Model, linear, x
from models import Product, Residual
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from truths import assert_conserved, counts, macs_by, observe

pytestmark = pytest.mark.usefixtures("one_thread")


class WithSetup(Function):
    @staticmethod
    def forward(value, weight):
        return value @ weight

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    backward = Product.backward


class Once(Product):
    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        return Product.backward(ctx, gradient)


class Costly(Product):
    """A backward of three products, and a detour over a forward of its own."""

    @staticmethod
    def backward(ctx, gradient):
        value, weight = ctx.saved_tensors
        value @ weight
        return gradient @ weight.T, value.T @ gradient


def custom(function):
    return Model(lambda self, value: function.apply(value, self.fc.weight.T), fc=linear())


@pytest.mark.parametrize(("function", "products"), [(Product, 2), (WithSetup, 2), (Once, 2), (Costly, 3)])
def test_a_function_of_the_users_own(function, products):
    inner = custom(function)
    model = Model(lambda self, value: self.inner(value).relu(), inner=inner)
    value = x().requires_grad_()
    report = observe(model, lambda: model(value).sum().backward())
    # Its work stands in the module that called it, not in the one whose weight it used.
    assert macs_by(report, "module", "phase") == {
        ("inner", "forward"): MACS,
        ("inner", "backward"): products * MACS,
    }
    assert not report.coverage.uncosted
    assert_conserved(report)


def test_two_modules_with_the_same_function():
    model = nn.Sequential(custom(Product), custom(Product))
    model[1].fc = nn.Linear(4, 8, bias=False)
    report = observe(model, lambda: model(x()).sum().backward())
    assert macs_by(report, "module", "phase") == {
        ("0", "forward"): MACS,
        ("1", "forward"): MACS,
        ("1", "backward"): 2 * MACS,
        ("0", "backward"): 2 * MACS,
    }


def test_a_function_that_runs_a_module_inside():
    """As in reversible nets: its forward runs without gradients in the forward, and with them in the backward."""

    class Again(Function):
        @staticmethod
        def forward(ctx, value, layer):
            ctx.layer = layer
            ctx.save_for_backward(value)
            return layer(value)

        @staticmethod
        def backward(ctx, gradient):
            with torch.enable_grad():
                value = ctx.saved_tensors[0].detach().requires_grad_()
                output = ctx.layer(value)
            output.backward(gradient)
            return value.grad, None

    model = Model(lambda self, value: Again.apply(value, self.fc), fc=linear())
    value = x().requires_grad_()
    report = observe(model, lambda: model(value).sum().backward())
    assert macs_by(report, "module", "phase") == {
        ("fc", "forward"): MACS,
        ("fc", "recompute"): MACS,
        ("fc", "backward"): 2 * MACS,
    }


# ---- backward in unusual ways


def test_gradients_that_are_asked_for():
    model, value = Residual(8), torch.rand(4, 8, requires_grad=True)
    layer = 4 * 8 * 8
    # Of the input alone: one product in each layer.
    report = observe(model, lambda: torch.autograd.grad(model(value).sum(), value))
    assert macs_by(report, "phase") == {"forward": 2 * layer, "backward": 2 * layer}
    # Of one weight alone: its own product, and the way to it.
    report = observe(model, lambda: torch.autograd.grad(model(value).sum(), model.first.weight))
    assert macs_by(report, "module", "phase") == {
        ("first", "forward"): layer,
        ("second", "forward"): layer,
        ("second", "backward"): layer,
        ("first", "backward"): layer,
    }


def test_a_gradient_penalty():
    model = nn.Linear(8, 4, bias=False)
    value = torch.rand(2, 8, requires_grad=True)

    def run():
        output = model(value)
        (gradient,) = torch.autograd.grad(output.sum(), value, create_graph=True)
        (output.mean() + (gradient.norm() - 1) ** 2).backward()

    report = observe(model, run)
    # grad_x = g W; its own backward has a product for W alone, since g is constant. The output's has two.
    assert macs_by(report, "module", "phase") == {("", "forward"): MACS, ("", "backward"): (1 + 1 + 2) * MACS}
    assert "recompute" not in report.by_phase()
    assert_conserved(report)


def test_a_hessian_vector_product():
    model, value = nn.Linear(8, 4, bias=False), x()

    def run():
        loss = model(value).square().sum()
        (gradient,) = torch.autograd.grad(loss, model.weight, create_graph=True)
        torch.autograd.grad((gradient * torch.ones_like(gradient)).sum(), model.weight)

    # dW = g' x, then back through it to g, and from there through the layer to the weight.
    assert macs_by(observe(model, run), "phase") == {"forward": MACS, "backward": 3 * MACS}


def test_batched_gradients():
    layer, value = nn.Linear(8, 4, bias=False), x().requires_grad_()

    def run():
        output = layer(value)
        vectors = torch.eye(8).reshape(8, 2, 4)
        torch.autograd.grad(output, value, vectors, is_grads_batched=True)

    assert macs_by(observe(layer, run), "module", "phase") == {("", "forward"): MACS, ("", "backward"): 8 * MACS}


def test_functional_jacobian():
    layer, value = nn.Linear(8, 4, bias=False), torch.rand(8)
    report = observe(layer, lambda: torch.autograd.functional.jacobian(layer, value))
    assert macs_by(report, "phase") == {"forward": 8 * 4, "backward": 4 * 8 * 4}


def test_hooks_on_gradients_belong_to_the_backward():
    layer, value = linear(), x().requires_grad_()
    seen = []

    def run():
        output = layer(value)
        output.register_hook(lambda gradient: gradient * 2)
        value.register_hook(lambda gradient: seen.append(gradient.exp()))
        output.sum().backward()

    report = observe(layer, run)
    assert len(seen) == 1
    phases = {(group.keys[0], group.keys[1]): group.flops for group in report.group("op", "phase")}
    assert phases["aten::mul", "backward"] == 2 * 4
    assert phases["aten::exp", "backward"] == 2 * 8


def test_saved_tensors_that_are_packed():
    layer, value = linear(), x()

    def run():
        hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: t.double(), lambda t: t.float())
        with hooks:
            output = layer(value)
        output.sum().backward()

    report = observe(layer, run)
    assert macs_by(report, "phase") == {"forward": MACS, "backward": MACS}
    casts = {group.keys[1]: group.bytes for group in report.group("op", "phase") if group.keys[0] == "aten::_to_copy"}
    # The input alone is saved, for the weight's gradient: packed in the forward, unpacked in the backward.
    assert casts == {"forward": (4 + 8) * 2 * 8, "backward": (4 + 8) * 2 * 8}


def test_several_steps_and_a_backward_on_another_thread():
    model, value = Residual(8), torch.rand(4, 8)
    layer = 4 * 8 * 8

    def run():
        for _ in range(3):
            loss = model(value).square().mean()
            thread = threading.Thread(target=loss.backward)
            thread.start()
            thread.join()

    report = observe(model, run)
    assert macs_by(report, "module", "phase") == {
        ("first", "forward"): 3 * layer,
        ("second", "forward"): 3 * layer,
        ("second", "backward"): 3 * 2 * layer,
        ("first", "backward"): 3 * layer,
    }
    # This thread's waiting is on the clock too.
    assert {note.code for note in report.coverage.notes} <= {"threads-overlap"}


def test_losses_stand_outside():
    layer, value, labels = linear(), x(), torch.tensor([1, 2])
    losses = [nn.CrossEntropyLoss(), nn.MultiMarginLoss()]
    for loss in losses:
        report = observe(layer, lambda loss=loss: loss(layer(value), labels).backward())
        outside = {group.keys[1]: counts(group) for group in report.group("module", "phase") if group.keys[0] != ""}
        assert set(outside) == {"forward", "backward"}
        assert report.row("").macs == report.total.macs == 2 * MACS
