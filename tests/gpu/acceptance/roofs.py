"""The roofs of this GPU: measured, beside what its maker publishes."""

from __future__ import annotations

import time

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
    """The kernels behind the peaks are named, and the L2 counts more bytes than kernels ask for."""
    part.fact("roofs", measured.to_dict())
    part.holds("there is a roof of fp32", "fp32" in {peak.dtype for peak in measured.compute})
    fastest = {peak.dtype: peak.fastest for peak in measured.compute}
    missing = {dtype: work and work.missing for dtype, work in fastest.items() if not (work and work.kernel_name)}
    part.equal("peaks without a kernel's name", missing, {})
    for level in measured.memory:
        if level.level == "L2" and machine.counters_permitted:
            ratio = level.counted_bytes_per_second / level.bytes_per_second
            part.between("the L2's roof in bytes that it counts over that of useful bytes", ratio, *COUNTED)


def run(part: Part, machine: Machine) -> None:
    with part.stage("roofs"):
        machine.needs_gpu()
        start = time.perf_counter()
        measured = roofprof.Ceilings.measure(machine.device)
        part.between("seconds to measure the roofs", time.perf_counter() - start, 0.0, SECONDS)
        check_measured(part, machine, measured)
        check_published(part, measured, machine.name)
