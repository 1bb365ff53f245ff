"""The table of scenarios (tests/scenarios.txt) through Python's front end, in a process with the fake libraries."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from simulated_gpu import FAKES, fakes
from torch import nn

import roofprof
from roofprof import _C

TABLE = Path(__file__).resolve().parents[2] / "scenarios.txt"


@dataclass
class Scenario:
    """A line of the table."""

    name: str
    warmup: int
    repeat: int | None
    model: str
    at: int
    calls: int
    warmed_up: int
    timed: int
    bare: int
    ends: str
    note: str


def read_scenarios() -> list[Scenario]:
    """All lines."""
    scenarios = []
    for line in TABLE.read_text().splitlines():
        if line and not line.startswith("#"):
            name, warmup, repeat, model, at, calls, warmed_up, timed, bare, ends, note = map(str.strip, line.split("|"))
            numbers = [int(cell) for cell in (at, calls, warmed_up, timed, bare)]
            wish = None if repeat == "-" else int(repeat)
            scenarios.append(Scenario(name, int(warmup), wish, model, *numbers, ends, note))
    return scenarios


CALLS: dict[int, int] = {}  # by model, where nothing is put back


class Model(nn.Module):
    """Does what the scenario says; as ScenarioModel of tests/cpp/run/scenarios_test.cpp."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__()
        self.script = scenario
        self.fc = nn.Linear(8, 4, bias=False)
        self.register_buffer("seen", torch.zeros(1))
        self.cache: torch.Tensor | None = None

    @torch.no_grad()
    def forward(self, x: torch.Tensor, used_up: Iterator[int] | None = None) -> torch.Tensor:
        calls = CALLS[id(self)] = CALLS.get(id(self), 0) + 1
        self.seen.add_(1)
        x.add_(1)
        y = self.fc(x)
        script = self.script
        if script.model == "raises" and calls == script.at:
            raise RuntimeError("no")
        if script.model == "interrupts" and calls == script.at:
            raise KeyboardInterrupt
        if script.model == "other work" and calls >= script.at:
            y = torch.relu(y)
        if script.model == "sets up" and calls < script.at:
            y = torch.relu(y)
        if script.model == "grows":
            self.cache = y if self.cache is None else torch.cat([self.cache, y])
        if script.model == "lost":
            fakes().launch("simulated", 1000)
            if calls == script.at:
                fakes().fail("cuCtxSynchronize", 999)
        if used_up is not None:
            next(used_up)
        return y if self.cache is None else self.cache.mm(self.cache.t())


def run(scenario: Scenario) -> dict[str, Any]:
    """What scenarios_test.cpp writes of it."""
    if FAKES.is_dir():
        fakes().reset()
    model, x, raised = Model(scenario), torch.zeros(2, 8), False
    roofs = _C.ceilings_from_dict({"device": "", "compute": [], "memory": []})
    prof = roofprof.RooflineProfiler(
        model,
        warmup=scenario.warmup,
        repeat=scenario.repeat,
        device="cuda" if scenario.model == "lost" else None,
        counters="off",
        ceilings=roofs,
    )
    try:
        prof.run(x, *([iter([1, 2])] if scenario.model == "used up" else []))
    except (RuntimeError, KeyboardInterrupt):
        raised = True
    report = json.loads(prof.report().to_json())
    calls = CALLS.pop(id(model))
    return {"calls": calls, "raised": raised, "seen": model.seen.item(), "input": x[0][0].item(), "report": report}


if __name__ == "__main__":
    # As many calls as the table says, however slow this machine is.
    LIMITS = _C.RunLimits
    _C.RunLimits = lambda warmup, repeat: LIMITS(warmup, repeat, seconds=3600)  # type: ignore[misc,assignment]
    found = {
        scenario.name: run(scenario) for scenario in read_scenarios() if scenario.model != "lost" or FAKES.is_dir()
    }
    sys.stdout.write(json.dumps(found) + "\n")
