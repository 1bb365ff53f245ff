"""Some steps of a training that others run: a `with` block of the profiler that is opened and closed from callbacks."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from roofprof import Report, RooflineProfiler
from roofprof.render.files import of_rank, why_not_writable


@contextlib.contextmanager
def training_goes_on(what: str) -> Iterator[None]:
    """Turn an exception into a warning: a report that cannot be handed on shall not end the training."""
    try:
        yield
    except Exception as error:
        warnings.warn(f"roofprof: {what}: {type(error).__name__}: {error}; `.report` still has it", stacklevel=2)


class StepWindow:
    """Profiles ``steps`` steps after the first ``skip``, once.

    path: the report's JSON file; None: it is not written. options: those of ``RooflineProfiler``.
    Raises ValueError for numbers that make no window, OSError where the file cannot be made: hours of training
    shall not end in that.
    """

    def __init__(self, skip: int, steps: int, path: str | Path | None, options: dict[str, Any]) -> None:
        if skip < 0 or steps < 1:
            raise ValueError(f"skip must be 0 or more and steps 1 or more, not skip={skip}, steps={steps}")
        self._skip = skip
        self._steps = steps
        self._options = options
        self._path = None if path is None else Path(path)
        if self._path is not None and not self._path.absolute().parent.is_dir():
            raise FileNotFoundError(f"the report cannot be written to {path}: make the folder first")
        if self._path is not None and (why := why_not_writable(self._path)):
            raise OSError(f"the report cannot be written to {path}: {why}")
        RooflineProfiler(None, **options)  # report wrong options now
        self._profiler: RooflineProfiler | None = None  # until its report is made: it holds the model
        self._report: Report | None = None
        self._failed = False
        self._done = False
        self._seen = 0  # steps that ended
        self._marked = 0  # of them, those in the window

    @property
    def done(self) -> bool:
        """There is nothing left to profile."""
        return self._done

    @property
    def is_open(self) -> bool:
        """Steps are profiled now."""
        return self._profiler is not None and self._profiler._block is not None

    def restart_if_failed(self) -> None:
        """Begin counting steps for a training that begins; after one that raised, the window is still to come."""
        if self._failed:
            self._failed = self._done = False
        self._seen = self._marked = 0

    def begin_step(self, model: Any) -> None:
        """Begin a step of this model, and perhaps the window with it."""
        if self._done or self.is_open or self._seen < self._skip:
            return
        self._profiler = RooflineProfiler(model, **self._options)
        self._profiler.__enter__()

    def end_step(self) -> bool:
        """End a step; return True when it was the window's last, so that :meth:`close` is due."""
        self._seen += 1
        if not self.is_open:
            return False
        assert self._profiler is not None
        self._profiler.step()
        self._marked += 1
        return self._marked == self._steps

    def close(self, rank: int | None = None) -> Report | None:
        """End the window and write the report, whole or not at all; None where nothing was profiled since it opened.

        Warns where it cannot be written. rank: of this process among several, each of which writes a file.
        """
        if not self.is_open:
            return None
        assert self._profiler is not None
        self._done = True
        self._profiler.__exit__(None, None, None)
        report = self.report()
        if self._path is not None and report is not None:
            with training_goes_on("the report is not written"):
                report.to_json(of_rank(self._path, rank))
        return report

    def fail(self, error: BaseException) -> None:
        """Leave nothing behind after training raised. :meth:`report` then returns the steps before the exception."""
        if self.is_open:
            assert self._profiler is not None
            self._failed = self._done = True
            self._profiler.__exit__(type(error), error, error.__traceback__)

    def report(self) -> Report | None:
        """Return the window's report, marked partial after an exception; None before its end, or if it never opened."""
        if self.is_open:
            return None
        if self._profiler is not None:
            self._report, self._profiler = self._profiler.report(), None
        return self._report

    def warn_if_empty(self) -> None:
        """Warn, when training has ended, if that left nothing to profile."""
        if self._profiler is None and self._report is None:
            warnings.warn(
                f"roofprof profiled nothing: the training had {self._seen} steps, and skip={self._skip} leaves out as "
                "many or more; take a smaller one",
                stacklevel=3,
            )
