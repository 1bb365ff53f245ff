"""Twelve small models with one known fault each, and what the first finding on each has to name."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable


class CopyInALoop(nn.Module):
    """Collects its results by torch.cat in a loop, so each step copies all of those before it."""

    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Linear(256, 256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        collected = self.step(x[:1])
        for i in range(1, len(x)):
            collected = torch.cat([collected, self.step(x[i : i + 1])])
        return collected


class DoublePrecision(nn.Module):
    """Multiplies by a constant that NumPy made in fp64, so that all that follows is fp64, too."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(512, 1024)
        self.second = nn.Linear(1024, 512).double()
        self.scale = nn.Buffer(torch.full((1024,), 0.5, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x).relu() * self.scale)


class BatchOneDecode(nn.Module):
    """Reads all of its weights for one token at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(2048, 8192)
        self.down = nn.Linear(8192, 2048)

    def forward(self, token: torch.Tensor) -> torch.Tensor:
        for _ in range(8):
            token = token + self.down(nn.functional.relu(self.up(token)))
        return token


class ChannelsFirstPooling(nn.Module):
    """Pools images in channels first, where a CPU's max pooling is not vectorised."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 64, 3, padding=1)
        self.pool = nn.MaxPool2d(3, stride=1, padding=1)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.pool(self.pool(self.conv(image)))


class HostSync(nn.Module):
    """Asks for single values on the host, one after another."""

    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(64, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.score(x).squeeze(-1)
        kept = sum(1 for i in range(len(scores)) if scores[i].item() > 0)
        return x[:kept]


class UnfusedChain(nn.Module):
    """Passes over a large tensor once for each of its element-wise ops."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 0.5 + 1.0
        y = y.clamp(-1, 1) * x
        y = y + x * 0.1
        return (y - x).abs() * 2.0 + y


class MisalignedChannels(nn.Module):
    """Has one channel more than fills the CPU's vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(nn.Conv2d(33, 33, 3, padding=1) for _ in range(4)))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.layers(image)


class RedundantTransposes(nn.Module):
    """Transposes and copies its input there and back around an op that does not need it."""

    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Linear(128, 128)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = x.transpose(1, 2).contiguous()
            x = x.transpose(1, 2).contiguous()
        return self.proj(x)


class DeadBranch(nn.Module):
    """Computes an auxiliary head whose result nobody uses."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(512, 512)
        self.aux = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        features = self.body(x)
        self.aux(features)
        return features.relu()


class DataInsideForward(nn.Module):
    """Makes new random data in each forward."""

    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Linear(256, 256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        noise = torch.randn(16384, 256)
        return self.proj(x + noise.mean(0))


class TinyKernels(nn.Module):
    """Computes little in each of many ops."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.LayerNorm(8)) for _ in range(40)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class PythonLoop(nn.Module):
    """Steps through a sequence in Python, with a few small ops in each step."""

    def __init__(self) -> None:
        super().__init__()
        self.decay = nn.Parameter(torch.rand(32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = torch.zeros_like(x[0])
        states = []
        for step in x:
            state = torch.tanh(self.decay * state + step)
            states.append(state)
        return torch.stack(states)


@dataclasses.dataclass(frozen=True)
class Planted:
    """A model with its fault: its input, and how the finding that names the fault is known."""

    model: Callable[[], nn.Module]
    example: Callable[[], torch.Tensor]
    rules: tuple[str, ...]
    names: str  # that the finding's text or place has to contain


PLANTED = {
    "copy in a loop": Planted(CopyInALoop, lambda: torch.randn(2048, 256), ("joined-in-a-loop",), "aten::cat"),
    "fp64 by accident": Planted(DoublePrecision, lambda: torch.randn(512, 512), ("double-precision",), "second"),
    "batch-1 decode": Planted(BatchOneDecode, lambda: torch.randn(1, 2048), ("weights-read-again",), "aten::linear"),
    "channels-first pooling": Planted(
        ChannelsFirstPooling, lambda: torch.randn(2, 3, 128, 128), ("pooling", "channels-last"), "pool"
    ),
    "host sync": Planted(HostSync, lambda: torch.randn(2048, 64), ("host-sync",), "item"),
    "unfused chain": Planted(UnfusedChain, lambda: torch.randn(2048, 2048), ("fusion", "element-wise"), ""),
    "misaligned channels": Planted(
        MisalignedChannels, lambda: torch.randn(4, 33, 64, 64), ("misaligned-channels",), "layers"
    ),
    "redundant transposes": Planted(RedundantTransposes, lambda: torch.randn(16, 512, 128), ("copies",), "aten::clone"),
    "dead branch": Planted(DeadBranch, lambda: torch.randn(256, 512), ("never-used",), "aux"),
    "data inside forward": Planted(DataInsideForward, lambda: torch.randn(64, 256), ("made-in-forward",), "randn"),
    "tiny kernels": Planted(TinyKernels, lambda: torch.randn(2, 8), ("outside-ops", "short-calls"), ""),
    "uncompiled loop": Planted(PythonLoop, lambda: torch.randn(256, 32), ("outside-ops", "short-calls"), ""),
}
