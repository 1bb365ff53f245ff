"""What is printed, and when: the legend, ops that waste most; what another process reads."""

import pickle
import re
import subprocess
import sys

import given_roofs
import pytest
import torch
from torch import nn

import roofprof


@pytest.fixture
def report():
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
    return roofprof.RooflineProfiler(model, ceilings=given_roofs.roofs(), repeat=2).run(torch.rand(4, 8))


def test_the_first_report_that_is_printed_has_the_legend(report, tmp_path):
    """In this process others have printed reports before, so it is tried in one of its own, which needs no model."""
    report.to_json(tmp_path / "one.json")
    (tmp_path / "other").write_bytes(pickle.dumps(report))
    program = """
import pickle, sys, roofprof
one = roofprof.Report.from_json(sys.argv[1] + "/one.json")
other = pickle.load(open(sys.argv[1] + "/other", "rb"))
assert [str(one), str(other), str(one)] == [one.table(), other.table(legend=False), one.table()]
assert one.total.macs == other.total.macs == 2 * 4 * 8 * 8
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
    with_legend, without = report.table(), report.table(legend=False)
    assert with_legend.count("\ncolumns  ") == 1
    before, _, after = with_legend.partition("\ncolumns  ")
    assert without == f"{before}\nroofs  {after.partition(chr(10) + 'roofs  ')[2]}"


def test_what_wastes_most_is_listed(report):
    """Against the sums that groups and rows give by themselves."""
    ops = [(row.wasted_time, row.module, row.op) for row in report.group("module", "op")]
    between = [(row.self_time - row.self_op_time, row.path, "(outside ops)") for row in report.rows]
    largest = sorted((entry for entry in ops + between if entry[0] > 0), reverse=True)[:5]
    lines = report.table(width=200).partition("most waste in")[2].splitlines()[2:]
    listed = [tuple(re.split(r" {2,}", line.strip())[:2]) for line in lines[: lines.index("")]]
    wasted_by = {(module or "(model)", op): wasted for wasted, module, op in ops + between}
    # Of equal ones either may come first.
    assert [wasted_by[of] for of in listed] == pytest.approx([wasted for wasted, _, _ in largest], abs=1e-12)
    assert len(set(listed)) == len(listed)
    wasted = sum(entry[0] for entry in ops + between)
    assert wasted == pytest.approx(report.total.wasted_time)
