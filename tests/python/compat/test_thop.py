"""thop's replacement beside thop itself, and what thop refuses, misses or breaks."""

import pytest
import torch
import torchvision
from models import LeNet
from replaced_layers import Calls
from torch import nn

from roofprof.compat.thop import clever_format, profile, profile_origin

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("one_thread")]


@pytest.fixture(scope="module")
def thop():
    return pytest.importorskip("thop")


# ---- beside the original


def test_layers_equal_the_original(thop):
    given = {"inputs": (torch.rand(1, 1, 32, 32),), "verbose": False, "ret_layer_info": True}
    assert profile(LeNet(), **given) == thop.profile(LeNet(), **given)


@pytest.mark.parametrize("options", [{"stride": 32}, {"stride": (32, 64), "min_cells": 3}])
def test_the_stride_of_ultralytics_thop_leaves_the_figures_those_of_the_call(options, thop):
    model, x = torchvision.models.resnet18(), torch.rand(1, 3, 100, 100)  # no multiple of the stride
    expected = thop.profile(torchvision.models.resnet18(), (x,), verbose=False)
    assert profile(model, inputs=[x], verbose=False, **options) == expected
    assert profile_origin(model, [x], None, False) == expected


def test_attention_with_the_arguments_of_ultralytics_thop_counts_no_softmax():
    model = Calls(lambda x: model.attention(*3 * [x.flatten(2).transpose(1, 2)]))  # positions are the sequence
    model.one = None
    model.attention = nn.MultiheadAttention(8, 2, batch_first=True)
    length, projections = 5 * 7, 4 * 8 * 8
    macs, params = profile(model, [torch.rand(2, 8, 5, 7)], None, False, False, False, 5, 2)
    assert macs == 2 * (length * projections + 2 * length * length * 8)
    assert params == projections + 4 * 8


@pytest.mark.parametrize(
    "numbers", [(4133742592.0, 25557032.0), 274656, (1e12, 1000, 999), [2.5e13], 1001.0, (999_999_999, 0)]
)
def test_numbers_are_written_as_the_original_writes_them(numbers, thop):
    assert clever_format(numbers) == thop.clever_format(numbers)
    assert clever_format(numbers, "%.3f") == thop.clever_format(numbers, "%.3f")


class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        return self.inner(x) + 1


def count_shift(module, inputs, output):
    module.total_ops += torch.DoubleTensor([3 * inputs[0].numel() + output.numel()])


@pytest.mark.parametrize("kind", [Shift, nn.Linear, nn.Sequential])
def test_custom_rules_equal_the_original(kind, thop):
    model, theirs = (
        nn.Sequential(nn.Linear(4, 4), Shift(), nn.Sequential(nn.Linear(4, 2), nn.ReLU())) for _ in range(2)
    )
    given = {"inputs": (torch.rand(5, 4),), "custom_ops": {kind: count_shift}, "verbose": False}
    assert profile(model, **given)[0] == thop.profile(theirs, **given)[0]
    assert not any("total" in name for module in model.modules() for name in [*vars(module), *module._buffers])


# ---- what the original cannot do


def test_a_transformer_layer_counts_the_originals_figure_and_the_attention_that_it_misses(thop):
    layer, theirs = (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True) for _ in range(2))
    given = {"inputs": (torch.rand(2, 5, 8),), "verbose": False}
    projections, attention = 10 * 4 * 8 * 8, 2 * (2 * 5 * 5 * 8)
    assert profile(layer, **given)[0] == thop.profile(theirs, **given)[0] + projections + attention
    assert torch.backends.mha.get_fastpath_enabled()
    packed = nn.utils.rnn.pack_sequence([torch.rand(5, 3), torch.rand(2, 3)])
    assert profile(nn.LSTM(3, 4), (packed,), verbose=False)[0] == (5 + 2) * (4 * 4 * (3 + 4) + 4 * (4 * 3 + 4))


# ---- nothing is left behind


def test_a_module_with_its_own_total_ops_is_not_overwritten():
    layer, softmax = nn.Linear(4, 4), nn.Softmax(-1)  # thop's own rule counts the latter
    for each in (layer, softmax):
        each.register_buffer("total_ops", torch.ones(1))
    with pytest.raises(ValueError, match="Linear has a total_ops"):
        profile(layer, (torch.rand(1, 4),), custom_ops={nn.Linear: count_shift}, verbose=False)
    assert profile(softmax, (torch.rand(1, 4),), verbose=False)[0] == 3 * 4 - 1
    assert layer.total_ops == softmax.total_ops == 1


def test_rules_are_printed_as_requested(capsys):
    model, given = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 4), nn.GELU()), (torch.rand(2, 4),)
    profile(model, given, verbose=False)
    assert capsys.readouterr().out == ""
    profile(model, given)
    printed = capsys.readouterr().out
    assert "BatchNorm1d" in printed and "Linear" not in printed
    profile(model, given, custom_ops={nn.Linear: count_shift}, report_missing=True)
    printed = capsys.readouterr().out
    assert printed.count("Linear") == 1 and "count_shift" in printed and "GELU" in printed


def test_ops_without_a_known_cost_are_logged(caplog):
    # Scoped: what is left in torch.ops of an operator that is gone makes torch.compile fail, in torch 2.11.
    with torch.library._scoped_library("roofprof_compat", "FRAGMENT") as library:
        library.define("mystery(Tensor x) -> Tensor")
        library.impl("mystery", lambda x: torch.from_numpy(x.numpy() * 2), "CPU")
        profile(Calls(lambda x: torch.ops.roofprof_compat.mystery(x)), (torch.rand(4),), verbose=False)
    assert "roofprof_compat::mystery, 1 calls" in caplog.text
