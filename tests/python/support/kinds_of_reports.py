"""A report of each kind as a dict: between them they have everything that a report's file may have."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from given_roofs import profiler, roofs
from reports_by_hand import with_counters
from scaled_reports import scaled_report
from torch import nn

import roofprof


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with roofprof.scope("first"):
            x = self.first(x)
        with roofprof.scope("part"):
            return self.second(x)


def a_run() -> dict[str, Any]:
    report = profiler(Net()).run(torch.rand(2, 8)).to_dict()
    report["notes"].append({"level": "info", "code": "machine-busy", "where": [""], "text": "a note", "count": 1})
    return report


def a_block() -> dict[str, Any]:
    of_block = profiler(nn.Sequential(nn.Linear(8, 8), nn.ReLU()))
    with of_block:
        for _ in range(2):
            of_block.model(torch.rand(4, 8))
            of_block.step()
    return of_block.report().to_dict()


def a_prediction() -> dict[str, Any]:
    return roofprof.count(Net(), torch.rand(2, 8)).predict(roofs()).to_dict()


class Reduces(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        dist.all_reduce(y)
        return y


def of_a_rank() -> dict[str, Any]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        return profiler(Reduces(), keep_events=True).run(torch.rand(2, 8)).to_dict()
    finally:
        dist.destroy_process_group()


REPORTS = {
    "run": a_run,
    "block": a_block,
    "prediction": a_prediction,
    "kernels": lambda: with_counters().to_dict(),
    "rank": of_a_rank,
    "merged": lambda: scaled_report(2, 0.01, hosts=2).to_dict(),
}
