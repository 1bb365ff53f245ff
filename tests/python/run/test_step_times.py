"""How long the steps of a block took."""

import re
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


# ---- what comes after the last step


def average(report):
    """The numbers of the header's line: time where there is one, MACs, FLOPs, bytes."""
    heading = " ".join(str(report).split("module ", maxsplit=1)[0].split())
    return re.search(r"a step on average: (?:[\d.]+ \w+, )?([\d.]+k?) MACs, ([\d.]+k?) FLOPs, ([\d.]+ k?B)", heading)


def trained(model, steps, then=lambda model: None):
    prof = profiler(model)
    with prof:
        for _ in range(steps):
            model(torch.ones(2, 4)).sum().backward()
            prof.step()
        then(model)
    return prof.report()


def validation(model):
    with torch.no_grad():
        for size in range(1, 100):  # more shapes than are told apart
            model(torch.ones(size, 4))


def unfinished(model):
    model(torch.ones(2, 4)).sum()


@pytest.mark.parametrize("then", [validation, unfinished])
@pytest.mark.parametrize("steps", [1, 3])
def test_a_step_on_average_is_one_of_the_steps(then, steps):
    model = nn.Linear(4, 4)
    model(torch.ones(2, 4)).sum().backward()  # gradients are made, and not only accumulated
    alone = trained(model, 2)
    report = trained(model, steps, then)
    assert average(alone).groups() == average(report).groups()
    assert average(report)[1] == str(2 * 2 * 4 * 4)
    assert f"a block of {steps} step" in str(report)
    assert "and what came after" in " ".join(str(report).split())
    assert "and what came after" not in str(alone)
    after = report.to_dict()["runs"]["after_steps"]
    assert after["work"]["macs"] == report.total.macs - steps * 2 * 2 * 4 * 4
    assert 0 < after["wall_ns"] <= report.total.wall * 1e9 - sum(report.to_dict()["runs"]["step_ns"])
    assert str(roofprof.Report.from_dict(report.to_dict())) == str(report)
