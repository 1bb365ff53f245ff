"""Compiled code around the model: the times of the model are those of that code, and no figure is out of bounds."""

from __future__ import annotations

import pytest
import torch
import torch._dynamo  # first imported inside of a call it would compile the hooks
from compiled_models import EVERY_LINEAR, Net, x
from given_roofs import profiler
from torch import nn

import roofprof

pytestmark = pytest.mark.usefixtures("nothing_compiled")


def step_of(model, optimizer, loss_of=None):
    """A training step; the model's second half may be compiled as well."""

    def step():
        (loss_of or (lambda: model(x()).square().mean()))().backward()
        if optimizer is not None:
            optimizer.step()
            optimizer.zero_grad()

    return step


def compiled_step(model, optimizer, backend):
    return torch.compile(step_of(model, optimizer), backend=backend)


def compiled_forward(model, optimizer, backend):
    return step_of(model, optimizer, torch.compile(lambda: model(x()).square().mean(), backend=backend))


def compiled_model(model, optimizer, backend):
    model.compile(backend=backend)
    return step_of(model, optimizer)


def compiled_head(model, optimizer, backend):
    model[1].compile(backend=backend)
    return step_of(model, optimizer)


def head_in_a_compiled_step(model, optimizer, backend):
    model[1].compile(backend=backend)
    return compiled_step(model, optimizer, backend)


def assert_in_bounds(report: roofprof.Report):
    """No figure is negative or above its whole, but for what a note names."""
    above_roof = {path for note in report.coverage.notes if note.code == "above-roof" for path in note.where}
    for row in [*report.rows, report.total]:
        for prefix in ("", "self_"):
            time, bound, wasted, percent = (
                getattr(row, prefix + name) for name in ("time", "lower_bound_time", "wasted_time", "percent_of_roof")
            )
            assert time is None or 0 <= time <= report.total.time * (1 + 1e-9), row.path
            assert getattr(row, prefix + "macs") <= report.total.macs, row.path
            if time is not None and bound:
                assert time > 0, f"{row.path} worked and took no time"
            if not above_roof:
                assert wasted is None or wasted >= 0, row.path
                assert percent is None or percent <= 100, row.path
        assert row.work_share is None or 0 <= row.work_share <= 100 + 1e-9, row.path


@pytest.mark.parametrize("optimizes", [True, False])
@pytest.mark.parametrize(
    "make", [compiled_step, compiled_forward, compiled_model, compiled_head, head_in_a_compiled_step]
)
def test_figures_of_a_step_are_in_bounds(make, optimizes, backend):
    model = nn.Sequential(Net(), nn.Linear(8, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3) if optimizes else None
    plain = profiler(model).run_step(step_of(model, optimizer))
    report = profiler(model).run_step(make(model, optimizer, backend))
    assert_in_bounds(plain)
    assert_in_bounds(report)
    assert {row.path: row.macs for row in report.rows} == {row.path: row.macs for row in plain.rows}


def test_the_time_of_a_compiled_step_is_outside_of_the_model(backend):
    model, value = Net(), x()
    report = profiler(model).run_step(torch.compile(lambda: model(value), backend=backend))
    assert report.row("").time is report.row("first.0").time is None
    outside = report.row("(outside)")
    assert outside.time == report.total.time > 0
    assert outside.wasted_time is outside.percent_of_roof is None  # its work is not the region's
    assert report.total.wasted_time is not None
    assert report.row("").work_share == pytest.approx(100)
    shares = [report.row(path).work_share for path in EVERY_LINEAR]
    assert sum(shares) <= 100
    assert min(shares) > 0
