"""What the tests of pages share: a browser, and reports as pages in it."""

from __future__ import annotations

import chromium
import given_roofs
import pytest
import torch
from stages import Stage
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


class Net(nn.Module):
    """Two levels, several kinds of op, no two modules alike."""

    def __init__(self) -> None:
        super().__init__()
        self.stages = nn.Sequential(Stage(8, 3), Stage(8, 5), Stage(8, 7))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.pool(self.stages(x)).flatten(1)).softmax(-1)


@pytest.fixture(scope="module")
def report():
    return given_roofs.profiler(Net().eval(), repeat=3).run(torch.rand(2, 8, 16, 16))
