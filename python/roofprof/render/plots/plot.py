"""A picture of a report: which one, checked, drawn, and written to a file or into a page."""

from __future__ import annotations

import importlib.util
import io
import os
import warnings
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from roofprof import _report
from roofprof.errors import Error
from roofprof.render.files import write_whole
from roofprof.render.html import Html, el
from roofprof.render.results import preformatted
from roofprof.render.views.folding import folds_of, in_both
from roofprof.render.views.roofline import RooflineView, roofline_view

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("roofline", "time")
FORMATS = ("svg", "png", "pdf")
DPI = 200  # of a PNG


def plot(
    report: _report.Report,
    path: str | os.PathLike[str] | None = None,
    by: str = "module",
    kind: str = "roofline",
    before: _report.Report | None = None,
    *,
    expand: bool = False,
) -> Figure:
    """Draw a report: :meth:`roofprof.Report.plot`."""
    check(path, by, kind)
    for drawn, name in ((report, "report"), (before, "report before")):
        if drawn is not None and drawn.total.time is None:
            raise Error(f"the {name} is a count, without times and roofs to draw: profile the model instead")
        if drawn is not None and kind == "time" and not drawn.ceilings:
            raise Error(f"the {name} has no roofs, which the plot of kind time needs: profile with ceilings")
        if drawn is not None and by == "kernel" and not drawn.kernels:
            raise Error(f"the {name} has {drawn.why_no_kernels}")

    def draw() -> Figure:
        from roofprof.render.plots.roofline import draw_roofline, draw_time

        views = views_of(report, by, before, expand=expand)
        return {"roofline": draw_roofline, "time": draw_time}[kind](report, *views)

    return drawn_to(path, "Report", draw)


def drawn_to(path: str | os.PathLike[str] | None, whose: str, draw: Callable[[], Figure]) -> Figure:
    """Return what is drawn; with a path, write it there as well, in the form of its suffix, whole or not at all."""
    check(path)
    try:
        import matplotlib.style
    except ImportError:
        raise ImportError(f"{whose}.plot needs matplotlib: run `pip install roofprof[plot]`") from None
    with matplotlib.style.context("default"):  # a user's own style is for the user's own plots
        figure = draw()
    if path is not None:
        write_whole(path, content(figure, _suffix(path)))
    return figure


def views_of(
    report: _report.Report, by: str, before: _report.Report | None, *, expand: bool
) -> tuple[RooflineView, RooflineView | None]:
    """Return the views of both reports, which fold only what both fold alike; the rest is matched by module."""
    if before is None:
        return roofline_view(report, by, expand=expand), None
    folds, earlier = ({}, {}) if expand or by != "module" else in_both(folds_of(report), folds_of(before))
    return roofline_view(report, by, folds=folds), roofline_view(before, by, folds=earlier)


def check(path: str | os.PathLike[str] | None, by: str = "module", kind: str = "roofline") -> None:
    """Raise ValueError for what cannot be drawn or written."""
    if kind not in KINDS:
        raise Error(f"there is a plot of kind {' and '.join(KINDS)}, not {kind!r}")
    if kind == "time" and by == "kernel":
        raise Error("kernels have no lower bound: the plot of kind time is by module or op")
    if path is not None and _suffix(path) not in FORMATS:
        raise Error(f"cannot draw '{os.fspath(path)}': a plot's file ends in .svg, .png or .pdf")


def content(figure: Figure, form: str) -> bytes:
    """Return the file's bytes. The same picture gives the same bytes."""
    import matplotlib.style

    file = io.BytesIO()
    dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[form]
    with matplotlib.style.context(["default", {"svg.hashsalt": "roofprof"}]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # the font's box stands there
        figure.savefig(file, format=form, dpi=DPI, metadata=dated)
    return file.getvalue()


def _suffix(path: str | os.PathLike[str]) -> str:
    return Path(path).suffix.lower().removeprefix(".")


# ---- within pages


def notebook_html(report: _report.Report, table: str) -> str:
    """Return the picture, if matplotlib is there and the report was timed, then the table."""
    picture = Html()
    if report.total.time is not None and importlib.util.find_spec("matplotlib") is not None:
        picture = _image(plot(report), alt="roofline", style="max-width: 640px; width: 100%")
    return el("div", picture, preformatted(table))


def picture_of(draw: Callable[[], Figure], shows: str) -> Html:
    """Return what is drawn as HTML, for a page; where matplotlib is missing, a paragraph that says so."""
    if importlib.util.find_spec("matplotlib") is None:
        how = el("code", "pip install roofprof[plot]")
        return el("p", "The picture is left out: it needs matplotlib (", how, ").")
    return _image(draw(), alt=shows)


def _image(figure: Figure, **attributes: str) -> Html:
    # An <img> shows it by itself: the ids of several pictures on one page cannot meet, and nothing in it is run.
    return el("img", **attributes, src=f"data:image/svg+xml;base64,{b64encode(content(figure, 'svg')).decode()}")
