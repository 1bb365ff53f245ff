"""The figures of a report that trackers draw as curves and compare between runs."""

from __future__ import annotations

from typing import Any

from roofprof import Report

PREFIX = "roofprof/"
# Figures of the total, by their names in `roofprof.fields`.
FIGURES = (
    "macs",
    "flops",
    "int_ops",
    "bytes",
    "peak_memory",
    "time",
    "intensity",
    "achieved_flops",
    "achieved_bandwidth",
    "percent_of_roof",
    "wasted_time",
)
# Columns of a tracker's table of modules.
COLUMNS = (
    "path",
    "type",
    "calls",
    "params",
    "macs",
    "flops",
    "bytes",
    "intensity",
    "time",
    "achieved_flops",
    "achieved_bandwidth",
    "bound",
    "percent_of_roof",
    "wasted_time",
)


def scalars(report: Report) -> dict[str, float]:
    """Return totals of the whole report by name, ``roofprof/flops`` and so on; an unknown figure is left out.

    Times are seconds, and ``roofprof/incomplete`` is 1 where an op without a cost makes the counts lower bounds.
    """
    figures: dict[str, Any] = {name: getattr(report.total, name) for name in FIGURES}
    statistics = report.step_statistics
    figures["mfu"] = report.mfu
    figures["hfu"] = report.hfu
    figures["steps"] = report.steps
    figures["step_time"] = None if statistics is None else statistics.median
    figures["incomplete"] = int(report.total.incomplete)
    return {PREFIX + name: value for name, value in figures.items() if value is not None}


def module_table(report: Report) -> tuple[list[str], list[list[Any]]]:
    """Return the names of the columns, and a row for each module and for the total; an unknown figure is None."""
    rows = [[getattr(row, name) for name in COLUMNS] for row in report.rows]
    total = ["(total)", *(getattr(report.total, name) for name in COLUMNS[1:])]
    return list(COLUMNS), [*rows, total]
