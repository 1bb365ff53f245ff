"""Folded stacks: the own time of each module, below those that it lies in."""

import pytest
import torch
from given_roofs import profiler
from torch import nn

import roofprof
from roofprof.render.traces.time_tree import Node, folded


@pytest.fixture(scope="module")
def report():
    net = nn.Sequential(nn.Linear(32, 32), nn.Sequential(nn.ReLU(), nn.Linear(32, 8)))
    prof = profiler(net)
    with prof:
        net(torch.rand(16, 32)).sum().backward()
    return prof.report()


def test_own_times_add_up_to_the_report(report, tmp_path):
    report.to_folded_stacks(tmp_path / "f.folded")
    own = {}
    for line in (tmp_path / "f.folded").read_text().splitlines():
        stack, _, ns = line.rpartition(" ")
        own[stack] = int(ns)
    for row in report.rows:
        stack = ";".join(["Sequential", *row.path.split(".")]) if row.path else "Sequential"
        if row.path == "(outside)":
            stack = row.path
        inside = sum(ns for at, ns in own.items() if at == stack or at.startswith(f"{stack};"))
        assert inside == round(row.time * 1e9), row.path
        assert own.get(stack, 0) == pytest.approx(row.self_time * 1e9, abs=len(report.rows)), row.path
    assert sum(own.values()) == round(report.total.time * 1e9)


def test_names_cannot_end_frames_or_lines():
    name = '</title><script>alert(1)</script>&<"\x00\x1b\ud800;x\n9'
    roots = [Node(name, name, name, 10, [Node("b;c", "b;c", "", 10)])]
    (line,) = folded(roots).splitlines()
    stack, _, ns = line.rpartition(" ")
    assert ns == "10"
    assert stack.split(";")[1:] == ["b:c"]
    node = Node("leaf", "leaf", "L", 5)
    for i in range(3_000):  # no recursion
        node = Node(f"m{i}", f"m{i}", "M", 5, [node])
    assert folded([node]).count(";") == 3_000


def test_what_cannot_be_written_is_reported(report, tmp_path):
    with pytest.raises(ValueError, match=r"'.*f.svg': the file of folded stacks ends in .folded or .txt"):
        report.to_folded_stacks(tmp_path / "f.svg")
    counted = roofprof.count(nn.Linear(2, 2), torch.rand(1, 2))
    with pytest.raises(ValueError, match="no times to make folded stacks of"):
        counted.to_folded_stacks(tmp_path / "f.folded")
    assert not list(tmp_path.iterdir())
