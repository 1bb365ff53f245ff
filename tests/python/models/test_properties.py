"""Laws of counting, on models, shapes and equations that hypothesis makes up."""

import math

import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F
from truths import assert_conserved, counts, layer_macs, observe

import roofprof
from roofprof import Report

pytestmark = pytest.mark.usefixtures("one_thread")

# The same examples in every run, and few: each one runs a model.
few = settings(
    deadline=None,
    max_examples=25,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@torch.no_grad()
def count(model, *args):
    report = roofprof.count(model, *args)
    assert not report.coverage.uncosted
    return report


def macs(model, *args):
    return count(model, *args).total.macs


def figures(report):
    return {row.path: counts(row) for row in report.rows}


# ---- what is drawn

small = st.integers(1, 6)


@st.composite
def convolutions(draw):
    """A convolution in one to three dimensions, and an input that it takes."""
    dims = draw(st.integers(1, 3))
    groups, kernel = draw(st.integers(1, 3)), draw(st.tuples(*[st.integers(1, 3)] * dims))
    kind = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[dims - 1]
    layer = kind(
        groups * draw(st.integers(1, 3)),
        groups * draw(st.integers(1, 3)),
        kernel,
        stride=draw(st.integers(1, 2)),
        padding=draw(st.integers(0, 2)),
        dilation=draw(st.integers(1, 2)),
        groups=groups,
        bias=draw(st.booleans()),
    )
    sizes = draw(st.tuples(*[st.integers(5, 9)] * dims))
    return layer, torch.rand(draw(small), layer.in_channels, *sizes)


@st.composite
def networks(draw):
    """A chain of up to six layers on images, some of them in branches that are added up or joined, and its input."""
    channels = draw(st.integers(1, 6))
    x = torch.rand(draw(st.integers(1, 3)), channels, 8, 8)
    layers = []
    for _ in range(draw(st.integers(1, 6))):
        layer, channels = draw(_layers(channels))
        layers.append(layer)
    layers += [nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * channels, draw(small))]
    return nn.Sequential(*layers).eval(), x


@st.composite
def _layers(draw, channels):
    """A layer that keeps the size of an image, and the channels that it makes."""
    wide = draw(st.integers(1, 6))
    return draw(
        st.sampled_from(
            [
                (nn.Conv2d(channels, wide, 3, padding=1), wide),
                (nn.Conv2d(channels, channels, 3, padding=1, groups=channels), channels),
                (nn.Conv2d(channels, wide, 1, bias=False), wide),
                (nn.ConvTranspose2d(channels, wide, 3, padding=1), wide),
                (nn.BatchNorm2d(channels), channels),
                (nn.GroupNorm(1, channels), channels),
                (nn.MaxPool2d(3, stride=1, padding=1), channels),
                (nn.ReLU(), channels),
                (nn.GELU(), channels),
                (nn.Softmax(dim=1), channels),
                (Joined(nn.Conv2d(channels, wide, 1), nn.Conv2d(channels, 2, 3, padding=1)), wide + 2),
                (Added(nn.Conv2d(channels, channels, 3, padding=1)), channels),
            ]
        )
    )


class Joined(nn.Module):
    def __init__(self, one, other):
        super().__init__()
        self.one, self.other = one, other

    def forward(self, x):
        return torch.cat([self.one(x), torch.relu(self.other(x))], dim=1)


class Added(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return x + torch.tanh(self.inner(x))


@st.composite
def equations(draw):
    """An einsum of two operands in which no letter stands in one operand alone, and the size of each letter."""
    roles = [draw(st.integers(0, 2)) for _ in range(4)]  # batch, left, right, contracted
    assume(sum(roles) > 0)
    letters = iter("abcdefgh")
    batch, left, right, contracted = ([next(letters) for _ in range(role)] for role in roles)
    operands = ["".join(draw(st.permutations([*batch, *free, *contracted]))) for free in (left, right)]
    result = "".join(draw(st.permutations([*batch, *left, *right])))
    sizes = {letter: draw(st.integers(2, 4)) for letter in batch + left + right + contracted}
    return operands, result, sizes


# ---- one layer


@few
@given(convolutions())
def test_a_convolution_is_a_product_with_unfolded_windows(example):
    layer, x = example
    out = layer(x)
    windows = out[:, 0].numel()  # positions of the whole batch
    per_window = layer.in_channels // layer.groups * math.prod(layer.kernel_size)
    product = macs(
        torch.bmm,
        torch.rand(layer.groups, windows, per_window),
        torch.rand(layer.groups, per_window, layer.out_channels // layer.groups),
    )
    assert macs(layer, x) == product == layer_macs(layer, x)[""]


@few
@given(small, small, small, st.lists(small, max_size=2))
def test_a_linear_layer_is_a_product_and_a_bias(batch, width, out, more):
    x, weight, bias = torch.rand(*more, batch, width), torch.rand(out, width), torch.rand(out)
    result = F.linear(x, weight, bias)
    whole = count(lambda: F.linear(x, weight, bias)).total
    product, addition = count(lambda: x @ weight.mT).total, count(lambda: result + bias).total
    assert whole.macs == product.macs == x.numel() * out
    assert whole.flops == product.flops + addition.flops
    assert addition.flops == result.numel()


@few
@given(equations())
def test_an_einsum_is_one_multiplication_for_each_choice_of_its_letters(example):
    operands, result, sizes = example
    tensors = [torch.rand([sizes[letter] for letter in operand]) for operand in operands]
    equation = f"{','.join(operands)}->{result}"
    report = count(lambda: torch.einsum(equation, *tensors))
    contracted = (set(operands[0]) & set(operands[1])) - set(result)
    every_choice = math.prod(sizes.values())
    # Without a letter that is summed over it is an element-wise product: torch multiplies, or calls bmm with K = 1.
    assert report.total.macs == every_choice or (not contracted and report.total.flops == every_choice)


@few
@given(small, small, st.integers(1, 4), st.integers(1, 4), st.booleans(), st.sampled_from(["LSTM", "GRU", "RNN"]))
def test_a_recurrent_layer_is_its_unrolled_cells(steps, batch, width, hidden, biases, kind):
    layer, cell = getattr(nn, kind)(width, hidden, bias=biases), getattr(nn, f"{kind}Cell")(width, hidden, bias=biases)
    x = torch.rand(steps, batch, width)

    def unrolled():
        state = None
        for now in x:
            state = cell(now, state)

    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    assert macs(layer, x) == macs(unrolled) == steps * batch * gates * hidden * (width + hidden)


# ---- whole networks


@few
@given(networks())
def test_macs_are_those_of_the_layers_by_path(example):
    model, x = example
    report = count(model, x)
    by_hand = layer_macs(model, x)
    assert {row.path: row.self_macs for row in report.rows if row.self_macs} == dict(by_hand)
    assert_conserved(report)


@few
@given(networks(), st.integers(2, 4))
def test_macs_are_linear_in_the_batch(example, times):
    model, x = example
    assert macs(model, torch.cat([x] * times)) == times * macs(model, x)


@few
@given(networks(), st.integers(2, 4))
def test_repeated_calls_add_up(example, times):
    model, x = example
    with torch.no_grad():
        once = observe(model, lambda: model(x))
        often = observe(model, lambda: [model(x) for _ in range(times)])
    assert counts(often.total) == {name: times * value for name, value in counts(once.total).items()}
    assert {group.keys[0]: group.calls for group in often.group("op")} == {
        group.keys[0]: times * group.calls for group in once.group("op")
    }


@few
@given(networks())
def test_meta_tensors_count_as_real_ones(example):
    model, x = example
    real = figures(count(model, x))
    assert figures(count(model.to("meta"), x.to("meta"))) == real


@settings(few, max_examples=12)
@given(networks())
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_scripted_and_traced_models_count_as_eager_ones(example):
    model, x = example
    eager = count(model, x)
    for convert in (torch.jit.script, lambda model: torch.jit.trace(model, x)):
        converted = count(convert(model), x).total
        assert (converted.macs, converted.flops) == (eager.total.macs, eager.total.flops)


@few
@given(networks())
def test_a_report_comes_back_from_its_json(example):
    model, x = example
    report = count(model, x)
    again = Report.from_dict(report.to_dict())
    assert again == report
    assert again.table() == report.table()
    assert figures(again) == figures(report)
    assert [group.keys for group in again.group("module", "op")] == [
        group.keys for group in report.group("module", "op")
    ]
