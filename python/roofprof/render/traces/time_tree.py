"""The time of a report by module, as a tree; and as folded stacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from roofprof import _report
from roofprof.errors import Error
from roofprof.render.traces.timeline import NOT_TIMED


@dataclass
class Node:
    """A module with the time of its subtree."""

    name: str  # without its parent's
    path: str
    type: str
    time_ns: int
    children: list[Node] = field(default_factory=list)

    @property
    def own_ns(self) -> int:
        """The time that its children did not take."""
        return max(self.time_ns - sum(child.time_ns for child in self.children), 0)


def time_tree(report: _report.Report) -> list[Node]:
    """Return the model, and "(outside)" and "(optimizer)" where they took time. Raises ValueError for a count."""
    if report.total.time is None:
        raise Error(NOT_TIMED.replace("a trace", "folded stacks"))
    roots: list[Node] = []
    nodes: list[Node] = []  # by row
    for row, parent_row in zip(report.rows, report.parents(), strict=True):
        parent = nodes[parent_row] if parent_row >= 0 else None
        name = row.path or report.model or "model"
        if parent is not None:
            name = row.path.removeprefix(f"{parent.path}.") if parent.path else row.path
        # Without a time it ran inside a compiled region, whose row has it.
        node = Node(name, row.path, row.type, round((row.time or 0) * 1e9))
        nodes.append(node)
        if node.time_ns:
            (parent.children if parent else roots).append(node)
    return roots


def nested(roots: list[Node]) -> list[dict[str, Any]]:
    """Return the nodes as plain data: "path", "type", "time" and "own_time" in nanoseconds, and "modules" inside."""
    found: list[dict[str, Any]] = []
    waiting = [(root, found) for root in reversed(roots)]
    while waiting:
        node, siblings = waiting.pop()
        inside: list[dict[str, Any]] = []
        siblings.append(
            {"path": node.path, "type": node.type, "time": node.time_ns, "own_time": node.own_ns, "modules": inside}
        )
        waiting += [(child, inside) for child in reversed(node.children)]
    return found


def folded(roots: list[Node]) -> str:
    """Return Brendan Gregg's folded stacks: a line "model;layer;conv 123" for each module with own time, in ns."""
    return "".join(f"{';'.join(stack)} {node.own_ns}\n" for stack, node in _stacks(roots) if node.own_ns)


def _stacks(roots: list[Node]) -> Iterator[tuple[tuple[str, ...], Node]]:
    waiting: list[tuple[tuple[str, ...], Node]] = [((), root) for root in reversed(roots)]
    while waiting:
        above, node = waiting.pop()
        stack = (*above, _frame(node.name))
        yield stack, node
        waiting += [(stack, child) for child in reversed(node.children)]


def _frame(name: str) -> str:
    """Return a frame's name without semicolons, which separate frames, and line ends, which separate stacks."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", " ", name).replace(";", ":").strip() or "?"
