"""The time roofline: the time that the bytes of each dot need against the time that its FLOPs need."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from roofprof.render.plots.canvas import LINES, Canvas, durations, limits
from roofprof.render.plots.dots import draw_dots, kinds_in, label_worst, moved
from roofprof.render.plots.words import headings, time_remarks
from roofprof.render.views.roofline import Dot, RooflineView

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from roofprof.render.views.reads import ViewedReport


def draw(report: ViewedReport, view: RooflineView, before: RooflineView | None = None) -> Figure:
    """Return the picture of a view of that report."""
    unplaced = [dot for dot in view.dots if not _has_place(dot)]
    placed = _placed(view)
    earlier = _placed(before) if before else None
    canvas = Canvas(*headings(report, view, "time"), kinds_in(placed), time_remarks(placed, earlier, unplaced))
    places = [_place(dot) for dot in (*placed.dots, *(was for was, _ in moved(placed, earlier)))]
    both = limits([value for place in places for value in place] or [1e-6], below=3, above=3)
    canvas.set_axes(both, both, ("time that the FLOPs need", "time that the bytes need"), (durations(), durations()))
    ends = ((both[0], both[0]), (both[1], both[1]))
    canvas.axes.plot(both, both, color=LINES, linewidth=1.1, zorder=2, label="both alike")
    draw_dots(canvas, placed, earlier, _place)
    canvas.label_line("bound by memory above, by compute below", *ends, from_end=True)
    label_worst(canvas, placed, _place)
    return canvas.figure


def _has_place(dot: Dot) -> bool:
    return bool(dot.compute_time and dot.memory_time)


def _placed(view: RooflineView) -> RooflineView:
    return dataclasses.replace(view, dots=tuple(dot for dot in view.dots if _has_place(dot)))


def _place(dot: Dot) -> tuple[float, float]:
    assert dot.compute_time is not None and dot.memory_time is not None
    return dot.compute_time, dot.memory_time
