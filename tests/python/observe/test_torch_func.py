"""torch.func: the work of a transformed function is that of the batched, differentiated computation that it stands for.

A transform dispatches again inside: what its ops look like there is the work, once.
"""

import pytest
import torch
from attributed import MACS, Model, linear, x
from torch import nn
from torch.autograd import forward_ad
from torch.func import (
    functional_call,
    functionalize,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    stack_module_state,
    vjp,
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


# ---- vmap


ELEMENTWISE = {
    "relu": F.relu,
    "gelu": F.gelu,
    "softmax": lambda value: F.softmax(value, dim=-1),
    "arithmetic": lambda value: (value * 2 + value).exp(),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_vmap_over_what_takes_batches_anyway(name, data):
    function = ELEMENTWISE[name]
    assert counts(total(lambda: vmap(function)(data))) == counts(total(lambda: function(data)))


@pytest.mark.parametrize("in_dims", [0, 1, 2])
def test_vmap_over_any_dimension(in_dims, data):
    assert total(lambda: vmap(torch.exp, in_dims=in_dims)(data)).flops == data.numel()


def test_vmap_of_a_product_with_a_shared_weight(data, weight):
    work = total(lambda: vmap(lambda value: value @ weight.T)(data))
    assert work.macs == EXAMPLES * PRODUCT
    assert work.flops == 2 * EXAMPLES * PRODUCT
    # The weight is read once, not once for each example.
    assert work.bytes == 4 * (EXAMPLES * ROWS * IN + OUT * IN + EXAMPLES * ROWS * OUT)


def test_vmap_of_a_product_with_a_weight_each(data):
    weights = torch.rand(EXAMPLES, IN, OUT)
    work = total(lambda: vmap(torch.mm)(data, weights))
    assert work.macs == EXAMPLES * PRODUCT
    assert work.bytes == 4 * EXAMPLES * (ROWS * IN + IN * OUT + ROWS * OUT)


def test_nested_vmap(data):
    work = total(lambda: vmap(vmap(torch.dot))(data, data))
    assert work.macs == EXAMPLES * ROWS * IN


def test_vmap_of_what_falls_back_to_a_loop():
    query = torch.rand(3, 2, ROWS, IN)
    work = total(lambda: vmap(lambda value: F.scaled_dot_product_attention(value, value, value))(query))
    assert work.macs == 2 * query.numel() * ROWS


def test_vmap_of_a_convolution():
    images, weight = torch.rand(3, 1, 2, 6, 6), torch.rand(4, 2, 3, 3)
    work = total(lambda: vmap(lambda image: F.conv2d(image, weight))(images))
    assert work.macs == 3 * 4 * (4 * 4) * (2 * 3 * 3)


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


def by_phase(report):
    return {phase: counts(group) for phase, group in report.by_phase().items()}


def squared_error(weight, value):
    return (value @ weight.T).square().sum()


def test_grad_is_a_backward(data, weight):
    def plain():
        leaf = weight.detach().requires_grad_()
        torch.autograd.grad(squared_error(leaf, data[0]), leaf)

    transformed = observe(None, lambda: grad(squared_error)(weight, data[0]))
    assert by_phase(transformed) == by_phase(observe(None, plain))
    assert macs_by(transformed, "phase") == {"forward": PRODUCT, "backward": PRODUCT}


def test_per_sample_gradients(data, weight):
    report = observe(None, lambda: vmap(grad(squared_error), in_dims=(None, 0))(weight, data))
    assert macs_by(report, "phase") == {"forward": EXAMPLES * PRODUCT, "backward": EXAMPLES * PRODUCT}


def test_grad_of_a_module_stands_in_its_rows(data):
    model = Model(lambda self, value: self.second(self.first(value)), first=linear(), second=nn.Linear(4, 3))
    parameters = dict(model.named_parameters())

    def loss(parameters, value):
        return functional_call(model, parameters, (value,)).sum()

    report = observe(model, lambda: grad(loss)(parameters, x()))
    second = x().shape[0] * 4 * 3
    assert macs_by(report, "module", "phase") == {
        ("first", "forward"): MACS,
        ("second", "forward"): second,
        ("second", "backward"): 2 * second,
        ("first", "backward"): MACS,
    }


def test_vjp(data, weight):
    def run():
        _, back = vjp(lambda value: value @ weight.T, data[0])
        back(torch.ones(ROWS, OUT))

    assert macs_by(observe(None, run), "phase") == {"forward": PRODUCT, "backward": PRODUCT}


def test_jacrev_has_a_backward_for_each_output(weight):
    report = observe(None, lambda: jacrev(lambda value: (weight @ value).sin())(torch.rand(IN)))
    assert macs_by(report, "phase") == {"forward": OUT * IN, "backward": OUT * OUT * IN}


# ---- forward mode: a tangent's product is work as well, and so is one with a tangent of zeros


def test_jvp(data):
    tangent = torch.rand_like(data)
    work = total(lambda: jvp(torch.exp, (data,), (tangent,)))
    # exp, and its product with the tangent.
    assert work.flops == 2 * data.numel()


def test_jvp_of_a_product(data, weight):
    # Both factors have a tangent: x w' and x' w beside x w, then their sum.
    tangents = torch.ones_like(data[0]), torch.ones_like(weight.T)
    work = total(lambda: jvp(torch.mm, (data[0], weight.T), tangents))
    assert work.macs == 3 * PRODUCT
    assert work.flops == 2 * 3 * PRODUCT + ROWS * OUT


@pytest.mark.parametrize("function", [F.linear, lambda value, weight: value @ weight.T], ids=["linear", "matmul"])
def test_dual_tensors(function, data, weight):
    value = data[0]

    def run():
        with forward_ad.dual_level():
            function(forward_ad.make_dual(value, value), forward_ad.make_dual(weight, weight))

    assert total(run).macs == 3 * PRODUCT


def test_jacfwd_has_a_tangent_for_each_input():
    # sin(x): the sine, its derivative, and that times the unit matrix of tangents.
    value = torch.rand(IN)
    work = total(lambda: jacfwd(torch.sin)(value))
    assert work.flops == IN + IN + IN * IN


def test_hessian_has_the_products_that_flop_counter_sees():
    value, matrix = torch.rand(3, 3), torch.rand(3, 3)

    def run():
        hessian(lambda value: (value @ matrix @ value).sum())(value)

    with FlopCounterMode(display=False) as counter:
        run()
    assert total(run).macs == counter.get_total_flops() // 2 > 0


# ---- functionalize


def test_functionalize_changes_no_counts(data, weight):
    def in_place(value):
        result = F.linear(value, weight)
        result.add_(1)
        return result.view(-1).mul_(2)

    plain, functional = (total(lambda f=f: f(data)) for f in (in_place, functionalize(in_place)))
    assert functional.macs == plain.macs
    assert functional.flops == plain.flops


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
