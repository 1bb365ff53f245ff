"""Places for labels, so that none lies on another.

Everything is in pixels of the figure. A box is four corners, so that text along a slope takes no more room than it has.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

Point: TypeAlias = tuple[float, float]
Box: TypeAlias = tuple[Point, Point, Point, Point]

DISTANCES = (2, 6, 12, 20, 30, 42, 56, 72, 92, 116, 144, 180)  # from a dot's edge
DIRECTIONS = 16


def box_around(center: Point, width: float, height: float, angle: float = 0) -> Box:
    """Return the box of a text whose baseline has that angle in degrees."""
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    corners = ((-1, -1), (1, -1), (1, 1), (-1, 1))
    a, b, c, d = (
        (
            center[0] + right * width / 2 * cos - up * height / 2 * sin,
            center[1] + right * width / 2 * sin + up * height / 2 * cos,
        )
        for right, up in corners
    )
    return a, b, c, d


def line_between(start: Point, end: Point) -> Box:
    """Return a line as a box of no width."""
    return start, end, end, start


def overlap(one: Box, other: Box) -> bool:
    """Return True when two convex boxes share a point: then no side of one has all of the other beyond it."""
    return not any(_apart(one, other, side) for box in (one, other) for side in _normals(box))


def _normals(box: Box) -> Iterator[Point]:
    """Yield the directions across the box's sides, of which opposite ones are parallel; for a line also its own."""
    for (x0, y0), (x1, y1) in itertools.pairwise(box[:3]):
        if (x0, y0) != (x1, y1):
            yield y1 - y0, x0 - x1
    if box[1] == box[2]:
        yield box[1][0] - box[0][0], box[1][1] - box[0][1]


def _apart(one: Box, other: Box, axis: Point) -> bool:
    ones, others = ([x * axis[0] + y * axis[1] for x, y in box] for box in (one, other))
    return max(ones) < min(others) or max(others) < min(ones)


@dataclass
class Room:
    """The places of a picture, and those that are taken."""

    left: float
    bottom: float
    right: float
    top: float
    labels: list[Box] = field(default_factory=list)
    ways: list[Box] = field(default_factory=list)  # from a label to what it names
    lines: list[Box] = field(default_factory=list)  # better left free, as are the dots
    dots: list[tuple[float, float, float]] = field(default_factory=list)  # centre and radius

    def is_free(self, box: Box) -> bool:
        """Return True when a label may lie there."""
        inside = all(self.left <= x <= self.right and self.bottom <= y <= self.top for x, y in box)
        return inside and not any(overlap(box, taken) for taken in (*self.labels, *self.ways))

    def take(self, candidates: Iterable[Box], anchor: Point | None = None) -> Box | None:
        """Take and return the first of the free candidates that hides fewest dots; None where none is free.

        With an anchor, the way from there to the label must be free as well.
        """
        best: tuple[int, Box] | None = None
        for box in candidates:
            way = line_between(anchor, center_of(box)) if anchor else None
            if not self.is_free(box) or (way and any(overlap(way, label) for label in self.labels)):
                continue
            hidden = sum(overlap(box, line) for line in self.lines) + self._dots_below(box)
            if best is None or hidden < best[0]:
                best = (hidden, box)
            if not hidden:
                break
        if best is None:
            return None
        self.labels.append(best[1])
        if anchor:
            self.ways.append(line_between(anchor, center_of(best[1])))
        return best[1]

    def _dots_below(self, box: Box) -> int:
        """Return the number of dots that the box covers. Reports may have ten thousand dots: all are tested at once."""
        if not self.dots:
            return 0
        x, y, radius = np.asarray(self.dots).T
        center, covered = center_of(box), np.ones(len(self.dots), dtype=bool)
        for start, end in ((box[0], box[1]), (box[1], box[2])):
            length = math.dist(start, end)
            along_side = ((x - center[0]) * (end[0] - start[0]) + (y - center[1]) * (end[1] - start[1])) / length
            covered &= abs(along_side) <= length / 2 + radius
        return int(covered.sum())


def around(anchor: Point, radius: float, width: float, height: float) -> Iterator[Box]:
    """Yield places for a label around a dot, the nearest first."""
    for distance in DISTANCES:
        reach = radius + distance
        for step in range(DIRECTIONS):
            angle = 2 * math.pi * step / DIRECTIONS
            cos, sin = math.cos(angle), math.sin(angle)
            center = (anchor[0] + cos * (reach + width / 2), anchor[1] + sin * (reach + height / 2))
            yield box_around(center, width, height)


def along(start: Point, end: Point, width: float, height: float) -> Iterator[Box]:
    """Yield places for a label on a line, from its start on."""
    length = math.dist(start, end)
    if not length:
        return
    angle = math.degrees(math.atan2(end[1] - start[1], end[0] - start[0]))
    places = max(int((length - width - 24) / 6), 0) + 1
    for place in range(places):
        share = min((width / 2 + 12 + 6 * place) / length, 1)
        center = (start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1]))
        yield box_around(center, width, height, angle)


def moved_up(box: Box, up: float) -> Box:
    """Return the same box, higher."""
    a, b, c, d = ((x, y + up) for x, y in box)
    return a, b, c, d


def center_of(box: Box) -> Point:
    """Return the mean of the box's four corners."""
    return sum(x for x, _ in box) / 4, sum(y for _, y in box) / 4
