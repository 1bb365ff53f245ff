"""A picture of a report: which one, checked, drawn, and written to a file."""

from __future__ import annotations

import io
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from roofprof.render.files import write_whole
from roofprof.render.views.folding import folds_of, in_both
from roofprof.render.views.roofline import RooflineView, roofline_view

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from roofprof.render.views.reads import ViewedReport

KINDS = ("roofline", "time")
FORMATS = ("svg", "png", "pdf")
DPI = 200  # of a PNG


def plot(
    report: ViewedReport,
    path: str | os.PathLike[str] | None = None,
    by: str = "module",
    kind: str = "roofline",
    before: ViewedReport | None = None,
    *,
    expand: bool = False,
) -> Figure:
    """Draw a report: :meth:`roofprof.Report.plot`."""
    check(path, by, kind)
    if isinstance(before, (str, os.PathLike)):
        raise TypeError(f"before is a report, not a file: roofprof.Report.from_json({os.fspath(before)!r})")
    for drawn, name in ((report, "report"), (before, "report before")):
        if drawn is not None and drawn.total.time is None:
            raise ValueError(f"the {name} is a count, without times and roofs to draw: profile the model instead")
        if drawn is not None and kind == "time" and not drawn.ceilings:
            raise ValueError(f"the {name} has no roofs, which the plot of kind time needs: profile with ceilings")
        if drawn is not None and by == "kernel" and not drawn.kernels:
            raise ValueError(f"the {name} has {drawn.why_no_kernels}")
    try:
        import matplotlib.style
    except ImportError:
        raise ImportError(
            "Report.plot needs matplotlib: run `pip install matplotlib`, or take roofprof[plot]"
        ) from None
    from roofprof.render.plots.roofline import draw_roofline, draw_time

    draw = {"roofline": draw_roofline, "time": draw_time}[kind]
    with matplotlib.style.context("default"):  # a user's own style is for the user's own plots
        figure = draw(report, *views_of(report, by, before, expand=expand))
    if path is not None:
        write_whole(path, content(figure, _suffix(path)))
    return figure


def views_of(
    report: ViewedReport, by: str, before: ViewedReport | None, *, expand: bool
) -> tuple[RooflineView, RooflineView | None]:
    """Return the views of both reports, which fold only what both fold alike; the rest is matched by module."""
    if before is None:
        return roofline_view(report, by, expand=expand), None
    folds, earlier = ({}, {}) if expand or by != "module" else in_both(folds_of(report), folds_of(before))
    return roofline_view(report, by, folds=folds), roofline_view(before, by, folds=earlier)


def check(path: str | os.PathLike[str] | None, by: str, kind: str) -> None:
    """Raise ValueError for what cannot be drawn or written."""
    if kind not in KINDS:
        raise ValueError(f"there is a plot of kind {' and '.join(KINDS)}, not {kind!r}")
    if kind == "time" and by == "kernel":
        raise ValueError("kernels have no lower bound: the plot of kind time is by module or op")
    if path is not None and _suffix(path) not in FORMATS:
        raise ValueError(f"cannot draw '{os.fspath(path)}': a plot's file ends in .svg, .png or .pdf")


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
