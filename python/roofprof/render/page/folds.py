"""The lines of the tree: modules, and above equal siblings one line for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from roofprof import _report
from roofprof.figures import fields


@dataclass(frozen=True)
class Line:
    """A line of the tree. Lines of a fold's members are one level below it."""

    row: _report.Row  # of a fold the mean of its members
    level: int
    place: int | None  # of a module: index of its row in the report
    fold: str = ""  # of a fold the text after its name: "x80, the mean of 80, spread 8.1%"


def tree_lines(report: _report.Report) -> list[Line]:
    """Return the lines of the tree. Groups inside of others are not folded again."""
    return list(_lines(report, {group.paths[0]: group for group in _outermost(report.siblings)}))


def _outermost(groups: list[_report.Siblings]) -> Iterator[_report.Siblings]:
    members = {path for group in groups for path in group.paths}
    for group in groups:
        parts = group.paths[0].split(".")
        if not any(".".join(parts[:end]) in members for end in range(1, len(parts))):
            yield group


def _lines(report: _report.Report, groups: dict[str, _report.Siblings]) -> Iterator[Line]:
    rows = report.rows
    ends = _ends(report.parents())
    places = {row.path: place for place, row in enumerate(rows)}
    told: set[int] = set()
    for place, row in enumerate(rows):
        if place in told:
            continue
        group = groups.get(row.path)
        if group is None:
            yield Line(row, row.depth, place)
            continue
        yield Line(group.mean, row.depth, None, _said(group))
        for path in group.paths:
            for below in range(places[path], ends[places[path]]):
                told.add(below)
                yield Line(rows[below], rows[below].depth + 1, below)


def _ends(parents: list[int]) -> list[int]:
    """Return, for each row, the index behind its subtree."""
    ends = [place + 1 for place in range(len(parents))]
    for place in reversed(range(len(parents))):
        if parents[place] >= 0:
            ends[parents[place]] = max(ends[parents[place]], ends[place])
    return ends


def _said(group: _report.Siblings) -> str:
    said = f"x{len(group.paths)}, their mean"
    if group.spread is not None:
        said += f", spread {fields['time_spread'].text(group.spread)}"
    if group.slowest is not None and group.slowest_ratio is not None:
        said += f", slowest {group.slowest} with {group.slowest_ratio:.2f} times the median"
    return said
