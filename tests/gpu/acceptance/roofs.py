"""The roofs of this GPU: measured, beside what its maker publishes; and the example that predicts by them."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import roofprof
from acceptance.checks import Part
from acceptance.machine import Machine

# Of the published figure. Clocks under load are below the boost clock that peaks are published for; a copy reaches
# most of a bandwidth, never all. Above the published one by more than a clock's tolerance, either figure is wrong.
COMPUTE = (0.5, 1.06)
INT8 = (0.4, 1.06)  # torch's int8 product reached half of the published rate on an H100
BANDWIDTH = (0.75, 1.02)
# Published figures of caches are others' measurements, by other kernels than ours: 0.75 on an A100, 1.10 on an H100.
CACHE = (0.3, 1.25)
COUNTED = (1.0, 2.5)  # kernels' l2_bytes were 1.46 to 1.52 times the useful ones on an H100
SECONDS = 60
CONVOLUTION_FLOPS = "858,993,459,200"
MATMUL_BYTES = "250,828,800"


def check_published(part: Part, measured: roofprof.Ceilings, name: str) -> None:
    """Each measured roof over the published one of that dtype or level."""
    try:
        published = roofprof.Ceilings.published(name)
    except (ValueError, KeyError) as error:
        part.skip("measured over published", f"{name} is not among the published cards: {error}")
        return
    peaks = {peak.dtype: peak.operations_per_second for peak in published.compute}
    for peak in measured.compute:
        if peak.dtype in peaks:
            ratio = peak.operations_per_second / peaks[peak.dtype]
            part.between(f"{peak.dtype}: measured over published", ratio, *(INT8 if peak.dtype == "int8" else COMPUTE))
    levels = {level.level: level.bytes_per_second for level in published.memory}
    for level in measured.memory:
        if level.level in levels:
            ratio = level.bytes_per_second / levels[level.level]
            limits = CACHE if level.capacity_bytes else BANDWIDTH
            part.between(f"{level.level}: measured over published", ratio, *limits)


def check_inside(part: Part, machine: Machine, measured: roofprof.Ceilings) -> None:
    """The kernels behind the peaks are named, and the L2 counts more bytes than kernels ask for."""
    fastest = {peak.dtype: peak.fastest for peak in measured.compute}
    missing = {dtype: work and work.missing for dtype, work in fastest.items() if not (work and work.kernel_name)}
    part.equal("peaks without a kernel's name", missing, {})
    counted = [(level.counted_bytes_per_second, level) for level in measured.memory if level.level == "L2"]
    if not machine.counters_permitted:
        part.skip("bytes that the L2 counts", "this process may not read counters")
        return
    for rate, level in counted:
        part.between("the L2's roof in bytes that it counts over that of useful bytes", rate / level.bytes_per_second,
                     *COUNTED, level.provenance.method)  # fmt: skip


def check_measured(part: Part, machine: Machine) -> None:
    start = time.perf_counter()
    lines: list[str] = []
    measured = roofprof.Ceilings.measure(machine.device, lines.append)
    part.between("seconds to measure the roofs", time.perf_counter() - start, 0.0, SECONDS)
    part.fact("what measuring said", lines)
    part.fact("roofs", measured.to_dict())
    part.fact("table of roofs", measured.table(160))
    part.holds("there is a roof of fp32", "fp32" in {peak.dtype for peak in measured.compute}, len(measured.compute))
    rates = {level.level: level.bytes_per_second for level in measured.memory}
    part.holds("there is a roof of DRAM", "DRAM" in rates, sorted(rates))
    if "L2" in rates and "DRAM" in rates:
        part.holds("L2 is faster than DRAM", rates["L2"] > rates["DRAM"], rates)
    for level in (level for level in rates if "host" in level):
        part.holds(f"{level} is slower than DRAM", rates[level] < rates["DRAM"], rates)
    check_published(part, measured, machine.name)
    check_inside(part, machine, measured)


def check_example(part: Part, machine: Machine) -> None:
    """examples/gemv_or_conv.py, as a user calls it."""
    example = Path(__file__).resolve().parents[3] / "examples" / "gemv_or_conv.py"
    command = [sys.executable, str(example), "--device", machine.tensors, *(["--quick"] if machine.simulated else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=150)
    part.fact("gemv_or_conv.py", done.stdout)
    part.equal("gemv_or_conv.py: exit code", done.returncode, 0, done.stderr[-1000:])
    part.holds("gemv_or_conv.py: bytes of the product", MATMUL_BYTES in done.stdout, MATMUL_BYTES)
    if not machine.simulated:
        part.holds("gemv_or_conv.py: FLOPs of the convolution", CONVOLUTION_FLOPS in done.stdout, CONVOLUTION_FLOPS)
        part.holds("gemv_or_conv.py: names the kernels", "built for" in done.stdout, "built for" in done.stdout)


def run(part: Part, machine: Machine) -> None:
    with part.stage("roofs"):
        machine.needs_gpu()
        check_measured(part, machine)
    with part.stage("example"):
        check_example(part, machine)
