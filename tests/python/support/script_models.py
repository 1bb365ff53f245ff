"""Models that TorchScript can take, each with what its modules do written out."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import roofprof


def scaled(x: Tensor, factor: float) -> Tensor:
    """A free function: its work is its caller's."""
    return x * factor + 1.0


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x).relu()

    def twice(self, x: Tensor) -> Tensor:
        return self.linear(self.linear(x)) * 2.0


class Calls(nn.Module):
    """Loops over one module, methods beside forward, free functions, one module under two names and parents."""

    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.alias = self.inner
        self.holder = nn.Sequential(self.inner, nn.Tanh())
        self.final = nn.Linear(8, 4)

    def forward(self, x: Tensor, times: int = 3) -> Tensor:
        for _ in range(times):
            x = self.inner(x)
        x = self.alias(x)
        x = scaled(self.inner.twice(x), 0.5)
        return self.final(self.holder(x))


class Lists(nn.Module):
    """Two lists, whose modules have the same names."""

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])
        self.up = nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.down:
            x = layer(x)
        for layer in self.up:
            x = layer(x)
        return x


class Forks(nn.Module):
    """Branches on other threads: a module, a method, a function."""

    def __init__(self):
        super().__init__()
        self.left = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        self.right = Inner()
        self.join = nn.Linear(16, 2)

    def forward(self, x: Tensor) -> Tensor:
        left = torch.jit.fork(self.left, x)
        other = torch.jit.fork(scaled, x, 0.5)
        right = self.right(x)
        return self.join(torch.cat([torch.jit.wait(left), right], 1)) + torch.jit.wait(other).sum()


class Recurrent(nn.Module):
    """Its modules' forward is overloaded."""

    def __init__(self):
        super().__init__()
        self.lstm, self.attention = nn.LSTM(8, 8, 2), nn.MultiheadAttention(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        x, _ = self.lstm(x)
        return self.attention(x, x, x)[0]


def scripted(model: nn.Module, *_: object) -> torch.jit.ScriptModule:
    return torch.jit.script(model)


def figures(report: roofprof.Report) -> dict[str, tuple[object, ...]]:
    """All that must be equal, by module, but for the sizes that traced code reads out of tensors."""
    sizes = {
        group.keys[0]: group.bytes
        for group in report.group("module", "op")
        if group.keys[1] == "aten::_local_scalar_dense"
    }
    return {
        row.path: (row.type, row.calls, row.params, row.macs, row.flops, row.self_bytes - sizes.get(row.path, 0))
        for row in report.rows
    }
