"""Small models whose work is known, and how to read off where it landed."""

from __future__ import annotations

import torch
from torch import nn

import roofprof

# Linear(8, 4) on 2 rows
MACS = 2 * 8 * 4


def macs(report: roofprof.Report) -> dict[str, int]:
    """Each row's own MACs."""
    return {row.path: row.self_macs for row in report.rows if row.self_macs}


def calls(report: roofprof.Report) -> dict[str, int | None]:
    return {row.path: row.calls for row in report.rows}


def x(columns: int = 8) -> torch.Tensor:
    return torch.ones(2, columns)


def linear() -> nn.Linear:
    return nn.Linear(8, 4, bias=False)


class Model(nn.Module):
    """A model made of the children and the forward that a test gives it."""

    def __init__(self, forward, **children):
        super().__init__()
        for name, child in children.items():
            setattr(self, name, child)
        self._forward = forward

    def forward(self, *args, **kwargs):
        return self._forward(self, *args, **kwargs)
