"""Other processes that use the processors while something is timed."""

import contextlib
import os
import subprocess
import sys
import time

import pytest
import torch
from given_roofs import profiler
from torch import nn

import roofprof
from roofprof import _C

pytestmark = pytest.mark.measuring

BUSY = "print('begun', flush=True)\nwhile True: pass"
LONG_ENOUGH = 0.4  # of a watch, in seconds


class Waits(nn.Module):
    """Leaves the processors to the others."""

    def forward(self, value):
        time.sleep(LONG_ENOUGH / 4)
        return value + 1


@pytest.fixture
def busy_processes():
    """On each processor."""
    with contextlib.ExitStack() as stack:
        for _ in os.sched_getaffinity(0):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE))
            stack.callback(process.kill)
            assert process.stdout is not None
            process.stdout.readline()
        watch = _C.BackgroundLoad()
        time.sleep(LONG_ENOUGH)
        # A quota, or a system that tells little of itself: then nothing is said of neighbours, whatever they do.
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv("ROOFPROF_SHARED_MACHINE")
            seen = watch.note("the test waited")
        if seen is None:
            pytest.skip("this system shows nothing of processes that are busy")
        yield


@pytest.fixture
def watched(monkeypatch):
    """As users have it."""
    monkeypatch.delenv("ROOFPROF_SHARED_MACHINE")


def run():
    return profiler(Waits(), warmup=0).run(torch.zeros(4))


def block():
    with profiler(Waits()) as prof:
        time.sleep(LONG_ENOUGH)
    return prof.report()


def notes(report):
    return [note for note in report.coverage.notes if note.code == "machine-busy"]


@pytest.mark.usefixtures("busy_processes", "watched")
@pytest.mark.parametrize(("way", "while_what"), [(run, "the calls were timed"), (block, "the block ran")])
def test_others_are_reported_of_first(way, while_what):
    report = way()
    (note,) = notes(report)
    assert note.level == "attention"
    assert f"of the processors while {while_what}: times may be too long" in note
    assert "ATTENTION other processes used" in report.table()


@pytest.mark.usefixtures("busy_processes", "watched")
def test_calls_that_nothing_observes_are_reported_of_them_first():
    latency = roofprof.RooflineProfiler(Waits()).time(torch.zeros(4), warmup=0, repeat=5)
    (note,) = latency.notes
    assert (note.code, note.level) == ("machine-busy", "attention")
    assert "of the processors while the calls were timed: times may be too long" in note
    assert str(latency).startswith("ATTENTION")
