"""What this machine is, and what `roofprof doctor` says about it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import torch

import roofprof
from acceptance.checks import FAIL, PASS, SKIPPED, Check, Part
from acceptance.machine import Machine, notes


def said(*command: str) -> tuple[int, str]:
    """A command's exit code, and what it printed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, (done.stdout + done.stderr).strip()


def loaded(name: str) -> list[str]:
    """The shared libraries of that name that this process has loaded."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return sorted({line.split()[-1] for line in lines if name in line and ".so" in line})


def check_doctor(part: Part) -> None:
    code, text = said(sys.executable, "-m", "roofprof", "doctor")
    part.equal("doctor: exit code", code, 0)
    part.holds("doctor: says something", len(text.splitlines()) > 1, f"{len(text.splitlines())} lines")
    part.fact("doctor", text)


def check_counters(part: Part, machine: Machine) -> None:
    """Whether times and counters are there at all: what other parts build on."""
    array = torch.rand(1 << 20, device=machine.tensors)
    report = machine.profile("first", machine.call(lambda: array.mul(2.0), dram_bytes=2 * array.nbytes))
    total = report.total
    part.holds("kernel times can be had", bool(total.kernel_count), total.kernel_count, notes(report))
    counted = total.dram_bytes is not None
    status = PASS if counted else FAIL if machine.counters_permitted else SKIPPED
    part.add(Check("hardware counters can be read", status, total.dram_bytes, "a number", explanation=notes(report)))
    part.fact("environment of the report", report.environment)
    part.fact("libcupti", loaded("libcupti"))
    part.fact("nvperf", loaded("nvperf"))


def run(part: Part, machine: Machine) -> None:
    with part.stage("versions"):
        part.fact("device", machine.name)
        part.fact("torch", f"{torch.__version__}, CUDA {torch.version.cuda}")
        part.fact("python", platform.python_version())
        part.fact("roofprof", f"{roofprof.__version__} in {Path(roofprof.__file__).parent}")
        part.fact("processors", len(os.sched_getaffinity(0)))
        part.fact("counters are permitted", machine.counters_permitted)
        if not machine.simulated:
            part.fact("properties", str(torch.cuda.get_device_properties(machine.device)))
        if shutil.which("nvidia-smi"):
            part.fact("nvidia-smi", said("nvidia-smi")[1][:4000])
    with part.stage("doctor"):
        check_doctor(part)
    with part.stage("first report"):
        check_counters(part, machine)
