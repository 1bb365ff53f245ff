"""What the tests of pages share: a browser, and reports as pages in it."""

from __future__ import annotations

import chromium
import given_roofs
import pytest
import torch
from torch import nn

import roofprof


@pytest.fixture(scope="module")
def browser():
    yield from chromium.launched()


@pytest.fixture
def show(browser, tmp_path):
    """Opens a report's page; at the end it has said and asked for nothing."""
    opened = []

    def show_report(report: roofprof.Report, **options) -> chromium.Opened:
        path = tmp_path / f"page {len(opened)}.html"
        report.to_html(path)
        opened.append(chromium.Opened(browser, path, **options))
        return opened[-1]

    yield show_report
    for page in opened:
        page.close()


class Stage(nn.Module):
    """Has ops of its own beside its layers."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels)
        self.act = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.act(self.norm(self.conv(x)))


class Net(nn.Module):
    """Two levels, several kinds of op."""

    def __init__(self) -> None:
        super().__init__()
        self.stages = nn.Sequential(Stage(8), Stage(8), Stage(8))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.pool(self.stages(x)).flatten(1)).softmax(-1)


@pytest.fixture(scope="module")
def report():
    return given_roofs.profiler(Net().eval(), repeat=3).run(torch.rand(2, 8, 16, 16))
