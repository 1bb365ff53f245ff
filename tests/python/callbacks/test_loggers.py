"""Reports in experiment trackers, read back with the trackers' own packages."""

import json
import re
import statistics
from pathlib import Path

import pytest
import torch
from given_roofs import roofs
from trackers import FORWARD_MACS, Classifier, tensorboard_events

import roofprof
from roofprof.callbacks._shared import FIGURES, PREFIX, scalars
from roofprof.callbacks.loggers import log_report

pytestmark = pytest.mark.integration

X = torch.rand(4, 6)


@pytest.fixture
def counted():
    """Without times: these figures are None."""
    return roofprof.count(Classifier(), X)


@pytest.fixture
def timed():
    prof = roofprof.RooflineProfiler(Classifier(), ceilings=roofs())
    with prof:
        for _ in range(3):
            prof.model(X)
            prof.step()
    return prof.report()


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(f"file://{tmp_path}/mlruns")
    yield mlflow
    mlflow.set_tracking_uri(None)


@pytest.fixture
def wandb_run(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    run = wandb.init(project="roofprof", dir=str(tmp_path), mode="offline")
    yield run
    run.finish()


# ---- TensorBoard


def test_tensorboard(tmp_path, timed):
    tensorboard = pytest.importorskip("torch.utils.tensorboard")
    with tensorboard.SummaryWriter(tmp_path) as writer:
        log_report(timed, writer, step=7)
    numbers, texts = tensorboard_events(tmp_path)
    assert numbers["roofprof/macs"] == [(7, 3 * FORWARD_MACS)]
    assert numbers["roofprof/steps"] == [(7, 3)]
    assert numbers["roofprof/time"] == [(7, pytest.approx(timed.total.time))]
    assert numbers["roofprof/step_time"] == [(7, pytest.approx(statistics.median(timed.step_times)))]
    assert numbers["roofprof/incomplete"] == [(7, 0)]
    assert all(line.startswith("    ") for line in texts["roofprof/table/text_summary"].splitlines())
    assert "    Classifier" in texts["roofprof/table/text_summary"]


def test_figures_that_are_not_known_are_left_out_and_lower_bounds_are_marked(tmp_path):
    tensorboard = pytest.importorskip("torch.utils.tensorboard")
    torch.library.define("roofprof_callbacks::unknown", "(Tensor x) -> Tensor")
    torch.library.impl("roofprof_callbacks::unknown", "CPU", lambda x: x.clone())
    report = roofprof.count(lambda x: torch.ops.roofprof_callbacks.unknown(x) @ x, torch.rand(3, 3))
    with tensorboard.SummaryWriter(tmp_path) as writer:
        log_report(report, writer)
    numbers, _ = tensorboard_events(tmp_path)
    assert (numbers["roofprof/macs"], numbers["roofprof/incomplete"]) == ([(0, 27)], [(0, 1)])
    assert not {f"roofprof/{name}" for name in ("time", "percent_of_roof", "mfu", "steps", "step_time")} & set(numbers)


# ---- MLflow


@pytest.mark.parametrize("how", ["module", "run"])
def test_mlflow(tmp_path, mlflow, timed, how):
    with mlflow.start_run() as run:
        if how == "module":
            log_report(timed, mlflow, step=7)
    if how == "run":  # one that is over
        log_report(timed, run, step=7)
    client = mlflow.MlflowClient()
    [history] = client.get_metric_history(run.info.run_id, "roofprof/macs")
    assert (history.step, history.value) == (7, 3 * FORWARD_MACS)
    assert client.get_run(run.info.run_id).data.metrics["roofprof/time"] == timed.total.time
    kept = client.download_artifacts(run.info.run_id, "roofprof", tmp_path)
    assert roofprof.Report.from_json(f"{kept}/report.json") == timed
    assert mlflow.active_run() is None


def test_mlflow_without_a_run(mlflow, counted):
    with pytest.raises(RuntimeError, match="mlflow has no active run"):
        log_report(counted, mlflow)


# ---- W&B


def test_wandb(tmp_path, wandb_run, timed):
    log_report(timed, wandb_run, step=7)
    wandb_run.log({"loss": 1.0}, step=8)  # W&B keeps a step when the next one comes
    assert wandb_run.summary["roofprof/macs"] == 3 * FORWARD_MACS
    assert wandb_run.summary["roofprof/time"] == timed.total.time
    [file] = tmp_path.rglob("modules*.table.json")
    table = json.loads(file.read_text())
    rows = {row[0]: dict(zip(table["columns"], row, strict=True)) for row in table["data"]}
    assert rows["first"]["macs"] == 3 * 4 * 6 * 8
    assert rows["first"]["type"] == "Linear"
    assert rows["(total)"]["macs"] == 3 * FORWARD_MACS


def test_wandb_keeps_the_report(monkeypatch, wandb_run, timed):
    kept = []
    monkeypatch.setattr(type(wandb_run), "log_artifact", lambda _run, artifact: kept.append(artifact))
    log_report(timed, wandb_run)
    [artifact] = [one for one in kept if one.type == "roofprof-report"]
    path = artifact.manifest.entries["report.json"].local_path
    assert roofprof.Report.from_json(path) == timed


def test_anything_else_is_refused(tmp_path, counted):
    with pytest.raises(TypeError, match=r"log_report takes .*, not builtins\.dict"):
        log_report(counted, {})
    with pytest.raises(TypeError, match=r"takes a roofprof\.Report, not str"):
        log_report("r.json", tmp_path)


def test_the_page_lists_the_scalars(timed):
    page = (Path(__file__).parents[3] / "docs" / "callbacks.md").read_text()
    table = page.partition("## Names of the scalars")[2].partition("Hugging Face")[0]
    listed = set(re.findall(r"`(roofprof/\w+)`", table))
    assert set(scalars(timed)) <= listed
    assert listed == {PREFIX + name for name in (*FIGURES, "mfu", "hfu", "steps", "step_time", "incomplete")}
