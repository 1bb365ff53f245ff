"""A terminal sees how far a long run is; files and short runs see nothing."""

import fcntl
import io
import os
import pty
import select
import struct
import sys
import termios
import threading
import time

import given_roofs
import pytest
import torch
from torch import nn

import roofprof
from roofprof.cli import main


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


class Screen:
    """What a terminal was sent, a pseudo-terminal's other end."""

    def __init__(self, end):
        self.end = end
        self.sent = b""

    def wait_for(self, text):
        while text.encode() not in self.sent:
            assert select.select([self.end], [], [], 60)[0], f"{text!r} never came, only {self.sent!r}"
            self.sent += os.read(self.end, 1000)


LINES = ("fp32 products", "round 1 of 5")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("size", [(0, 0), (24, 120)], ids=["of no stated size", "of 120 columns"])
@pytest.mark.parametrize("command", ["ceilings", "profile models.py:model --input 2x3 --warmup 0 --repeat 1"])
def test_a_terminal_sees_what_is_measured_for_roofs(command, size, monkeypatch, tmp_path, capsys):
    (tmp_path / "models.py").write_text("import torch\n\nmodel = torch.nn.Linear(3, 4)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROOFPROF_CEILINGS", raising=False)
    shown, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    screen = Screen(shown)

    def measured(_device, progress, _again):
        for line in LINES:
            progress(f"roofs of this machine: {line}")
            screen.wait_for(f" of about 20 s, measuring roofs of this machine: {line}")
        return given_roofs.roofs(), [], True

    monkeypatch.setattr("roofprof._C.cached_ceilings", measured)
    with os.fdopen(terminal, "w") as stream:
        monkeypatch.setattr("sys.stderr", stream)
        assert main(command.split()) == 0
        stream.write("the end")
        stream.flush()
        screen.wait_for("the end")
    os.close(shown)
    *_, last, blank, end = screen.sent.decode().split("\r")
    assert (blank.strip(), end) == ("", "the end")
    assert len(blank) >= len(last.rstrip()) > len(LINES[-1])
    assert "measuring" not in capsys.readouterr().out


@pytest.mark.usefixtures("impatient")
def test_a_file_sees_nothing_of_what_is_measured_for_roofs(monkeypatch, capsys):
    def measured(_device, progress, _again):
        progress(f"roofs of this machine: {LINES[0]}")
        return given_roofs.roofs(), [], True

    monkeypatch.setattr("roofprof._C.cached_ceilings", measured)
    assert main(["ceilings"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("impatient")
def test_without_tqdm_nothing_is_shown_and_nothing_fails(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    profiled()
    assert not terminal.getvalue()
