"""Small tables of a page, which do not sort: phases, regions, ranks, collectives and memory."""

from __future__ import annotations

from typing import Any

from roofprof import _report


def parts(report: _report.Report) -> dict[str, dict[str, Any]]:
    """Return the tables by the section that shows them."""
    found = {name: _rows(report, by) for name, by in (("phases", "phase"), ("regions", "scope"))}
    found |= {f"{by}s": _rows(report, by, legend=True) for by in ("rank", "collective")}
    found["memory"] = _rows(report, "memory", legend=True)
    if len(found["phases"]["rows"]) == 1:
        found["phases"]["rows"] = []
    return {name: table for name, table in found.items() if table["rows"]}


def _rows(report: _report.Report, by: str, *, legend: bool = False) -> dict[str, Any]:
    tables = [table_data(block) for block in report.part("rows", by).blocks if isinstance(block, _report.Table)]
    said = [block.text for block in report.part("legend", by).blocks if isinstance(block, _report.Paragraph)]
    return {**(tables[0] if tables else {"rows": []}), "legend": said if legend else []}


def table_data(table: _report.Table) -> dict[str, Any]:
    """Return a document's table as the page's scripts take it, without its totals."""
    rows = [row for row, mark in zip(table.rows, table.marks, strict=True) if mark != "total"]
    return {
        "headings": [column.heading for column in table.columns],
        "rows": [[cell.text for cell in row] for row in rows],
        "numeric": [index for index, column in enumerate(table.columns) if index and not column.left],
    }
