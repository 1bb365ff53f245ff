"""Laws that hold for any model: they need no reference figure."""

import threading

import pytest
import torch
from models import Gpt2, LeNet, Llama, Residual, ResNet, named, vision
from torch import nn
from torch.nn import functional as F
from truths import assert_conserved, counts, macs_by, observe

import roofprof

pytestmark = pytest.mark.usefixtures("one_thread")


def transformer():
    return nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, dropout=0.0)


# Each with the input of one sample, to be stacked into batches.
MODELS = {
    "lenet": (LeNet, lambda: torch.rand(1, 32, 32)),
    "resnet": (ResNet, lambda: torch.rand(3, 16, 16)),
    "mobilenet_v2": (vision("mobilenet_v2"), lambda: torch.rand(3, 64, 64)),
    "efficientnet_b0": (vision("efficientnet_b0"), lambda: torch.rand(3, 64, 64)),
    "resnet18": (vision("resnet18"), lambda: torch.rand(3, 64, 64)),
    "swin_t": (vision("swin_t"), lambda: torch.rand(3, 64, 64)),
    "gpt2": (Gpt2, lambda: torch.randint(97, (12,))),
    "llama": (Llama, lambda: torch.randint(97, (12,))),
    "encoder": (transformer, lambda: torch.rand(5, 16)),
    "lstm": (lambda: nn.LSTM(8, 16, num_layers=2, batch_first=True), lambda: torch.rand(5, 8)),
    "gru": (lambda: nn.GRU(8, 16, batch_first=True, bidirectional=True), lambda: torch.rand(5, 8)),
}


VISION = ("mobilenet_v2", "efficientnet_b0", "resnet18", "swin_t")


@pytest.fixture(params=named(MODELS, *VISION))
def example(request):
    """A model in eval mode, and a function that makes a batch of so many samples."""
    build, sample = MODELS[request.param]
    return build().eval(), lambda size: torch.stack([sample() for _ in range(size)])


@torch.no_grad()
def count(model, *args):
    report = roofprof.count(model, *args)
    assert not report.coverage.uncosted
    return report


def rows(report):
    return {row.path: counts(row) for row in report.rows}


# ---- sums


def test_self_values_add_up_over_a_training_step(example):
    model, batch = example
    model.train()
    optimizer = torch.optim.AdamW(model.parameters())

    def step():
        output = model(batch(2))
        first = output[0] if isinstance(output, tuple) else output
        first.square().mean().backward()
        optimizer.step()

    report = observe(model, step)
    assert set(report.by_phase()) == {"forward", "backward", "optimizer"}
    assert not report.coverage.uncosted
    assert_conserved(report)


def test_twice_the_batch_is_twice_the_macs(example):
    model, batch = example
    one, two = count(model, batch(2)), count(model, batch(4))
    assert {path: 2 * macs for path, macs in macs_by(one, "module").items()} == macs_by(two, "module")
    assert one.total.bytes < two.total.bytes < 2 * one.total.bytes


# ---- modes


@pytest.mark.parametrize(
    "name", named(["lenet", "resnet", "mobilenet_v2", "resnet18", "swin_t", "gpt2", "llama"], *VISION)
)
def test_gradients_change_nothing_where_the_same_ops_run(name):
    build, sample = MODELS[name]
    model, inputs = build().eval(), sample()[None]
    assert rows(roofprof.count(model, inputs)) == rows(count(model, inputs))


def test_inference_mode_changes_nothing(example):
    model, batch = example
    inputs = batch(2)
    plain = count(model, inputs)
    with torch.inference_mode():
        assert rows(roofprof.count(model, inputs)) == rows(plain)


@pytest.mark.parametrize(
    "name", named(["lenet", "resnet", "mobilenet_v2", "resnet18", "swin_t", "gpt2", "llama"], *VISION)
)
def test_autocast_changes_the_dtype_and_no_macs(name):
    build, sample = MODELS[name]
    model, inputs = build().eval(), sample()[None]
    plain = count(model, inputs)
    with torch.autocast("cpu", torch.bfloat16):
        report = count(model, inputs)
    assert macs_by(report, "module") == macs_by(plain, "module")
    assert macs_by(report, "dtype") == {"bf16": plain.total.macs}


# ---- the same by other means


# Calls whose tensors look alike, while another argument makes their results of different size. Each one must be costed
# for what it is, in one module and one block as in two.
DIFFERENT = {
    "conv2d": (lambda x, stride: F.conv2d(x, torch.ones(4, 4, 3, 3), stride=stride), 1, 2),
    "max_pool2d": (lambda x, stride: F.max_pool2d(x, 3, stride=stride), 1, 2),
    "adaptive_avg_pool2d": (F.adaptive_avg_pool2d, 1, 3),
    "interpolate": (lambda x, factor: F.interpolate(x, scale_factor=factor, mode="bilinear"), 2.0, 3.0),
    "pad": (F.pad, (1, 1), (2, 2)),
    "unfold": (lambda x, stride: F.unfold(x, 2, stride=stride), 1, 2),
    "sum": (torch.sum, (0,), (2, 3)),
    "topk": (torch.topk, 1, 2),
    "arange": (lambda _, end: torch.arange(end), 1, 2),
    "nll_loss": (lambda x, how: F.nll_loss(x, torch.zeros(2, 8, 8, dtype=torch.long), reduction=how), "none", "sum"),
}


@pytest.mark.parametrize(("function", "one", "other"), DIFFERENT.values(), ids=DIFFERENT)
def test_calls_that_look_alike_are_distinguished(function, one, other):
    x = torch.ones(2, 4, 8, 8)
    apart = [counts(count(function, x, argument).total) for argument in (one, other)]
    assert apart[0] != apart[1]
    together = count(lambda: (function(x, one), function(x, other)))
    assert counts(together.total) == {name: apart[0][name] + apart[1][name] for name in apart[0]}


# ---- threads


def in_threads(*targets):
    threads = [threading.Thread(target=target) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_calls_on_several_threads_add_up():
    model, x, calls = Residual(8), torch.rand(4, 8), 50
    gate = threading.Barrier(4)

    def call():
        torch.autograd.grad(model(x).sum(), list(model.parameters()))

    def work():
        gate.wait()
        for _ in range(calls):
            call()

    alone = observe(model, call)
    report = observe(model, lambda: in_threads(*[work] * 4))
    for phase, factor in (("forward", 2), ("backward", 3)):
        assert report.by_phase()[phase].macs == 4 * calls * factor * 4 * 8 * 8
    assert report.row("first").calls == 4 * calls
    for path in ("first", "second"):
        assert report.row(path).flops == 4 * calls * alone.row(path).flops
    assert_conserved(report)


def test_other_models_on_other_threads_are_not_counted():
    model, other, x = Residual(8), Residual(8), torch.rand(4, 8)

    def train(which):
        which.zero_grad()
        which(x).sum().backward()

    def both():
        train(model)
        for _ in range(20):
            train(other)

    alone = observe(model, lambda: in_threads(lambda: train(model)))
    beside = observe(model, lambda: in_threads(lambda: train(model), lambda: train(other)))
    after = observe(model, lambda: in_threads(both))
    assert rows(beside) == rows(alone)
    assert rows(after) == rows(alone)
