"""The changes that would help most: each module's savings with faster memory, lower precision or fused chains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, cast

from roofprof import _report
from roofprof.errors import Error
from roofprof.figures import cell, fields
from roofprof.predict.options import Options, OptionsOfCalls, compiled_options
from roofprof.render.results import StoredResult

_ROWS = 30  # that a table shows unless asked for more
# The lower precision that a question takes for each type: the next one with fewer bits and usually a roof.
_LOWER = {"fp64": "fp32", "fp32": "fp16", "tf32": "fp16", "fp16": "fp8", "bf16": "fp8", "fp8": "fp4"}


@dataclass(frozen=True)
class ModuleWhatIf:
    """A module, those below it included, and what it would save. Seconds; with another batch, of the same samples."""

    path: str
    depth: int
    time: float
    bound: str
    intensity: float | None  # FLOPs per byte
    ridge: float | None  # I_max of the device: above it arithmetic bounds
    saved: dict[str, float]  # by question

    @property
    def best(self) -> str:
        """The question whose answer saves most; "" where nothing saves anything."""
        name = max(self.saved, key=lambda name: self.saved[name], default="")
        return name if name and self.saved[name] > 0 else ""


@dataclass(frozen=True, repr=False)
class WhatIf(StoredResult):
    """The answers for every module, in the model's order; ``total`` is the whole report's."""

    SCHEMA: ClassVar[str] = "roofprof.what_if"

    model: str
    device: str
    prediction: str
    questions: dict[str, str]  # name -> what it supposes
    unanswered: dict[str, str]  # name -> why it cannot be answered
    modules: tuple[ModuleWhatIf, ...]
    total: ModuleWhatIf

    def __getitem__(self, path: str) -> ModuleWhatIf:
        for module in self.modules:
            if module.path == path:
                return module
        raise KeyError(f"no module '{path}'")

    def document(self, depth: int | None = None) -> _report.Document:
        """Return what is shown, as data; depth: the deepest level of it (default: as many levels as make 30 lines)."""
        deepest = self._readable() if depth is None else depth
        shown = [module for module in self.modules if module.depth <= deepest]
        document = _report.Document()
        head = f"what would help {self.model} on {self.device}: time saved, of {_time(self.total.time)} predicted"
        document.add_title(f"{head} ({self.prediction})")
        column, last = _report.TableColumn, len(self.questions)
        columns = [column("module", left=True, min_width=12), column("time"), column("AI", drop_rank=last + 2)]
        columns += [column("I_max", drop_rank=last + 1), column("bound", left=True)]
        columns += [column(name, drop_rank=place + 1) for place, name in enumerate(self.questions)]
        columns += [column("most by", left=True)]
        hidden = len(self.modules) - len(shown)
        document.add_table(
            columns,
            [self._cells(module) for module in (*shown, self.total)],
            rules=[len(shown)],
            marks=[""] * len(shown) + ["total"],
            remarks=[f"{hidden} more modules below depth {deepest}: depth={deepest + 1} shows more"] if hidden else [],
            title="Modules",
        )
        for place, (name, meaning) in enumerate(self.questions.items()):
            document.add_paragraph("" if place else "columns", f"{name}: {meaning}")
        ridge = "where the device's memory and arithmetic take equally long"
        document.add_paragraph("", f"AI: FLOPs per byte; I_max: {ridge}")
        for place, (name, why) in enumerate(self.unanswered.items()):
            document.add_paragraph("" if place else "not asked", f"{name}: {why}")
        return document

    def table(self, depth: int | None = None, width: int = 120) -> str:  # type: ignore[override]  # depth is first
        """Return the document as text, in lines that are no longer than ``width``."""
        return self.document(depth).text(width).rstrip("\n")

    def _document_of_page(self) -> _report.Document:
        return self.document(max((module.depth for module in self.modules), default=0))

    def _readable(self) -> int:
        deepest = 1
        while sum(module.depth <= deepest + 1 for module in self.modules) <= _ROWS:
            if not any(module.depth > deepest for module in self.modules):
                break
            deepest += 1
        return deepest

    def _cells(self, module: ModuleWhatIf) -> list[_report.Cell]:
        is_total = module is self.total
        name = "total" if is_total else module.path.rpartition(".")[2] or self.model
        return [
            _report.Cell(name, level=0 if is_total else module.depth),
            cell("time", module.time),
            cell("intensity", module.intensity),
            cell("intensity", module.ridge),
            _report.Cell(module.bound),
            *(cell("time", module.saved[name]) for name in self.questions),
            _report.Cell(module.best or "nothing"),
        ]

    def _about(self) -> str:
        return f"{self.model} on {self.device}: {len(self.modules)} modules"


def _time(seconds: float) -> str:
    return fields["time"].text(seconds)


def answers_of(report: _report.Report, roofs: _report.Ceilings, batch: int | None, options: OptionsOfCalls) -> WhatIf:
    """Return the answers for :meth:`Predicts.what_if`."""

    def predicted(changed: Options) -> _report.Report:
        both = cast("Options", {**options, **changed})
        return _report.predict_report(report, roofs, compiled_options(both))

    base = predicted({})
    counted = _report.Predictor(report, compiled_options(cast("Options", options))).batch
    answers: dict[str, Callable[[int], float]] = {}
    base_times = [*(row.time for row in base.rows), base.total.time]
    questions, unanswered = {}, {}

    def ask(name: str, meaning: str, changed: Options, share: float = 1.0) -> None:
        try:
            other = predicted(changed)
        except ValueError as error:
            unanswered[name] = str(error)
            return
        questions[name] = meaning
        times = [*(row.time for row in other.rows), other.total.time]  # the same rows as of base
        answers[name] = lambda place: (base_times[place] or 0.0) - share * (times[place] or 0.0)

    ask("memory x2", "twice the bandwidth", {"bandwidth": 2 * options.get("bandwidth", 1.0)})
    ask("peak x2", "twice the arithmetic peaks", {"peak": 2 * options.get("peak", 1.0)})
    dtype = _main_dtype(base)
    lower = _LOWER.get(dtype)
    if lower is None:
        unanswered["precision"] = f"most arithmetic is in {dtype}, which no type is taken to be below"
    elif lower not in {peak.dtype for peak in roofs.compute} and lower != "fp16":
        unanswered[lower] = f"the roofs of {roofs.device} have no peak for it"
    else:
        ask(lower, f"all floating-point work in {lower}", {"precision": lower})
    ask(
        "fused",
        "elementwise ops, norms and reductions that follow each other are one kernel, and nothing waits for the host",
        {"mode": "compiled", "compiled": False},
    )
    if batch is not None and batch < 1:
        raise Error(f"batch must be 1 or more, not {batch}")
    wanted = batch or (2 * counted if counted else None)
    if wanted is None:
        unanswered["batch"] = "the batch that was counted is not known: say batch="
    elif counted is None:
        unanswered[f"batch {wanted}"] = "the batch that was counted is not known"
    else:
        ask(
            f"batch {wanted}",
            f"{wanted} samples a call; time for {counted} of them",
            {"batch": wanted},
            counted / wanted,
        )

    def answered(place: int, row: _report.Row) -> ModuleWhatIf:
        saved = {name: answer(place) for name, answer in answers.items()}
        ridge = _ridge(roofs, row)
        return ModuleWhatIf(row.path, row.depth, row.time or 0.0, str(row.bound), row.intensity, ridge, saved)

    return WhatIf(
        model=report.model,
        device=roofs.device,
        prediction=_report.prediction_of(base),
        questions=questions,
        unanswered=unanswered,
        modules=tuple(answered(place, row) for place, row in enumerate(base.rows)),
        total=answered(-1, base.total),
    )


def _main_dtype(report: _report.Report) -> str:
    by_dtype: dict[str, int] = dict(report.total.flops_by_dtype)
    return max(by_dtype, key=lambda name: by_dtype[name], default="fp32")


def _ridge(roofs: _report.Ceilings, row: _report.Row) -> float | None:
    """Return I_max = peak / bandwidth, by the roofs, for the type that most of the row's FLOPs are in."""
    by_dtype = dict(row.flops_by_dtype)
    memory = max(
        (level for level in roofs.memory if level.level != "host link"),
        key=lambda level: level.level == "DRAM",
        default=None,
    )
    if not by_dtype or memory is None:
        return None
    dtype = max(by_dtype, key=lambda name: by_dtype[name])
    peak = next((peak.operations_per_second for peak in roofs.compute if peak.dtype == dtype), None)
    return None if peak is None else peak / memory.bytes_per_second
