"""The drawing of dots in all pictures: their size by time, the names of the worst, arrows from before to after."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from roofprof.figures import fields
from roofprof.render.plots.canvas import TEXT, Canvas, area_of, shortened
from roofprof.render.plots.words import nothing_drawn
from roofprof.render.views.kinds import STYLES
from roofprof.render.views.roofline import Dot, RooflineView

Place: TypeAlias = Callable[[Dot], tuple[float, float]]

LABELLED = 5
NEAR = 4  # pixels: what moved less has no arrow


def kinds_in(view: RooflineView) -> list[str]:
    """Return the kinds of the dots, in the order of the palette."""
    present = {dot.kind for dot in view.dots}
    return [kind for kind in STYLES if kind in present]


def moved(view: RooflineView, before: RooflineView | None) -> list[tuple[Dot, Dot]]:
    """Return the dots that both have, as they were and as they are."""
    earlier = {dot.key: dot for dot in before.dots} if before else {}
    return [(earlier[dot.key], dot) for dot in view.dots if dot.key in earlier]


def draw_dots(canvas: Canvas, view: RooflineView, before: RooflineView | None, place: Place) -> None:
    """Draw the dots, the largest first, so that small ones lie on them; where there is none, the reasons."""
    if not view.dots:
        canvas.axes.text(
            0.5, 0.3, nothing_drawn(view), transform=canvas.axes.transAxes, ha="center", fontsize=TEXT, parse_math=False
        )
    pairs = moved(view, before)
    longest = max((dot.time for dot in (*view.dots, *(was for was, _ in pairs))), default=0)
    for faint, dots in ((True, [was for was, _ in pairs]), (False, view.dots)):
        alike: dict[tuple[str, bool], list[tuple[float, float, float]]] = {}
        for dot in sorted(dots, key=lambda dot: -dot.time):
            alike.setdefault((dot.kind, dot.measured), []).append((*place(dot), area_of(dot.time, longest)))
        for (kind, measured), places in alike.items():
            canvas.dots(places, kind, filled=measured, faint=faint)
    for was, dot in pairs:
        if math.dist(canvas.pixel(*place(was)), canvas.pixel(*place(dot))) > NEAR:
            arrow = {"arrowstyle": "-|>", "color": STYLES[dot.kind][0], "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0}
            canvas.axes.annotate("", place(dot), place(was), arrowprops=arrow | {"mutation_scale": 7}, zorder=4)


def label_worst(canvas: Canvas, view: RooflineView, place: Place) -> None:
    """Draw the names of dots that waste most, with their waste; where nothing has a roof, of the longest."""
    longest = max((dot.time for dot in view.dots), default=0)
    for dot in view.hotspots[:LABELLED]:
        figure = "time" if dot.wasted_time is None else "wasted_time"
        limit = fields[figure].limit if dot.incomplete else ""
        text = f"{shortened(dot.label)} {limit}{fields[figure].text(getattr(dot, figure))}"
        canvas.label_dot(text, *place(dot), area_of(dot.time, longest))
