"""Pictures within pages, as SVG: a report in a notebook, and results on pages of their own. Nothing in them is run."""

from __future__ import annotations

import importlib.util
from base64 import b64encode
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from roofprof.render.plots.plot import content, plot
from roofprof.render.results import preformatted
from roofprof.render.views.reads import ViewedReport

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    return _image(figure, 'alt="roofline" style="max-width: 640px; width: 100%"')


def picture_of(draw: Callable[[], Figure], shows: str) -> str:
    """Return what is drawn as HTML, for a page; where matplotlib is missing, a paragraph that says so."""
    if importlib.util.find_spec("matplotlib") is None:
        return "<p>The picture is left out: it needs matplotlib (<code>pip install roofprof[plot]</code>).</p>"
    return _image(draw(), f'alt="{shows}"')


def _image(figure: Figure, attributes: str) -> str:
    # An <img> shows it by itself: the ids of several pictures on one page cannot meet.
    return f'<img {attributes} src="data:image/svg+xml;base64,{b64encode(content(figure, "svg")).decode()}">'
