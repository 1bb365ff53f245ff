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


def test_counts_the_steps_of_the_window(tmp_path, train):
    mine, model = callback(tmp_path), Classifier()
    trainer = train(mine, model)
    assert mine.report.total.macs == 3 * STEP_MACS
    assert mine.report.row("first").calls == 3
    assert mine.report.row("(optimizer)").flops > 0
    assert mine.report.steps == 3
    assert roofprof.Report.from_json(tmp_path / "r.json") == mine.report
    assert trainer.state.global_step == 8
    nothing_is_patched(model)
    assert not {"_run_epoch", "training_step"} & set(vars(trainer))


def test_equals_a_block_around_the_same_steps(tmp_path, train):
    mine = callback(tmp_path)
    train(mine, Classifier(), max_grad_norm=0, optim="sgd")
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


def test_a_step_is_one_of_the_optimizer(tmp_path, train):
    mine = callback(tmp_path, skip=1, steps=2)
    train(mine, Classifier(), batches=8, gradient_accumulation_steps=2)
    assert mine.report.steps == 2
    assert mine.report.total.macs == 2 * 2 * STEP_MACS


def test_the_window_ends_before_an_evaluation(tmp_path, train):
    mine = callback(tmp_path, skip=0, steps=8)
    train(mine, Classifier(), eval_strategy="steps", eval_steps=2)
    assert mine.report.steps == 2
    assert mine.report.total.macs == 2 * STEP_MACS


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


@pytest.mark.parametrize(("every", "left"), [(1, 1), (3, 2), (5, 4)])
def test_accumulated_steps_between_evaluations(tmp_path, train, every, left):
    mine = callback(tmp_path, skip=1, steps=4)
    options = {"gradient_accumulation_steps": 3, "eval_strategy": "steps", "eval_steps": every}
    train(mine, Classifier(), batches=24, **options)
    assert mine.report.steps == left
    assert mine.report.total.macs == left * 3 * STEP_MACS
    assert mine.report.row("first").calls == left * 3


def test_the_window_ends_with_the_training(tmp_path, train):
    mine = callback(tmp_path, skip=5, steps=100)
    train(mine, Classifier())
    assert mine.report.steps == 3


def test_too_few_steps_are_told(tmp_path, train):
    mine = callback(tmp_path, skip=8)
    with pytest.warns(UserWarning, match="the training had 8 steps, and skip=8"):
        train(mine, Classifier())
    assert mine.report is None
    assert not (tmp_path / "r.json").exists()


def test_tensorboard_has_the_totals(tmp_path, train):
    pytest.importorskip("tensorboard")
    mine = callback(tmp_path)
    trainer = train(mine, Classifier(), report_to=["tensorboard"], logging_steps=1)
    numbers, texts = tensorboard_events(tmp_path / "out")
    assert numbers["train/roofprof/macs"] == [(5, 3 * STEP_MACS)]
    assert numbers["train/roofprof/time"] == [(5, pytest.approx(mine.report.total.time))]
    assert numbers["train/roofprof/steps"] == [(5, 3)]
    assert "Classifier" in texts["roofprof/table/text_summary"]
    # The trainer's own log of that step is there as well.
    assert sorted(step for step, _ in numbers["train/loss"]) == list(range(1, 9))
    [logged] = [entry for entry in trainer.state.log_history if "roofprof/macs" in entry]
    assert logged["step"] == 5


def test_mlflow_has_the_totals_and_the_report(tmp_path, train, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(f"file://{tmp_path}/mlruns")
    mine = callback(tmp_path)
    try:
        with mlflow.start_run() as run:
            train(mine, Classifier(), report_to=["mlflow"])
        client = mlflow.MlflowClient()
        assert client.get_run(run.info.run_id).data.metrics["roofprof/macs"] == 3 * STEP_MACS
        [history] = client.get_metric_history(run.info.run_id, "roofprof/flops")
        assert (history.step, history.value) == (5, mine.report.total.flops)
        kept = client.download_artifacts(run.info.run_id, "roofprof/report.json", tmp_path)
        assert roofprof.Report.from_json(kept) == mine.report
    finally:
        mlflow.set_tracking_uri(None)


def test_wandb_has_the_totals(tmp_path, train):
    wandb = pytest.importorskip("wandb")
    mine = callback(tmp_path)
    run = wandb.init(project="roofprof", dir=str(tmp_path), mode="offline")
    try:
        train(mine, Classifier(), report_to=["wandb"])
        assert run.summary["train/roofprof/macs"] == 3 * STEP_MACS
        assert run.summary["roofprof/modules"]["nrows"] == len(mine.report.rows) + 1
    finally:
        run.finish()


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


def test_evaluation_before_the_window_is_left_out(tmp_path, train):
    mine = callback(tmp_path, skip=3, steps=1)
    train(mine, Classifier(), eval_strategy="steps", eval_steps=2)
    assert mine.report.by_phase()["forward"].macs == FORWARD_MACS


def test_wrong_windows_are_told_before_the_training(tmp_path):
    with pytest.raises(ValueError, match="skip must be 0 or more and steps 1 or more, not skip=2, steps=0"):
        callback(tmp_path, steps=0)
    with pytest.raises(FileNotFoundError, match="make the folder first"):
        callback(tmp_path, path=tmp_path / "none" / "r.json")
    with pytest.raises(TypeError, match="celings"):
        callback(tmp_path, celings=None)
