"""The lines of the tree: modules, and above equal siblings one line for all of them."""

from __future__ import annotations

from dataclasses import dataclass

from roofprof import _report
from roofprof.figures import fields


@dataclass(frozen=True)
class Line:
    """A line of the tree. Lines of a fold's members are one level below it."""

    row: _report.Row  # of a fold the mean of its members
    level: int
    parent: int  # the line above that it belongs to, by index; -1: none
    place: int | None  # of a module: index of its row in the report
    fold: str = ""  # of a fold the text after its name: "x80, the mean of 80, spread 8.1%"


def tree_lines(report: _report.Report) -> list[Line]:
    """Return the lines of the tree. Groups inside of others are not folded again."""
    rows, parents = report.rows, report.parents()
    ends, groups = _ends(parents), _outermost(report)
    lines: list[Line] = []
    line_of = {-1: -1}  # by row
    for place, row in enumerate(rows):
        if place in line_of:
            continue
        above = line_of[parents[place]]
        if place not in groups:
            line_of[place] = len(lines)
            lines.append(Line(row, row.depth, above, place))
            continue
        group, members = groups[place]
        fold = len(lines)
        lines.append(Line(group.mean, row.depth, above, None, _label(group)))
        for member in members:
            for below in range(member, ends[member]):
                line_of[below] = len(lines)
                parent = fold if below == member else line_of[parents[below]]
                lines.append(Line(rows[below], rows[below].depth + 1, parent, below))
    return lines


def _outermost(report: _report.Report) -> dict[int, tuple[_report.Siblings, list[int]]]:
    """Return the groups that are in no other, with the rows of their members, by the first of these."""
    folded = report.folded_rows
    lines = [line for line in folded if line.count > 1]  # one for each group, in their order
    return {
        line.members[0]: (group, line.members)
        for line, group in zip(lines, report.siblings, strict=True)
        if len(folded[line.parent].members) == 1
    }


def _ends(parents: list[int]) -> list[int]:
    """Return, for each row, the index behind its subtree."""
    ends = [place + 1 for place in range(len(parents))]
    for place in reversed(range(len(parents))):
        if parents[place] >= 0:
            ends[parents[place]] = max(ends[parents[place]], ends[place])
    return ends


def _label(group: _report.Siblings) -> str:
    label = f"x{len(group.paths)}, their mean"
    if group.spread is not None:
        label += f", spread {fields['time_spread'].text(group.spread)}"
    if group.slowest is not None and group.slowest_ratio is not None:
        label += f", slowest {group.slowest} with {group.slowest_ratio:.2f} times the median"
    return label
