"""Layers and functions that each tool and its replacement count, side by side."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

LAYERS = {
    "conv1d": (lambda: nn.Conv1d(4, 6, 3, groups=2), (2, 4, 9)),
    "conv3d": (lambda: nn.Conv3d(2, 4, 3, stride=2, bias=False), (1, 2, 7, 8, 9)),
    "transposed": (lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, bias=False), (2, 4, 5, 5)),
    "grouped transposed": (lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2), (2, 4, 5, 5)),
    "linear on 3 dims": (lambda: nn.Linear(5, 7), (2, 3, 5)),
    "linear without bias": (lambda: nn.Linear(5, 7, bias=False), (2, 5)),
    "batch norm": (lambda: nn.BatchNorm2d(4), (2, 4, 5, 5)),
    "plain batch norm": (lambda: nn.BatchNorm1d(4, affine=False), (2, 4, 5)),
    "batch norm without statistics": (lambda: nn.BatchNorm2d(4, track_running_stats=False), (2, 4, 5, 5)),
    "layer norm": (lambda: nn.LayerNorm(6), (2, 3, 6)),
    "plain layer norm": (lambda: nn.LayerNorm(6, elementwise_affine=False), (2, 3, 6)),
    "instance norm": (lambda: nn.InstanceNorm2d(4), (2, 4, 5, 5)),
    "affine instance norm": (lambda: nn.InstanceNorm2d(4, affine=True), (2, 4, 5, 5)),
    "group norm": (lambda: nn.GroupNorm(2, 4), (2, 4, 5, 5)),
    **{kind.__name__: (kind, (2, 4, 5)) for kind in (nn.ReLU, nn.ReLU6, nn.ELU, nn.LeakyReLU, nn.PReLU, nn.SiLU)},
    **{kind.__name__: (kind, (2, 4, 5)) for kind in (nn.GELU, nn.Sigmoid, nn.Hardtanh, nn.Dropout)},
    "in place": (lambda: nn.ReLU(inplace=True), (2, 4, 5)),
    "softmax": (lambda: nn.Softmax(dim=1), (2, 4, 5)),
    "maximum": (lambda: nn.MaxPool2d(2), (2, 4, 6, 6)),
    "maximum with indices": (lambda: nn.MaxPool2d(2, return_indices=True), (2, 4, 6, 6)),
    "average": (lambda: nn.AvgPool3d(2), (2, 4, 6, 6, 6)),
    "adaptive maximum": (lambda: nn.AdaptiveMaxPool2d(3), (2, 4, 6, 9)),
    "adaptive average": (lambda: nn.AdaptiveAvgPool2d(3), (2, 4, 6, 9)),
    "nearest": (lambda: nn.Upsample(scale_factor=2), (2, 4, 3, 3)),
    "linear up": (lambda: nn.Upsample(scale_factor=3, mode="linear"), (2, 4, 3)),
    "bilinear": (lambda: nn.UpsamplingBilinear2d(scale_factor=2), (2, 4, 3, 3)),
    "bicubic": (lambda: nn.Upsample(scale_factor=3, mode="bicubic"), (2, 4, 3, 3)),
    "trilinear": (lambda: nn.Upsample(scale_factor=2, mode="trilinear"), (2, 4, 3, 3, 3)),
    "rnn": (lambda: nn.RNN(3, 5, num_layers=2), (7, 2, 3)),
    "gru": (lambda: nn.GRU(3, 5, bias=False), (7, 2, 3)),
    "gru both ways": (lambda: nn.GRU(3, 5, bidirectional=True, num_layers=2), (7, 2, 3)),
    "lstm": (lambda: nn.LSTM(3, 5, num_layers=3, batch_first=True), (2, 7, 3)),
    "rnn cell": (lambda: nn.RNNCell(3, 5), (2, 3)),
    "gru cell": (lambda: nn.GRUCell(3, 5, bias=False), (2, 3)),
    "lstm cell": (lambda: nn.LSTMCell(3, 5), (2, 3)),
}

FUNCTIONS = {
    "matmul": lambda x: torch.matmul(x, x.mT),
    "bmm": lambda x: torch.bmm(x, x.mT),
    "mm": lambda x: torch.mm(x[0], x[0].T),
    "addmm": lambda x: torch.addmm(torch.ones(6, 6), x[0], x[0].T),
    "baddbmm": lambda x: torch.baddbmm(torch.ones(3, 6, 6), x, x.mT),
    "add": lambda x: torch.add(x, x.abs()),
    "mul": lambda x: x.mul(3),
    "softmax": lambda x: F.softmax(x, -1),
    "silu": lambda x: F.silu(x),
    "relu": lambda x: F.relu(x),
    "relu6": lambda x: F.relu6(x - 0.5),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x),
    "interpolate": lambda x: F.interpolate(x, size=9),
}


class Calls(nn.Module):
    """A function as a model."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.one = nn.Parameter(torch.ones(1))  # calflops asks the parameters for the device

    def forward(self, *args, **kwargs):
        return self.function(*args, **kwargs)


def layer(name):
    """A model of that layer, and its input."""
    build, shape = LAYERS[name]
    return nn.Sequential(build()), torch.rand(shape)


def function(name):
    """A model of that function, and its input."""
    return Calls(FUNCTIONS[name]), torch.rand(3, 6, 8)
