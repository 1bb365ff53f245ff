"""Reports in experiment trackers: ``log_report(report, writer_or_run)`` for TensorBoard, MLflow and W&B."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from roofprof import Report
from roofprof.callbacks._shared import module_table, scalars, training_goes_on

_TAKEN = (
    "log_report takes a TensorBoard SummaryWriter, the module mlflow or a run of it, a W&B run, or a logger of "
    "Lightning's for one of these"
)


def log_report(report: Report, writer_or_run: Any, step: int = 0) -> None:
    """Log the totals as scalars, the modules as a table, and the report as an artifact where there are artifacts.

    writer_or_run: a ``SummaryWriter`` (torch's or tensorboardX's), ``mlflow`` itself (its active run) or one of its
    runs, a W&B run, or Lightning's logger of one of them. step: of the training. W&B drops values of a step before its
    current one: there an earlier step becomes the current one. An unknown figure is left out.
    Raises TypeError for anything else.
    """
    if not isinstance(report, Report):
        raise TypeError(f"log_report takes a roofprof.Report, not {type(report).__name__}")
    tracker = tracker_of(writer_or_run)
    if tracker is None:
        raise TypeError(f"{_TAKEN}, not {type(writer_or_run).__module__}.{type(writer_or_run).__qualname__}")
    tracker.log_scalars(scalars(report), step)
    tracker.attach(report, step)


def attach_to(loggers: Iterable[Any], report: Report, step: int) -> None:
    """Give the report to those of the loggers that are known; one that does not take it ends no training."""
    for logger in loggers:
        tracker = tracker_of(logger)
        if tracker is not None:
            with training_goes_on("a tracker does not take the report"):
                tracker.attach(report, step)


class TensorBoard:
    """Scalars, which TensorBoard keeps as float32, and the table as text."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def log_scalars(self, values: dict[str, float], step: int) -> None:
        """Log each value as a curve."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def attach(self, report: Report, step: int) -> None:
        """Log the table, in Markdown a block of code."""
        indented = "\n".join(f"    {line}" for line in report.table().splitlines())
        self._writer.add_text("roofprof/table", indented, step)
        self._writer.flush()


def _files(report: Report) -> dict[str, str]:
    return {"report.json": report.to_json(), "report.csv": report.to_csv(), "table.txt": report.table()}


class MLflow:
    """Metrics of a run, and files: roofprof/report.json, report.csv and table.txt."""

    def __init__(self, mlflow: Any, run_id: str) -> None:
        self._mlflow = mlflow
        self._run_id = run_id

    def log_scalars(self, values: dict[str, float], step: int) -> None:
        """Log each value as a metric."""
        self._mlflow.log_metrics({name: float(value) for name, value in values.items()}, step, run_id=self._run_id)

    def attach(self, report: Report, step: int) -> None:  # noqa: ARG002 - artifacts have no step
        """Log the report, which ``Report.from_json`` reads, and files for people and spreadsheets."""
        # Hugging Face logs metrics in the background: a store of files cannot be read while one of them is written.
        self._mlflow.flush_async_logging()
        for name, text in _files(report).items():
            self._mlflow.log_text(text, f"roofprof/{name}", run_id=self._run_id)


class WandB:
    """Scalars, a table of modules, and the report as an artifact."""

    def __init__(self, run: Any) -> None:
        self._run = run

    def log_scalars(self, values: dict[str, float], step: int) -> None:
        """Log each value as a curve and a figure of the summary."""
        self._log(dict(values), step)

    def attach(self, report: Report, step: int) -> None:
        """Log the table ``roofprof/modules``, and an artifact with report.json and report.csv."""
        wandb = importlib.import_module("wandb")
        columns, rows = module_table(report)
        self._log({"roofprof/modules": wandb.Table(columns=columns, data=rows)}, step)
        artifact = wandb.Artifact(f"roofprof-{self._run.id}", type="roofprof-report")
        for name, text in {"report.json": report.to_json(), "report.csv": report.to_csv()}.items():
            with artifact.new_file(name, mode="w", encoding="utf-8") as file:
                file.write(text)
        self._run.log_artifact(artifact)

    def _log(self, values: dict[str, Any], step: int) -> None:
        self._run.log(values, step=max(step, self._run.step))  # what comes with a step waits for the next one


Tracker = TensorBoard | MLflow | WandB


def tracker_of(writer_or_run: Any) -> Tracker | None:
    """Return the tracker that logs there; None for an unknown one. Its methods identify it: no package is imported.

    Raises RuntimeError for ``mlflow`` without an active run.
    """
    given = writer_or_run
    if isinstance(given, ModuleType) and hasattr(given, "active_run"):
        run = given.active_run()
        if run is None:
            raise RuntimeError("mlflow has no active run: log inside of `with mlflow.start_run():`, or give a run")
        return MLflow(given, run.info.run_id)
    if hasattr(given, "add_scalar") and hasattr(given, "add_text"):
        return TensorBoard(given)
    if hasattr(given, "log_artifact") and hasattr(given, "summary"):
        return WandB(given)
    if hasattr(getattr(given, "info", None), "run_id"):
        return MLflow(importlib.import_module("mlflow"), given.info.run_id)
    return _of_lightning(given)


def _of_lightning(logger: Any) -> Tracker | None:
    """Return the tracker of a Lightning logger, whose experiment is the tracker's own object."""
    if not hasattr(logger, "experiment") or not hasattr(logger, "log_metrics"):
        return None
    experiment = logger.experiment
    if hasattr(experiment, "log_metric") and hasattr(logger, "run_id"):  # MLflow's client
        return _Client(experiment, logger.run_id)
    return None if hasattr(experiment, "experiment") else tracker_of(experiment)


class _Client(MLflow):
    """MLflow by a client, as Lightning has it: it may have another address than ``mlflow``, and logs at once."""

    def log_scalars(self, values: dict[str, float], step: int) -> None:
        for name, value in values.items():
            self._mlflow.log_metric(self._run_id, name, float(value), step=step)

    def attach(self, report: Report, step: int) -> None:  # noqa: ARG002 - artifacts have no step
        for name, text in _files(report).items():
            self._mlflow.log_text(self._run_id, text, f"roofprof/{name}")
