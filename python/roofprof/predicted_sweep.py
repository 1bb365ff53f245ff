"""Batch and sequence sweeps without running: counted on the meta device, predicted for any device."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from roofprof import _report
from roofprof.errors import Error
from roofprof.figures import cell, fields
from roofprof.latency.batches import arguments_of
from roofprof.latency.sweep import knee_index, knee_text
from roofprof.predict.options import Device, OptionsOfCalls, roofs_of
from roofprof.profiling.profiler import count
from roofprof.render.results import StoredResult
from roofprof.report.report import Report

if TYPE_CHECKING:
    from typing_extensions import Unpack


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
        """Samples per second; tokens per second where there is a sequence length."""
        return self.batch * (self.sequence or 1) / self.time

    @property
    def memory(self) -> int:
        """Weights, and activations where they are known."""
        return self.weight_bytes + (self.activation_bytes or 0)


@dataclass(frozen=True, repr=False)
class PredictedSweep(StoredResult):
    """The points, by sequence and batch."""

    SCHEMA: ClassVar[str] = "roofprof.predicted_sweep"

    model: str
    device: str
    prediction: str
    memory: int | None  # of the device; None: not known
    points: tuple[SweepPoint, ...]

    def fits(self, point: SweepPoint) -> bool | None:
        """Return True when the device's memory holds the call; None where the memory is not known."""
        return None if self.memory is None else point.memory <= self.memory

    def knee(self, sequence: int | None = None) -> SweepPoint | None:
        """Return the smallest batch with a throughput within 10% of the highest, of those that fit.

        None where the largest of them alone is, and where :meth:`knee_text` gives another reason.
        """
        points = self._fitting(sequence)
        place = knee_index([point.throughput for point in points])
        return None if place is None else points[place]

    def knee_text(self, sequence: int | None = None) -> str:
        """Return the knee in a sentence, or why there is none."""
        points = self._fitting(sequence)
        if not points:
            return "n/a: no batch fits"
        return knee_text(
            [point.batch for point in points],
            [point.throughput for point in points],
            [point.time for point in points],
            "samples/s" if sequence is None else "tokens/s",
        )

    def _fitting(self, sequence: int | None) -> list[SweepPoint]:
        return [point for point in self.points if point.sequence == sequence and self.fits(point) is not False]

    @property
    def sequences(self) -> list[int | None]:
        """The lengths, in order."""
        return list(dict.fromkeys(point.sequence for point in self.points))

    def document(self) -> _report.Document:
        """Return what is shown, as data: a row for each size, the knees, and what the columns mean."""
        document = _report.Document()
        memory = f", {fields['bytes'].text(self.memory)} of memory" if self.memory else ""
        document.add_title(f"{self.model} on {self.device}{memory}, predicted: {self.prediction}")
        of_tokens = self.sequences != [None]
        names = ["batch", *["sequence"] * of_tokens, "time", "low", "high", "per s", "memory", "bound", ""]
        knees = [self.knee(sequence) for sequence in self.sequences]
        rows = []
        for point in self.points:
            remark = "does not fit" if self.fits(point) is False else ""
            rows.append(
                [
                    _report.Cell(str(point.batch), point.batch),
                    *[_report.Cell(str(point.sequence), point.sequence)] * of_tokens,
                    *(cell("time", seconds) for seconds in (point.time, point.time_low, point.time_high)),
                    cell("achieved_flops", point.throughput),
                    cell("bytes", point.memory),
                    _report.Cell(point.bound),
                    _report.Cell("<- knee" if any(point is knee for knee in knees) else remark),
                ]
            )
        document.add_table([_report.TableColumn(name, left=name in {"bound", ""}) for name in names], rows)
        for place, sequence in enumerate(self.sequences):
            of = "" if sequence is None else f"sequence {sequence}: "
            document.add_paragraph("" if place else "knee", of + self.knee_text(sequence))
        document.add_paragraph(
            "columns",
            "time: of a call; low, high: 80% of whole models take between these; per s: "
            f"{'tokens' if of_tokens else 'samples'}; memory: weights and activations; knee: the smallest batch whose "
            "throughput is within 10% of the highest, of those that fit",
        )
        return document

    def _about(self) -> str:
        return f"{self.model} on {self.device}: {len(self.points)} sizes"

    def _content(self) -> dict[str, Any]:
        content = super()._content()
        for point, stored in zip(self.points, content["points"], strict=True):
            stored |= {"throughput": point.throughput, "memory": point.memory, "fits": self.fits(point)}
        return content


def predict_sweep(
    model: Callable[..., Any],
    inputs: Callable[..., Any],
    device: Device,
    batches: Iterable[int] = (1, 2, 4, 8, 16, 32, 64, 128, 256),
    sequences: Iterable[int] = (),
    **options: Unpack[OptionsOfCalls],
) -> PredictedSweep:
    """Predict time, throughput and memory of a model's calls on a device, by batch and sequence length.

    model: best on the meta device, where nothing is computed or allocated. inputs: makes the arguments of a call for
    a batch, or for a batch and a sequence length: one value, a tuple, or (tuple, dict of keywords). device and options
    are those of :meth:`roofprof.Report.predict`. Each size is counted, without gradients. Raises ValueError for sizes
    other than whole numbers above 0.
    """
    sizes = _sizes("batches", batches)
    lengths: Sequence[int | None] = _sizes("sequences", sequences) or [None]
    if not sizes:
        raise Error("batches must have one size or more")
    if lengths != [None] and _parameters_of(inputs) == 1:
        raise Error("inputs must take a batch and a sequence length where sequences are given")
    roofs = roofs_of(device)
    points = []
    for length in lengths:
        for batch in sizes:
            given = arguments_of(inputs(batch) if length is None else inputs(batch, length))
            with torch.no_grad():
                report = count(model, *given[0], **given[1])
            predicted = report.predict(roofs, **options)
            prediction = predicted.prediction
            points.append(_point(predicted, batch, length))
    return PredictedSweep(
        model=report.model,
        device=roofs.device,
        prediction=prediction,
        memory=roofs.facts.memory_bytes or None,
        points=tuple(points),
    )


def _sizes(name: str, values: Iterable[int]) -> list[int]:
    sizes = list(values)
    wrong = [size for size in sizes if isinstance(size, bool) or not isinstance(size, int) or size < 1]
    if wrong:
        raise Error(f"{name} are whole numbers of 1 or more, not {wrong[0]!r}")
    return sorted(dict.fromkeys(sizes))


def _parameters_of(function: Callable[..., Any]) -> int:
    try:
        return len(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return 2


def _point(predicted: Report, batch: int, sequence: int | None) -> SweepPoint:
    total = predicted.total
    assert total.time is not None
    assert total.param_bytes is not None and total.buffer_bytes is not None  # the model is here
    weights = total.param_bytes + total.buffer_bytes
    return SweepPoint(
        batch=batch,
        sequence=sequence,
        time=total.time,
        time_low=total.time_low or 0.0,
        time_high=total.time_high or 0.0,
        bound=str(total.bound),
        weight_bytes=weights,
        activation_bytes=total.peak_memory,
    )
