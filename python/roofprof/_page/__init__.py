"""A report as one HTML file: ``content`` has what it shows, ``document`` the file around it."""

from __future__ import annotations

from pathlib import Path

from roofprof import _C
from roofprof._files import write_whole
from roofprof._page.content import content
from roofprof._page.document import document
from roofprof._page.rooflines import Views


def write_page(report: _C.Report, views: Views, path: str | Path) -> None:
    """Writes the file. Raises ImportError where plotly is missing, OSError where it cannot be written."""
    title = f"{report.model or 'model'} on {report.device}: roofprof"
    write_whole(path, document(content(report, views), title).encode())
