"""The callback in a real Trainer: what it counts, what the trainer's loggers then hold, and that nothing is left."""

import pytest
import torch
from given_roofs import roofs
from trackers import FORWARD_MACS, STEP_MACS, Classifier, nothing_is_patched, samples, tensorboard_events

import roofprof

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from roofprof.callbacks.huggingface import RooflineCallback  # noqa: E402

pytestmark = pytest.mark.integration


@pytest.fixture
def train(tmp_path, monkeypatch):
    """Trains a model with a callback; gives the trainer."""
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_SILENT", "true")

    def make(callback, model, batches=8, report_to=(), begin=True, **options):
        arguments = transformers.TrainingArguments(
            output_dir=str(tmp_path / "out"),
            per_device_train_batch_size=4,
            num_train_epochs=1,
            use_cpu=True,
            report_to=list(report_to) or "none",
            save_strategy="no",
            disable_tqdm=True,
            **options,
        )
        data = samples(batches)
        trainer = transformers.Trainer(model, arguments, train_dataset=data, eval_dataset=data[:4])
        trainer.add_callback(callback)
        if begin:
            trainer.train()
        return trainer

    return make


def callback(tmp_path, **options):
    return RooflineCallback(**{"skip": 2, "steps": 3, "path": tmp_path / "r.json", "ceilings": roofs()} | options)


def test_equals_a_block_around_the_same_steps(tmp_path, train):
    mine, model = callback(tmp_path), Classifier()
    trainer = train(mine, model, max_grad_norm=0, optim="sgd")
    assert (mine.report.steps, mine.report.total.macs) == (3, 3 * STEP_MACS)
    assert roofprof.Report.from_json(tmp_path / "r.json") == mine.report
    assert trainer.state.global_step == 8
    nothing_is_patched(model)
    assert not {"_run_epoch", "training_step"} & set(vars(trainer))
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    data = samples(3)
    prof = roofprof.RooflineProfiler(model, ceilings=roofs())
    with prof:
        for step in range(3):
            batch = data[4 * step : 4 * step + 4]
            x = torch.stack([one["x"] for one in batch])
            model(x, torch.tensor([one["labels"] for one in batch]))["loss"].backward()
            optimizer.step()
            optimizer.zero_grad()
    expected = prof.report()
    for path in ("", "first", "second", "(optimizer)"):
        for figure in ("macs", "flops", "bytes"):
            assert getattr(mine.report.row(path), figure) == getattr(expected.row(path), figure), (path, figure)


EVERY_TWO = {"eval_strategy": "steps", "eval_steps": 2}


@pytest.mark.parametrize(
    ("window", "training", "steps", "forwards"),
    [
        ((1, 2), {"gradient_accumulation_steps": 2}, 2, 4),
        ((0, 8), EVERY_TWO, 2, 2),
        ((3, 1), EVERY_TWO, 1, 1),
        ((1, 4), {"batches": 24, "gradient_accumulation_steps": 3, "eval_strategy": "steps", "eval_steps": 5}, 4, 12),
        ((1, 4), {"batches": 24, "gradient_accumulation_steps": 3, "eval_strategy": "steps", "eval_steps": 1}, 1, 3),
        ((5, 100), {}, 3, 3),
    ],
    ids=["accumulated", "an evaluation ends it", "one before it", "accumulated before one", "and at once", "the end"],
)
def test_steps_are_those_of_the_optimizer_and_end_before_an_evaluation(
    tmp_path, train, window, training, steps, forwards
):
    mine = callback(tmp_path, skip=window[0], steps=window[1])
    train(mine, Classifier(), **training)
    assert mine.report.steps == steps
    assert mine.report.total.macs == forwards * STEP_MACS
    assert mine.report.by_phase()["forward"].macs == forwards * FORWARD_MACS


class Evaluates(transformers.TrainerCallback):
    """After every third step, as examples that evaluate on the training set do."""

    trainer = None

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step % 3 == 0:
            self.trainer.evaluate()


@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
def test_the_window_ends_before_an_evaluation_by_another_callback(tmp_path, train, first):
    mine, other = callback(tmp_path, skip=1, steps=5), Evaluates()
    trainer = train(mine, Classifier(), begin=False)
    other.trainer = trainer
    trainer.add_callback(other)
    if first:
        trainer.remove_callback(mine)
        trainer.add_callback(mine)
    trainer.train()
    assert mine.report.steps == 2
    assert mine.report.total.macs == 2 * STEP_MACS
    assert not {"evaluate", "predict"} & set(vars(trainer))


def test_too_few_steps_are_reported(tmp_path, train):
    mine = callback(tmp_path, skip=8)
    with pytest.warns(UserWarning, match="the training had 8 steps, and skip=8"):
        train(mine, Classifier())
    assert mine.report is None
    assert not (tmp_path / "r.json").exists()


def test_trackers_have_the_totals_and_the_report(tmp_path, train, monkeypatch):
    mlflow, wandb = pytest.importorskip("mlflow"), pytest.importorskip("wandb")
    pytest.importorskip("tensorboard")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(f"file://{tmp_path}/mlruns")
    mine = callback(tmp_path)
    theirs = wandb.init(project="roofprof", dir=str(tmp_path), mode="offline")
    try:
        with mlflow.start_run() as run:
            trainer = train(mine, Classifier(), report_to=["tensorboard", "mlflow", "wandb"], logging_steps=1)
        client = mlflow.MlflowClient()
        [history] = client.get_metric_history(run.info.run_id, "roofprof/macs")
        assert (history.step, history.value) == (5, 3 * STEP_MACS)
        kept = client.download_artifacts(run.info.run_id, "roofprof/report.json", tmp_path)
        assert roofprof.Report.from_json(kept) == mine.report
        assert theirs.summary["train/roofprof/macs"] == 3 * STEP_MACS
        assert theirs.summary["roofprof/modules"]["nrows"] == len(mine.report.rows) + 1
    finally:
        mlflow.set_tracking_uri(None)
        theirs.finish()
    numbers, texts = tensorboard_events(tmp_path / "out")
    assert numbers["train/roofprof/macs"] == [(5, 3 * STEP_MACS)]
    assert "Classifier" in texts["roofprof/table/text_summary"]
    # The trainer's own log of that step is there as well.
    assert sorted(step for step, _ in numbers["train/loss"]) == list(range(1, 9))
    [logged] = [entry for entry in trainer.state.log_history if "roofprof/macs" in entry]
    assert logged["step"] == 5


@pytest.mark.parametrize(
    "error", [RuntimeError("no more"), KeyboardInterrupt()], ids=lambda error: type(error).__name__
)
def test_an_exception_passes_and_leaves_nothing(tmp_path, train, error):
    mine, model = callback(tmp_path), Classifier(raises_at=4, error=error)
    trainer = train(mine, model, begin=False)
    with pytest.raises(type(error)) as caught:
        trainer.train()
    assert caught.value is error
    nothing_is_patched(model)
    assert not {"_run_epoch", "training_step"} & set(vars(trainer))
    assert mine.report.partial
    assert mine.report.total.macs == STEP_MACS
    trainer.train()  # once more, as after too large a batch
    assert not mine.report.partial
    assert mine.report.total.macs == 3 * STEP_MACS


def test_the_optimizers_exception_leaves_nothing(tmp_path, train):
    class Stops(transformers.TrainerCallback):
        def on_optimizer_step(self, args, state, control, **kwargs):
            if state.global_step == 3:
                raise ZeroDivisionError

    mine, model = callback(tmp_path), Classifier()
    trainer = train(mine, model, begin=False)
    trainer.add_callback(Stops())
    with pytest.raises(ZeroDivisionError):
        trainer.train()
    nothing_is_patched(model)
    assert mine.report.partial


def test_wrong_windows_are_reported_before_the_training(tmp_path):
    with pytest.raises(ValueError, match="skip must be 0 or more and steps 1 or more, not skip=2, steps=0"):
        callback(tmp_path, steps=0)
    with pytest.raises(FileNotFoundError, match="make the folder first"):
        callback(tmp_path, path=tmp_path / "none" / "r.json")
    with pytest.raises(TypeError, match="celings"):
        callback(tmp_path, celings=None)
