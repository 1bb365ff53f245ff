"""What must hold of any report: what rows and kernels say adds up, and the total is what torch.profiler sees."""

from __future__ import annotations

from collections.abc import Callable

import roofprof
from acceptance.checks import FAIL, SKIPPED, Check, Part
from acceptance.machine import Machine, notes

TIME_TOLERANCE = 0.10  # two runs of the same work: clocks move meanwhile
ROUNDING = 1e-6


def check_report(part: Part, machine: Machine, label: str, report: roofprof.Report, *, counted: bool = False) -> None:
    """Rows, kernels and total agree; nothing was dropped; every kernel has a place."""
    rows, total, kernels = report.rows, report.total, report.kernels
    launched = [kernel for kernel in kernels if kernel.kind == "kernel"]  # not a copy or fill
    part.holds(f"{label}: there are kernels", len(launched), notes(report))
    part.equal(f"{label}: kernels of all rows", sum(row.self_kernel_count or 0 for row in rows), total.kernel_count)
    part.equal(f"{label}: instances in the kernel table", sum(k.instances for k in launched), total.kernel_count)
    part.near(f"{label}: time of all rows", sum(row.self_time or 0 for row in rows), total.time or 0, ROUNDING)
    ran = (total.time or 0) + (total.hidden_communication or 0)
    part.near(f"{label}: time in the kernel table", sum(k.total for k in kernels), ran, ROUNDING)
    part.equal(f"{label}: kernels without a module", report.coverage.unattributed_kernels, 0, notes(report))
    part.equal(f"{label}: records dropped", report.coverage.dropped_records, 0, notes(report))
    if total.busy is not None and total.time:
        part.between(f"{label}: busy over the sum of kernel times", total.busy / total.time, 0.0, 1.0 + ROUNDING)
    part.between(f"{label}: GPU utilisation", total.utilization, 0.0, 100.0, "" if total.utilization else notes(report))
    part.fact(f"{label}: table", report.table(depth=2, limit=20, width=160))
    if not counted:
        return
    if total.dram_bytes is None:
        status = FAIL if machine.counters_permitted else SKIPPED
        part.add(Check(f"{label}: DRAM bytes of all rows", status, None, "a number", explanation=notes(report)))
        return
    part.equal(f"{label}: DRAM bytes of all rows", sum(row.self_dram_bytes or 0 for row in rows), total.dram_bytes)
    missing = [kernel.name for kernel in launched if kernel.dram_bytes is None]
    part.equal(f"{label}: kernels without DRAM bytes", missing, [], notes(report))


def beside_torch(part: Part, machine: Machine, label: str, call: Callable[[], object], report: roofprof.Report) -> None:
    """The same call under torch.profiler: as many kernels, about the same time."""
    if machine.simulated:
        return
    theirs = machine.by_torch(call)
    part.equal(f"{label}: kernels that torch.profiler sees", report.total.kernel_count, theirs["kernels"])
    name = f"{label}: time of kernels, copies and fills by torch.profiler"
    part.near(name, report.total.time, theirs["seconds"], TIME_TOLERANCE)
