"""A report in a notebook: the roofline as SVG within the page, and the table as text. Nothing in it is run."""

from __future__ import annotations

from typing import Protocol

from roofprof.render.plots.plot import content, plot
from roofprof.render.results import preformatted
from roofprof.render.views.reads import ViewedReport


class ShownReport(ViewedReport, Protocol):
    """A report that prints itself."""

    def table(self) -> str:
        """Return it as text."""


def html(report: ShownReport, table: str | None = None) -> str:
    """Return the picture, if matplotlib is there and the report was timed, then the table, or a text in its place."""
    text = report.table() if table is None else table
    return f"<div>{_picture(report)}{preformatted(text)}</div>"


def _picture(report: ViewedReport) -> str:
    if report.total.time is None:
        return ""
    try:
        figure = plot(report)
    except ImportError:
        return ""
    # An <img> shows it by itself: the ids of several pictures on one page cannot meet.
    from base64 import b64encode

    svg = b64encode(content(figure, "svg")).decode()
    return f'<img alt="roofline" style="max-width: 640px; width: 100%" src="data:image/svg+xml;base64,{svg}">'
