"""The two pictures of a report: the roofline, and the time of each dot's bytes against that of its FLOPs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from roofprof.figures import fields
from roofprof.render.plots.canvas import LINES, Canvas, durations, limits, plain_numbers, rates
from roofprof.render.plots.dots import draw_dots, headings, kinds_in, label_worst, moved, roofline_remarks, time_remarks
from roofprof.render.plots.labels import Box, box_around, line_between
from roofprof.render.views.kinds import STYLES
from roofprof.render.views.roofline import Dot, Ridge, Roof, RooflineView

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from roofprof.render.views.reads import ViewedReport


def draw_roofline(report: ViewedReport, view: RooflineView, before: RooflineView | None = None) -> Figure:
    """Return the picture of a view of that report."""
    canvas = Canvas(*headings(report, view, "roofline"), kinds_in(view), roofline_remarks(view, before))
    x, y = _limits(view, [*view.dots, *(dot for dot, _ in moved(view, before))])
    canvas.set_axes(x, y, ("FLOPs per byte", "FLOP/s"), (plain_numbers(), rates()))
    slopes, levels = _draw_roofs(canvas, view, x, y)
    draw_dots(canvas, view, before, _place)
    _draw_levels(canvas, view.dots)
    for ridge in view.ridges:
        _label_ridge(canvas, ridge)
    for roof, start, end in levels:
        canvas.label_line(_name(roof), start, end, from_end=True)
    for roof, start, end in slopes:
        canvas.label_line(_name(roof), start, end, from_end=False)
    # Labels of lines lie on lines, those of dots better not.
    canvas.room.lines += [
        line_between(canvas.pixel(*start), canvas.pixel(*end)) for _, start, end in (*slopes, *levels)
    ]
    label_worst(canvas, view, _place)
    return canvas.figure


def _place(dot: Dot) -> tuple[float, float]:
    return dot.intensity, dot.rate


def _limits(view: RooflineView, dots: Sequence[Dot]) -> tuple[tuple[float, float], tuple[float, float]]:
    intensities = [dot.intensity for dot in dots] + [level[1] for dot in view.dots for level in dot.levels]
    intensities += [ridge.intensity for ridge in view.ridges]
    heights = [dot.rate for dot in dots] + [roof.rate for roof in view.compute_roofs]
    if not view.compute_roofs:
        heights += [max(intensities, default=1) * roof.rate for roof in view.memory_roofs]
    x = limits(intensities or [1], below=4, above=6)
    return x, limits(heights or [1e9], below=3, above=2.5)


# ---- roofs

_Line = tuple[Roof, tuple[float, float], tuple[float, float]]


def _draw_roofs(
    canvas: Canvas, view: RooflineView, x: tuple[float, float], y: tuple[float, float]
) -> tuple[list[_Line], list[_Line]]:
    """Draw slopes up to the highest roof, and roofs from the steepest slope on."""
    top = view.compute_roofs[0].rate if view.compute_roofs else y[1]
    slopes: list[_Line] = []
    for roof in view.memory_roofs:
        start, end = max(x[0], y[0] / roof.rate), min(top / roof.rate, x[1])
        if start < end:
            slopes.append((roof, (start, start * roof.rate), (end, end * roof.rate)))
    levels: list[_Line] = []
    for roof in view.compute_roofs:
        start = max(roof.rate / view.memory_roofs[0].rate, x[0]) if view.memory_roofs else x[0]
        levels.append((roof, (start, roof.rate), (x[1], roof.rate)))
    for roof, start_at, end_at in (*slopes, *levels):
        canvas.axes.plot(
            [start_at[0], end_at[0]], [start_at[1], end_at[1]], color=LINES, linewidth=1.1, zorder=2, label=roof.name
        )
    return slopes, levels


def _name(roof: Roof) -> str:
    rate = fields["achieved_flops"].text(roof.rate)
    number, prefix = (rate[:-1], rate[-1]) if rate[-1:].isalpha() else (rate, "")
    return f"{roof.name} {number} {prefix}{roof.unit}"


def _label_ridge(canvas: Canvas, ridge: Ridge) -> None:
    canvas.axes.plot([ridge.intensity], [ridge.rate], "o", color=LINES, markersize=2.5, zorder=2)
    at = canvas.pixel(ridge.intensity, ridge.rate)

    def places(width: float, height: float) -> list[Box]:
        return [
            box_around((at[0] + right, at[1] + height / 2 + 3 + up), width, height)
            for up in (0, height, 2 * height, -2 * height, -3 * height)
            for right in (0, -width / 2, width / 2)
        ]

    canvas.label_point(fields["intensity"].text(ridge.intensity), places)


# ---- dots


def _draw_levels(canvas: Canvas, dots: Sequence[Dot]) -> None:
    """Draw a line through the intensities of a dot at L1, L2 and DRAM."""
    for dot in dots:
        if len(dot.levels) < 2:
            continue
        color = STYLES[dot.kind][0]
        at = [intensity for _, intensity in dot.levels]
        canvas.axes.plot(at, [dot.rate] * len(at), "|-", color=color, linewidth=0.8, markersize=5, alpha=0.8, zorder=3)


# ---- the time roofline


def draw_time(report: ViewedReport, view: RooflineView, before: RooflineView | None = None) -> Figure:
    """Return the picture of a view of that report."""
    unplaced = [dot for dot in view.dots if not _has_times(dot)]
    placed = _with_times(view)
    earlier = _with_times(before) if before else None
    canvas = Canvas(*headings(report, view, "time"), kinds_in(placed), time_remarks(placed, earlier, unplaced))
    places = [_times(dot) for dot in (*placed.dots, *(was for was, _ in moved(placed, earlier)))]
    both = limits([value for place in places for value in place] or [1e-6], below=3, above=3)
    canvas.set_axes(both, both, ("time that the FLOPs need", "time that the bytes need"), (durations(), durations()))
    ends = ((both[0], both[0]), (both[1], both[1]))
    canvas.axes.plot(both, both, color=LINES, linewidth=1.1, zorder=2, label="both alike")
    draw_dots(canvas, placed, earlier, _times)
    canvas.label_line("bound by memory above, by compute below", *ends, from_end=True)
    label_worst(canvas, placed, _times)
    return canvas.figure


def _has_times(dot: Dot) -> bool:
    return bool(dot.compute_time and dot.memory_time)


def _with_times(view: RooflineView) -> RooflineView:
    return dataclasses.replace(view, dots=tuple(dot for dot in view.dots if _has_times(dot)))


def _times(dot: Dot) -> tuple[float, float]:
    assert dot.compute_time is not None and dot.memory_time is not None
    return dot.compute_time, dot.memory_time
