"""The models of the acceptance, of torch.nn alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1, and what came in added: ResNet-50's block."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        return self.relu(self.bn3(self.conv3(y)) + (x if self.downsample is None else self.downsample(x)))


def resnet50(blocks: tuple[int, ...] = (3, 4, 6, 3)) -> nn.Module:
    """He et al. 2015, the stride in the 3x3 convolution: 25,557,032 parameters, 4,089,184,256 MACs at 224x224.

    With fewer blocks it is compiled in seconds, or done at once on a CPU.
    """
    body: list[nn.Module] = []
    inputs = 64
    for stage, count in enumerate(blocks):
        width = 64 << stage
        for index in range(count):
            body.append(Bottleneck(inputs, width, 2 if stage and not index else 1))
            inputs = 4 * width
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*stem, *body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000)).eval()


class Training(nn.Module):
    """A small transformer and its loss."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(width, 1000)

    def forward(self, tokens: Tensor, wanted: Tensor) -> Tensor:
        return F.cross_entropy(self.head(self.encoder(tokens)).flatten(0, 1), wanted.flatten())


class Called(nn.Module):
    """A function as a model. What it works on are no buffers: profiling would save and restore those."""

    def __init__(self, call: Callable[..., Any]) -> None:
        super().__init__()
        self.call = call

    def forward(self, *args: Any) -> Any:
        return self.call(*args)


class Chain(nn.Module):
    """So many additions of a few numbers: every launch costs more than its kernel."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self.length):
            x = x + 1.0
        return x
