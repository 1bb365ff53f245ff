"""Parts that the callbacks share: the figures that trackers draw, and the window of steps that is profiled."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from roofprof import Report, RooflineProfiler
from roofprof.errors import Error
from roofprof.profiling.step_window import StepWindow
from roofprof.render.files import of_rank, why_not_writable

PREFIX = "roofprof/"
# Figures of the total, by their names in `roofprof.fields`.
FIGURES = (
    "macs",
    "flops",
    "int_ops",
    "bytes",
    "peak_memory",
    "time",
    "intensity",
    "achieved_flops",
    "achieved_bandwidth",
    "percent_of_roof",
    "wasted_time",
)
# Columns of a tracker's table of modules.
COLUMNS = (
    "path",
    "type",
    "calls",
    "params",
    "macs",
    "flops",
    "bytes",
    "intensity",
    "time",
    "achieved_flops",
    "achieved_bandwidth",
    "bound",
    "percent_of_roof",
    "wasted_time",
)


def scalars(report: Report) -> dict[str, float]:
    """Return totals of the whole report by name, ``roofprof/flops`` and so on; an unknown figure is left out.

    Times are seconds, and ``roofprof/incomplete`` is 1 where an op without a cost makes the counts lower bounds.
    """
    figures: dict[str, Any] = {name: getattr(report.total, name) for name in FIGURES}
    statistics = report.step_statistics
    figures["mfu"] = report.mfu
    figures["hfu"] = report.hfu
    figures["steps"] = report.steps
    figures["step_time"] = None if statistics is None else statistics.median
    figures["incomplete"] = int(report.total.incomplete)
    return {PREFIX + name: value for name, value in figures.items() if value is not None}


def module_table(report: Report) -> tuple[list[str], list[list[Any]]]:
    """Return the names of the columns, and a row for each module and for the total; an unknown figure is None."""
    rows = [[getattr(row, name) for name in COLUMNS] for row in report.rows]
    total = ["(total)", *(getattr(report.total, name) for name in COLUMNS[1:])]
    return list(COLUMNS), [*rows, total]


@contextlib.contextmanager
def training_goes_on(what: str) -> Iterator[None]:
    """Turn an exception into a warning: a report that cannot be handed on shall not end the training."""
    try:
        yield
    except Exception as error:
        warnings.warn(f"roofprof: {what}: {type(error).__name__}: {error}; `.report` still has it", stacklevel=2)


class TrainingWindow(StepWindow):
    """A window whose report is written to a file, and which may be opened again for the next training.

    path: the report's JSON file; None: it is not written. Raises ValueError for numbers that make no window, OSError
    where the file cannot be made: hours of training shall not end in that.
    """

    def __init__(self, skip: int, steps: int, path: str | Path | None, options: dict[str, Any]) -> None:
        if skip < 0 or steps < 1:
            raise Error(f"skip must be 0 or more and steps 1 or more, not skip={skip}, steps={steps}")
        super().__init__(skip, steps, options)
        self._path = None if path is None else Path(path)
        if self._path is not None and not self._path.absolute().parent.is_dir():
            raise FileNotFoundError(f"the report cannot be written to {path}: make the folder first")
        if self._path is not None and (why := why_not_writable(self._path)):
            raise OSError(f"the report cannot be written to {path}: {why}")
        RooflineProfiler(None, **options)  # report wrong options now
        self._failed = False

    def restart_if_failed(self) -> None:
        """Begin counting steps for a training that begins; after one that raised, the window is still to come."""
        if self._failed:
            self._failed = self.done = False
        self._seen = self._marked = 0

    def close(self, rank: int | None = None) -> Report | None:
        """End the window and write the report, whole or not at all; None where nothing was profiled since it opened.

        Warns where it cannot be written. rank: of this process among several, each of which writes a file.
        """
        if not self.is_open:
            return None
        self.end()
        report = self.report()
        if self._path is not None and report is not None:
            with training_goes_on("the report is not written"):
                report.to_json(of_rank(self._path, rank))
        return report

    def fail(self, error: BaseException) -> None:
        """Leave nothing behind after training raised. :meth:`report` then returns the steps before the exception."""
        self._failed = self._failed or self.is_open
        self.end(error)

    def warn_if_empty(self) -> None:
        """Warn, when training has ended, if that left nothing to profile."""
        if self.profiler is None and self._report is None:
            warnings.warn(
                f"roofprof profiled nothing: the training had {self._seen} steps, and skip={self._skip} leaves out as "
                "many or more; take a smaller one",
                stacklevel=3,
            )
