"""A report as one HTML file: ``content`` has what it shows, ``document`` the file around it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from roofprof import _report
from roofprof.render.files import write_whole
from roofprof.render.page.content import content
from roofprof.render.page.document import document
from roofprof.render.views.reads import ViewedReport
from roofprof.render.views.roofline import BY, roofline_view


def write_page(report: _report.Report, viewed: ViewedReport, path: str | Path) -> None:
    """Write the file. Raises ImportError where plotly is missing, OSError where it cannot be written."""
    title = f"{report.model or 'model'} on {report.device}: roofprof"
    write_whole(path, document(page_content(report, viewed), title).encode())


def page_content(report: _report.Report, viewed: ViewedReport) -> dict[str, Any]:
    """Return the content of a report's page, as plain data; ``viewed`` is the same report for its rooflines."""
    return content(report, {by: roofline_view(viewed, by) for by in BY})
