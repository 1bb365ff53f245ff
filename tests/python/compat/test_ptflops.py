"""ptflops' replacement beside ptflops itself, and what that one counts twice, misses or breaks."""

import pytest
import torch
import torchvision
from replaced_layers import Calls
from replacements import RESIDUALS, Raises, nothing_left_on, small_cnn
from torch import nn
from torch.nn import functional as F

from roofprof.compat import ptflops as ours

pytestmark = [
    pytest.mark.integration,
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::roofprof.compat.ConventionWarning"),
]

ONCE = {"count_functional": False}  # the original counts activations and poolings twice with it


@pytest.fixture(scope="module")
def theirs():
    return pytest.importorskip("ptflops")


def figures(model, shape, module=ours, **options):
    options = {"print_per_layer_stat": False, "as_strings": False} | options
    return module.get_model_complexity_info(model, shape, **options)


# ---- beside the original


def test_what_the_original_counts_twice_counts_once(theirs):
    model = small_cnn()
    macs, _ = figures(model, (3, 9, 9))
    twice = 8 * 9 * 9 + 8 * 9 * 9 + 8 * 2 * 2 + 8 * 2 * 2  # ReLU, MaxPool2d, GELU, AdaptiveAvgPool2d, by their inputs
    assert figures(model, (3, 9, 9), theirs)[0] - macs == twice
    assert macs == 27 * 648 + 648 + 2 * 648 + twice + 18 * 32 + 8 * 5 + 5
    batch = figures(model, (3, 9, 9), input_constructor=lambda shape: torch.rand(4, *shape))
    assert batch[0] == macs  # of one image


@pytest.mark.parametrize("name", RESIDUALS)
def test_the_backend_aten_equals_the_original(name, theirs):
    model = getattr(torchvision.models, name)()
    with nothing_left_on(model):
        found = [figures(model, (3, 64, 64), backend=one) for one in ("aten", ours.FLOPS_BACKEND.ATEN)]
    assert found == [figures(model, (3, 64, 64), theirs, backend="aten")] * 2
    assert figures(model, (3, 64, 64), backend=theirs.FLOPS_BACKEND.ATEN) == found[0]


@pytest.mark.parametrize("need_weights", [True, False])
def test_multihead_attention_equals_the_originals_rule(need_weights, theirs):
    model = Calls(lambda x: attention(x, x, x, need_weights=need_weights)[0])
    attention = model.attention = nn.MultiheadAttention(8, 2, batch_first=True)
    found = figures(model, (5, 8))
    assert found == figures(model, (5, 8), theirs, backend_specific_config=ONCE)
    twice = 2 * (2 * 5 * 5 * 4) + 2 * 5 * 5 if need_weights else 0  # both products and the softmax, of both heads
    assert figures(model, (5, 8), theirs)[0] == found[0] + twice


def test_a_deformable_convolution_equals_the_original(theirs):
    model = Calls(lambda x: model.layer(x, torch.zeros(1, 18, 6, 6)))
    model.layer = torchvision.ops.DeformConv2d(3, 4, 3)
    assert figures(model, (3, 8, 8)) == figures(model, (3, 8, 8), theirs)


def test_numbers_and_backends_are_the_originals(theirs):
    assert [one.name for one in ours.FLOPS_BACKEND] == [one.name for one in theirs.FLOPS_BACKEND]
    for to_string, original, units in (
        (ours.flops_to_string, theirs.flops_to_string, (None, "GMac", "MMac", "KMac", "Mac")),
        (ours.params_to_string, theirs.params_to_string, (None, "M", "K", "B", "")),
    ):
        for number in (0, 1, 999, 1000, 1_500_000, 2 * 10**9, 3_210_000_000_000):
            for unit in units:
                assert to_string(number, unit, 3) == original(number, unit, 3)


def count_shift(module, inputs, output):
    module.__flops__ += 3 * inputs[0].numel() + output.numel()


def test_custom_rules_and_what_is_ignored_equal_the_original(theirs):
    for options in ({"custom_modules_hooks": {nn.Sigmoid: count_shift}}, {"ignore_modules": [nn.Conv2d]}):
        model = nn.Sequential(small_cnn(), nn.Sigmoid())
        with nothing_left_on(model):
            found = figures(model, (3, 9, 9), **options)
        assert found == figures(model, (3, 9, 9), theirs, backend_specific_config=ONCE, **options)
    aten, model = torch.ops.aten, small_cnn()
    rules = {aten.relu: lambda inputs, outputs: 5 * outputs[0].numel(), aten.convolution: lambda inputs, outputs: 7}
    for options in ({"custom_modules_hooks": rules}, {"ignore_modules": [aten.convolution]}):
        found = [figures(model, (3, 9, 9), module, backend="aten", **options) for module in (ours, theirs)]
        assert found[0] == found[1]
    with pytest.raises(TypeError, match='rules by operator, not by module: ReLU; use "pytorch"'):
        figures(model, (3, 9, 9), backend="aten", custom_modules_hooks={nn.ReLU: count_shift})


# ---- what the original cannot do


def test_what_the_original_misses():
    weight = torch.rand(4, 2)
    x, q = torch.rand(5, 3, 4), torch.rand(2, 3, 5, 8)
    packed = nn.utils.rnn.pack_sequence([torch.rand(5, 3), torch.rand(2, 3)])
    lstm = nn.LSTM(3, 4, bias=False)
    for function, given, backend, macs in (
        (lambda x: x + x * 2, x, "pytorch", 2 * 60),
        (lambda x: torch.add(x, x[0]), x, "pytorch", 60),  # the original lines up shapes at their first dimensions
        (lambda x: F.linear(x, weight.T, torch.rand(2)), x, "pytorch", 5 * 3 * (4 * 2 + 2)),
        (lambda x: F.scaled_dot_product_attention(x, x, x), q, "aten", 2 * (2 * 3 * 5 * 5 * 8)),
        (lstm, packed, "pytorch", (5 + 2) * (4 * 4 * (3 + 4) + 10 * 4)),
    ):
        model = Calls(lambda x, function=function: function(x))
        model.part = lstm
        inputs = {"x": given}
        assert figures(model, (1,), input_constructor=lambda _, given=inputs: given, backend=backend)[0] == macs
    assert figures(nn.Sequential(nn.LazyLinear(3)), (4,)) == (4 * 3 + 3, 4 * 3 + 3)  # as it became


@pytest.mark.parametrize("backend", ["pytorch", "aten"])
def test_the_models_own_exception_comes_through_and_nothing_stays(backend):
    model = Raises()
    model.layer.__flops__ = 3  # somebody's own
    rules = {nn.Linear: count_shift} if backend == "pytorch" else {}
    with nothing_left_on(model), pytest.raises(KeyError, match="mine"):
        figures(model, (4,), backend=backend, custom_modules_hooks=rules)
    assert model.layer.__flops__ == 3
