"""A window of steps: a `with` block of the profiler, which is opened before a step and closed after a later one."""

from __future__ import annotations

from typing import Any

from roofprof.profiling.profiler import RooflineProfiler
from roofprof.report.report import Report


class StepWindow:
    """Profiles ``steps`` steps after the first ``skip``, once. The code around the loop says when steps begin and end.

    steps: None: all. options: those of ``RooflineProfiler``.
    """

    def __init__(self, skip: int = 0, steps: int | None = None, options: dict[str, Any] | None = None) -> None:
        self._skip = skip
        self._most = steps
        self._options = options or {}
        self.profiler: RooflineProfiler | None = None  # until its report is made: it holds the model
        self._report: Report | None = None
        self._seen = 0  # steps that ended
        self._marked = 0  # of them, those in the window
        self.in_step = False
        self.is_between = False  # what runs is in no step
        self.done = False  # there is nothing left to profile

    @property
    def is_open(self) -> bool:
        """Return True while steps are profiled."""
        return self.profiler is not None and self.profiler._block is not None

    @property
    def has_all(self) -> bool:
        """Return True when all steps that were requested have ended."""
        return self._marked == self._most

    @property
    def steps(self) -> int:
        """Return the number of the window's steps, one that is under way or was interrupted included."""
        return self._marked + self.in_step

    def begin_step(self, model: Any) -> None:
        """Begin a step of this model, and perhaps the window with it."""
        if not self.is_open:
            if self.done or self._seen < self._skip:
                return
            self.profiler = RooflineProfiler(model, **self._options)
            self.profiler.__enter__()
        self.in_step = True

    def end_step(self) -> bool:
        """End a step; return True when it was the window's last, so that :meth:`end` is due."""
        self._seen += 1
        if not self.is_open:
            return False
        assert self.profiler is not None
        self.profiler.step()
        self._marked += 1
        self.in_step = False
        return self.has_all

    def leave_steps(self) -> None:
        """Leave the steps: code that runs until :meth:`enter_steps` counts for none."""
        if self.is_open and self.profiler is not None and not self.is_between:
            self.is_between = True
            self.profiler._run.leave_steps()

    def enter_steps(self) -> None:
        """Enter the steps again after :meth:`leave_steps`."""
        if self.is_open and self.profiler is not None and self.is_between:
            self.is_between = False
            self.profiler._run.enter_steps()

    def end(self, error: BaseException | None = None) -> None:
        """Close an open window. After an exception the report has what came before it, marked partial."""
        if not self.is_open:
            return
        assert self.profiler is not None
        self.done = True
        self.profiler.__exit__(type(error) if error else None, error, error.__traceback__ if error else None)

    def report(self) -> Report | None:
        """Return the window's report, marked partial after an exception; None before its end, or if it never opened."""
        if self.is_open:
            return None
        if self.profiler is not None:
            self._report, self.profiler = self.profiler.report(), None
        return self._report
