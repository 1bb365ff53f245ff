"""The picture of scaling, as plain numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from roofprof.render.plots.speed_up import Curve, draw_scaling
from roofprof.report.scaling.scaling import Scaling

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PLACES = 60  # of the curve


def draw(scaling: Scaling, path: str | Path | None) -> Figure:
    """See Scaling.plot."""
    first, last, end = scaling.points[0], scaling.points[-1], scaling.predictions[-1].ranks
    ranks = [first.ranks * (end / first.ranks) ** (at / (_PLACES - 1)) for at in range(_PLACES)]
    rates = [scaling.law.interval(n) for n in ranks]
    return draw_scaling(
        path,
        ranks=[point.ranks for point in scaling.points],
        speed_ups=[point.speed_up for point in scaling.points],
        curve=Curve(
            ranks,
            [rate.value / first.throughput for rate in rates],
            [None if rate.low is None else rate.low / first.throughput for rate in rates],
            [None if rate.high is None else rate.high / first.throughput for rate in rates],
        ),
        parts={
            part: [100 * point.parts[part] / (point.ranks * point.time) for point in scaling.points]
            for part in last.parts
        },
        title=f"{scaling.model} on {scaling.device}: "
        + ("scaling by work per second" if scaling.kind == "neither" else f"{scaling.kind} scaling"),
    )
