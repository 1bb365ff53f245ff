"""The callback in a real Trainer of Lightning's: what it counts, what loggers then hold, and that nothing is left."""

import importlib
import subprocess
import sys

import pytest
import torch
from given_roofs import roofs
from trackers import (
    FORWARD_MACS,
    STEP_MACS,
    Classifier,
    nothing_is_patched,
    samples,
    tensorboard_events,
)

import roofprof

lightning = pytest.importorskip("lightning.pytorch")

from roofprof.callbacks.lightning import RooflineCallback  # noqa: E402

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore::UserWarning")]


class Training(lightning.LightningModule):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def training_step(self, batch, batch_idx):
        return self.model(batch["x"], batch["labels"])["loss"]

    def validation_step(self, batch, batch_idx):
        self.model(batch["x"])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def callback(tmp_path, **options):
    return RooflineCallback(**{"skip": 2, "steps": 3, "path": tmp_path / "r.json", "ceilings": roofs()} | options)


def fit(tmp_path, mine, model, batches=8, validates=False, **options):
    data = torch.utils.data.DataLoader(samples(batches), batch_size=4)
    trainer = lightning.Trainer(
        **{
            "accelerator": "cpu",
            "max_epochs": 1,
            "logger": False,
            "enable_checkpointing": False,
            "enable_progress_bar": False,
            "enable_model_summary": False,
            "default_root_dir": tmp_path,
            "callbacks": [mine],
        }
        | options
    )
    trainer.fit(Training(model), data, data if validates else None)
    return trainer


def test_counts_the_steps_of_the_window(tmp_path):
    mine, model = callback(tmp_path), Classifier()
    trainer = fit(tmp_path, mine, model)
    assert mine.report.total.macs == 3 * STEP_MACS
    assert mine.report.row("model.first").calls == 3
    assert mine.report.row("(optimizer)").flops > 0
    assert mine.report.steps == 3
    assert roofprof.Report.from_json(tmp_path / "r.json") == mine.report
    assert trainer.global_step == 8
    nothing_is_patched(model)


@pytest.mark.parametrize(
    ("window", "options", "steps"),
    [
        ((1, 8), {"val_check_interval": 3, "validates": True}, 2),
        ((0, 2), {"num_sanity_val_steps": 5, "validates": True}, 2),
        ((1, 3), {"accumulate_grad_batches": 4}, 3),
        ((5, 100), {}, 3),
    ],
    ids=["validations end it", "sanity checks are none", "each batch is one", "the training's end"],
)
def test_steps(tmp_path, window, options, steps):
    mine = callback(tmp_path, skip=window[0], steps=window[1])
    fit(tmp_path, mine, Classifier(), **options)
    assert mine.report.steps == steps
    assert mine.report.total.macs == steps * STEP_MACS
    assert mine.report.by_phase()["forward"].macs == steps * FORWARD_MACS


def test_too_few_steps_are_reported(tmp_path):
    mine = callback(tmp_path, skip=8)
    with pytest.warns(UserWarning, match="the training had 8 steps, and skip=8"):
        fit(tmp_path, mine, Classifier())
    assert mine.report is None


def test_trackers_have_the_totals_and_the_report(tmp_path, monkeypatch):
    mlflow, wandb = pytest.importorskip("mlflow"), pytest.importorskip("wandb")
    pytest.importorskip("tensorboard")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("WANDB_SILENT", "true")
    mine = callback(tmp_path)
    address = f"file://{tmp_path}/mlruns"  # which mlflow itself does not know of
    run = wandb.init(project="roofprof", dir=str(tmp_path), mode="offline")
    loggers = importlib.import_module("lightning.pytorch.loggers")
    of_mlflow, of_wandb = loggers.MLFlowLogger(tracking_uri=address), loggers.WandbLogger(experiment=run)
    others = [loggers.TensorBoardLogger(tmp_path / "tensorboard"), loggers.CSVLogger(tmp_path / "csv")]
    try:
        fit(tmp_path, mine, Classifier(), logger=[of_mlflow, of_wandb, *others])
        run.log({"more": 0})
        assert run.summary["roofprof/macs"] == 3 * STEP_MACS
        assert run.summary["roofprof/modules"]["nrows"] == len(mine.report.rows) + 1
    finally:
        run.finish()
    client = mlflow.MlflowClient(address)
    [history] = client.get_metric_history(of_mlflow.run_id, "roofprof/macs")
    assert (history.step, history.value) == (5, 3 * STEP_MACS)
    kept = client.download_artifacts(of_mlflow.run_id, "roofprof/report.json", tmp_path)
    assert roofprof.Report.from_json(kept) == mine.report
    numbers, texts = tensorboard_events(tmp_path / "tensorboard")
    assert numbers["roofprof/macs"] == [(5, 3 * STEP_MACS)]
    assert "Classifier" in texts["roofprof/table/text_summary"]
    [file] = tmp_path.rglob("metrics.csv")
    names, row = [line.split(",") for line in file.read_text().splitlines()]
    assert float(row[names.index("roofprof/macs")]) == 3 * STEP_MACS


def test_a_report_that_cannot_be_handed_on_ends_no_training(tmp_path, monkeypatch):
    with pytest.raises(OSError, match="it is a folder"):
        callback(tmp_path, path=tmp_path)
    folder = tmp_path / "gone"
    folder.mkdir()
    mine = callback(tmp_path, path=folder / "r.json")
    folder.rmdir()

    class Refuses:
        def attach(self, _report, _step):
            raise ConnectionError("no such server")

    monkeypatch.setattr("roofprof.callbacks.loggers.tracker_of", lambda _logger: Refuses())
    logger = lightning.loggers.CSVLogger(tmp_path)
    with pytest.warns(UserWarning, match="roofprof") as warned:
        trainer = fit(tmp_path, mine, Classifier(), logger=logger)
    shown = [str(warning.message) for warning in warned if "roofprof" in str(warning.message)]
    assert [text.split(":")[1] for text in shown] == [
        " the report is not written",
        " a tracker does not take the report",
    ]
    assert trainer.global_step == 8
    assert mine.report.steps == 3


def test_an_exception_passes_and_leaves_nothing(tmp_path):
    error = RuntimeError("no more")
    mine, model = callback(tmp_path), Classifier(raises_at=4, error=error)
    with pytest.raises(RuntimeError) as caught:
        fit(tmp_path, mine, model)
    assert caught.value is error
    nothing_is_patched(model)
    assert mine.report.partial
    assert mine.report.total.macs == STEP_MACS
    fit(tmp_path, mine, model)
    assert not mine.report.partial
    assert mine.report.total.macs == 3 * STEP_MACS


@pytest.mark.parametrize("package", ["lightning.pytorch", "pytorch_lightning"])
def test_is_a_callback_of_the_package_that_the_program_has(package):
    pytest.importorskip(package)
    program = (
        f"import {package} as pl; from roofprof.callbacks.lightning import RooflineCallback as C; "
        "c = C(path=None, ceilings=None); assert isinstance(c, pl.Callback); "
        "pl.Trainer(accelerator='cpu', callbacks=[c], logger=False, enable_checkpointing=False)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
