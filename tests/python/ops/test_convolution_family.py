"""Convolutions of every rank: each output meets its group's inputs under the kernel; transposed, each input does."""

import itertools
import math

import pytest
import torch
from torch import nn
from truths import layer_macs, macs_by, observe

import roofprof

pytestmark = pytest.mark.usefixtures("one_thread")

BATCH, SIDE = 2, 7
CONVOLUTIONS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
TRANSPOSED = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}
ranks = pytest.mark.parametrize("rank", [1, 2, 3])
# Of the constructor, and the length of a side of the output.
SHAPES = {
    "strided": ({"kernel_size": 3, "stride": 2, "padding": 1}, 4),
    "same, even and dilated": ({"kernel_size": 2, "dilation": 3, "padding": "same"}, 7),
    "circular": ({"kernel_size": 3, "padding": 1, "padding_mode": "circular"}, 7),
}
TRANSPOSED_SHAPES = {
    "strided": ({"kernel_size": 3, "stride": 2}, 15),
    "with output padding": ({"kernel_size": 3, "stride": 2, "padding": 1, "output_padding": 1}, 14),
}
GROUPS = {"dense": (4, 6, 1), "grouped": (4, 6, 2), "depthwise": (4, 4, 4), "depthwise, multiplied": (4, 8, 4)}
groups = pytest.mark.parametrize(("inputs", "outputs", "group"), GROUPS.values(), ids=GROUPS)


def count(function, *args):
    report = roofprof.count(function, *args)
    assert not report.coverage.uncosted
    return report.total


def image(channels, rank, *, batched=True):
    return torch.rand(*([BATCH] if batched else []), channels, *[SIDE] * rank)


@ranks
@groups
@pytest.mark.parametrize(("options", "side"), SHAPES.values(), ids=SHAPES)
def test_forward(rank, inputs, outputs, group, options, side):
    layer = CONVOLUTIONS[rank](inputs, outputs, groups=group, **options)
    total = count(layer, image(inputs, rank))
    results = BATCH * outputs * side**rank
    taps = inputs // group * options["kernel_size"] ** rank
    assert total.macs == results * taps
    assert total.flops == results * (2 * taps + 1)
    unbatched = count(layer, image(inputs, rank, batched=False))
    assert BATCH * unbatched.macs == total.macs


@ranks
@groups
@pytest.mark.parametrize(("options", "side"), TRANSPOSED_SHAPES.values(), ids=TRANSPOSED_SHAPES)
def test_transposed(rank, inputs, outputs, group, options, side):
    layer = TRANSPOSED[rank](inputs, outputs, groups=group, **options)
    total = count(layer, image(inputs, rank))
    macs = BATCH * inputs * SIDE**rank * (outputs // group) * options["kernel_size"] ** rank
    assert total.macs == macs
    assert total.flops == 2 * macs + BATCH * outputs * side**rank
    assert total.write_bytes == 4 * BATCH * outputs * side**rank
    assert BATCH * count(layer, image(inputs, rank, batched=False)).macs == macs


@pytest.mark.parametrize("wanted", list(itertools.product([True, False], repeat=3))[:-1], ids=str)
@pytest.mark.parametrize("transposed", [False, True], ids=["plain", "transposed"])
@groups
def test_backward_of_what_is_wanted(wanted, transposed, inputs, outputs, group):
    kind = (TRANSPOSED if transposed else CONVOLUTIONS)[2]
    layer, x = kind(inputs, outputs, 3, stride=2, groups=group), image(inputs, 2)
    of_input, of_weight, of_bias = wanted
    x.requires_grad_(of_input)
    layer.weight.requires_grad_(of_weight)
    layer.bias.requires_grad_(of_bias)
    macs = sum(layer_macs(layer, x).values())
    report = observe(layer, lambda: layer(x).sum().backward())
    assert macs_by(report, "phase").get("backward", 0) == (of_input + of_weight) * macs
    assert not report.coverage.uncosted
    (backward,) = [g for g in report.group("phase", "op") if g.keys[1] == "aten::convolution_backward"]
    # The bias gradient adds up the gradient of the output.
    assert backward.flops == 2 * (of_input + of_weight) * macs + of_bias * layer(x).numel()


@ranks
def test_it_is_a_product_with_unfolded_windows(rank):
    x = image(4, rank)
    layer = CONVOLUTIONS[rank](4, 6, 3, bias=False)
    windows = x
    for dim in range(2, 2 + rank):
        windows = windows.unfold(dim, 3, 1)
    positions = math.prod(windows.shape[2 : 2 + rank]) * BATCH
    columns = windows.movedim(1, 1 + rank).reshape(positions, -1)
    assert count(layer, x).macs == count(lambda: columns @ layer.weight.flatten(1).T).macs
