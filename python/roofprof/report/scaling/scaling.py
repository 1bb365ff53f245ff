"""The comparison of one program's reports on different numbers of ranks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from roofprof import _report
from roofprof.errors import Error
from roofprof.figures import cell, fields
from roofprof.render.html import Html
from roofprof.render.plots.curves import draw_scaling
from roofprof.render.plots.plot import picture_of
from roofprof.render.results import StoredResult, stored_as
from roofprof.report.report import Report, refuse_one_path
from roofprof.report.scaling.loss import MEANINGS, parts_of_loss
from roofprof.report.scaling.measured import Measured, Read, measured, read, roofs_of_compute, what_differs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SAME = 0.01  # work that differs by less is constant

_KINDS = {
    "strong": "strong scaling: the work of all ranks is the same",
    "weak": "weak scaling: the work of each rank is the same",
    "neither": "neither strong nor weak scaling, since the work of all and that of each rank both change: compared by "
    "work per second",
}
_DROPPED = (0, 0, 1, 0, 0, 2, 3, 4)  # columns of the first table, the largest first, where the width is too small
_SMALL = 0.005  # of the rank time: what is less is no loss to explain
_NOTHING = 5e-5  # of it: what floating point and rounding leave


@dataclass(frozen=True)
class ScalingPoint:
    """One number of ranks, measured. Times are seconds of a step, or of the run where no steps were marked."""

    ranks: int
    name: str = field(metadata=stored_as("report"))
    hosts: int | None  # None: not known
    time: float = field(metadata=stored_as("time_ns", 1e9))  # the slowest rank's median
    spread: float | None  # (longest - shortest) / median of the times of that rank
    work: float  # of all ranks
    intensity: float | None  # FLOPs per byte of ops other than collectives
    speed_up: float  # throughput / that of the fewest ranks
    efficiency: float  # speed-up / ratio of the ranks
    loss: float = field(
        metadata=stored_as("loss_ns", 1e9)
    )  # rank-seconds beyond those that the fewest ranks need for the same work
    parts: dict[str, float] = field(
        metadata=stored_as("parts_ns", 1e9)
    )  # of the loss, to which they add up; less than 0: a gain

    @property
    def throughput(self) -> float:
        """Work of all ranks for each second."""
        return self.work / self.time


@dataclass(frozen=True, repr=False)
class Scaling(StoredResult):
    """The result of :func:`scaling`. ``docs/ranks.md`` lists the keys of its JSON."""

    SCHEMA: ClassVar[str] = "roofprof.scaling"
    SCHEMA_VERSION: ClassVar[int] = 2

    model: str
    device: str
    kind: str  # "strong", "weak" or "neither"
    per: str  # what times are of: "step" or "run"
    unit: str  # of work: "MACs" or "FLOPs"
    points: tuple[ScalingPoint, ...]  # fewest ranks first
    warnings: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.points:
            raise Error("points is empty")

    def document(self) -> _report.Document:
        """Return what is shown, as data: speed-up and efficiency, the loss and its parts, and what they mean."""
        document = _report.Document()
        first, last = self.points[0], self.points[-1]
        of = f"{self.model} on {self.device}, {first.ranks} to {last.ranks} ranks"
        document.add_title(f"{of}; {_KINDS[self.kind]}")
        for warning in self.warnings:
            document.add_paragraph("warning", warning, role="warning")
        names = ("ranks", self.per, f"{self.unit}/s", "speed-up", "efficiency", "spread", "hosts", "AI")
        columns = [
            _report.TableColumn(name, left=not place, drop_rank=rank)
            for place, (name, rank) in enumerate(zip(names, _DROPPED, strict=True))
        ]
        document.add_table(columns, [_cells(point) for point in self.points], title="Speed-up and efficiency")
        others = self.points[1:]
        columns = [_report.TableColumn("part of the loss", left=True)]
        # The column of the most ranks stays.
        columns += [
            _report.TableColumn(f"{point.ranks} ranks", drop_rank=len(others) - 1 - place)
            for place, point in enumerate(others)
        ]
        rows = [[_report.Cell(part), *(_lost(point.parts[part], point) for point in others)] for part in first.parts]
        document.add_table(
            columns,
            [*rows, [_report.Cell("loss"), *(_lost(point.loss, point) for point in others)]],
            rules=[len(rows)],
            marks=[""] * len(rows) + ["total"],
            title="What the loss consists of",
        )
        document.add_paragraph("largest", self._largest())
        if causes := self._causes():
            document.add_paragraph("compute", "; ".join(causes))
        needs = "1 rank needs" if first.ranks == 1 else f"{first.ranks} ranks need"
        document.add_paragraph(
            "loss",
            f"ranks x {self.per}, beyond what {needs} for the same work, in rank-seconds (and its share of the time of "
            "all ranks, 100% - efficiency). Its parts add up; a negative one is a gain",
        )
        document.add_paragraph("parts", items=[f"{part}: {MEANINGS[part]}" for part in first.parts])
        return document

    def _largest(self) -> str:
        last = self.points[-1]
        part, amount = max(last.parts.items(), key=lambda item: item[1])
        share = amount / (last.ranks * last.time)
        if share < _SMALL:
            return f"no part of the loss is above {_percent(_SMALL)} of the time of {last.ranks} ranks"
        return f"of {last.ranks} ranks {part} takes {_percent(share)} of their time"

    def _causes(self) -> list[str]:
        """Return the causes of slower ops: intensities, and the ranks that share a host."""
        first, last = self.points[0], self.points[-1]
        causes = []
        if first.intensity is not None and last.intensity is not None:
            before, after = (fields["intensity"].text(point.intensity) for point in (first, last))
            causes.append(f"AI, the FLOPs per byte of ops that are no collectives: {before} -> {after}")
        if last.hosts and last.hosts < last.ranks:
            hosts = "one host" if last.hosts == 1 else f"{last.hosts} hosts"
            causes.append(f"{last.ranks} ranks share the cores, caches and memory bandwidth of {hosts}")
        return causes

    def _about(self) -> str:
        return f"{self.model} on {self.device}: {len(self.points)} numbers of ranks"

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw speed-up over ranks and the parts of the loss; with a path it is written there, by its suffix.

        Needs matplotlib (``pip install roofprof[plot]``). Raises ValueError for other suffixes than .svg, .png, .pdf.
        """
        return draw_scaling(
            path,
            ranks=[point.ranks for point in self.points],
            speed_ups=[point.speed_up for point in self.points],
            parts={
                part: [100 * point.parts[part] / (point.ranks * point.time) for point in self.points]
                for part in self.points[-1].parts
            },
            title=f"{self.model} on {self.device}: "
            + ("scaling by work per second" if self.kind == "neither" else f"{self.kind} scaling"),
        )

    def _picture(self) -> Html:
        return picture_of(self.plot, "speed-up over ranks, and the parts of the loss")

    def _content(self) -> dict[str, Any]:
        content = {"generator": "roofprof scaling", **super()._content()}
        for point, stored in zip(self.points, content["points"], strict=True):
            stored["throughput"] = point.throughput
        return content


def scaling(reports: Iterable[Report | str | Path]) -> Scaling:
    """Return the scaling of one program, from merged reports, or their files, of different numbers of ranks.

    A report of a program of one process counts as one rank. Speed-up is throughput relative to the fewest ranks, with
    the work of all ranks for each second as throughput. ``docs/ranks.md`` says what the loss consists of. Raises
    ValueError or OSError, naming the report, if it cannot be read, has no times, is of one of several ranks or of
    another model, or has the same number of ranks as another. Raises TypeError for one path in place of a list.
    """
    refuse_one_path(reports)
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
    kind = _kind(found, work)
    return Scaling(
        reads[0].model,
        _device(reads),
        kind,
        "step" if per_step else "run",
        unit,
        points,
        tuple(warnings),
    )


def _device(reads: list[Read]) -> str:
    """Return the kinds of device of all reports."""
    return ", ".join(dict.fromkeys(of.report.device.partition(":")[0] for of in reads))


def _check(reads: list[Read]) -> None:
    if len(reads) < 2:
        raise Error(
            f"scaling compares different numbers of ranks: give 2 reports or more, not {len(reads)} "
            "(roofprof docs ranks#how-it-scales)"
        )
    seen: dict[int, str] = {}
    for of in reads:
        if of.ranks in seen:
            words = "1 rank" if of.ranks == 1 else f"{of.ranks} ranks"
            raise Error(f"{seen[of.ranks]} and {of.name} are both of {words}: give one of them")
        seen[of.ranks] = of.name
        if of.model != reads[0].model:
            raise Error(f"{of.name} is of {of.model}, and {reads[0].name} of {reads[0].model}: give one model's")


def _work(found: list[Measured]) -> tuple[str, list[float]]:
    """Return MACs, unchanged by replicated optimizers and sums of gradients; FLOPs for a model without MACs."""
    for unit, work in (("MACs", [of.macs for of in found]), ("FLOPs", [of.flops for of in found])):
        if all(amount > 0 for amount in work):
            return unit, work
    name = next(of.name for of in found if not of.flops > 0)
    raise Error(f"{name} has no work: throughput needs MACs or FLOPs, and none was counted")


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


# ---- the cells of the tables


def _cells(point: ScalingPoint) -> list[_report.Cell]:
    return [
        _report.Cell(str(point.ranks), point.ranks),
        _report.Cell(_seconds(point.time), point.time),
        cell("achieved_flops", point.throughput),
        _report.Cell(f"{point.speed_up:.2f}", point.speed_up),
        _report.Cell(_percent(point.efficiency), point.efficiency),
        _report.Cell("n/a" if point.spread is None else _percent(point.spread), point.spread),
        _report.Cell("n/a" if point.hosts is None else str(point.hosts), point.hosts),
        cell("intensity", point.intensity),
    ]


def _lost(amount: float, point: ScalingPoint) -> _report.Cell:
    """Return rank-seconds, and their share of the time of all ranks."""
    share = amount / (point.ranks * point.time)
    text = "0" if abs(share) < _NOTHING else f"{_seconds(amount)} ({_percent(share)})"
    return _report.Cell(text, amount)


def _seconds(value: float) -> str:
    return ("-" if value < 0 else "") + fields["time"].text(abs(value))


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"
