"""Rooflines as a page embeds them: each dot with the row that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from roofprof import _report
from roofprof.figures import fields
from roofprof.render.page.folds import Line
from roofprof.render.views.kinds import STYLES
from roofprof.render.views.roofline import Dot, RooflineView

Views: TypeAlias = Mapping[str, RooflineView]

MOST_DOTS = 1000  # those that take most time; more would be a cloud, and slow to draw
_KINDS = {"module": "row", "op": "group", "kernel": "kernel"}  # of row
_TIP_FIGURES = ("intensity", "achieved_flops", "time", "total", "bound", "percent_of_roof", "wasted_time")


def rooflines(views: Views, lines: Sequence[Line]) -> dict[str, Any]:
    """Return the rooflines by the kind of their dots; only those that have dots."""
    lines_of_modules = {line.place: index for index, line in enumerate(lines)}
    return {by: _roofline(view, lines, lines_of_modules) for by, view in views.items() if view.dots}


def _roofline(view: RooflineView, lines: Sequence[Line], lines_of_modules: Mapping[int | None, int]) -> dict[str, Any]:
    def rows_of(dot: Dot) -> list[int]:
        """Return the rows of the page's table that the dot shows."""
        return [lines_of_modules[place] for place in dot.places] if view.by == "module" else [*dot.places]

    def row_of(dot: Dot) -> int:
        """Return the row that leads to the dot: of folded modules the fold's line, where they have one."""
        first = rows_of(dot)[0]
        above = lines[first].parent if len(dot.places) > 1 else -1
        return above if above >= 0 and lines[above].fold else first

    dots = sorted(view.dots, key=lambda dot: -dot.time)
    shown, rest = dots[:MOST_DOTS], dots[MOST_DOTS:]
    remarks = view.about_left_out
    if rest:
        time = fields["time"].text(sum(dot.time for dot in rest))
        remarks.insert(0, f"Dots are the {MOST_DOTS:,} that take most time; {len(rest):,} more take {time}.")
    return {
        "roofs": [{"kind": roof.kind, "rate": roof.rate, "text": roof.text} for roof in view.roofs],
        "ridges": [[ridge.intensity, ridge.rate] for ridge in view.ridges],
        "kinds": [{"name": kind, "colour": STYLES[kind][0], "shape": STYLES[kind][1]} for kind in view.kinds],
        "dots": [
            {
                "row": row_of(dot),
                "members": rows_of(dot) if len(dot.places) > 1 else [],
                "label": dot.label,
                "kind": dot.kind,
                "intensity": dot.intensity,
                "rate": dot.rate,
                "time": dot.time,
                "measured": dot.measured,
                "levels": [intensity for _, intensity in dot.levels],
                "tip": _tip(dot, _KINDS[view.by]),
            }
            for dot in shown
        ],
        "worst": [{"row": row_of(dot), "label": dot.label, "text": text} for dot, text in view.worst],
        "remarks": [*([view.about_ridges] if view.ridges else []), *remarks],
    }


def _tip(dot: Dot, kind: str) -> list[tuple[str, str]]:
    """Return a tooltip's lines, as tables print them: of a module's own ops, unless the dot has all of the module."""
    figures = fields.of(kind)
    own = "self_" if isinstance(dot.row, _report.Row) and dot.row.self_achieved_flops == dot.rate else ""
    cells = [figures[own + name] for name in _TIP_FIGURES if own + name in figures]
    shown_figures = [(field.heading.removeprefix("self "), field.cell(dot.row)) for field in cells]
    measured = [(f"{level} AI", fields["intensity"].text(intensity)) for level, intensity in dot.levels]
    bytes_are = "measured by counters" if dot.measured else "each op's inputs and outputs once"
    folded = [("figures", f"the mean of {len(dot.places)}; the dot is their sum")] if len(dot.places) > 1 else []
    return [("kind", dot.kind), *folded, *shown_figures, *measured, ("bytes", bytes_are)]
