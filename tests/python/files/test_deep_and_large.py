"""Small files that would take long are refused, or take no longer than they are large."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from given_roofs import profiler
from torch import nn

import roofprof
from roofprof import Report
from roofprof.budget import Budget
from roofprof.budget.lines import read
from roofprof.cli import main


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with roofprof.scope("region"):
            return self.part(x)


@pytest.fixture
def report() -> dict[str, Any]:
    return profiler(Net()).run(torch.rand(2, 8)).to_dict()


def nested(items: list[dict[str, Any]], name: str, number: int, above: int) -> None:
    """So many more, each inside the one before; `above` is what the last one's number is called."""
    first = len(items)
    for i in range(number):
        items.append({**items[-1], name: f"n{i}", "parent": first + i - 1 + above if i else 0})


def test_regions(report, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    nested(report["region_paths"], "name", 20_000, 1)
    Path("r.json").write_text(json.dumps(report))
    for command in (("show", "r.json"), ("compare", "r.json", "r.json"), ("merge", "r.json")):
        assert main(command) == 2
        assert "nested more than 1000 deep" in capsys.readouterr().err
    report["region_paths"] = report["region_paths"][:1]
    nested(report["region_paths"], "name", 999, 1)
    rows = Report.from_dict(report).regions
    # The path of a region has the names of those around it, by their definition.
    assert max((row.path for row in rows), key=len) == "/".join(f"n{i}" for i in range(999))


def test_modules(report):
    nested(report["modules"], "path", 100_000, 0)
    with pytest.raises(ValueError, match="nested more than 10000 deep"):
        Report.from_dict(report)


def test_a_tree_that_json_cannot_nest(report, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    first = len(report["modules"])
    nested(report["modules"], "path", 5000, 0)
    runs = len(report["runs"]["total_ns"])
    report["times"] += [
        {"module": first + i, "phase": "forward", "calls": 1, "self_ns": [1000] * runs} for i in range(5000)
    ]
    Path("r.json").write_text(json.dumps(report))
    assert main(["trace", "r.json", "-o", "r.folded", "--json", "t.json"]) == 2
    assert "nested deeper" in capsys.readouterr().err
    assert not Path("t.json").exists()


@pytest.mark.parametrize(
    ("budget", "sentence"),
    [
        (f"total = {'[' * 500}{']' * 500}", "nested more than"),
        (f"total = {'{a = ' * 500}1{'}' * 500}", "nested more than"),
        (f"{'.'.join(['a'] * 50_000)} = 1", "more than 20 parts"),
        (f"total = {{{'.'.join(['a'] * 50_000)} = 1}}", "more than 20 parts"),
        (f"[total]\nflops = {'1' * 20_000}", "more digits"),
        (f"[total]\nflops = '<= {'1' * 20_000} y'", "no unit"),
        (f"[total]\nflops = '<= {'1' * 20_000}'", "beyond every number"),
        (f"[total]\nflops = '<= 1{' ' * 20_000}x y'", "no unit"),
        (f"[total]\nflops = '{' ' * 20_000}'", "is no limit"),
    ],
)
def test_budgets_are_refused(budget, sentence):
    with pytest.raises(ValueError, match=sentence) as raised:
        Budget.parse(budget)
    assert len(str(raised.value)) < 30_000


@pytest.mark.parametrize(
    "text",
    [
        f"[total]\n{' ' * 28}# a comment that is indented, with an = in it\nflops = '<= 1'\n",
        f"[total]\n{' ' * 5000}#{' =' * 5000}\nflops = '<= 1'\n",
        f"[total]\nflops = '<= 1' #{' a' * 50_000}\n",
        f"{' ' * 100_000}[total]\nflops = '<= 1'\n",
    ],
)
def test_comments_cost_no_more_than_they_are_long(text):
    """A reader that tries again from each character of them would not come back."""
    values, lines = read(text)
    assert values == {"total": {"flops": "<= 1"}}
    table = next(n for n, line in enumerate(text.splitlines(), 1) if "[total]" in line)
    assert lines[("total",)] == table
    assert lines["total", "flops"] == next(n for n, line in enumerate(text.splitlines(), 1) if line.startswith("flops"))


def test_lines_of_keys():
    text = """
# one
[total]
time = "<= 1 s"
  macs = [
 "<= 1", # = [x]
 ">= 2"]
[ modules . "a = b\\u0041" ]
time = \"\"\"
y = 1
\"\"\"
x . y = 'z = 1'
[modules.'q#.z']
flops = 1.5"""
    _, lines = read(text)
    assert lines == {
        ("total",): 3,
        ("total", "time"): 4,
        ("total", "macs"): 5,
        ("modules", "a = bA"): 8,
        ("modules", "a = bA", "time"): 9,
        ("modules", "a = bA", "x", "y"): 12,
        ("modules", "q#.z"): 13,
        ("modules", "q#.z", "flops"): 14,
    }
