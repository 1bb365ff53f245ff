"""Training steps: what the backward executes, in whose row and in which phase it stands.

A layer's backward has two products, the gradients of its input and of its weight, and each has the forward's MACs,
groups or not. A layer whose input is the data has only the second.
"""

import threading

import pytest
import torch
from models import Gpt2, Llama, Product, Residual, ResNet, vision
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from truths import assert_conserved, counts, layer_macs, macs_by, observe

OUTSIDE = "(outside)"
pytestmark = pytest.mark.usefixtures("one_thread")


def step(model, inputs, targets, optimizer=None):
    """One training step, as a closure."""

    def run():
        loss = F.cross_entropy(model(inputs).flatten(0, -2), targets.flatten())
        loss.backward()
        if optimizer:
            optimizer.step()

    return run


def forward_and_backward(macs, first=None):
    """By (module, phase): two products in the backward, one in the layer that sees the data."""
    backward = {(path, "backward"): 2 * count for path, count in macs.items()}
    if first:
        backward[first, "backward"] = macs[first]
    return {(path, "forward"): count for path, count in macs.items()} | backward


# ---- whole models


@pytest.mark.parametrize(
    ("make", "first"),
    [
        (ResNet, "conv1"),
        pytest.param(vision("mobilenet_v2"), "features.0.0", marks=pytest.mark.integration),
        pytest.param(vision("efficientnet_b0"), "features.0.0", marks=pytest.mark.integration),
        pytest.param(vision("resnet18"), "conv1", marks=pytest.mark.integration),
    ],
)
def test_convolutional_networks(make, first):
    model = make().train()
    images, labels = torch.rand(2, 3, 64, 64), torch.tensor([1, 2])
    macs = layer_macs(model, images)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    report = observe(model, step(model, images, labels, optimizer))

    # torch.utils.flop_counter takes the backward of grouped convolutions for dense ones: 20 and 42 times the forward
    # for the first two.
    assert report.total.macs == 3 * sum(macs.values()) - macs[first]
    assert macs_by(report, "module", "phase") == forward_and_backward(macs, first)
    assert not report.coverage.uncosted
    assert not report.coverage.notes
    assert_conserved(report)


WIDTH, VOCABULARY, LAYERS, TOKENS, BATCH = 32, 97, 2, 10, 3


@pytest.mark.parametrize(
    ("model", "per_token"),
    [
        # query, key, value and output projections, then a hidden layer of four times the width
        (Gpt2(LAYERS, WIDTH, 4, VOCABULARY), 4 * WIDTH * WIDTH + 2 * WIDTH * 4 * WIDTH),
        # half as many key and value heads, then two hidden layers beside each other and one back
        (Llama(LAYERS, WIDTH, 4, 2, 88, VOCABULARY), 3 * WIDTH * WIDTH + 3 * WIDTH * 88),
    ],
    ids=["gpt2", "llama"],
)
def test_decoders(model, per_token):
    words = torch.randint(VOCABULARY, (BATCH, TOKENS + 1))
    report = observe(model, step(model, words[:, :-1], words[:, 1:]))

    tokens = BATCH * TOKENS
    layers = tokens * (LAYERS * per_token + WIDTH * VOCABULARY)
    product = BATCH * TOKENS * TOKENS * WIDTH  # Q K^T over all heads, and as much for P V
    # The backward of the fused attention has Q K^T once more, and two products for each of the forward's two.
    assert macs_by(report, "phase") == {
        "forward": layers + LAYERS * 2 * product,
        "backward": 2 * layers + LAYERS * 5 * product,
    }
    attention = {(f"blocks.{i}", "forward"): 2 * product for i in range(LAYERS)}
    attention |= {(f"blocks.{i}", "backward"): 5 * product for i in range(LAYERS)}
    in_layers = layer_macs(model, words[:, :-1])
    assert sum(in_layers.values()) == layers
    assert macs_by(report, "module", "phase") == forward_and_backward(in_layers) | attention
    # A causal mask leaves T (T + 1) / 2 of the T x T scores.
    masked = LAYERS * (2 + 5) * product * (TOKENS - 1) // (2 * TOKENS)
    assert report.total.causal_macs == report.total.macs - masked
    assert not report.coverage.uncosted
    assert_conserved(report)


# ---- rows and phases


def residual_step(model, x):
    return lambda: model(x).square().mean().backward()


def small():
    """A model of two linear layers, what it takes, and the MACs of each layer."""
    x = torch.rand(4, 8)
    return Residual(8), x, 4 * 8 * 8


@pytest.mark.parametrize("options", [{"foreach": False}, {"foreach": True}, {"fused": True}], ids=str)
@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_the_optimizer_has_a_row_and_a_phase(kind, options):
    model, x, _ = small()
    optimizer = kind(model.parameters(), lr=0.1, **options)
    backward = residual_step(model, x)
    report = observe(model, lambda: (backward(), optimizer.step()))
    row = report.row("(optimizer)")
    # Every parameter is at least read, changed and written.
    assert row.flops >= row.int_ops + report.total.params
    assert row.write_bytes >= report.row("").param_bytes
    assert row.calls == 1
    assert counts(report.by_phase()["optimizer"]) == counts(row)
    assert {group.keys[1] for group in report.group("module", "phase") if group.keys[0] == row.path} == {"optimizer"}
    assert not report.coverage.uncosted


def test_the_loss_stands_outside():
    model, x, _ = small()
    labels = torch.arange(4)
    report = observe(model, step(model, x, labels))
    groups = {tuple(group.keys): group.flops for group in report.group("module", "phase", "op")}
    flops = {(phase, op): count for (module, phase, op), count in groups.items() if module == OUTSIDE}
    # Of 4 x 8 scores: maximum, subtract, exp, sum, subtract; then a negation and an addition for each label.
    assert flops["forward", "aten::log_softmax"] == 5 * 32
    assert flops["forward", "aten::nll_loss_forward"] == 2 * 4
    # y' - exp(y) * sum(y'), again for each score; then a negation and a division for each label.
    assert flops["backward", "aten::_log_softmax_backward_data"] == 4 * 32
    assert flops["backward", "aten::nll_loss_backward"] == 2 * 4
    assert sum(flops.values()) == report.row(OUTSIDE).flops
    assert report.row(OUTSIDE).macs == 0
    assert set(report.by_phase()) == {"forward", "backward"}


def test_frozen_layers_have_no_backward():
    model, x, macs = small()
    model.first.requires_grad_(False)
    report = observe(model, residual_step(model, x))
    # Nothing before the second layer wants a gradient, so its input's is not computed either.
    expected = {("first", "forward"): macs, ("second", "forward"): macs, ("second", "backward"): macs}
    assert macs_by(report, "module", "phase") == expected


def test_shared_weights_have_one_row():
    layer = nn.Linear(8, 8)
    model = nn.Sequential(layer, nn.Tanh(), layer)
    report = observe(model, lambda: model(torch.rand(4, 8)).sum().backward())
    macs = 4 * 8 * 8
    assert macs_by(report, "module", "phase") == {("0", "forward"): 2 * macs, ("0", "backward"): 3 * macs}
    assert report.row("0").calls == 2
    assert report.total.params == 8 * 8 + 8


def test_a_retained_graph_runs_backward_twice():
    model, x, macs = small()

    def run():
        loss = model(x).sum()
        loss.backward(retain_graph=True)
        loss.backward()

    assert macs_by(observe(model, run), "phase") == {"forward": 2 * macs, "backward": 2 * 3 * macs}


def test_micro_batches_add_up():
    model, x, macs = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    backward = residual_step(model, x)
    report = observe(model, lambda: ([backward() for _ in range(3)], optimizer.step()))
    assert macs_by(report, "phase") == {"forward": 3 * 2 * macs, "backward": 3 * 3 * macs}
    assert (report.row("first").calls, report.row("(optimizer)").calls) == (3, 1)


def test_backward_of_an_unseen_forward_is_said_to_be_unknown():
    model, x, macs = small()
    loss = model(x).sum()
    report = observe(model, loss.backward)
    assert macs_by(report, "module", "phase") == {(OUTSIDE, "backward"): 3 * macs}
    assert any("no known forward" in note for note in report.coverage.notes)


def test_a_function_of_the_users_own():
    model = nn.Linear(8, 8)
    model.forward = lambda x: Product.apply(x, model.weight)
    report = observe(model, lambda: model(torch.rand(4, 8)).sum().backward())
    macs = 4 * 8 * 8
    assert macs_by(report, "module", "phase") == {("", "forward"): macs, ("", "backward"): 2 * macs}


# ---- backward in unusual ways


@pytest.mark.parametrize("use_reentrant", [False, True], ids=["saved tensors", "reentrant"])
def test_checkpointing_recomputes_the_forward(use_reentrant):
    model, x, macs = small()
    x.requires_grad_()
    plain = observe(model, residual_step(model, x))
    model.zero_grad()
    x.grad = None

    def run():
        checkpoint(model, x, use_reentrant=use_reentrant).square().mean().backward()

    report = observe(model, run)
    expected = {
        ("first", phase): factor * macs for phase, factor in (("forward", 1), ("recompute", 1), ("backward", 2))
    }
    expected |= {("second", phase): count for (_, phase), count in expected.items()}
    assert macs_by(report, "module", "phase") == expected
    # The backward itself is the one without checkpointing, row by row.
    assert backward_flops(report) == backward_flops(plain)
    assert_conserved(report)


def backward_flops(report):
    return {group.keys[0]: group.flops for group in report.group("module", "phase") if group.keys[1] == "backward"}


def test_backward_on_another_thread():
    model, x, _ = small()
    gradient = torch.ones(4, 8)
    here = observe(model, lambda: model(x).backward(gradient))
    model.zero_grad()

    def elsewhere():
        output = model(x)
        thread = threading.Thread(target=torch.autograd.backward, args=(output, gradient))
        thread.start()
        thread.join()

    there = observe(model, elsewhere)
    by_here, by_there = ({tuple(g.keys): counts(g) for g in r.group("module", "phase", "op")} for r in (here, there))
    assert by_there == by_here


def test_double_backward_is_backward():
    model, x, macs = small()
    x.requires_grad_()

    def run():
        (gradient,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        gradient.square().sum().backward()

    report = observe(model, run)
    # First the gradient of the input: one product in each layer. Back through that product, two more; and, because
    # tanh' depends on what the layer gave, two through the layer itself.
    expected = {(path, "forward"): macs for path in ("first", "second")}
    expected |= {(path, "backward"): 5 * macs for path in ("first", "second")}
    assert macs_by(report, "module", "phase") == expected
    assert_conserved(report)
