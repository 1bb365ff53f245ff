"""Latency and throughput at several batch sizes, and the knee: where a larger batch gains little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roofprof.latency.json_result import Stored
from roofprof.latency.measured import Latency
from roofprof.latency.text import percent_text, rate_text, seconds_text, sweep_text
from roofprof.render.plots.batch_sweep import draw_sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEWEST_CALLS = 10  # of a batch, for a median that others can be held against
KNEE_SHARE = 0.9
"""The knee is the smallest batch that reaches this share of the highest throughput."""


@dataclass(frozen=True, repr=False)
class LatencySweep(Stored):
    """A :class:`Latency` for each batch size, smallest first.

    The knee is the smallest batch whose throughput is within 10% of the highest one measured. Both are of the median
    latencies, which single slow calls do not move. It is None where the largest batch alone is within 10%: then it was
    not reached; and where a batch has less than 10 timed calls.
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
    def best(self) -> Latency:
        """Return the point with the highest throughput."""
        return max(self.points, key=_rate)

    @property
    def knee(self) -> Latency | None:
        """The smallest batch with a throughput within 10% of the highest; None where :attr:`knee_text` says why."""
        if self._too_few():
            return None
        place = knee_index([_rate(point) for point in self.points])
        return None if place is None else self.points[place]

    @property
    def knee_text(self) -> str:
        """The knee in a sentence, or why there is none."""
        knee, best = self.knee, self.best
        if knee is None:
            if self._too_few():
                few = ", ".join(
                    f"batch {point.samples} had time for {len(point.times_ns)}" for point in self._too_few()
                )
                return f"n/a: it needs {FEWEST_CALLS} timed calls of each batch, and {few}"
            if len(self.points) == 1:
                return "n/a: one batch size alone was measured"
            return f"n/a: throughput still rose by more than 10% up to batch {best.samples}, the largest"
        if knee is best:
            return f"batch {knee.samples}: it has the highest throughput, {rate_text(_rate(best))} samples/s"
        return (
            f"batch {knee.samples}: {percent_text(100 * _rate(knee) / _rate(best))} of the highest throughput "
            f"({rate_text(_rate(best))} samples/s at batch {best.samples}), with a latency of "
            f"{seconds_text(knee.median)} in place of {seconds_text(best.median)}"
        )

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
            rates=[_rate(point) for point in self.points],
            knee=None if knee is None else knee.samples,
            title=f"{first.model} on {first.device}",
        )

    def __str__(self) -> str:
        return sweep_text(self)

    def _about(self) -> str:
        return f"{self.points[0].model if self.points else 'nothing'}: {len(self.points)} batches"

    @classmethod
    def _read(cls, name: str, value: Any) -> Any:
        return tuple(Latency.from_dict(point) for point in value) if name == "points" else value

    def _figures(self) -> dict[str, Any]:
        knee = self.knee
        return {
            "batches": self.batches,
            "knee_batch": None if knee is None else knee.samples,
            "knee": self.knee_text,
            "best_batch": self.best.samples,
        }


def knee_index(rates: Sequence[float]) -> int | None:
    """Return the index of the first rate that is nine tenths of the highest; None where that is only the last rate."""
    highest = max(rates)
    place = next(place for place, rate in enumerate(rates) if rate >= KNEE_SHARE * highest)
    return None if place == len(rates) - 1 else place


def _rate(point: Latency) -> float:
    rate = point.samples_per_second
    assert rate is not None  # a sweep knows its batches
    return rate


def _known(samples: int | None) -> int:
    assert samples is not None
    return samples
