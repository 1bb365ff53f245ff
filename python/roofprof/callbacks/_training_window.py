"""The window of a training that others run: callbacks say when steps begin and end, and its report goes to a file."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from roofprof import Report, RooflineProfiler
from roofprof.profiling.step_window import StepWindow
from roofprof.render.files import of_rank, why_not_writable


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
            raise ValueError(f"skip must be 0 or more and steps 1 or more, not skip={skip}, steps={steps}")
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
