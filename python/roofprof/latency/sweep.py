"""Latency and throughput at several batch sizes, and the knee: where a larger batch gains little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roofprof.latency.measured import Latency
from roofprof.latency.text import percent_text, rate_text, seconds_text, sweep_text
from roofprof.render.plots.batch_sweep import draw_sweep
from roofprof.render.results import StoredResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEWEST_CALLS = 10  # of a batch, for a median that others can be held against
KNEE_SHARE = 0.9
"""The knee is the smallest batch that reaches this share of the highest throughput."""


@dataclass(frozen=True, repr=False)
class LatencySweep(StoredResult):
    """A :class:`Latency` for each batch size, smallest first.

    The knee is that of :func:`knee_index`; throughput is of the median latencies, which single slow calls do not move.
    There is none where a batch has less than 10 timed calls.
    """

    SCHEMA = "roofprof.sweep"

    points: tuple[Latency, ...]
    ended: str
    """The reason why the sweep has no larger batch."""

    @property
    def batches(self) -> list[int]:
        """Return the samples of a call, at each point."""
        return [_known(point.samples) for point in self.points]

    def point(self, batch: int) -> Latency:
        """Return the latency at that batch. Raises KeyError, with the batches that exist."""
        for point in self.points:
            if point.samples == batch:
                return point
        raise KeyError(f"this sweep has no batch {batch}, but {', '.join(map(str, self.batches))}")

    @property
    def _rates(self) -> list[float]:
        return [_rate(point) for point in self.points]

    @property
    def best(self) -> Latency:
        """Return the point with the highest throughput."""
        return max(self.points, key=_rate)

    @property
    def knee(self) -> Latency | None:
        """The smallest batch with a throughput within 10% of the highest; None where :attr:`knee_text` says why."""
        place = None if self._too_few() else knee_index(self._rates)
        return None if place is None else self.points[place]

    @property
    def knee_text(self) -> str:
        """The knee in a sentence, or why there is none."""
        if too_few := self._too_few():
            few = ", ".join(f"batch {point.samples} had time for {len(point.times_ns)}" for point in too_few)
            return f"n/a: it needs {FEWEST_CALLS} timed calls of each batch, and {few}"
        return knee_text(self.batches, self._rates, [point.median for point in self.points])

    def _too_few(self) -> list[Latency]:
        """Return the points with so few calls that their medians say little."""
        return [point for point in self.points if len(point.times_ns) < FEWEST_CALLS]

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw throughput and latency against the batch, in two panels; with a path, write it there, by its suffix.

        Needs matplotlib (``pip install roofprof[plot]``).
        """
        knee = self.knee
        first = self.points[0]
        return draw_sweep(
            path,
            batches=self.batches,
            medians=[point.median for point in self.points],
            lows=[point.p10 for point in self.points],
            highs=[point.p90 for point in self.points],
            rates=self._rates,
            knee=None if knee is None else knee.samples,
            title=f"{first.model} on {first.device}",
        )

    def table(self, width: int = 120) -> str:
        """Return the result as text of lines that are no longer than that."""
        return sweep_text(self, width)

    def _about(self) -> str:
        return f"{self.points[0].model if self.points else 'nothing'}: {len(self.points)} batches"

    def _content(self) -> dict[str, Any]:
        knee = self.knee
        return {
            "batches": self.batches,
            "knee_batch": None if knee is None else knee.samples,
            "knee": self.knee_text,
            "best_batch": self.best.samples,
            **super()._content(),
        }


def knee_index(rates: Sequence[float]) -> int | None:
    """Return the place of the knee among throughputs, smallest batch first: the first within 10% of the highest.

    None where the last one alone is: throughput still rises, and the knee may be at a larger batch.
    """
    place = next((place for place, rate in enumerate(rates) if rate >= KNEE_SHARE * max(rates)), None)
    return None if place == len(rates) - 1 else place


def knee_text(batches: Sequence[int], rates: Sequence[float], times: Sequence[float], unit: str = "samples/s") -> str:
    """Return a sentence on the knee of these batches, by their throughputs and seconds, or on why there is none."""
    place = knee_index(rates)
    if place is None:
        rising = f"none up to batch {batches[-1]}: throughput still rises"
        return "n/a: one batch size alone was tried" if len(batches) == 1 else rising
    best = rates.index(max(rates))
    if place == best:
        return f"batch {batches[best]}: it has the highest throughput, {rate_text(rates[best])} {unit}"
    return (
        f"batch {batches[place]}: {percent_text(100 * rates[place] / rates[best])} of the highest throughput "
        f"({rate_text(rates[best])} {unit} at batch {batches[best]}), with a latency of "
        f"{seconds_text(times[place])} in place of {seconds_text(times[best])}"
    )


def _rate(point: Latency) -> float:
    rate = point.samples_per_second
    assert rate is not None  # a sweep knows its batches
    return rate


def _known(samples: int | None) -> int:
    assert samples is not None
    return samples
