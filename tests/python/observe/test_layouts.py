"""Whether convolutions compute in channels first, against the layout that torch gives their results."""

import pytest
import torch
from torch import nn

import roofprof

LAST = torch.channels_last


def flags(report, name):
    """Of the calls of such ops, in order."""
    return [op.get("channels_first", False) for op in report.to_dict()["ops"] if name in op["op"]]


# Weights of one channel and one place would be in both layouts.
@pytest.mark.parametrize(("kernel", "groups"), [(1, 1), (3, 1), (3, 8)])
@pytest.mark.parametrize("weight_last", [False, True])
@pytest.mark.parametrize("input_last", [False, True])
def test_convolutions(kernel, groups, weight_last, input_last):
    layer = nn.Conv2d(8, 16, kernel, groups=groups)
    image = torch.rand(2, 8, 6, 6)
    if weight_last:
        layer.to(memory_format=LAST)
    if input_last:
        image = image.to(memory_format=LAST)
    first = not layer(image).is_contiguous(memory_format=LAST)
    assert flags(roofprof.count(layer, image), "conv") == [first]


def test_a_model_that_was_converted_and_one_that_was_not():
    def model():
        return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 4, 1))

    image = torch.rand(2, 3, 16, 16)
    plain = roofprof.count(model(), image)
    assert flags(plain, "conv") == [True, True]
    assert flags(plain, "pool") == [True]
    converted = roofprof.count(model().to(memory_format=LAST), image.to(memory_format=LAST))
    assert flags(converted, "conv") == [False, False]
    assert flags(converted, "pool") == [False]


def test_backward_follows_the_forward():
    for layout in (torch.contiguous_format, LAST):
        layer = nn.Conv2d(8, 16, 3).to(memory_format=layout)
        image = torch.rand(2, 8, 6, 6).to(memory_format=layout).requires_grad_()

        profiler = roofprof.RooflineProfiler(layer)
        with profiler:
            layer(image).relu().sum().backward()
        assert flags(profiler.report(), "convolution_backward") == [layout != LAST]


def test_signals_and_products_have_no_such_layout():
    assert flags(roofprof.count(nn.Conv1d(4, 4, 3), torch.rand(2, 4, 9)), "conv") == [False]
    report = roofprof.count(nn.MultiheadAttention(8, 2), *[torch.rand(4, 2, 8)] * 3)
    assert not any("channels_first" in op for op in report.to_dict()["ops"])
