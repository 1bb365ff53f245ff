"""Roofs given by hand, so that tests know the figures and measure nothing."""

from __future__ import annotations

import threading

import roofprof
from roofprof import _C

PEAKS = {"fp32": 1e11, "fp64": 4e10, "int8": 8e11}  # operations per second
LEVELS = {"L2": (1e11, 1 << 20), "L3": (5e10, 16 << 20), "DRAM": (1e10, 0)}  # bytes per second, capacity
_PROVENANCE = {"source": "given", "method": "by hand", "date": "", "spread": None}


def roofs(
    peaks: dict[str, float] = PEAKS, levels: dict[str, tuple[float, int]] = LEVELS, spread: float | None = None
) -> _C.Ceilings:
    provenance = _PROVENANCE | {"spread": spread}
    return _C.ceilings_from_dict(
        {
            "device": "a machine on paper",
            "compute": [
                {"dtype": dtype, "operations_per_second": peak, "provenance": provenance}
                for dtype, peak in peaks.items()
            ],
            "memory": [
                {"level": level, "bytes_per_second": rate, "capacity_bytes": capacity, "provenance": provenance}
                for level, (rate, capacity) in levels.items()
            ],
        }
    )


def profiler(model, **options) -> roofprof.RooflineProfiler:
    """A profiler that is quick and measures no roofs."""
    return roofprof.RooflineProfiler(model, **{"warmup": 1, "repeat": 2, "ceilings": roofs()} | options)


def profiled_at_once(model, *args) -> list[roofprof.Report]:
    """The reports of two blocks around a call each, on a thread each, that are both open while the calls are made."""
    both, reports = threading.Barrier(2), {}

    def profile(name):
        with profiler(model) as block:
            both.wait(60)
            model(*args)
            both.wait(60)
        reports[name] = block.report()

    threads = [threading.Thread(target=profile, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [reports["a"], reports["b"]]
