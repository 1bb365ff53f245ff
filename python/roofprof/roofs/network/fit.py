"""Latency and bandwidth of collectives, from times of many sizes.

A call is taken to need latency + bytes / bandwidth (R. W. Hockney, "The communication challenge for MPP", Parallel
Computing 20, 1994), where the bytes are what the busiest rank has to send at the least: nccl-tests' bus bandwidth
(github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md).
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from typing import NamedTuple


class Point(NamedTuple):
    """One size: the bytes that the busiest rank sends, and the seconds of the best and the worst repeat."""

    wire_bytes: float
    best: float
    worst: float


class Line(NamedTuple):
    """seconds = latency + bytes / bandwidth."""

    latency: float
    bandwidth: float

    def seconds(self, wire_bytes: float) -> float:
        """Return the least time that a call takes."""
        return self.latency + wire_bytes / self.bandwidth


def fit(points: Sequence[Point]) -> Line:
    """Bandwidth from the largest third of the sizes, latency from the three smallest.

    The bandwidth is the median of the slopes between any two of those (H. Theil and P. K. Sen's estimator), which one
    disturbed size does not move; the latency is the shortest time less what that bandwidth takes, and not below 0.
    Sizes between may be faster: a shaped link lets bursts through. Raises ValueError for fewer than two sizes.
    """
    by_size = sorted(points)
    if len({point.wire_bytes for point in by_size}) < 2:
        raise ValueError("latency and bandwidth need the times of two sizes")
    large = by_size[-max(2, -(-len(by_size) // 3)) :]
    slopes = [(b.best - a.best) / (b.wire_bytes - a.wire_bytes) for a, b in itertools.combinations(large, 2)]
    per_byte = statistics.median(slopes)
    if per_byte <= 0:  # the sizes are too small to tell a bandwidth: that of the largest is the least it can be
        per_byte = large[-1].best / large[-1].wire_bytes
    latency = min(point.best - per_byte * point.wire_bytes for point in by_size[:3])
    return Line(max(latency, 0.0), 1 / per_byte)


def spread(points: Sequence[Point]) -> float:
    """Return the median over the sizes of (worst - best) / worst."""
    return statistics.median((point.worst - point.best) / point.worst for point in points)
