"""When the model raises: its exception comes through, nothing stays behind, what ran is kept."""

from __future__ import annotations

import collections
import sys
import traceback

import pytest
import torch
from given_roofs import profiler
from sameness import assert_nothing_observes
from torch import nn

import roofprof


class Raises(nn.Module):
    """Raises in its k-th call, half way."""

    def __init__(self, at, error):
        super().__init__()
        self.before = nn.Linear(8, 4)
        self.after = nn.Linear(4, 2)
        self.at, self.error = at, error

    def forward(self, value, calls):
        calls.append(None)
        value = self.before(value)
        if sum(1 for _ in calls) == self.at:
            raise self.error
        return self.after(value)


class Calls:
    """Counts calls where nothing is put back."""

    def __init__(self):
        self.count = 0

    def __iter__(self):
        return iter(range(CALLS[self]))

    def append(self, _):
        CALLS[self] += 1


CALLS: collections.Counter = collections.Counter()
ERRORS = [ValueError("half way"), KeyboardInterrupt(), SystemExit(3), StopIteration("odd"), RuntimeError("half way")]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_exception_of_the_first_call_comes_through_as_it_was(error):
    error.__traceback__ = None
    prof = profiler(Raises(1, error))
    with pytest.raises(type(error)) as caught:
        prof.run(torch.ones(2, 8), Calls())
    assert caught.value is error
    assert traceback.extract_tb(error.__traceback__)[-1].name == "forward"
    assert error.__cause__ is None
    assert error.__context__ is None
    report = prof.report()
    assert report.partial
    assert {row.path: row.self_macs for row in report.rows if row.self_macs} == {"before": 64}
    assert report.coverage.uncalled_modules == ["after"]
    assert any("partial" in note for note in report.coverage.notes)
    assert report.total.time is None
    assert "PARTIAL" in str(report)
    assert_nothing_observes()
    calls = Calls()
    calls.append(None)  # the next is its second, and goes well
    assert not prof.run(torch.ones(2, 8), calls).partial


@pytest.mark.parametrize("at", [2, 3, 4, 5], ids=["warm-up", "bare", "timed", "second repeat"])
def test_interrupt_of_a_further_call_comes_through(at):
    error = KeyboardInterrupt()
    model = nn.Sequential(nn.BatchNorm1d(8))
    inner = Raises(at, error)
    model.forward = lambda value, calls: inner(nn.Sequential.forward(model, value), calls)
    prof = profiler(model, warmup=1, repeat=3)
    with pytest.raises(KeyboardInterrupt) as caught:
        prof.run(torch.ones(2, 8), Calls())
    assert caught.value is error
    assert model[0].num_batches_tracked == 1
    assert prof.report().total.macs == 64 + 16
    assert not prof.report().partial
    assert_nothing_observes()


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_exception_in_a_block(error):
    error.__traceback__ = None
    model = Raises(2, error)
    prof, calls = profiler(model), Calls()
    with pytest.raises(type(error)) as caught, prof:
        model(torch.ones(2, 8), calls)
        model(torch.ones(2, 8), calls)
    assert caught.value is error
    report = prof.report()
    assert report.partial
    assert report.row("before").macs == 2 * 64
    assert report.row("after").macs == 16
    assert report.total.time > 0
    assert_nothing_observes()


def test_wrong_arguments_are_the_model_s_own_error():
    with pytest.raises(TypeError, match="forward"):
        profiler(nn.Linear(8, 4)).run(torch.ones(2, 8), 1, 2)
    with pytest.raises(RuntimeError, match="shapes"):
        profiler(nn.Linear(8, 4)).run(torch.ones(2, 7))
    assert_nothing_observes()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions take notes from Python 3.11 on")
@pytest.mark.parametrize(
    ("call", "option", "hint"),
    [
        (roofprof.profile, "repeat", "roofprof.RooflineProfiler(model, repeat=...).run(...)"),
        (roofprof.count, "device", "roofprof.RooflineProfiler(model, device=...).count(...)"),
        (roofprof.profile, "depth", "report.table(depth=...)"),
    ],
)
def test_an_option_that_went_to_the_model_is_noted(call, option, hint):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{option}'") as caught:
        call(nn.Linear(8, 4), torch.ones(2, 8), **{option: 3})
    (note,) = caught.value.__notes__
    assert "went to the model" in note
    assert hint in note
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'") as caught:
        call(nn.Linear(8, 4), torch.ones(2, 8), other=3)
    assert not hasattr(caught.value, "__notes__")
