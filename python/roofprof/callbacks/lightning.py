"""``RooflineCallback`` for Lightning's ``Trainer``, of ``lightning.pytorch`` or of ``pytorch_lightning``."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roofprof import Report
from roofprof.callbacks._shared import TrainingWindow, scalars
from roofprof.callbacks.loggers import attach_to

_PACKAGES = ("lightning.pytorch", "pytorch_lightning")


def _callback_class() -> Any:
    """Return the Callback class of the package that the program has imported, else of the first that is installed."""
    for name in (*(name for name in _PACKAGES if name in sys.modules), *_PACKAGES):
        try:
            return importlib.import_module(name).Callback
        except ImportError:
            continue
    raise ImportError("this callback needs Lightning: run `pip install 'roofprof[lightning]'`")


if TYPE_CHECKING:
    Callback = Any
else:
    Callback = _callback_class()


class RooflineCallback(Callback):  # type: ignore[misc]
    """Profiles ``steps`` training batches after the first ``skip``; then training goes on at full speed.

    A step has the batch's forward, backward and, where it is the batch's turn, the optimizer; the next batch is fetched
    between steps, which counts as well. The window ends early before a validation and at the end of training: the
    report's ``steps`` has their number. Totals go to all of the trainer's loggers, the report goes to ``path`` and,
    where they have artifacts (MLflow, W&B), to the loggers. With several processes each writes a file
    (``roofprof.rank1.json``), and the main one logs.

    path: None writes no file. options: those of ``roofprof.RooflineProfiler``, such as ``ceilings=``.
    Raises ValueError and OSError where these make no window or no file.
    """

    def __init__(
        self, skip: int = 3, steps: int = 10, path: str | Path | None = "roofprof.json", **options: Any
    ) -> None:
        super().__init__()
        self._window = TrainingWindow(skip, steps, path, options)

    @property
    def report(self) -> Report | None:
        """The window's report, once the window is over; marked partial where training raised in it."""
        return self._window.report()

    # ---- what the trainer calls

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Prepare for a training that begins, perhaps again."""
        self._window.restart_if_failed()

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:  # noqa: ARG002
        """Begin a step, before its forward."""
        self._window.begin_step(pl_module)

    def on_train_batch_end(
        self,
        trainer: Any,
        pl_module: Any,  # noqa: ARG002
        outputs: Any,  # noqa: ARG002
        batch: Any,  # noqa: ARG002
        batch_idx: int,  # noqa: ARG002
    ) -> None:
        """End a step, after the optimizer."""
        if self._window.end_step():
            self._close(trainer)

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Close the window before a validation, which does not train."""
        self._close(trainer)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Close the window, if training had fewer steps than requested."""
        self._close(trainer)
        self._window.warn_if_empty()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:  # noqa: ARG002
        """End the window after training raised, or was interrupted."""
        self._window.fail(exception)

    # ---- the end of the window

    def _close(self, trainer: Any) -> None:
        if not self._window.is_open:
            return
        report = self._window.close(trainer.global_rank if trainer.world_size > 1 else None)
        if report is None or not trainer.is_global_zero:
            return
        for logger in trainer.loggers:
            logger.log_metrics(dict(scalars(report)), step=trainer.global_step)
            attach_to([logger], report, trainer.global_step)
