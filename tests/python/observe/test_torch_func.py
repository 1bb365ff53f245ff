"""torch.func: the work of a transformed function is that of the batched, differentiated computation that it stands for.

A transform dispatches again inside: what its ops look like there is the work, once.
"""

import pytest
import torch
from torch import nn
from torch.func import (
    functional_call,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    stack_module_state,
    vmap,
)
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode
from truths import counts, macs_by, observe

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore:There is a performance drop"),
]

EXAMPLES, ROWS, IN, OUT = 5, 4, 8, 6
PRODUCT = ROWS * IN * OUT  # of one example


@pytest.fixture
def data():
    return torch.rand(EXAMPLES, ROWS, IN)


@pytest.fixture
def weight():
    return torch.rand(OUT, IN)


def total(closure):
    """The counts of everything, all of it known."""
    report = observe(None, closure)
    assert not report.coverage.uncosted
    assert not report.coverage.notes
    return report.total


def attention(value):
    return F.scaled_dot_product_attention(value, value, value)


def tangent_of(function, *values):
    return jvp(function, values, tuple(torch.ones_like(value) for value in values))


def squared_error(weight, value):
    return (value @ weight.T).square().sum()


VALUES = EXAMPLES * ROWS * IN
# What a function of the data and the weight has: FLOPs that are no product's, MACs, and bytes where they are told.
WORK = {
    "elementwise, over a dimension": (lambda x, w: vmap(torch.exp, in_dims=1)(x), VALUES, 0, 2 * 4 * VALUES),
    # The weight is read once, not once for each example.
    "shared weight": (
        lambda x, w: vmap(lambda value: value @ w.T)(x),
        0,
        EXAMPLES * PRODUCT,
        4 * (VALUES + OUT * IN + EXAMPLES * ROWS * OUT),
    ),
    "weight of each": (
        lambda x, w: vmap(torch.mm)(x, w.T.repeat(EXAMPLES, 1, 1)),
        0,
        EXAMPLES * PRODUCT,
        4 * EXAMPLES * (ROWS * IN + IN * OUT + ROWS * OUT) + 4 * (1 + EXAMPLES) * IN * OUT,
    ),
    # A tangent's product is work as well, and so is one with a tangent of zeros.
    "exp and its tangent": (lambda x, w: tangent_of(torch.exp, x), 2 * VALUES, 0, None),
    # x w' and x' w beside x w, then their sum.
    "product and its tangents": (lambda x, w: tangent_of(torch.mm, x[0], w.T), ROWS * OUT, 3 * PRODUCT, None),
    # The sine, its derivative, and that times the unit matrix of tangents.
    "jacfwd": (lambda x, w: jacfwd(torch.sin)(x[0, 0]), IN + IN + IN * IN, 0, None),
}


@pytest.mark.parametrize("name", WORK)
def test_work_in_closed_form(name, data, weight):
    function, flops, macs, in_bytes = WORK[name]
    work = total(lambda: function(data, weight))
    assert (work.macs, work.flops) == (macs, 2 * macs + flops)
    assert in_bytes is None or work.bytes == in_bytes


@pytest.mark.parametrize("function", [F.gelu, lambda value: F.softmax(value, dim=-1), attention])
def test_vmap_over_what_takes_batches_anyway(function):
    data = torch.rand(EXAMPLES, 2, ROWS, IN)
    batched, plain = total(lambda: vmap(function)(data)), total(lambda: function(data))
    assert (batched.macs, batched.flops) == (plain.macs, plain.flops)


def test_an_ensemble_of_modules():
    models = [nn.Sequential(nn.Linear(IN, OUT), nn.ReLU(), nn.Linear(OUT, 2)) for _ in range(EXAMPLES)]
    parameters, buffers = stack_module_state(models)
    base = models[0]
    value = torch.rand(ROWS, IN)

    def one(parameters, buffers):
        return functional_call(base, (parameters, buffers), (value,))

    report = observe(base, lambda: vmap(one)(parameters, buffers))
    assert macs_by(report, "module") == {"0": EXAMPLES * PRODUCT, "2": EXAMPLES * ROWS * OUT * 2}
    assert report.row("1").flops == EXAMPLES * ROWS * OUT
    assert not report.coverage.uncosted


# ---- reverse mode


def test_grad_is_a_backward(data, weight):
    def plain():
        leaf = weight.detach().requires_grad_()
        torch.autograd.grad(squared_error(leaf, data[0]), leaf)

    transformed, expected = (
        {phase: counts(group) for phase, group in observe(None, run).by_phase().items()}
        for run in (lambda: grad(squared_error)(weight, data[0]), plain)
    )
    assert transformed == expected


REVERSE = {
    "grad": (lambda x, w: grad(squared_error)(w, x[0]), PRODUCT, PRODUCT),
    "for each example": (
        lambda x, w: vmap(grad(squared_error), in_dims=(None, 0))(w, x),
        EXAMPLES * PRODUCT,
        EXAMPLES * PRODUCT,
    ),
    "jacrev has one for each output": (
        lambda x, w: jacrev(lambda value: (w @ value).sin())(x[0, 0]),
        OUT * IN,
        OUT * OUT * IN,
    ),
}


@pytest.mark.parametrize("name", REVERSE)
def test_products_of_both_phases(name, data, weight):
    function, forward, backward = REVERSE[name]
    report = observe(None, lambda: function(data, weight))
    assert macs_by(report, "phase") == {"forward": forward, "backward": backward}


def test_hessian_has_the_products_that_flop_counter_sees():
    value, matrix = torch.rand(3, 3), torch.rand(3, 3)

    def run():
        hessian(lambda value: (value @ matrix @ value).sum())(value)

    with FlopCounterMode(display=False) as counter:
        run()
    assert total(run).macs == counter.get_total_flops() // 2 > 0


# ---- without data


ON_META = {
    "vmap": (lambda x, w: vmap(lambda row: row @ w.T)(x), EXAMPLES * PRODUCT),
    "vmap of both": (lambda x, w: vmap(torch.mm)(x, w.T.expand(EXAMPLES, IN, OUT)), EXAMPLES * PRODUCT),
    "grad of vmap": (lambda x, w: grad(lambda v: vmap(lambda row: row @ v.T)(x).sum())(w), 2 * EXAMPLES * PRODUCT),
    "vmap of grad": (lambda x, w: vmap(grad(lambda row: (row @ w.T).sum()))(x), 2 * EXAMPLES * PRODUCT),
}


@pytest.mark.parametrize(("function", "product"), ON_META.values(), ids=ON_META)
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_batched_work_on_meta(function, product, device, data, weight):
    assert total(lambda: function(data.to(device), weight.to(device))).macs == product
