"""Batch and sequence sweeps without running: counted on the meta device, predicted for any device."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from roofprof.latency.batches import arguments_of
from roofprof.predict.options import OptionsOfCalls
from roofprof.predict.sweep.points import PredictedSweep, SweepPoint
from roofprof.predict.target import Device, roofs_of
from roofprof.profiling.profiler import count
from roofprof.report.report import Report

if TYPE_CHECKING:
    from typing_extensions import Unpack


def predict_sweep(
    model: Callable[..., Any],
    inputs: Callable[..., Any],
    device: Device,
    batches: Iterable[int] = (1, 2, 4, 8, 16, 32, 64, 128, 256),
    sequences: Iterable[int] = (),
    **options: Unpack[OptionsOfCalls],
) -> PredictedSweep:
    """Time, throughput and memory of a model's calls on a device, by batch and sequence length.

    model: best on the meta device, where nothing is computed or allocated. inputs: makes the arguments of a call for
    a batch, or for a batch and a sequence length: one value, a tuple, or (tuple, dict of keywords). device and options
    are those of :meth:`roofprof.Report.predict`. Each size is counted, without gradients. Raises ValueError for sizes
    other than whole numbers above 0.
    """
    sizes = _sizes("batches", batches)
    lengths: Sequence[int | None] = _sizes("sequences", sequences) or [None]
    if not sizes:
        raise ValueError("batches must have one size or more")
    if lengths != [None] and _parameters_of(inputs) == 1:
        raise ValueError("inputs must take a batch and a sequence length where sequences are given")
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
        raise ValueError(f"{name} are whole numbers of 1 or more, not {wrong[0]!r}")
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
