"""A C++ program that links the package and profiles a torch::nn model: its report beside Python's of the same model."""

from __future__ import annotations

import os
import subprocess

import torch
from torch import nn

import roofprof
from acceptance.checks import Part
from acceptance.machine import Machine, NotOnThisMachineError, notes
from acceptance.sums import check_sums

COUNTS = ("macs", "flops", "read_bytes", "write_bytes", "params", "kernel_count")
# Of measured figures, which differ from run to run.
MEASURED = {"time": 0.25, "dram_bytes": 0.10}


def network() -> nn.Module:
    """../cpp/profile_on_gpu.cpp writes the same one."""
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 1000),
    ).eval()  # fmt: skip


def check_program(part: Part, machine: Machine, program: str) -> None:
    path = machine.folder / "from_cpp.json"
    machine.folder.mkdir(parents=True, exist_ok=True)
    batch, size = machine.size(64, 2), machine.size(128, 16)
    command = [program, machine.device, machine.tensors, str(batch), str(size), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=90)
    part.fact("what the program prints", done.stdout[-6000:])
    part.equal("the program: exit code", done.returncode, 0, done.stderr[-1000:])
    theirs = roofprof.Report.from_json(path)
    if machine.simulated:
        raise NotOnThisMachineError("the stand-ins are not told what a C++ program launches")
    check_sums(part, "from C++", theirs, counted=True, permitted=machine.counters_permitted)

    model = machine.model(network())
    images = torch.rand(batch, 3, size, size, device=machine.tensors)
    ours = machine.profile("beside C++", model, images)
    part.equal("C++ and Python: rows", [row.path for row in theirs.rows], [row.path for row in ours.rows])
    for figure in COUNTS:
        name = f"C++ and Python: {figure} of each row"
        part.equal(
            name, [getattr(r, figure) for r in theirs.rows], [getattr(r, figure) for r in ours.rows], notes(theirs)
        )
    for figure, tolerance in MEASURED.items():
        expected, measured = getattr(ours.total, figure), getattr(theirs.total, figure)
        if expected is None:
            part.equal(f"C++ and Python: {figure}", measured, None, notes(theirs))
        else:
            part.near(f"C++ and Python: {figure}", measured, expected, tolerance, notes(theirs) if not measured else "")
    names = [sorted({kernel.name for kernel in report.kernels}) for report in (theirs, ours)]
    part.equal("C++ and Python: names of kernels", names[0], names[1])


def run(part: Part, machine: Machine) -> None:
    program = os.environ.get("ACCEPTANCE_CPP", "")
    with part.stage("program"):
        if not program:
            raise NotOnThisMachineError("the C++ program was not built")
        check_program(part, machine, program)
