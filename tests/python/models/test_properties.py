"""Laws of counting, on models, shapes and equations that hypothesis makes up."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn
from truths import assert_conserved, counts, layer_macs, observe

import roofprof

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
