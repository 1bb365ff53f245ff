"""Training steps: what the backward executes, in whose row and in which phase it stands, however it is run.

A layer's backward has two products, the gradients of its input and of its weight, and each has the forward's MACs,
groups or not. A layer whose input is the data has only the second.
"""

import threading
from functools import partial

import pytest
import torch
from attributed import Model
from models import Gpt2, Llama, Product, Residual, ResNet, vision
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
    set_checkpoint_early_stop,
)
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


# ---- two layers: how many products each has in each phase

ROWS, SIZE = 4, 8
LAYER = ROWS * SIZE * SIZE
CASES = []


def products(forward, backward, recompute=(0, 0)):
    """Expects so many products of the first and the second layer of a model, which the case gets with its input."""

    def add(case):
        by_phase = {"forward": forward, "backward": backward, "recompute": recompute}
        expected = {
            (path, phase): number * LAYER
            for phase, numbers in by_phase.items()
            for path, number in zip(("first", "second"), numbers, strict=True)
            if number
        }
        CASES.append(pytest.param(case, expected, id=case.__name__))
        return case

    return add


@products(forward=(1, 1), backward=(0, 1))
def frozen(model, x):
    model.first.requires_grad_(False)
    model(x).sum().backward()


@products(forward=(1, 1), backward=(2, 4))
def retained_graph(model, x):
    loss = model(x).sum()
    loss.backward(retain_graph=True)
    loss.backward()


@products(forward=(1, 1), backward=(1, 1))
def gradient_of_the_input_alone(model, x):
    torch.autograd.grad(model(x.requires_grad_()).sum(), x)


@products(forward=(1, 1), backward=(1, 1))
def gradient_of_one_weight_alone(model, x):
    """Its own product, and the way to it."""
    torch.autograd.grad(model(x).sum(), model.first.weight)


@products(forward=(1, 1), backward=(3, 3))
def batched_gradients(model, x):
    output = model(x.requires_grad_())
    torch.autograd.grad(output, x, torch.rand(3, ROWS, SIZE), is_grads_batched=True)


@products(forward=(1, 1), backward=(5, 5))
def double_backward(model, x):
    """First one product in each layer, for the gradient of the input. Back through that product, two more; and,
    because tanh' depends on what the layer gave, two through the layer itself.
    """
    (gradient,) = torch.autograd.grad(model(x.requires_grad_()).sum(), x, create_graph=True)
    gradient.square().sum().backward()


@products(forward=(3, 3), backward=(3, 6))
def on_other_threads(model, x):
    for _ in range(3):
        thread = threading.Thread(target=model(x).square().mean().backward)
        thread.start()
        thread.join()


@products(forward=(1, 1), recompute=(1, 1), backward=(2, 2))
def checkpointed(model, x):
    checkpoint(model, x.requires_grad_(), use_reentrant=False).sum().backward()


@products(forward=(1, 1), recompute=(1, 1), backward=(2, 2))
def checkpointed_with_reentry(model, x):
    checkpoint(model, x.requires_grad_(), use_reentrant=True).sum().backward()


@products(forward=(1, 1), recompute=(2, 1), backward=(2, 2))
def nested_checkpoints(model, x):
    """The inner part is run again with the outer one, and once more for its own backward."""

    def outer(x):
        return model.second(checkpoint(model.first, x, use_reentrant=True))

    checkpoint(outer, x.requires_grad_(), use_reentrant=True).sum().backward()


@products(forward=(1, 1), backward=(2, 2))
def selective_checkpointing_that_saves_products(model, x):
    def policy(_context, op, *_args, **_kwargs):
        saved = {torch.ops.aten.mm.default, torch.ops.aten.addmm.default}
        return CheckpointPolicy.MUST_SAVE if op in saved else CheckpointPolicy.PREFER_RECOMPUTE

    contexts = partial(create_selective_checkpoint_contexts, policy)
    checkpoint(model, x.requires_grad_(), use_reentrant=False, context_fn=contexts).sum().backward()


@products(forward=(1, 1), recompute=(1, 1), backward=(2, 2))
def a_function_that_runs_modules_inside(model, x):
    """As in reversible nets: its forward runs without gradients in the forward, and with them in the backward."""

    class Again(Function):
        @staticmethod
        def forward(ctx, value, layers):
            ctx.layers = layers
            ctx.save_for_backward(value)
            return layers(value)

        @staticmethod
        def backward(ctx, gradient):
            with torch.enable_grad():
                value = ctx.saved_tensors[0].detach().requires_grad_()
                output = ctx.layers(value)
            output.backward(gradient)
            return value.grad, None

    Again.apply(x.requires_grad_(), model).sum().backward()


@pytest.mark.parametrize(("case", "expected"), CASES)
def test_products_of_each_phase(case, expected):
    model = Residual(SIZE)
    report = observe(model, lambda: case(model, torch.rand(ROWS, SIZE)))
    assert macs_by(report, "module", "phase") == expected
    assert not report.coverage.uncosted
    # This thread's waiting for another one is on the clock too.
    assert {note.code for note in report.coverage.notes} <= {"threads-overlap"}
    assert_conserved(report)


# ---- rows and phases


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


@pytest.mark.parametrize(("function", "products"), [(Product, 2), (Once, 2), (Costly, 3)])
def test_a_function_of_the_users_own(function, products):
    """Its work stands in the module that called it, not in the one whose weight it used."""
    inner = Model(lambda self, value: function.apply(value, self.fc.weight), fc=nn.Linear(SIZE, SIZE))
    model = Model(lambda self, value: self.inner(value).relu(), inner=inner)
    value = torch.rand(ROWS, SIZE, requires_grad=True)
    report = observe(model, lambda: model(value).sum().backward())
    expected = {("inner", "forward"): LAYER, ("inner", "backward"): products * LAYER}
    assert macs_by(report, "module", "phase") == expected


def test_the_loss_stands_outside():
    report = observe(model := Residual(SIZE), step(model, torch.rand(ROWS, SIZE), torch.arange(ROWS)))
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


def test_shared_weights_have_one_row():
    layer = nn.Linear(SIZE, SIZE)
    model = nn.Sequential(layer, nn.Tanh(), layer)
    report = observe(model, lambda: model(torch.rand(ROWS, SIZE)).sum().backward())
    assert macs_by(report, "module", "phase") == {("0", "forward"): 2 * LAYER, ("0", "backward"): 3 * LAYER}
    assert report.row("0").calls == 2
    assert report.total.params == SIZE * SIZE + SIZE


def test_backward_of_an_unseen_forward_is_reported_to_be_unknown():
    model = Residual(SIZE)
    loss = model(torch.rand(ROWS, SIZE)).sum()
    report = observe(model, loss.backward)
    assert macs_by(report, "module", "phase") == {(OUTSIDE, "backward"): 3 * LAYER}
    assert any("no known forward" in note for note in report.coverage.notes)


def test_hooks_on_gradients_and_saved_tensors():
    layer, value = nn.Linear(SIZE, SIZE), torch.rand(ROWS, SIZE)

    def run():
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.double(), lambda t: t.float()):
            output = layer(value)
        output.register_hook(lambda gradient: gradient * 2)
        output.sum().backward()

    report = observe(layer, run)
    assert macs_by(report, "phase") == {"forward": LAYER, "backward": LAYER}
    by_op = {tuple(group.keys): group for group in report.group("op", "phase")}
    assert by_op["aten::mul", "backward"].flops == ROWS * SIZE
    # The input alone is saved, for the weight's gradient: packed in the forward, unpacked in the backward.
    casts = [by_op["aten::_to_copy", phase].bytes for phase in ("forward", "backward")]
    assert casts == [(4 + 8) * ROWS * SIZE] * 2


# ---- what checkpointing runs again, op by op


def by_phase(report, phase):
    return {
        (group.keys[0], group.keys[2]): counts(group)
        for group in report.group("module", "phase", "op")
        if group.keys[1] == phase and group.keys[0] != OUTSIDE and any(counts(group).values())
    }


@pytest.mark.parametrize("use_reentrant", [False, True], ids=["saved tensors", "reentrant"])
def test_checkpointing_runs_a_part_again_and_the_rest_is_as_without(use_reentrant):
    def layers():
        return nn.Sequential(nn.Linear(SIZE, SIZE), nn.GELU())

    model = Model(
        lambda self, v: self.last(checkpoint(self.middle, self.first(v), use_reentrant=use_reentrant)),
        first=layers(),
        middle=layers(),
        last=layers(),
    )
    value = torch.rand(ROWS, SIZE, requires_grad=True)

    def observed(call):
        model.zero_grad()
        value.grad = None
        return observe(model, lambda: call(value).sum().backward())

    with set_checkpoint_early_stop(False):
        report = observed(model)
    again = {key: work for key, work in by_phase(report, "forward").items() if key[0].startswith("middle")}
    assert by_phase(report, "recompute") == again
    assert report.row("middle").calls == 2
    plain = observed(lambda v: model.last(model.middle(model.first(v))))
    for phase in ("forward", "backward"):
        assert by_phase(report, phase) == by_phase(plain, phase)
    if use_reentrant:
        return
    # Running again stops where all that was saved is there: the last activation had its input saved.
    early = observed(model)
    del again["middle.1", "aten::gelu"]
    assert by_phase(early, "recompute") == again
