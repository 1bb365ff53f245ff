"""Whole models: what modules say adds up to the total, and the total is what torch.profiler sees."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch
from torch import nn

import roofprof
from acceptance.checks import FAIL, SKIPPED, Check, Part
from acceptance.closed_forms import device_work
from acceptance.machine import Machine, notes, seconds_by_events
from acceptance.models import Called, Training, WithBackward, cooperative_perception, moved, resnet50

# Two runs of the same work: clocks move meanwhile.
TIME_TOLERANCE = 0.10
ROUNDING = 1e-6


def check_sums(part: Part, label: str, report: roofprof.Report, *, counted: bool, permitted: bool) -> None:
    """Rows, kernels and total agree; nothing was dropped; every kernel has a place."""
    rows, total, kernels = report.rows, report.total, report.kernels
    part.holds(f"{label}: there are kernels", bool(kernels), len(kernels), "" if kernels else notes(report))
    part.equal(f"{label}: kernels of all rows", sum(row.self_kernel_count or 0 for row in rows), total.kernel_count)
    instances = sum(kernel.instances for kernel in kernels if kernel.kind == "kernel")
    part.equal(f"{label}: instances in the kernel table", instances, total.kernel_count)
    part.near(f"{label}: time of all rows", sum(row.self_time or 0 for row in rows), total.time or 0, ROUNDING)
    ran = (total.time or 0) + (total.hidden_communication or 0)
    part.near(f"{label}: time in the kernel table", sum(k.total for k in kernels), ran, ROUNDING)
    part.equal(f"{label}: kernels without a module", report.coverage.unattributed_kernels, 0, notes(report))
    part.equal(f"{label}: records dropped", report.coverage.dropped_records, 0, notes(report))
    if total.busy is not None and total.time:
        part.between(f"{label}: busy over the sum of kernel times", total.busy / total.time, 0.0, 1.0 + ROUNDING)
    part.between(f"{label}: GPU utilisation", total.utilization, 0.0, 100.0, "" if total.utilization else notes(report))
    if not counted:
        return
    if total.dram_bytes is None:
        status = FAIL if permitted else SKIPPED
        part.add(Check(f"{label}: DRAM bytes of all rows", status, None, "a number", explanation=notes(report)))
        return
    part.equal(f"{label}: DRAM bytes of all rows", sum(row.self_dram_bytes or 0 for row in rows), total.dram_bytes)
    missing = [kernel.name for kernel in kernels if kernel.kind == "kernel" and kernel.dram_bytes is None]
    part.equal(f"{label}: kernels without DRAM bytes", missing, [], notes(report))
    part.fact(f"{label}: DRAM bytes over analytic bytes", total.dram_bytes_ratio)


def beside_torch(part: Part, machine: Machine, label: str, call: Callable[[], object], report: roofprof.Report) -> None:
    """The same call under torch.profiler: as many kernels, about the same time."""
    if machine.simulated:
        return
    count, seconds = device_work(machine.trace_by_torch(call))
    part.equal(f"{label}: kernels that torch.profiler sees", report.total.kernel_count, count)
    part.near(
        f"{label}: time of kernels, copies and fills by torch.profiler", report.total.time, seconds, TIME_TOLERANCE
    )


def inference(part: Part, machine: Machine, label: str, model: nn.Module, *args: object) -> roofprof.Report:
    """A model's forward, counters and all."""

    def call() -> object:
        with torch.no_grad():
            return model(*args)

    for _ in range(3):
        call()
    report = machine.profile(label, model, *args)
    check_sums(part, label, report, counted=True, permitted=machine.counters_permitted)
    beside_torch(part, machine, label, call, report)
    part.fact(f"{label}: table", report.table(depth=2, limit=20, width=160))
    part.fact(f"{label}: kernel table", report.table(by="kernel", limit=12, width=160))
    return report


def check_resnet(part: Part, machine: Machine) -> None:
    batch, size = machine.size(32, 1), machine.size(224, 32)
    model = machine.model(resnet50().eval())
    images = torch.rand(batch, 3, size, size, device=machine.tensors)
    report = inference(part, machine, "resnet50", model, images)
    part.equal("resnet50: parameters", report.total.params, 25_557_032, "torchvision's figure")
    if not machine.simulated:
        part.equal("resnet50: MACs", report.total.macs, batch * 4_089_184_256, "fvcore's figure for one image")


def check_backward(part: Part, machine: Machine) -> None:
    """Forward and backward in one call, on autograd's threads: counters need calls that can be repeated."""
    width, tokens = machine.size(512, 32), machine.size(256, 8)
    model = WithBackward(machine.model(Training(width, machine.size(6, 2))))
    batch = torch.rand(16, tokens, width, device=machine.tensors)
    wanted = torch.randint(0, 1000, (16, tokens), device=machine.tensors)
    report = machine.profile("forward and backward", model, batch, wanted)
    check_sums(part, "forward and backward", report, counted=True, permitted=machine.counters_permitted)


def check_dict_input(part: Part, machine: Machine) -> None:
    model, batch = cooperative_perception()
    inference(part, machine, "dict input", machine.model(model), moved(batch, machine.tensors))


def check_events(part: Part, machine: Machine, label: str) -> None:
    """The time of kernels is the one that CUDA's events tell, whatever torch.profiler has made of CUPTI's clock."""
    machine.needs_gpu()
    a, b, c = (torch.rand(4096, 4096, device=machine.tensors) for _ in range(3))

    def products() -> None:  # of milliseconds each: the device is never idle between them
        for _ in range(20):
            torch.mm(a, b, out=c)

    products()
    expected = statistics.median(seconds_by_events(products, 5))
    report = machine.profile(f"products {label}", Called(products), counters="off")
    name = f"time of 20 products by roofprof and by CUDA's events, {label}"
    part.near(name, report.total.time, expected, TIME_TOLERANCE, notes(report))


def run(part: Part, machine: Machine) -> None:
    with part.stage("events before torch.profiler"):
        check_events(part, machine, "before torch.profiler")
    for name, check in (("resnet50", check_resnet), ("backward", check_backward), ("dict input", check_dict_input)):
        with part.stage(name):
            check(part, machine)
    with part.stage("events after torch.profiler"):
        check_events(part, machine, "after torch.profiler")
