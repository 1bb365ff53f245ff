"""The comparison of one program's reports on different numbers of ranks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from roofprof.render.files import write_whole
from roofprof.render.results import StoredResult, stored_as
from roofprof.report.report import Report
from roofprof.report.scaling.loss import parts_of_loss
from roofprof.report.scaling.measured import Measured, Read, measured, read, roofs_of_compute, what_differs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SAME = 0.01  # work that differs by less is constant


@dataclass(frozen=True)
class ScalingPoint:
    """One number of ranks, measured. Times are seconds of a step, or of the run where no steps were marked."""

    ranks: int
    name: str = field(metadata=stored_as("report"))
    hosts: int | None  # None: not known
    time: float = field(metadata=stored_as("time_ns", 1e9))  # the slowest rank's median
    spread: float | None  # (longest - shortest) / median of the times of that rank
    work: float  # of all ranks
    intensity: float | None  # FLOPs per byte of ops that are no collectives
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
    """The result of :func:`scaling`. ``docs/scaling.md`` lists the keys of its JSON."""

    SCHEMA: ClassVar[str] = "roofprof.scaling"
    SCHEMA_VERSION: ClassVar[int] = 2

    model: str
    device: str
    kind: str  # "strong", "weak" or "neither"
    per: str  # what times are of: "step" or "run"
    unit: str  # of work: "MACs" or "FLOPs"
    points: tuple[ScalingPoint, ...]  # fewest ranks first
    warnings: tuple[str, ...]

    def table(self, width: int = 120) -> str:
        """Return it as text: speed-up and efficiency, the loss and its parts."""
        from roofprof.report.scaling.text import as_text

        return as_text(self, width)

    def _about(self) -> str:
        return f"{self.model} on {self.device}: {len(self.points)} numbers of ranks"

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw speed-up over ranks and the parts of the loss; with a path it is written there, by its suffix.

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

    def _content(self) -> dict[str, Any]:
        content = {"generator": "roofprof scaling", **super()._content()}
        for point, stored in zip(self.points, content["points"], strict=True):
            stored["throughput"] = point.throughput
        return content


def scaling(reports: Iterable[Report | str | Path]) -> Scaling:
    """Return the scaling of one program, from merged reports, or their files, of different numbers of ranks.

    A report of a program of one process counts as one rank. Speed-up is throughput relative to the fewest ranks, with
    the work of all ranks for each second as throughput. ``docs/scaling.md`` says what the loss consists of. Raises
    ValueError or OSError, naming the report, for what is no report, has no times, is of one of several ranks or of
    another model, and for two of the same number of ranks.
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
