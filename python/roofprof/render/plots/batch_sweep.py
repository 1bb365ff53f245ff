"""Throughput and latency against the batch size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roofprof.render.views.kinds import BLUE, GREY, VERMILLION

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
    try:
        from matplotlib import ticker
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("Sweep.plot needs matplotlib: run `pip install roofprof[plot]`") from None

    figure = Figure(figsize=(6.4, 6.4), layout="constrained")
    FigureCanvasAgg(figure)  # no window, whatever the backend is
    above, below = figure.subplots(2, 1, sharex=True)
    figure.suptitle(title)

    above.plot(batches, rates, color=_RATE, marker="o")
    above.set_ylabel("throughput (samples/s)")
    above.set_ylim(bottom=0)

    below.plot(batches, medians, color=_LATENCY, marker="o", label="median")
    known = [(b, low, high) for b, low, high in zip(batches, lows, highs, strict=True) if low and high]
    if known:
        places, low, high = zip(*known, strict=True)
        below.fill_between(places, low, high, color=_LATENCY, alpha=0.25, linewidth=0, label="p10 to p90")
    below.set_yscale("log")
    below.set_ylim(*_decade(*below.get_ylim()))
    below.set_ylabel("latency of one call")
    below.set_xlabel("batch (samples per call)")
    below.legend(loc="upper left")
    below.set_xscale("log", base=2)
    _ticks(below, batches, ticker)
    above.yaxis.set_major_formatter(ticker.EngFormatter(sep=""))
    for formatter in (below.yaxis.set_major_formatter, below.yaxis.set_minor_formatter):
        formatter(ticker.EngFormatter("s", sep=""))
    below.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    below.yaxis.set_minor_locator(ticker.NullLocator())

    for panel in (above, below):
        panel.grid(visible=True, alpha=0.3)
        if knee is not None:
            panel.axvline(knee, color=_KNEE, linestyle="--", linewidth=1)
    if knee is not None:
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
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


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
