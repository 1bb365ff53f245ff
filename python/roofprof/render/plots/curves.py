"""Curves in two panels: a sweep over batch sizes, and scaling over numbers of ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roofprof.render.files import write_whole
from roofprof.render.plots.plot import FORMATS, content
from roofprof.render.printable import printable
from roofprof.render.views.kinds import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RATE, _LATENCY, _KNEE = BLUE, VERMILLION, GREY


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
        figure, above, below = _panels(title, (6.4, 6.4), sharex=True)
        _draw_throughput(above, batches, rates)
        _draw_latency(below, batches, medians, lows, highs)
        if knee is not None:
            _mark_knee(above, below, batches, knee)
        return figure

    return _drawn(path, "LatencySweep", draw)


def _draw_throughput(panel: Any, batches: Sequence[int], rates: Sequence[float]) -> None:
    from matplotlib import ticker

    panel.plot(batches, rates, color=_RATE, marker="o")
    panel.set_ylabel("throughput (samples/s)")
    panel.set_ylim(bottom=0)
    panel.yaxis.set_major_formatter(ticker.EngFormatter(sep=""))
    panel.grid(visible=True, alpha=0.3)


def _draw_latency(
    panel: Any,
    batches: Sequence[int],
    medians: Sequence[float],
    lows: Sequence[float | None],
    highs: Sequence[float | None],
) -> None:
    from matplotlib import ticker

    panel.plot(batches, medians, color=_LATENCY, marker="o", label="median")
    known = [(b, low, high) for b, low, high in zip(batches, lows, highs, strict=True) if low and high]
    if known:
        places, low, high = zip(*known, strict=True)
        panel.fill_between(places, low, high, color=_LATENCY, alpha=0.25, linewidth=0, label="p10 to p90")
    panel.set_yscale("log")
    panel.set_ylim(*_decade(*panel.get_ylim()))
    panel.set_ylabel("latency of one call")
    panel.set_xlabel("batch (samples per call)")
    panel.legend(loc="upper left")
    panel.set_xscale("log", base=2)
    _ticks(panel, batches, ticker)
    for formatter in (panel.yaxis.set_major_formatter, panel.yaxis.set_minor_formatter):
        formatter(ticker.EngFormatter("s", sep=""))
    panel.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    panel.yaxis.set_minor_locator(ticker.NullLocator())
    panel.grid(visible=True, alpha=0.3)


def _mark_knee(above: Any, below: Any, batches: Sequence[int], knee: int) -> None:
    for panel in (above, below):
        panel.axvline(knee, color=_KNEE, linestyle="--", linewidth=1)
    right = list(batches).index(knee) >= len(batches) / 2  # where there is less room next to the line
    above.annotate(
        f"knee: batch {knee}",
        (knee, 0),
        xycoords=("data", "axes fraction"),
        xytext=(-4 if right else 4, 6),
        textcoords="offset points",
        horizontalalignment="right" if right else "left",
        color=_KNEE,
    )


def _decade(low: float, high: float) -> tuple[float, float]:
    """These limits, or wider ones around them: a tenfold range has ticks at several of 1, 2 and 5."""
    wider = max((10 * low / high) ** 0.5, 1.0)
    return low / wider, high * wider


def _ticks(panel: Any, batches: Sequence[int], ticker: Any) -> None:
    """Set the batches themselves as ticks, as many as there is room for."""
    step = -(-len(batches) // 10)
    panel.xaxis.set_major_locator(ticker.FixedLocator(list(batches)[::step]))
    panel.xaxis.set_major_formatter(ticker.FuncFormatter(lambda batch, _: f"{batch:g}"))
    panel.xaxis.set_minor_locator(ticker.NullLocator())


# ---- scaling

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
        figure, above, below = _panels(title, (6.4, 7.2), height_ratios=(3, 2))
        _draw_speed_up(above, ranks, speed_ups)
        _draw_loss(below, ranks[1:], {part: shares[1:] for part, shares in parts.items()})
        return figure

    return _drawn(path, "Scaling", draw)


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


# ---- both


def _drawn(path: str | Path | None, whose: str, draw: Callable[[], Figure]) -> Figure:
    """Return what is drawn; with a path, write it there as well, in the form of its suffix, whole or not at all."""
    form = "" if path is None else Path(path).suffix.lower().removeprefix(".")
    if path is not None and form not in FORMATS:
        raise ValueError(f"cannot draw '{path}': a plot's file ends in .svg, .png or .pdf")
    try:
        import matplotlib.style
    except ImportError:
        raise ImportError(f"{whose}.plot needs matplotlib: run `pip install roofprof[plot]`") from None
    with matplotlib.style.context("default"):  # a user's own style is for the user's own plots
        figure = draw()
    if path is not None:
        write_whole(path, content(figure, form))
    return figure


def _panels(title: str, size: tuple[float, float], **given: Any) -> tuple[Figure, Any, Any]:
    """Return a figure with two panels, one above the other."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)  # no window, whatever the backend is
    above, below = figure.subplots(2, 1, **given)
    figure.suptitle(printable(title), fontsize=11, parse_math=False)
    return figure, above, below
