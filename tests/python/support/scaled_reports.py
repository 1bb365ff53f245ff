"""Merged reports made up by hand: one program on so many ranks, with step times, work and compute as given."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch
from given_roofs import profiler
from torch import nn

import roofprof
from roofprof import _C

STEPS = 10
_OF_COMMUNICATION = {"communication_ns", "exposed_ns", "waiting_ns", "idle_ns"}  # not known, unless given
MACS = 16 * 64 * 32  # of a step of the report that the others are made of


@cache
def _of_one_rank() -> roofprof.Report:
    """Return the report of one process, whatever rank the test that asks first gives its own processes."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("RANK", "WORLD_SIZE"):
            patch.delenv(name, raising=False)
        return _made_of_one_rank()


def _made_of_one_rank() -> roofprof.Report:
    of_block = profiler(nn.Sequential(nn.Linear(64, 32), nn.ReLU()))
    with of_block:
        for _ in range(STEPS):
            of_block.model(torch.rand(16, 64))
            of_block.step()
    merger = _C.RankMerger()
    merger.add(of_block.report()._compiled, "one", 0, "host 0")
    return roofprof.Report(merger.finish())


def scaled_report(
    ranks: int,
    step: float,
    *,
    compute: list[float] | None = None,
    macs: float = MACS,
    spread: float = 0.05,
    hosts: int = 1,
    of_line: dict[str, Any] | None = None,
    **of_report: Any,
) -> roofprof.Report:
    """step: seconds; compute: of a step, of each rank (default: 90% of the step); macs: of a step, of all ranks."""
    made = _of_one_rank().to_dict() | of_report
    line = {key: value for key, value in made["merged"]["ranks"][0].items() if key not in _OF_COMMUNICATION}
    made["merged"]["ranks"] = [
        line
        | {
            "rank": rank,
            "host": f"host {rank % hosts}",
            "step_ns": round(step * 1e9),
            "step_spread": spread,
            "wall_ns": round(STEPS * step * 1e9),
            "compute_ns": round(STEPS * (compute[rank] if compute else 0.9 * step) * 1e9),
            "macs": round(STEPS * macs / ranks),
            **(of_line or {}),
        }
        for rank in range(ranks)
    ]
    return roofprof.Report.from_dict(made)
