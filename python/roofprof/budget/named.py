"""The rows of a report that a budget's paths mean."""

from __future__ import annotations

from roofprof import _report
from roofprof.report.comparison.matching import REGION
from roofprof.report.report import Report


def named_rows(report: Report) -> list[_report.Row]:
    """Return a row for each path; where a module and a region have the same, the module's."""
    by_path: dict[str, _report.Row] = {}
    for row in report.rows:
        known = by_path.setdefault(row.path, row)
        if known.type == REGION and row.type != REGION:
            by_path[row.path] = row
    return list(by_path.values())
