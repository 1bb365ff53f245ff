"""The result of a predicted sweep, printed and written."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from roofprof import _report
from roofprof.figures import fields
from roofprof.latency.sweep import KNEE_SHARE
from roofprof.predict.json_result import WrittenAsJson


@dataclass(frozen=True)
class SweepPoint:
    """One size. Seconds and bytes."""

    batch: int
    sequence: int | None
    time: float
    time_low: float
    time_high: float
    bound: str
    weight_bytes: int
    activation_bytes: int | None  # peak, without the weights; None: not known

    @property
    def throughput(self) -> float:
        """Samples, or with a sequence tokens, a second."""
        return self.batch * (self.sequence or 1) / self.time

    @property
    def memory(self) -> int:
        """Weights, and activations where they are known."""
        return self.weight_bytes + (self.activation_bytes or 0)


@dataclass(frozen=True, repr=False)
class PredictedSweep(WrittenAsJson):
    """The points, by sequence and batch."""

    SCHEMA: ClassVar[str] = "roofprof predicted sweep, version 1"

    model: str
    device: str
    prediction: str
    memory: int | None  # of the device; None: not known
    points: tuple[SweepPoint, ...]

    def fits(self, point: SweepPoint) -> bool | None:
        """Return True when the device's memory holds the call; None where the memory is not known."""
        return None if self.memory is None else point.memory <= self.memory

    def knee(self, sequence: int | None = None) -> SweepPoint | None:
        """Return the smallest batch that fits with a throughput within 10% of the best that fits; None: none fits."""
        points = [p for p in self.points if p.sequence == sequence and self.fits(p) is not False]
        best = max((point.throughput for point in points), default=0.0)
        return next((point for point in points if point.throughput >= KNEE_SHARE * best), None)

    @property
    def sequences(self) -> list[int | None]:
        """The lengths, in order."""
        return list(dict.fromkeys(point.sequence for point in self.points))

    def table(self, width: int = 120) -> str:
        """Return the text of the table."""
        of_tokens = self.sequences != [None]
        headings = [
            "batch",
            *(["sequence"] if of_tokens else []),
            "time",
            "low",
            "high",
            "per s",
            "memory",
            "bound",
            "",
        ]
        columns = [(heading, heading in ("bound", ""), 0, 0) for heading in headings]
        knees = [self.knee(sequence) for sequence in self.sequences]
        rows = []
        for point in self.points:
            remarks = ["knee"] if any(point is knee for knee in knees) else []
            remarks += ["does not fit"] if self.fits(point) is False else []
            rows.append(
                [
                    (text, 0)
                    for text in (
                        str(point.batch),
                        *([str(point.sequence)] if of_tokens else []),
                        *(fields["time"].text(time) for time in (point.time, point.time_low, point.time_high)),
                        fields["achieved_flops"].text(point.throughput),
                        fields["bytes"].text(point.memory),
                        point.bound,
                        ", ".join(remarks),
                    )
                ]
            )
        table, _ = _report.text_table(columns, rows, len(rows), width)
        labels = _report.labelled_paragraph
        memory = f", {fields['bytes'].text(self.memory)} of memory" if self.memory else ""
        text = labels("roofprof", f"{self.model} on {self.device}{memory}, predicted: {self.prediction}", width)
        text += f"\n{table}\n"
        what = "tokens" if of_tokens else "samples"
        return text + labels(
            "columns",
            f"time: of a call; low, high: 80% of whole models take between these; per s: {what}; memory: weights and "
            "activations; knee: the smallest batch within 10% of the best throughput that fits",
            width,
        )

    def __str__(self) -> str:
        return self.table()

    def _about(self) -> str:
        return f"{self.model} on {self.device}: {len(self.points)} sizes"

    def to_dict(self) -> dict[str, Any]:
        """Return the data of the JSON; times in seconds."""
        points = [
            {**asdict(p), "throughput": p.throughput, "memory": p.memory, "fits": self.fits(p)} for p in self.points
        ]
        return {**super().to_dict(), "points": points}
