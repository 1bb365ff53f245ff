"""Latency and throughput at several batch sizes, and the knee: where a larger batch gains little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roofprof import _report
from roofprof.errors import Error
from roofprof.figures import cell, fields
from roofprof.latency.measured import Latency, add_notes, begun
from roofprof.render.html import Html
from roofprof.render.plots.curves import draw_sweep
from roofprof.render.plots.plot import picture_of
from roofprof.render.results import StoredResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEWEST_CALLS = 10  # of a batch, for a median that others can be held against
KNEE_SHARE = 0.9
"""The knee is the smallest batch that reaches this share of the highest throughput."""


@dataclass(frozen=True, repr=False)
class LatencySweep(StoredResult):
    """A :class:`Latency` for each batch size, smallest first.

    The knee is the smallest batch whose throughput is within 10% of the highest. There is none where the largest batch
    alone is: throughput still rises; and where a batch has less than 10 timed calls. Throughput is of the median
    latencies, which single slow calls do not move.
    """

    SCHEMA = "roofprof.sweep"

    points: tuple[Latency, ...]
    ended: str
    """The reason why the sweep has no larger batch."""

    def __post_init__(self) -> None:
        if not self.points:
            raise Error("points is empty")

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

    def document(self) -> _report.Document:
        """Return what is shown, as data: a row for each batch, the knee, and what ended the sweep."""
        notes = self._notes()
        calls = sorted({len(point.times_ns) for point in self.points})
        between = f"{calls[0]}" if len(calls) == 1 else f"{calls[0]} to {calls[-1]}"
        about = f"{len(self.points)} batch sizes, {between} timed calls each; clock: {self.points[0].clock}"
        document = begun(self.points[0], notes, about)
        has_tokens = any(point.tokens is not None for point in self.points)
        names = ["batch", "median latency", "p10", "p90", "samples/s", *["tokens/s"] * has_tokens, "CPU", "calls"]
        knee = self.knee
        rows = [
            [
                _report.Cell(str(point.samples), point.samples),
                *(cell("time", seconds) for seconds in (point.median, point.p10, point.p90)),
                cell("achieved_flops", point.samples_per_second),
                *[cell("achieved_flops", point.tokens_per_second)] * has_tokens,
                cell("percent_of_roof", point.cpu_utilization),
                _report.Cell(str(len(point.times_ns)), len(point.times_ns)),
                *[_report.Cell("<- knee" if point is knee else "")] * (knee is not None),
            ]
            for point in self.points
        ]
        columns = [_report.TableColumn(name) for name in names]
        columns += [_report.TableColumn("", left=True)] * (knee is not None)
        document.add_table(columns, rows)
        document.add_paragraph("knee", self.knee_text)
        document.add_paragraph("ended", self.ended)
        document.add_paragraph(
            "terms",
            "latency: the time of one call with that batch; throughput: its samples / the median latency; CPU: 100 x "
            "(user + system time) / (real time x processors); knee: the smallest batch whose throughput is within 10% "
            "of the highest",
        )
        add_notes(document, notes)
        return document

    def _notes(self) -> list[_report.Note]:
        """Return a note of each code, with its batches; none of timing-stopped: the table has the number of calls."""
        first: dict[str, _report.Note] = {}
        batches: dict[str, list[str]] = {}
        for point in self.points:
            for note in point.notes:
                if note.code != "timing-stopped":
                    first.setdefault(note.code, note)
                    batches.setdefault(note.code, []).append(str(point.samples))
        return [_report.Note(code, f"batch {', '.join(batches[code])}: {note.text}") for code, note in first.items()]

    def _picture(self) -> Html:
        return picture_of(self.plot, "throughput and latency over batch sizes")

    def _about(self) -> str:
        return f"{self.points[0].model}: {len(self.points)} batches"

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
    highest = f"{fields['achieved_flops'].text(rates[best])} {unit}"
    if place == best:
        return f"batch {batches[best]}: it has the highest throughput, {highest}"
    share = fields["percent_of_roof"].text(100 * rates[place] / rates[best])
    here, there = (fields["time"].text(times[at]) for at in (place, best))
    return (
        f"batch {batches[place]}: {share} of the highest throughput ({highest} at batch {batches[best]}), with a "
        f"latency of {here} in place of {there}"
    )


def _rate(point: Latency) -> float:
    rate = point.samples_per_second
    assert rate is not None  # a sweep knows its batches
    return rate


def _known(samples: int | None) -> int:
    assert samples is not None
    return samples
