"""Speed-up against the number of ranks and what the loss consists of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roofprof.render.files import write_whole
from roofprof.render.plots.plot import FORMATS, content
from roofprof.render.views.kinds import GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BARS = (VERMILLION, ORANGE, PURPLE, GREY, SKY, GREEN)
_SMALL = 8  # points


def draw_scaling(
    path: str | Path | None,
    *,
    ranks: Sequence[int],
    speed_ups: Sequence[float],
    parts: Mapping[str, Sequence[float]],
    title: str,
) -> Figure:
    """Draw two panels: speed-up over ranks, and each number of ranks' loss in parts, in percent of the ranks' time.

    The first of ``ranks`` is what speed-ups are relative to. Written to ``path`` where there is one.
    """
    form = "" if path is None else Path(path).suffix.lower().removeprefix(".")
    if path is not None and form not in FORMATS:
        raise ValueError(f"cannot draw '{path}': a plot's file ends in .svg, .png or .pdf")
    try:
        import matplotlib.style
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("Scaling.plot needs matplotlib: run `pip install roofprof[plot]`") from None
    with matplotlib.style.context("default"):  # a user's own style is for the user's own plots
        figure = Figure(figsize=(6.4, 7.2), layout="constrained")
        FigureCanvasAgg(figure)  # no window, whatever the backend is
        above, below = figure.subplots(2, 1, height_ratios=(3, 2))
        figure.suptitle(title, fontsize=11, parse_math=False)
        _draw_speed_up(above, ranks, speed_ups)
        _draw_loss(below, ranks[1:], {part: shares[1:] for part, shares in parts.items()})
    if path is not None:
        write_whole(path, content(figure, form))
    return figure


def _draw_speed_up(panel: Any, ranks: Sequence[int], speed_ups: Sequence[float]) -> None:
    from matplotlib import ticker

    ends = [ranks[0], ranks[-1]]
    panel.plot(ends, [n / ranks[0] for n in ends], color=GREY, linewidth=1, linestyle=":", label="ideal")
    panel.plot(ranks, speed_ups, "o-", color=VERMILLION, label="measured")
    panel.set_xscale("log", base=2)
    panel.set_yscale("log", base=2)
    panel.set_xlabel("ranks")
    panel.set_ylabel(f"speed-up over {ranks[0]} {'rank' if ranks[0] == 1 else 'ranks'}")
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:.4g}"))
    panel.xaxis.set_minor_locator(ticker.NullLocator())
    panel.grid(visible=True, alpha=0.3)
    panel.legend(loc="upper left", fontsize=_SMALL)


def _draw_loss(panel: Any, ranks: Sequence[int], parts: Mapping[str, Sequence[float]]) -> None:
    """Draw losses stacked upwards, gains downwards."""
    places = range(len(ranks))
    tops, bottoms = [0.0] * len(ranks), [0.0] * len(ranks)
    for color, (part, shares) in zip(_BARS, parts.items(), strict=False):
        starts = [top if share >= 0 else low for share, top, low in zip(shares, tops, bottoms, strict=True)]
        panel.bar(places, shares, bottom=starts, width=0.6, color=color, label=part)
        tops = [top + max(share, 0) for top, share in zip(tops, shares, strict=True)]
        bottoms = [low + min(share, 0) for low, share in zip(bottoms, shares, strict=True)]
    panel.axhline(0, color="#222222", linewidth=0.8)
    panel.set_xticks(places, [str(n) for n in ranks])
    panel.set_xlim(-0.8, len(ranks) - 0.2)
    panel.set_xlabel("ranks")
    panel.set_ylabel("loss (% of the ranks' time)")
    panel.grid(visible=True, axis="y", alpha=0.3)
    panel.set_axisbelow(True)
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3, fontsize=_SMALL, frameon=False)
