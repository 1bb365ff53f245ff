"""The window of ``roofprof run`` is of one phase, and its report is there as soon as it is complete."""

import subprocess
import sys
import textwrap

import pytest

import roofprof
from roofprof.cli import main

# Training and evaluation have batches of their own, so the work tells which was profiled.
SETUP = """
import os, signal, sys
import torch
from torch import nn

model = nn.Linear(4, 4)


def train(steps, optimizer):
    model.train()
    for _ in range(steps):
        model(torch.ones(100, 4)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def evaluate(steps):
    model.eval()
    with torch.no_grad():
        for _ in range(steps):
            model(torch.ones(3, 4))
"""
FORWARD = {"training": 100 * 16, "evaluation": 3 * 16}


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROOFPROF_CEILINGS", "off")

    def write(text):
        (tmp_path / "program.py").write_text(SETUP + textwrap.dedent(text))

    return write


def report():
    return roofprof.Report.from_json("program.roofprof.json")


def between():
    """Return the MACs of what ran between the steps."""
    return sum(row.macs for row in report().rows if row.path.endswith("(between steps)"))


@pytest.mark.parametrize(
    ("text", "options", "phase", "steps"),
    [
        # nanoGPT evaluates first.
        ("o = torch.optim.SGD(model.parameters()); evaluate(20); train(20, o); evaluate(20)", [], "training", 10),
        ("o = torch.optim.SGD(model.parameters()); evaluate(20); train(20, o)", ["--phase", "eval"], "evaluation", 10),
        ("o = torch.optim.SGD(model.parameters()); train(20, o); evaluate(20)", ["--phase", "eval"], "evaluation", 10),
        ("o = torch.optim.SGD(model.parameters()); evaluate(20)", [], "evaluation", 10),
        ("evaluate(20)", [], "evaluation", 10),
        ("evaluate(2)", [], "evaluation", 1),
        # Evaluation comes in between: none of its calls is in a step.
        ("o = torch.optim.SGD(model.parameters())\nfor _ in range(4): train(5, o); evaluate(2)", [], "training", 10),
        ("o = torch.optim.SGD(model.parameters())\nfor _ in range(30): train(1, o); evaluate(1)", [], "training", 10),
        ("o = torch.optim.SGD(model.parameters()); evaluate(20); train(20, o)", ["--skip", "5"], "training", 10),
        (
            "o = torch.optim.SGD(model.parameters()); evaluate(20); train(20, o); raise KeyError",
            ["--stop"],
            "training",
            10,
        ),
    ],
)
def test_the_window_is_of_one_phase(program, text, options, phase, steps, capsys):
    program(text)
    assert main(["run", *options, "program.py"]) == 0
    assert f"Linear in {phase}" in capsys.readouterr().err.strip()
    row = report().row("")
    assert row.calls == report().steps == steps
    expected = FORWARD[phase] * steps * (2 if phase == "training" else 1)  # and the gradient of the weight
    assert report().total.macs - between() == expected
    (note,) = [note for note in report().coverage.notes if note.code == "window-phase"]
    assert note.text.startswith(f"the calls are those of {phase}: ")


@pytest.mark.parametrize("end", ["os._exit(3)", "os.kill(os.getpid(), signal.SIGTERM)"])
def test_the_report_is_there_however_the_program_ends(program, end, tmp_path):
    program(f"train(20, torch.optim.SGD(model.parameters()))\n{end}\n")
    subprocess.run([sys.executable, "-m", "roofprof", "run", "program.py"], check=False, capture_output=True)
    assert report().steps == 10


def test_a_child_of_the_program_does_not_report(program, capfd):
    program("""
    optimizer = torch.optim.SGD(model.parameters())
    train(8, optimizer)
    if os.fork() == 0:
        evaluate(8)  # torch's autograd does not work in a child
        sys.exit(5)
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 5
    train(20, optimizer)
    """)
    command = [sys.executable, "-m", "roofprof", "run", "program.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Linear on cpu") == 1
    assert done.stderr.count("written to") == 1
    assert report().steps == 10
    assert not report().partial


def test_waiting_for_data_is_a_row(program, capsys):
    program("""
    loader = torch.utils.data.DataLoader(torch.ones(200, 4), batch_size=10)
    model.eval()
    for batch in loader:
        model(batch)
    """)
    assert main(["run", "--steps", "5", "program.py"]) == 0
    row = report().row("(data loading)")
    assert row.calls == 5
    assert row.time > 0
    assert "(data loading)" in capsys.readouterr().out
