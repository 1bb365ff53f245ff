"""How long the steps of a block took."""

from __future__ import annotations

import statistics
import time

import pytest
import torch
from given_roofs import profiler
from torch import nn

import roofprof

PAUSES = (0.02, 0.02, 0.1, 0.02)


def stepped(pauses, **options):
    prof = profiler(nn.Linear(4, 4), **options)
    with prof:
        for pause in pauses:
            prof.model(torch.ones(1, 4))
            time.sleep(pause)
            prof.step()
        prof.model(torch.ones(1, 4))
    return prof.report()


def test_each_step_has_its_time():
    report = stepped(PAUSES)
    times = report.step_times
    assert (report.steps, len(times)) == (4, 4)
    assert all(took >= pause for took, pause in zip(times, PAUSES, strict=True))
    assert sum(times) <= report.total.wall
    steps = report.step_statistics
    assert steps.count == 4
    assert steps.mean == pytest.approx(statistics.mean(times))
    assert steps.median == pytest.approx(statistics.median(times))
    assert steps.spread == pytest.approx((max(times) - min(times)) / statistics.median(times))
    assert (steps.slowest, steps.slowest_index) == (pytest.approx(max(times)), times.index(max(times)))


def test_the_header_shows_them():
    report = stepped(PAUSES)
    table = " ".join(str(report).split())
    assert "a block of 4 steps" in table
    assert "time of a step: median" in table
    assert f"(step {report.step_statistics.slowest_index} of 0 to 3)" in table


def test_they_are_in_the_json():
    report = stepped(PAUSES)
    written = report.to_dict()
    assert written["runs"]["steps"] == len(written["runs"]["step_ns"]) == 4
    times = written["runs"]["step_ns"]
    assert written["step_statistics"]["slowest_index"] == times.index(max(times))
    again = roofprof.Report.from_dict(written)
    assert again.step_times == report.step_times
    assert again.step_statistics.median == report.step_statistics.median


def test_the_first_ten_thousand_have_times():
    prof = profiler(None)
    with prof:
        for _ in range(10_010):
            prof.step()
    report = prof.report()
    assert (report.steps, len(report.step_times)) == (10_010, 10_000)
    assert "of the first 10000" in str(report)


def test_none_without_steps():
    report = stepped(())
    assert (report.steps, report.step_times, report.step_statistics) == (None, [], None)
    report = roofprof.count(nn.Linear(4, 4), torch.ones(1, 4))
    assert report.step_times == []


def test_a_step_that_raised_is_none():
    prof = profiler(nn.Linear(4, 4))
    with pytest.raises(KeyError), prof:
        prof.step()
        prof.step()
        raise KeyError
    assert prof.report().steps == len(prof.report().step_times) == 2
