"""What ``--json FILE`` of commands whose result is no report has, beside the report itself."""

import argparse
import json
from pathlib import Path

import pytest
import torch
from given_roofs import profiler
from torch import nn

from roofprof.cli import main, make_parser


@pytest.fixture(name="report")
def _report(tmp_path, monkeypatch):
    """r.json of an MLP, in the folder where commands run."""
    monkeypatch.chdir(tmp_path)
    report = profiler(nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 4))).run(torch.rand(8, 64))
    report.to_json("r.json")
    return report


def stored(schema):
    found = json.loads(Path("x.json").read_text())
    assert (found.pop("schema"), found.pop("schema_version")) == (f"roofprof.{schema}", 1)
    return found


def test_every_command_has_the_option():
    commands = next(a.choices for a in make_parser()._actions if isinstance(a, argparse._SubParsersAction))
    without = [name for name, parser in commands.items() if "--json" not in parser._option_string_actions]
    assert without == ["completion"]  # whose result is a shell's script


def test_check(report, capsys):
    most = report.total.macs - 1
    Path("b.toml").write_text(f'[total]\nmacs = "<= {most}"\nparams = "<= 1 M"\n\n[modules."2"]\nflops = "<= 1"\n')
    assert main(["check", "r.json", "--budget", "b.toml", "--json", "x.json"]) == 1
    found = stored("check")
    assert (found["kept"], found["checked"], found["remarks"]) == (False, 3, [])
    total, last = found["broken"]
    assert (total["path"], total["figure"], total["limit"], total["line"]) == (None, "macs", f"<= {most}", 2)
    assert (last["path"], last["figure"], last["line"]) == ("2", "flops", 6)
    assert total["reason"] in capsys.readouterr().out
    Path("b.toml").write_text('[total]\nparams = "<= 1 M"\n')
    assert main(["check", "r.json", "--budget", "b.toml", "--json", "x.json"]) == 0
    assert stored("check") == {"kept": True, "checked": 1, "broken": [], "remarks": []}


@pytest.mark.integration
def test_html_and_plot(report):
    assert main(["plot", "r.json", "-o", "r.svg", "--json", "x.json"]) == 0
    found = stored("roofline")
    assert found["before"] is None
    dots = {dot["key"]: dot for dot in found["report"]["dots"]}
    assert set(dots) == {"0", "1", "2"}
    row = next(row for row in report.rows if row.path == "0")
    assert dots["0"]["intensity"] == row.flops / row.bytes
    assert dots["0"]["time"] == row.time
    roofs = {roof["name"]: roof["rate"] for roof in found["report"]["roofs"]}
    assert roofs["fp32"] == report.ceilings.compute[0].operations_per_second
    assert roofs["DRAM"] == report.ceilings.memory[-1].bytes_per_second
    assert main(["plot", "r.json", "-o", "r.svg", "--before", "r.json", "--json", "x.json"]) == 0
    both = stored("roofline")
    assert both["before"] == both["report"] == found["report"]
    assert main(["html", "r.json", "--json", "x.json"]) == 0
    assert set(stored("page")) == {"rooflines", "tables"}
    shown = Path("r.html").read_text()
    assert all(str(value) in shown for value in report.environment.values() if "<" not in str(value))


def test_trace(report):
    assert main(["trace", "r.json", "-o", "r.folded", "--json", "x.json"]) == 0
    found = stored("time_tree")
    assert found["unit"] == "nanoseconds"
    model, *outside = found["modules"]
    assert (model["path"], model["type"], model["time"]) == ("", "Sequential", round(report.rows[0].time * 1e9))
    assert [inside["path"] for inside in model["modules"]] == ["0", "1", "2"]
    assert model["own_time"] == model["time"] - sum(inside["time"] for inside in model["modules"])
    assert all(row["path"] in {"(outside)", "(optimizer)"} for row in outside)
