"""The total is one, by whatever a report is grouped: of runs, of blocks, of several threads."""

import given_roofs
import pytest
import torch
from report.test_recorded_with_roofs import said_of_total
from torch import nn

import roofprof

TIMES = ("time", "lower_bound_time", "wasted_time")
VIEWS = ("module", "phase", "op", "dtype", "module,op")


def model():
    return nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 8))


def of_a_run():
    return given_roofs.profiler(model()).run(torch.randn(32, 64))


def of_a_training_step():
    net = model()
    optimizer = torch.optim.AdamW(net.parameters())
    with given_roofs.profiler(net) as prof:
        net(torch.randn(32, 64)).sum().backward()
        optimizer.step()
    return prof.report()


def of_code_around_the_model():
    net = model()
    with given_roofs.profiler(net) as prof:
        for _ in range(3):
            (net(torch.randn(32, 64)).double() ** 2).sum()
    return prof.report()


@pytest.mark.parametrize("make", [of_a_run, of_a_training_step, of_code_around_the_model])
def test_every_grouping_has_the_same_total(make):
    report = make()
    total = report.total
    for by in VIEWS:
        cells = said_of_total(report, by, ("bound", "percent_of_roof", "macs", "bytes", *TIMES))
        assert {figure: cells[figure].value for figure in TIMES} == {
            figure: pytest.approx(getattr(total, figure) * 1e9, abs=1) for figure in TIMES
        }, by
        assert cells["bound"].text == total.bound, by
        assert cells["percent_of_roof"].value == pytest.approx(total.percent_of_roof), by
        assert (cells["macs"].value, cells["bytes"].value) == (total.macs, total.bytes), by


@pytest.mark.parametrize("make", [of_a_run, of_a_training_step, of_code_around_the_model])
def test_groups_and_rows_add_up_to_it(make):
    report = make()
    total = report.total
    assert sum(row.self_time or 0 for row in report.rows) == pytest.approx(total.time, rel=1e-9)
    for keys in (["phase"], ["op"], ["dtype"], ["module"]):
        groups = report.group(*keys)
        assert sum(group.time for group in groups) == pytest.approx(total.op_time, rel=1e-9)
        assert sum(group.lower_bound_time for group in groups) == pytest.approx(total.lower_bound_time, rel=1e-9)


def test_no_gain_is_more_than_the_call_takes():
    for report in (of_a_run(), of_a_training_step()):
        call = min(report.bare_times) if report.bare_times else report.total.wall
        longest = max([call, *report.bare_times])
        assert [finding.id for finding in report.findings if finding.gain_high > longest] == []


def test_mfu_says_what_it_divides_by():
    """2 x MACs a second of the given peak, over the wall time that stands beside it."""
    net = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 8))
    report = given_roofs.profiler(net).run(torch.randn(32, 64))
    used = report.to_dict()["flops_utilization"]
    assert used["time_of"] == "its wall time"
    assert used["time_ns"] == pytest.approx(report.total.wall * 1e9, abs=1)
    peak = given_roofs.PEAKS["fp32"]
    assert used["mfu"] == pytest.approx(100 * 2 * report.total.macs / peak / (used["time_ns"] / 1e9))
    assert report.mfu == pytest.approx(used["mfu"])


def test_the_report_is_the_same_when_it_is_read_again():
    report = of_a_training_step()
    again = roofprof.Report.from_dict(report.to_dict())
    assert again.total.time == report.total.time
    assert again.mfu == report.mfu
