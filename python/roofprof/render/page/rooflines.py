"""Rooflines as a page embeds them: the views of ``_views``, each dot with the row that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from roofprof import _report
from roofprof.figures import fields
from roofprof.render.page.folds import Line
from roofprof.render.page.tables import AnyRow, exact
from roofprof.render.views.kinds import STYLES
from roofprof.render.views.roofline import Dot, LeftOut, RooflineView

Views: TypeAlias = Mapping[str, RooflineView]

MOST_DOTS = 1000  # those that take most time; more would be a cloud, and slow to draw
_KINDS = {"module": "row", "op": "group", "kernel": "kernel"}  # of row
_TOLD = ("intensity", "achieved_flops", "time", "total", "bound", "percent_of_roof", "wasted_time")
_SHAPES = {"triangle": "triangle-up"}  # as plotly.js names them


def rooflines(report: _report.Report, views: Views, lines: Sequence[Line]) -> dict[str, Any]:
    """Return the rooflines by the kind of their dots; only those that have dots."""
    return {by: _roofline(view, _rows_of(report, view, lines)) for by, view in views.items() if view.dots}


@dataclass(frozen=True)
class _RowsOfDot:
    row: AnyRow  # the row of a tooltip's figures: of folded modules their mean
    index: int  # in the page's table
    members: tuple[int, ...] = ()  # of folded modules, in the same table


def why_none(views: Views) -> list[str]:
    """Return the reasons why there is no dot at all; empty where there is one."""
    if any(view.dots for view in views.values()):
        return []
    return [_left_out(left, "module") for left in views["module"].left_out] if "module" in views else []


def _roofline(view: RooflineView, rows: Sequence[_RowsOfDot]) -> dict[str, Any]:
    dots = sorted(zip(view.dots, rows, strict=True), key=lambda dot: -dot[0].time)
    shown = dots[:MOST_DOTS]
    said = [_left_out(left, view.by) for left in view.left_out]
    if len(dots) > len(shown):
        time = fields["time"].text(sum(dot.time for dot, _ in dots[MOST_DOTS:]))
        said.insert(0, f"Dots are the {MOST_DOTS:,} that take most time; {len(dots) - MOST_DOTS:,} more take {time}")
    unit = {roof.name: roof.unit for roof in view.roofs}
    rate = fields["achieved_flops"]
    return {
        "roofs": [
            {"kind": roof.kind, "rate": roof.rate, "text": f"{roof.name} {rate.text(roof.rate)}{roof.unit}"}
            for roof in view.roofs
        ],
        "ridges": [
            {
                "intensity": ridge.intensity,
                "rate": ridge.rate,
                "text": fields["intensity"].text(ridge.intensity),
                "between": [ridge.compute, ridge.memory],
            }
            for ridge in view.ridges
            if ridge.compute in unit
        ],
        "kinds": [
            {"name": kind, "colour": STYLES[kind][0], "shape": _SHAPES.get(STYLES[kind][1], STYLES[kind][1])}
            for kind in STYLES
            if any(dot.kind == kind for dot, _ in shown)
        ],
        "longest": exact(max(dot.time for dot in view.dots)),
        "dots": [_dot(dot, rows_of_it, _KINDS[view.by]) for dot, rows_of_it in shown],
        "said": said,
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
        "wasted": exact(_wasted(rows.row)),
        "measured": dot.measured,
        "levels": dot.levels,
        "told": _told(dot, rows.row, kind),
    }


def _wasted(row: AnyRow) -> float:
    """Return the seconds that the dot's own ops waste; 0 where that is not known."""
    return getattr(row, "self_wasted_time" if isinstance(row, _report.Row) else "wasted_time", None) or 0.0


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


def _left_out(left: LeftOut, by: str) -> str:
    noun = {"module": "module", "op": "operator", "kernel": "kernel"}[by]
    time = f", {fields['time'].text(left.time)}" if left.time else ""
    return f"Without a dot: {left.count:,} {noun}{'' if left.count == 1 else 's'}{time} ({left.reason})"


def _rows_of(report: _report.Report, view: RooflineView, lines: Sequence[Line]) -> list[_RowsOfDot]:
    """Return each dot's row."""
    if view.by == "kernel":
        # The dots are some of the kernels, in their order.
        kernels = iter(enumerate(report.kernels))
        found = (next(pair for pair in kernels if _is_of(dot, pair[1])) for dot in view.dots)
        return [_RowsOfDot(row, index) for index, row in found]
    if view.by == "op":
        known = {group.keys[0]: _RowsOfDot(group, index) for index, group in enumerate(report.group(["op"]))}
        return [known[dot.key] for dot in view.dots]
    by_path = {line.row.path: _RowsOfDot(line.row, index) for index, line in enumerate(lines)}
    means = {row.path: row for group in report.siblings for row in group.rows}
    return [_of_folded(dot, by_path, means) if dot.members else by_path[dot.key] for dot in view.dots]


def _of_folded(dot: Dot, lines: Mapping[str, _RowsOfDot], means: Mapping[str, _report.Row]) -> _RowsOfDot:
    """Return the mean of folded modules, with the line of the fold, or of the first module in a fold inside another."""
    members = tuple(lines[path].index for path in dot.members)
    line = lines.get(dot.key)
    return _RowsOfDot(means[dot.key], line.index if line else members[0], members)


def _is_of(dot: Dot, kernel: _report.KernelRow) -> bool:
    intensity = kernel.dram_intensity or kernel.intensity
    return (kernel.name, kernel.total, intensity) == (dot.label, dot.time, dot.intensity)
