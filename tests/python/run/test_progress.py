"""A terminal sees how far a long run is; files and short runs see nothing."""

from __future__ import annotations

import io
import time

import given_roofs
import pytest
import torch
from torch import nn

import roofprof


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Slow(nn.Module):
    def forward(self, x):
        time.sleep(0.02)
        return x + 1


def profiled():
    return roofprof.RooflineProfiler(Slow(), warmup=1, repeat=2, ceilings=given_roofs.roofs()).run(torch.rand(2))


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr("roofprof._run.progress.QUIET_SECONDS", 0)


@pytest.mark.usefixtures("impatient")
def test_a_terminal_sees_each_call(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    profiled()
    lines = terminal.getvalue().split("\r")
    shown = [line.strip() for line in lines if line.strip()]
    assert "roofprof: timing: call 5 of 5" in shown
    assert shown[0] in {"roofprof: counting: the first call", "roofprof: timing: call 1 of 5"}
    # The last thing is blanks over the last line, and the cursor at their start.
    assert lines[-1] == ""
    assert lines[-2] == " " * len("roofprof: timing: call 5 of 5")


@pytest.mark.usefixtures("impatient")
def test_a_model_that_raises_leaves_no_line(monkeypatch):
    class Raises(Slow):
        def forward(self, x):
            raise ValueError(str(super().forward(x)))

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with pytest.raises(ValueError):
        roofprof.count(Raises(), torch.rand(2))
    assert not terminal.getvalue().rpartition("call")[2].strip("\r ")


@pytest.mark.usefixtures("impatient")
def test_what_is_no_terminal_sees_nothing(monkeypatch):
    for stream in (io.StringIO(), None):
        monkeypatch.setattr("sys.stderr", stream)
        profiled()
        assert stream is None or not stream.getvalue()


def test_short_runs_show_nothing(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    roofprof.count(nn.Linear(2, 2), torch.rand(1, 2))
    assert not terminal.getvalue()
