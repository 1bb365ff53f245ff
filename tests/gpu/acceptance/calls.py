"""Calls of models: idle time and findings against calls without a profiler, sums, and torch.profiler's kernels.

The truth is taken apart from roofprof: the median wall time of calls that nothing observes, before and after the
profile, as a shared host's pace changes by twice within seconds; and the time in which kernels ran by torch.profiler,
whose records of the device alone change no kernel's time. The reports have roofs and counters, and are kept for tests.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import roofprof
from acceptance.checks import FAIL, PASS, SKIPPED, Check, Part
from acceptance.machine import Machine, notes
from acceptance.models import Called, Chain, Training, resnet50
from acceptance.sums import TIME_TOLERANCE, beside_torch, check_report
from roofprof.cli import doctor

CALLS = 20
OF_THE_CALL = 0.05  # so much of a call may its idle time be off
ABOVE_ROOF = 102.0  # percent
BUSY = 0.95  # of a bare call: nobody waits for launches


def check_environment(part: Part, machine: Machine) -> None:
    """Whether times and counters are there at all: what other parts build on."""
    part.fact("device", machine.name)
    part.fact("torch", f"{torch.__version__}, CUDA {torch.version.cuda}")
    part.fact("counters are permitted", machine.counters_permitted)
    part.fact("doctor", doctor.document_of(doctor.findings()).text(160))
    array = machine.rand(1 << 20)
    report = machine.profile("first", machine.call(lambda: array.mul(2.0), dram_read_bytes=array.nbytes))
    part.holds("kernel times can be had", report.total.kernel_count, notes(report))
    counted = report.total.dram_bytes
    status = PASS if counted is not None else FAIL if machine.counters_permitted else SKIPPED
    part.add(Check("hardware counters can be read", status, counted, "a number", explanation=notes(report)))
    part.fact("environment of the report", report.environment)


def cases(machine: Machine) -> dict[str, tuple[nn.Module, tuple[Any, ...]]]:
    """Calls that wait for the host, calls that do not, and what lies between."""
    size, batch = machine.size(224, 32), machine.size(32, 1)
    blocks = (1,) if machine.simulated else (3, 4, 6, 3)
    in_fp32, in_bf16 = (machine.model(resnet50(blocks)) for _ in range(2))
    images = machine.rand(batch, 3, size, size)
    last = {"dtype": torch.bfloat16, "memory_format": torch.channels_last}
    rows = machine.size(4096, 64)
    left, right = (machine.rand(rows, rows).bfloat16() for _ in range(2))
    large = machine.rand(batch, 64, size // 2, size // 2).bfloat16()
    width, tokens = machine.size(1024, 32), machine.size(512, 8)
    return {
        "resnet50": (in_fp32, (images,)),
        "resnet50 of one image": (in_fp32, (images[:1],)),
        "resnet50 bf16 channels last": (in_bf16.to(**last), (images.to(**last),)),
        "product bf16": (Called(machine.call(lambda: left @ right, flops=2 * rows**3)), ()),
        "max pool": (machine.model(nn.Sequential(nn.MaxPool2d(3, 2, 1))), (large,)),
        "transformer": (machine.model(Training(width, 2).encoder.eval()), (machine.rand(16, tokens, width),)),
        "chain": (machine.model(Chain(machine.size(500, 20))), (machine.rand(16),)),
    }


def bare_seconds(machine: Machine, call: Callable[[], object]) -> float:
    """The median call that nothing observes."""
    return statistics.median(machine.timed(call, 3 + machine.size(CALLS, 1))[3:])


def check_times(part: Part, label: str, report: roofprof.Report, bare: list[float], busy: float) -> None:
    """What must hold where calls take so long without a profiler, and kernels so long by torch.profiler."""
    total, limit = report.total, (1 + OF_THE_CALL) * bare[1]
    part.near(f"{label}: time in which kernels ran", total.busy, busy, TIME_TOLERANCE, "expected: by torch.profiler")
    least, most = (max(0.0, seconds - busy) for seconds in bare)
    margin = OF_THE_CALL * bare[0]
    why = f"bare calls {bare} s, kernels {busy} s"
    part.between(f"{label}: idle time", total.idle, least - margin, most + margin, why)
    gains = {finding.id: finding.gain_high for finding in report.findings}
    part.equal(f"{label}: findings that gain more than the call", {k: v for k, v in gains.items() if v > limit}, {})
    waits = [f.gain_high for f in report.findings if f.rule == "idle-device"]
    too_much = [gain for gain in waits if gain > max(0.0, bare[1] - (total.busy or 0)) + OF_THE_CALL * bare[1]]
    part.equal(f"{label}: findings that gain more than the idle time", too_much, [])
    if total.busy is not None and total.busy >= BUSY * bare[1]:
        overhead = [row.path for row in report.rows if row.time and row.bound == "overhead"]
        part.equal(f"{label}: rows bound by overhead in a call that is busy", overhead, [])
    # What lies in a cache need not come from DRAM: where bytes were counted, these decide.
    above = {
        row.path: row.self_percent_of_roof
        for row in report.rows
        if (row.self_percent_of_roof or 0.0) > ABOVE_ROOF and (row.percent_of_roof_counted or 200.0) > ABOVE_ROOF
    }
    part.equal(f"{label}: rows above their roof by more than 2%", above, {})


def check(part: Part, machine: Machine, label: str, model: nn.Module, args: tuple[Any, ...]) -> None:
    def call() -> object:
        with torch.no_grad():
            return model(*args)

    before = bare_seconds(machine, call)
    report = machine.profile(f"bare {label}", model, *args, ceilings=machine.roofs)
    bare = sorted((before, bare_seconds(machine, call)))
    check_report(part, machine, label, report, counted=True)
    part.fact(f"{label}: bare, observed by roofprof", (bare, report.to_dict()["runs"]))
    part.fact(f"{label}: findings", [(f.rule, f.module, f.op, f.gain_low, f.gain_high) for f in report.findings])
    beside_torch(part, machine, label, call, report)
    if machine.simulated:  # a stand-in's kernels take no time of the call
        return
    check_times(part, label, report, bare, machine.by_torch(lambda: [call() for _ in range(5)])["busy"] / 5)
    if label == "resnet50":
        part.equal("resnet50: parameters", report.total.params, 25_557_032, "torchvision's figure")
        part.equal("resnet50: MACs", report.total.macs, 32 * 4_089_184_256, "fvcore's figure for one image")


def run(part: Part, machine: Machine) -> None:
    with part.stage("environment"):
        check_environment(part, machine)
    for label, (model, args) in cases(machine).items():
        with part.stage(label):
            check(part, machine, label, model, args)
