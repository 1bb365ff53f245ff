"""Idle time, kernel times and findings against a call without a profiler; the reports, with roofs, are test data.

The truth is taken apart from roofprof: the median wall time of calls that nothing observes, before and after the
profile, as a shared host's pace changes by twice within seconds; and the time in which kernels ran by torch.profiler,
whose records of the device alone change no kernel's time.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import roofprof
from acceptance.checks import Part
from acceptance.closed_forms import busy_seconds
from acceptance.machine import Machine, notes
from acceptance.models import Called, Chain, Training, cooperative_perception, moved, resnet

CALLS = 20
OF_THE_CALL = 0.05  # so much of a call may its idle time be off
KERNELS = 0.10  # clocks move between two runs
ABOVE_ROOF = 102.0  # percent
BUSY = 0.95  # of a bare call: nobody waits for launches


def cases(machine: Machine) -> dict[str, tuple[nn.Module, tuple[Any, ...]]]:
    """Calls that wait for the host, calls that do not, and what lies between."""
    size, batch = machine.size(224, 32), machine.size(32, 1)
    whole = not machine.simulated
    in_fp32, in_bf16 = (machine.model(resnet(whole=whole)) for _ in range(2))
    images = torch.rand(batch, 3, size, size, device=machine.tensors)
    rows = machine.size(4096, 64)
    left, right = (torch.rand(rows, rows, device=machine.tensors).bfloat16() for _ in range(2))
    large = torch.rand(batch, 64, size // 2, size // 2, device=machine.tensors).bfloat16()
    width, tokens = machine.size(1024, 32), machine.size(512, 8)
    transformer = machine.model(Training(width, 2).encoder.eval())
    found: dict[str, tuple[nn.Module, tuple[Any, ...]]] = {
        "resnet50": (in_fp32, (images,)),
        "resnet50 of one image": (in_fp32, (images[:1],)),
        "resnet50 bf16 channels last": (
            in_bf16.to(dtype=torch.bfloat16, memory_format=torch.channels_last),
            (images.bfloat16().contiguous(memory_format=torch.channels_last),),
        ),
        "product bf16": (Called(machine.call(lambda: left @ right, flops=2 * rows**3)), ()),
        "max pool": (machine.model(nn.Sequential(nn.MaxPool2d(3, 2, 1))), (large,)),
        "transformer": (transformer, (torch.rand(16, tokens, width, device=machine.tensors),)),
        "chain": (machine.model(Chain(machine.size(500, 20))), (torch.zeros(16, device=machine.tensors),)),
    }
    if whole:
        perception, inputs = cooperative_perception()
        found["dict input"] = machine.model(perception), (moved(inputs, machine.tensors),)
    return found


def bare_seconds(machine: Machine, call: Callable[[], object]) -> float:
    """The median call that nothing observes."""
    return statistics.median(machine.timed(call, 3 + machine.size(CALLS, 1))[3:])


def busy_by_torch(machine: Machine, call: Callable[[], object]) -> float:
    """The seconds in which the device ran something, by torch.profiler's records of the device alone."""

    def calls() -> None:
        for _ in range(5):
            call()

    return busy_seconds(machine.trace_by_torch(calls, device_alone=True)) / 5


def check_report(part: Part, label: str, report: roofprof.Report, bare: float) -> None:
    """What must hold of a report whose call takes so long at most without a profiler."""
    total, idle = report.total, max(0.0, bare - (report.total.busy or 0.0))
    gains = {finding.id: finding.gain_high for finding in report.findings}
    limit = (1 + OF_THE_CALL) * bare
    part.equal(f"{label}: findings that gain more than the call", {k: v for k, v in gains.items() if v > limit}, {})
    waits = {finding.id: finding.gain_high for finding in report.findings if finding.rule == "idle-device"}
    most = idle + OF_THE_CALL * bare
    part.equal(f"{label}: findings that gain more than the idle time", {k: v for k, v in waits.items() if v > most}, {})
    if total.busy is not None and total.busy >= BUSY * bare:
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
    part.holds(f"{label}: there are kernels", bool(report.total.kernel_count), report.total.kernel_count, notes(report))
    bare = sorted((before, bare_seconds(machine, call)))
    runs = report.to_dict()["runs"]
    observed, own = (statistics.median(runs[of]) / 1e9 for of in ("total_ns", "bare_ns"))
    figures = {
        "bare": bare[0],
        "bare, slower": bare[1],
        "bare by roofprof": own,
        "observed": observed,
        "busy": report.total.busy,
    }
    part.fact(label, figures | {"idle": report.total.idle, "bound": report.total.bound})
    part.fact(f"{label}: findings", [(f.rule, f.module, f.op, f.gain_low, f.gain_high) for f in report.findings])
    part.fact(f"{label}: table", report.table(depth=2, limit=20, width=160))
    if machine.simulated:  # a stand-in's kernels take no time of the call
        return
    busy = busy_by_torch(machine, call)
    part.near(f"{label}: time in which kernels ran", report.total.busy, busy, KERNELS, "expected: by torch.profiler")
    least, most = (max(0.0, seconds - busy) for seconds in bare)
    margin = OF_THE_CALL * bare[0]
    why = f"bare calls {bare} s, kernels {busy} s"
    part.between(f"{label}: idle time", report.total.idle, least - margin, most + margin, why)
    check_report(part, label, report, bare[1])


def run(part: Part, machine: Machine) -> None:
    found: dict[str, tuple[nn.Module, tuple[Any, ...]]] = {}
    with part.stage("preparing"):
        found = cases(machine)
    for label, (model, args) in found.items():
        with part.stage(label):
            check(part, machine, label, model, args)
