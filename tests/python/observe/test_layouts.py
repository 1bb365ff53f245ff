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


def test_a_model_and_its_backward():
    def model():
        return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 4, 1))

    for layout in (torch.contiguous_format, LAST):
        image, net = torch.rand(2, 3, 16, 16).to(memory_format=layout), model().to(memory_format=layout)
        profiler = roofprof.RooflineProfiler(net)
        with profiler:
            net(image).sum().backward()
        report, first = profiler.report(), layout != LAST
        assert flags(report, "aten::conv2d") == flags(report, "convolution_backward") == [first, first]
        assert set(flags(report, "aten::max_pool2d")) == {first}  # forward and backward
