"""A C++ program that links the package and profiles a torch::nn model: its report beside Python's of the same model."""

from __future__ import annotations

import os
import subprocess

from torch import nn

import roofprof
from acceptance.checks import NotOnThisMachineError, Part
from acceptance.machine import Machine, notes
from acceptance.sums import check_report

COUNTS = ("path", "macs", "flops", "read_bytes", "write_bytes", "params", "kernel_count")
MEASURED = {"time": 0.25, "dram_bytes": 0.10}  # differ from run to run


def network() -> nn.Module:
    """../cpp/profile_on_gpu.cpp writes the same one."""
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 1000),
    ).eval()  # fmt: skip


def run(part: Part, machine: Machine) -> None:
    with part.stage("program"):
        program = os.environ.get("ACCEPTANCE_CPP", "")
        if not program:
            raise NotOnThisMachineError("ACCEPTANCE_CPP names no program")
        path = machine.folder / "from_cpp.json"
        batch, size = machine.size(64, 2), machine.size(128, 16)
        command = [program, machine.device, machine.tensors, str(batch), str(size), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)
        part.fact("what the program prints", done.stdout[-6000:])
        part.equal("the program: exit code", done.returncode, 0, done.stderr[-1000:])
        machine.needs_gpu()  # the stand-ins are not told what a C++ program launches
        theirs = roofprof.Report.from_json(path)
        check_report(part, machine, "from C++", theirs, counted=True)
        ours = machine.profile("beside C++", machine.model(network()), machine.rand(batch, 3, size, size))
        for figure in COUNTS:
            both = [[getattr(row, figure) for row in report.rows] for report in (theirs, ours)]
            part.equal(f"C++ and Python: {figure} of each row", *both, notes(theirs))
        for figure, tolerance in MEASURED.items():
            expected = getattr(ours.total, figure)
            if expected is not None:
                part.near(f"C++ and Python: {figure}", getattr(theirs.total, figure), expected, tolerance)
        names = [sorted({kernel.name for kernel in report.kernels}) for report in (theirs, ours)]
        part.equal("C++ and Python: names of kernels", *names)
