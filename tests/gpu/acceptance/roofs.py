"""The roofs of this GPU: measured, beside what its maker publishes, and beside what products and streams reach."""

from __future__ import annotations

import statistics
import time

import torch

import roofprof
from acceptance.checks import Part
from acceptance.machine import Machine, seconds_by_events
from acceptance.traffic import DTYPES

# Of the published figure. Clocks under load are below the boost clock that peaks are published for; a copy reaches
# most of a bandwidth, never all. Above the published one by more than a clock's tolerance, either figure is wrong.
COMPUTE = (0.5, 1.06)
INT8 = (0.4, 1.06)  # torch's int8 product reached half of the published rate on an H100
BANDWIDTH = (0.75, 1.02)
# Published figures of caches are others' measurements, by other kernels than ours: 0.75 on an A100, 1.10 on an H100.
CACHE = (0.3, 1.25)
COUNTED = (1.0, 2.5)  # kernels' l2_bytes were 1.46 to 1.52 times the useful ones on an H100
SECONDS = 60
ABOVE = 1.02  # of its roof
REST, BURST, LONG = 0.5, 0.01, 2.0  # seconds without work before, of the first moments, and of work


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


def check_measured(part: Part, machine: Machine, measured: roofprof.Ceilings) -> None:
    """Levels in their order, the kernels behind the peaks named, and the L2 counts more bytes than kernels ask for."""
    part.fact("roofs", measured.to_dict())
    part.holds("there is a roof of fp32", "fp32" in {peak.dtype for peak in measured.compute})
    rates = {level.level: level.bytes_per_second for level in measured.memory}
    part.holds("L2 is faster than DRAM, and that than the link to the host",
               all(level in {"L2", "DRAM"} or rate < rates["DRAM"] < rates["L2"] for level, rate in rates.items()),
               str(rates))  # fmt: skip
    fastest = {peak.dtype: peak.fastest for peak in measured.compute}
    missing = {dtype: work and work.missing for dtype, work in fastest.items() if not (work and work.kernel_name)}
    part.equal("peaks without a kernel's name", missing, {})
    for level in measured.memory:
        if level.level == "L2" and machine.counters_permitted:
            ratio = level.counted_bytes_per_second / level.bytes_per_second
            part.between("the L2's roof in bytes that it counts over that of useful bytes", ratio, *COUNTED)


def check_products(part: Part, machine: Machine, dtype: str, roof: float | None) -> None:
    """The rate of a product's first moments after a rest, which is not above its roof, and the median for long."""
    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    size = 4096
    left, right = (machine.rand(size, size).to(DTYPES[dtype]) for _ in range(2))
    out = left @ right
    machine.synchronize()
    time.sleep(REST)
    durations: list[float] = []
    while sum(durations) < LONG:
        durations += seconds_by_events(lambda: torch.mm(left, right, out=out), 8)
    first = durations[: max(1, sum(sum(durations[: i + 1]) <= BURST for i in range(len(durations[:200]))))]
    burst, sustained = (2 * size**3 / statistics.median(of) for of in (first, durations[len(durations) // 2 :]))
    part.fact(f"{dtype} product", {"burst": burst, "sustained": sustained, "best": 2 * size**3 / min(durations)})
    if roof:
        part.between(f"{dtype} product: its first moments over the roof", burst / roof, 0.0, ABOVE)


def check_streams(part: Part, machine: Machine, mixes: dict[str, float]) -> None:
    """Reading, writing and copying arrays far larger than the L2, over DRAM's rate for that mix."""
    n = machine.array_bytes
    a, b = (machine.rand(n // 4) for _ in range(2))
    calls = {"read": (lambda: a.sum(), n), "write": (lambda: a.fill_(1.0), n), "copy": (lambda: a.copy_(b), 2 * n)}
    for mix, (call, moved) in calls.items():
        if mix in mixes:
            rate = moved / min(seconds_by_events(call, 8)[1:])
            part.between(f"{mix} over DRAM's roof", rate / mixes[mix], 0.0, ABOVE, f"{rate:.4g} B/s")


def run(part: Part, machine: Machine) -> None:
    with part.stage("roofs"):
        machine.needs_gpu()
        start = time.perf_counter()
        measured = roofprof.Ceilings.measure(machine.device)
        part.between("seconds to measure the roofs", time.perf_counter() - start, 0.0, SECONDS)
        check_measured(part, machine, measured)
        check_published(part, measured, machine.name)
        for peak in measured.compute:
            if peak.dtype in DTYPES:
                check_products(part, machine, peak.dtype, peak.operations_per_second)
        points = measured.to_dict()["curve"]["points"]
        check_streams(part, machine, points[-1] if points else {})
