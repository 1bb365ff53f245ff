"""The picture of scaling, as plain numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from roofprof.render.plots.speed_up import draw_scaling
from roofprof.report.scaling.scaling import Scaling

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(scaling: Scaling, path: str | Path | None) -> Figure:
    """See Scaling.plot."""
    last = scaling.points[-1]
    return draw_scaling(
        path,
        ranks=[point.ranks for point in scaling.points],
        speed_ups=[point.speed_up for point in scaling.points],
        parts={
            part: [100 * point.parts[part] / (point.ranks * point.time) for point in scaling.points]
            for part in last.parts
        },
        title=f"{scaling.model} on {scaling.device}: "
        + ("scaling by work per second" if scaling.kind == "neither" else f"{scaling.kind} scaling"),
    )
