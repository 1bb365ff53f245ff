"""Rooflines as a page embeds them: each dot with the row that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from roofprof import _report
from roofprof.figures import fields
from roofprof.render.page.folds import Line
from roofprof.render.page.tables import AnyRow
from roofprof.render.views.kinds import STYLES
from roofprof.render.views.roofline import Dot, RooflineView, kernel_key

Views: TypeAlias = Mapping[str, RooflineView]

MOST_DOTS = 1000  # those that take most time; more would be a cloud, and slow to draw
_KINDS = {"module": "row", "op": "group", "kernel": "kernel"}  # of row
_TOLD = ("intensity", "achieved_flops", "time", "total", "bound", "percent_of_roof", "wasted_time")


def rooflines(report: _report.Report, views: Views, lines: Sequence[Line]) -> dict[str, Any]:
    """Return the rooflines by the kind of their dots; only those that have dots."""
    return {by: _roofline(view, _rows_of(report, view, lines)) for by, view in views.items() if view.dots}


@dataclass(frozen=True)
class _RowsOfDot:
    row: AnyRow  # the row of a tooltip's figures: of folded modules their mean
    index: int  # in the page's table
    members: tuple[int, ...] = ()  # of folded modules, in the same table


def _roofline(view: RooflineView, rows: Sequence[_RowsOfDot]) -> dict[str, Any]:
    dots = sorted(zip(view.dots, rows, strict=True), key=lambda dot: -dot[0].time)
    shown, rest = dots[:MOST_DOTS], dots[MOST_DOTS:]
    said = view.about_left_out
    if rest:
        time = fields["time"].text(sum(dot.time for dot, _ in rest))
        said.insert(0, f"Dots are the {MOST_DOTS:,} that take most time; {len(rest):,} more take {time}.")
    rows_of = {dot.key: of.index for dot, of in dots}
    return {
        "roofs": [{"kind": roof.kind, "rate": roof.rate, "text": roof.text} for roof in view.roofs],
        "ridges": [[ridge.intensity, ridge.rate] for ridge in view.ridges],
        "kinds": [{"name": kind, "colour": STYLES[kind][0], "shape": STYLES[kind][1]} for kind in view.kinds],
        "dots": [_dot(dot, rows_of_it, _KINDS[view.by]) for dot, rows_of_it in shown],
        "worst": [{"row": rows_of[dot.key], "label": dot.label, "text": text} for dot, text in view.worst],
        "said": [*([view.about_ridges] if view.ridges else []), *said],
    }


def _dot(dot: Dot, rows: _RowsOfDot, kind: str) -> dict[str, Any]:
    return {
        "row": rows.index,
        "members": rows.members,
        "label": dot.label,
        "kind": dot.kind,
        "intensity": dot.intensity,
        "rate": dot.rate,
        "time": dot.time,
        "measured": dot.measured,
        "levels": [intensity for _, intensity in dot.levels],
        "told": _told(dot, rows.row, kind),
    }


def _told(dot: Dot, row: AnyRow, kind: str) -> list[tuple[str, str]]:
    """Return a tooltip's lines, as tables print them: of a module's own ops, unless the dot has all of the module."""
    figures = fields.of(kind)
    own = "self_" if isinstance(row, _report.Row) and row.self_achieved_flops == dot.rate else ""
    cells = [figures[own + name] for name in _TOLD if own + name in figures]
    told = [(field.heading.removeprefix("self "), field.cell(row)) for field in cells]
    measured = [(f"{level} AI", fields["intensity"].text(intensity)) for level, intensity in dot.levels]
    bytes_are = "measured by counters" if dot.measured else "each op's inputs and outputs once"
    folded = [("figures", f"the mean of {len(dot.members)}; the dot is their sum")] if dot.members else []
    return [("kind", dot.kind), *folded, *told, *measured, ("bytes", bytes_are)]


def _rows_of(report: _report.Report, view: RooflineView, lines: Sequence[Line]) -> list[_RowsOfDot]:
    """Return each dot's row."""
    if view.by == "module":
        keys: list[tuple[str, AnyRow]] = [(line.row.path, line.row) for line in lines]
    elif view.by == "op":
        keys = [(group.keys[0], group) for group in report.group(["op"])]
    else:
        keys = [(kernel_key(kernel), kernel) for kernel in report.kernels]
    known = {key: _RowsOfDot(row, index) for index, (key, row) in enumerate(keys)}
    means = {row.path: row for group in report.siblings for row in group.rows}
    return [_of_folded(dot, known, means) if dot.members else known[dot.key] for dot in view.dots]


def _of_folded(dot: Dot, lines: Mapping[str, _RowsOfDot], means: Mapping[str, _report.Row]) -> _RowsOfDot:
    """Return the mean of folded modules, with the line of the fold, or of the first module in a fold inside another."""
    members = tuple(lines[path].index for path in dot.members)
    line = lines.get(dot.key)
    return _RowsOfDot(means[dot.key], line.index if line else members[0], members)
