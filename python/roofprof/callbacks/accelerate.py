"""Steps of a loop written with Accelerate: ``with profile_steps(accelerator, model) as window``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from roofprof import Report
from roofprof.callbacks._shared import TrainingWindow, scalars
from roofprof.callbacks.loggers import attach_to

try:
    from accelerate import Accelerator
except ImportError:
    raise ImportError("this needs accelerate: run `pip install 'roofprof[accelerate]'`") from None


class Steps:
    """The result of :func:`profile_steps`."""

    def __init__(self, accelerator: Accelerator, model: Any, window: TrainingWindow) -> None:
        self._accelerator = accelerator
        self._model = model
        self._window = window
        self._seen = 0

    @property
    def report(self) -> Report | None:
        """The window's report, once the window is over; marked partial where the loop raised in it."""
        return self._window.report()

    def step(self) -> None:
        """End a step of the loop; the window may end with it, or begin with the next one."""
        self._seen += 1
        if self._window.end_step():
            self._close()
        self._window.begin_step(self._model)

    def _close(self) -> None:
        accelerator = self._accelerator
        report = self._window.close(accelerator.process_index if accelerator.num_processes > 1 else None)
        if report is None or not accelerator.is_main_process:
            return
        accelerator.log(dict(scalars(report)), step=self._seen)
        attach_to([logging.tracker for logging in accelerator.trackers], report, self._seen)


@contextmanager
def profile_steps(
    accelerator: Accelerator,
    model: Any,
    *,
    skip: int = 3,
    steps: int = 10,
    path: str | Path | None = "roofprof.json",
    **options: Any,
) -> Iterator[Steps]:
    """Profile ``steps`` steps of the loop inside after the first ``skip``, as its ``step()`` marks their ends.

    Then, or where the loop ends before, the totals go to the accelerator's trackers by ``accelerator.log``, and the
    report to ``path`` and to the trackers that have artifacts. With several processes each writes a file
    (``roofprof.rank1.json``), and the main one logs. An exception passes; :attr:`Steps.report` has the steps before it.

    model: as it was, or as ``accelerator.prepare`` gave it. path: None writes no file. options: those of
    ``roofprof.RooflineProfiler``. Raises ValueError and OSError where these make no window or no file.
    """
    window = TrainingWindow(skip, steps, path, options)
    loop = Steps(accelerator, accelerator.unwrap_model(model), window)
    window.begin_step(loop._model)
    try:
        yield loop
    except BaseException as error:
        window.fail(error)
        raise
    if window.is_open:
        loop._close()
    window.warn_if_empty()
