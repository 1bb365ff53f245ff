"""``RooflineCallback`` for Hugging Face's ``Trainer``."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from roofprof import Report
from roofprof.callbacks._shared import TrainingWindow, scalars
from roofprof.callbacks.loggers import attach_to

try:
    from transformers import Trainer, TrainerCallback
    from transformers.integrations.integration_utils import MLflowCallback, TensorBoardCallback, WandbCallback
except ImportError:
    raise ImportError("this callback needs transformers: run `pip install 'roofprof[huggingface]'`") from None

# The training loop runs in these methods: an exception passes through the first that it leaves. transformers 5 has the
# private one; without it the optimizer's exceptions end the window when the training begins again.
_GUARDED = ("_run_epoch", "training_step")
# These methods do not train, and any callback may call them at any time.
_EVALUATING = ("evaluate", "predict")


class RooflineCallback(TrainerCallback):  # type: ignore[misc]
    """Profiles ``steps`` optimizer steps after the first ``skip``; then training goes on at full speed.

    A step has its forwards, backwards and the optimizer; batches are fetched between steps, which counts as well. The
    window ends early before an evaluation and at the end of training: the report's ``steps`` has their number. Totals
    go to the trainer's loggers by ``trainer.log``, the report goes to ``path`` and, where they have artifacts (MLflow,
    W&B), to the loggers. With several processes each writes a file (``roofprof.rank1.json``), and the main one logs.

    path: None writes no file. options: those of ``roofprof.RooflineProfiler``, such as ``ceilings=``.
    Raises ValueError and OSError where these make no window or no file.
    """

    def __init__(
        self, skip: int = 3, steps: int = 10, path: str | Path | None = "roofprof.json", **options: Any
    ) -> None:
        self._window = TrainingWindow(skip, steps, path, options)
        self._trainer: Trainer | None = None
        self._in_step = False
        self._undo: list[Callable[[], None]] = []

    @property
    def report(self) -> Report | None:
        """The window's report, once the window is over; marked partial where training raised in it."""
        return self._window.report()

    # ---- what the trainer calls

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002
        """Prepare for a training that begins, perhaps again."""
        self._leave()
        self._window.restart_if_failed()
        if self._window.done:
            return
        self._trainer = _trainer_above()
        if self._trainer is not None:
            self._guard(self._trainer)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002
        """Begin an optimizer step, before its first batch."""
        self._window.begin_step(kwargs["model"])
        self._in_step = True

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002
        """End a step, after the optimizer. The trainer has decided by now if it will evaluate."""
        if self._end_step() or control.should_evaluate or control.should_training_stop:
            self._close(args, state, control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002
        """Close the window before an evaluation, which does not train."""
        if control.should_evaluate:
            self._close(args, state, control)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002
        """Close the window, if training had fewer steps than requested."""
        self._close(args, state, control)
        self._leave()
        self._window.warn_if_empty()

    # ---- the end of the window

    def _end_step(self) -> bool:
        """Return True when the window's last step ended. A step that an evaluation ended has ended already."""
        ended, self._in_step = self._in_step, False
        return ended and self._window.end_step()

    def _close(self, args: Any, state: Any, control: Any) -> None:
        if not self._window.is_open:
            return
        report = self._window.close(args.process_index if args.world_size > 1 else None)
        trainer = self._trainer
        self._leave()
        if report is None or trainer is None or not state.is_world_process_zero:
            return
        requested = control.should_log  # logging ends the request, and the trainer's own log is still to come
        trainer.log(dict(scalars(report)))
        control.should_log = requested
        writers = map(_logged_to, trainer.callback_handler.callbacks)
        attach_to([writer for writer in writers if writer is not None], report, state.global_step)

    def _guard(self, trainer: Trainer) -> None:
        """Wrap the trainer's methods: it announces neither exceptions nor evaluations, which must end the window."""
        for names, wrapped in ((_GUARDED, self._guarded), (_EVALUATING, self._after_the_window)):
            for name in names:
                method = getattr(trainer, name, None)
                if method is None:
                    continue
                before = vars(trainer).get(name)  # set on the object by somebody else
                setattr(trainer, name, wrapped(method))
                if before is None:
                    self._undo.append(functools.partial(vars(trainer).pop, name, None))
                else:
                    self._undo.append(functools.partial(setattr, trainer, name, before))

    def _guarded(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            try:
                return method(*args, **kwargs)
            except BaseException as error:
                self._window.fail(error)
                self._leave()
                raise

        return guarded

    def _after_the_window(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def evaluating(*args: Any, **kwargs: Any) -> Any:
            trainer = self._trainer
            if self._window.is_open and trainer is not None:
                self._end_step()  # by a callback before this one, which has not heard of the step's end
                self._close(trainer.args, trainer.state, trainer.control)
            return method(*args, **kwargs)

        return evaluating

    def _leave(self) -> None:
        """Give the trainer its methods back."""
        while self._undo:
            self._undo.pop()()
        self._trainer = None


def _trainer_above() -> Trainer | None:
    """Return the trainer whose callback is being called: trainers give callbacks everything but themselves."""
    frame = sys._getframe(1)
    while frame is not None:
        found = frame.f_locals.get("self")
        if isinstance(found, Trainer):
            return found
        frame = frame.f_back  # type: ignore[assignment]
    return None


def _logged_to(callback: TrainerCallback) -> Any:
    """Return the writer or run of one of the trainer's own loggers; None where it has none."""
    if isinstance(callback, TensorBoardCallback):
        return callback.tb_writer
    if isinstance(callback, WandbCallback):
        return sys.modules["wandb"].run
    if isinstance(callback, MLflowCallback):
        return sys.modules["mlflow"].active_run()
    return None
