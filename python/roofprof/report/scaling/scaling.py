"""The comparison of one program's reports on different numbers of ranks."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roofprof.render.files import write_whole
from roofprof.render.results import Result
from roofprof.report.report import Report
from roofprof.report.scaling.law import LEVEL, Law, fit
from roofprof.report.scaling.loss import parts_of_loss
from roofprof.report.scaling.measured import Measured, Read, measured, read, roofs_of_compute, what_differs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMA_VERSION = 1
SAME = 0.01  # work that differs by less is constant
_FURTHER = (2, 4, 8)  # times the largest number of ranks


@dataclass(frozen=True)
class ScalingPoint:
    """One number of ranks, measured. Times are seconds of a step, or of the run where no steps were marked."""

    ranks: int
    name: str  # the report's
    hosts: int | None  # None: not known
    time: float  # the slowest rank's median
    spread: float | None  # (longest - shortest) / median of the times of that rank
    work: float  # of all ranks
    intensity: float | None  # FLOPs per byte of ops that are no collectives
    speed_up: float  # throughput / that of the fewest ranks
    efficiency: float  # speed-up / ratio of the ranks
    loss: float  # rank-seconds beyond those that the fewest ranks need for the same work
    parts: dict[str, float]  # of the loss, to which they add up; less than 0: a gain

    @property
    def throughput(self) -> float:
        """Work of all ranks for each second."""
        return self.work / self.time


@dataclass(frozen=True)
class ScalingPrediction:
    """One number of ranks, predicted by the fitted curve. Ends of the 80% interval may be None: not known."""

    ranks: int
    time: float | None  # None: the work on so many ranks is not known
    speed_up: float
    speed_up_low: float | None
    speed_up_high: float | None
    efficiency: float
    efficiency_low: float | None
    efficiency_high: float | None


@dataclass(frozen=True, repr=False)
class Scaling(Result):
    """The result of :func:`scaling`."""

    model: str
    device: str
    kind: str  # "strong", "weak" or "neither"
    per: str  # what times are of: "step" or "run"
    unit: str  # of work: "MACs" or "FLOPs"
    points: tuple[ScalingPoint, ...]  # fewest ranks first
    law: Law
    predictions: tuple[ScalingPrediction, ...]
    warnings: tuple[str, ...]

    def table(self, width: int = 120) -> str:
        """Return the text: speed-up and efficiency, the loss and its parts, the fitted curve and its predictions."""
        from roofprof.report.scaling.text import as_text

        return as_text(self, width)

    def __str__(self) -> str:
        return self.table()

    def _about(self) -> str:
        return f"{self.model} on {self.device}: {len(self.points)} numbers of ranks"

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw speed-up with the fitted curve, and the parts of the loss; with a path, write it there, by its suffix.

        Needs matplotlib (``pip install roofprof[plot]``). Raises ValueError for other suffixes than .svg, .png, .pdf.
        """
        from roofprof.report.scaling.plot import draw

        return draw(self, path)

    def to_html(self, path: str | Path | None = None) -> str:
        """Return one page without scripts, with a picture if matplotlib is there. With a path, write it there too."""
        from roofprof.report.scaling.page import as_page

        text = as_page(self)
        if path is not None:
            write_whole(path, text.encode())
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON's data as Python values; ``docs/scaling.md`` lists its keys."""
        return {
            "schema_version": SCHEMA_VERSION,
            "generator": "roofprof scaling",
            "model": self.model,
            "device": self.device,
            "kind": self.kind,
            "per": self.per,
            "unit": self.unit,
            "points": [_point(point) for point in self.points],
            "law": {
                "name": "Universal Scalability Law",
                "throughput_of_one_rank": self.law.single,
                "sigma": self.law.sigma,
                "kappa": self.law.kappa,
                "peak_ranks": self.law.peak,
                "uncertainty_from": self.uncertainty,
            },
            "level": LEVEL,
            "predicted": [_prediction(prediction) for prediction in self.predictions],
            "warnings": list(self.warnings),
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the JSON text; with a path, write it there as well. Raises OSError where it cannot be."""
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        if path is not None:
            write_whole(path, text.encode())
        return text

    @property
    def uncertainty(self) -> str | None:
        """The source of the intervals: "residuals", "spread of steps", "forms of the law"; None without intervals."""
        if self.law.interval(self.points[0].ranks).low is None:
            return None
        if self.law.from_residuals:
            return "residuals"
        return "forms of the law" if any(point.spread is None for point in self.points) else "spread of steps"


def scaling(reports: Iterable[Report | str | Path]) -> Scaling:
    """Return the scaling of one program, from merged reports, or their files, of different numbers of ranks.

    A report of a program of one process counts as one rank. Speed-up is throughput relative to the fewest ranks, with
    the work of all ranks for each second as throughput. ``docs/scaling.md`` says what the loss consists of, and how the
    curve is fitted. Raises ValueError or OSError, naming the report, for a file that is not a report, for a report that
    has no times, is of one of several ranks or of another model, and for two of the same number of ranks.
    """
    reads = [read(report, position) for position, report in enumerate(reports)]
    _check(reads)
    reads.sort(key=lambda of: of.ranks)
    per_step = all(of.has_steps for of in reads)
    found = [measured(of, per_step=per_step) for of in reads]
    unit, work = _work(found)
    warnings = what_differs(reads)
    if not per_step and any(of.has_steps for of in reads):
        warnings.append("steps are not marked on every rank of every report: whole runs are compared")
    roofs = [roofs_of_compute(of) for of in reads]
    same_roofs = all(other == roofs[0] for other in roofs)
    if not same_roofs:
        warnings.append("roofs are not the same: lower intensity and slower ops are not told apart")
    parts = parts_of_loss(found, work, same_roofs=same_roofs)
    points = tuple(
        _compared(of, done, found[0], work[0], lost) for of, done, lost in zip(found, work, parts, strict=True)
    )
    law = fit([of.ranks for of in found], [point.throughput for point in points], [of.error for of in found])
    kind = _kind(found, work)
    further = [factor * found[-1].ranks for factor in _FURTHER]
    predictions = tuple(_predicted(law, ranks, points[0], kind) for ranks in further)
    return Scaling(
        reads[0].model,
        _device(reads),
        kind,
        "step" if per_step else "run",
        unit,
        points,
        law,
        predictions,
        tuple(warnings),
    )


def _device(reads: list[Read]) -> str:
    """Return the kinds of device of all reports."""
    return ", ".join(dict.fromkeys(of.report.device.partition(":")[0] for of in reads))


def _check(reads: list[Read]) -> None:
    if len(reads) < 2:
        raise ValueError(f"scaling compares different numbers of ranks: give 2 reports or more, not {len(reads)}")
    seen: dict[int, str] = {}
    for of in reads:
        if of.ranks in seen:
            words = "1 rank" if of.ranks == 1 else f"{of.ranks} ranks"
            raise ValueError(f"{seen[of.ranks]} and {of.name} are both of {words}: give one of them")
        seen[of.ranks] = of.name
        if of.model != reads[0].model:
            raise ValueError(f"{of.name} is of {of.model}, and {reads[0].name} of {reads[0].model}: give one model's")


def _work(found: list[Measured]) -> tuple[str, list[float]]:
    """Return MACs, unchanged by replicated optimizers and sums of gradients; FLOPs for a model without MACs."""
    for unit, work in (("MACs", [of.macs for of in found]), ("FLOPs", [of.flops for of in found])):
        if all(amount > 0 for amount in work):
            return unit, work
    name = next(of.name for of in found if not of.flops > 0)
    raise ValueError(f"{name} has no work: throughput needs MACs or FLOPs, and none was counted")


def _kind(found: list[Measured], work: list[float]) -> str:
    each = [amount / of.ranks for amount, of in zip(work, found, strict=True)]
    for kind, amounts in (("strong", work), ("weak", each)):
        if max(amounts) <= (1 + SAME) * min(amounts):
            return kind
    return "neither"


def _compared(
    of: Measured, work: float, first: Measured, work_of_first: float, parts: dict[str, float]
) -> ScalingPoint:
    speed_up = (work / of.time) / (work_of_first / first.time)
    return ScalingPoint(
        ranks=of.ranks,
        name=of.name,
        hosts=of.hosts,
        time=of.time,
        spread=of.spread,
        work=work,
        intensity=of.intensity,
        speed_up=speed_up,
        efficiency=speed_up * first.ranks / of.ranks,
        loss=of.ranks * of.time - work / work_of_first * first.ranks * first.time,
        parts=parts,
    )


def _predicted(law: Law, ranks: int, first: ScalingPoint, kind: str) -> ScalingPrediction:
    rates = law.interval(ranks)
    value, low, high = (None if rate is None else rate / first.throughput for rate in rates)
    share = first.ranks / ranks
    work = {"strong": first.work, "weak": first.work / share}.get(kind, math.nan)
    return ScalingPrediction(
        ranks=ranks,
        time=None if math.isnan(work) else work / rates.value,
        speed_up=value or 0.0,
        speed_up_low=low,
        speed_up_high=high,
        efficiency=(value or 0.0) * share,
        efficiency_low=None if low is None else low * share,
        efficiency_high=None if high is None else high * share,
    )


# ---- as data


def _point(point: ScalingPoint) -> dict[str, Any]:
    return {
        "ranks": point.ranks,
        "report": point.name,
        "hosts": point.hosts,
        "time_ns": point.time * 1e9,
        "spread": point.spread,
        "work": point.work,
        "throughput": point.throughput,
        "intensity": point.intensity,
        "speed_up": point.speed_up,
        "efficiency": point.efficiency,
        "loss_ns": point.loss * 1e9,
        "parts_ns": {part: seconds * 1e9 for part, seconds in point.parts.items()},
    }


def _prediction(of: ScalingPrediction) -> dict[str, Any]:
    values = dict(vars(of))
    time = values.pop("time")
    return {"ranks": values.pop("ranks"), "time_ns": None if time is None else time * 1e9, **values}
