"""Curves in two panels: a sweep over batch sizes, and scaling over numbers of ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roofprof._report import printable
from roofprof.render.plots.plot import drawn_to
from roofprof.render.views.kinds import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_sweep(
    path: str | Path | None,
    *,
    batches: Sequence[int],
    medians: Sequence[float],
    lows: Sequence[float | None],
    highs: Sequence[float | None],
    rates: Sequence[float],
    knee: int | None,
    title: str,
) -> Figure:
    """Draw two panels over one axis of batch sizes; with ``path``, write them there, in the form of its suffix.

    medians, lows, highs: seconds of one call, its p10 and p90 (None: not known); rates: samples per second.
    """

    def draw() -> Figure:
        from matplotlib import ticker

        figure, above, below = _panels(title, (6.4, 6.4), sharex=True)
        above.plot(batches, rates, color=BLUE, marker="o")
        above.set_ylabel("throughput (samples/s)")
        above.set_ylim(bottom=0)
        above.yaxis.set_major_formatter(ticker.EngFormatter(sep=""))
        below.plot(batches, medians, color=VERMILLION, marker="o", label="median")
        known = [(b, low, high) for b, low, high in zip(batches, lows, highs, strict=True) if low and high]
        if known:
            band = {"color": VERMILLION, "alpha": 0.25, "linewidth": 0, "label": "p10 to p90"}
            below.fill_between(*zip(*known, strict=True), **band)
        below.set(yscale="log", ylabel="latency of one call", xlabel="batch (samples per call)")
        low, high = below.get_ylim()
        wider = max((10 * low / high) ** 0.5, 1.0)  # a tenfold range has ticks at several of 1, 2 and 5
        below.set_ylim(low / wider, high * wider)
        below.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
        below.yaxis.set_major_formatter(ticker.EngFormatter("s", sep=""))
        below.yaxis.set_minor_locator(ticker.NullLocator())
        below.set_xscale("log", base=2)
        below.xaxis.set_major_locator(ticker.FixedLocator(list(batches)[:: -(-len(batches) // 10)]))
        below.xaxis.set_major_formatter(ticker.FuncFormatter(lambda batch, _: f"{batch:g}"))
        below.xaxis.set_minor_locator(ticker.NullLocator())
        if knee is not None:
            for panel in (above, below):
                panel.axvline(knee, color=GREY, linestyle="--", linewidth=1, label=f"knee: batch {knee}")
        below.legend(loc="upper left")
        return figure

    return drawn_to(path, "LatencySweep", draw)


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

    def draw() -> Figure:
        from matplotlib import ticker

        figure, above, below = _panels(title, (6.4, 7.2), height_ratios=(3, 2))
        ends = [ranks[0], ranks[-1]]
        above.plot(ends, [n / ranks[0] for n in ends], color=GREY, linewidth=1, linestyle=":", label="ideal")
        above.plot(ranks, speed_ups, "o-", color=VERMILLION, label="measured")
        above.set(xlabel="ranks", ylabel=f"speed-up over {ranks[0]} {'rank' if ranks[0] == 1 else 'ranks'}")
        above.set_xscale("log", base=2)
        above.set_yscale("log", base=2)
        for axis in (above.xaxis, above.yaxis):
            axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:.4g}"))
        above.xaxis.set_minor_locator(ticker.NullLocator())
        above.legend(loc="upper left", fontsize=_SMALL)
        _draw_loss(below, ranks[1:], {part: shares[1:] for part, shares in parts.items()})
        return figure

    return drawn_to(path, "Scaling", draw)


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
    panel.set(xlim=(-0.8, len(ranks) - 0.2), xlabel="ranks", ylabel="loss (% of the ranks' time)")
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3, fontsize=_SMALL, frameon=False)


def _panels(title: str, size: tuple[float, float], **given: Any) -> tuple[Figure, Any, Any]:
    """Return a figure with two panels, one above the other."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)  # no window, whatever the backend is
    panels = figure.subplots(2, 1, **given)
    for panel in panels:
        panel.grid(visible=True, alpha=0.3)
        panel.set_axisbelow(True)
    figure.suptitle(printable(title), fontsize=11, parse_math=False)
    return figure, *panels
