"""A terminal sees how far a long run is; files and short runs see nothing."""

import io
import sys
import threading
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
    monkeypatch.setattr("roofprof.render.progress.QUIET_SECONDS", 0)


@pytest.mark.usefixtures("impatient")
def test_a_terminal_sees_each_call(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    before = threading.enumerate()  # other libraries' bars leave tqdm's monitor behind
    profiled()
    lines = terminal.getvalue().split("\r")
    shown = [line.strip() for line in lines if line.strip()]
    assert shown[0].startswith(("roofprof: counting: the first call [", "roofprof: timing: call 1 of 5 "))
    assert any(line.startswith("roofprof: timing: call 5 of 5 ") and " 4/5 [" in line for line in shown)
    # The last thing is blanks over the last line, and the cursor at their start.
    assert lines[-1] == ""
    assert not lines[-2].strip()
    assert len(lines[-2]) >= len(shown[-1])
    assert set(threading.enumerate()) <= set(before)


@pytest.mark.usefixtures("impatient")
def test_what_is_no_terminal_sees_nothing(monkeypatch):
    for stream in (io.StringIO(), None):
        monkeypatch.setattr("sys.stderr", stream)
        profiled()
        assert stream is None or not stream.getvalue()


def test_short_runs_show_nothing(monkeypatch):
    monkeypatch.setattr("roofprof.render.progress.QUIET_SECONDS", 3600)  # of whatever machine
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    roofprof.count(nn.Linear(2, 2), torch.rand(1, 2))
    assert not terminal.getvalue()


@pytest.mark.usefixtures("impatient")
def test_without_tqdm_nothing_is_shown_and_nothing_fails(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    profiled()
    assert not terminal.getvalue()
