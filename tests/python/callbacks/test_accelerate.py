"""Steps of a loop with a real Accelerator: what is counted, what its trackers then hold, and that nothing is left."""

import json
from pathlib import Path

import pytest
import torch
from given_roofs import roofs
from real_ranks import torchrun
from trackers import STEP_MACS, Classifier, nothing_is_patched, samples, tensorboard_events

import roofprof

accelerate = pytest.importorskip("accelerate")

from roofprof.callbacks.accelerate import profile_steps  # noqa: E402

pytestmark = pytest.mark.integration

SUPPORT = Path(__file__).parents[1] / "support"


def train(tmp_path, model, accelerator=None, batches=8, **options):
    """The loop of Accelerate's quick tour."""
    accelerator = accelerator or accelerate.Accelerator(cpu=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    loader = torch.utils.data.DataLoader(samples(batches), batch_size=4)
    prepared, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    options = {"skip": 2, "steps": 3, "path": tmp_path / "r.json", "ceilings": roofs()} | options
    with profile_steps(accelerator, prepared, **options) as window:
        for batch in loader:
            optimizer.zero_grad()
            accelerator.backward(prepared(**batch)["loss"])
            optimizer.step()
            window.step()
    return window.report


def test_counts_the_steps_of_the_window(tmp_path):
    model = Classifier()
    report = train(tmp_path, model)
    assert report.total.macs == 3 * STEP_MACS
    assert report.row("first").calls == 3
    assert report.steps == 3
    assert roofprof.Report.from_json(tmp_path / "r.json") == report
    nothing_is_patched(model)


def test_the_window_ends_with_the_loop(tmp_path):
    report = train(tmp_path, Classifier(), skip=6, steps=10)
    assert (report.steps, report.total.macs) == (2, 2 * STEP_MACS)
    with pytest.warns(UserWarning, match="the training had 8 steps, and skip=9"):
        assert train(tmp_path, Classifier(), skip=9) is None


def test_trackers_have_the_totals_and_the_report(tmp_path, monkeypatch, request):
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("tensorboard")
    address = f"file://{tmp_path}/mlruns"
    mlflow.set_tracking_uri(address)  # another test may have left one
    request.addfinalizer(lambda: mlflow.set_tracking_uri(None))
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    accelerator = accelerate.Accelerator(cpu=True, log_with=["mlflow", "tensorboard"], project_dir=tmp_path)
    accelerator.init_trackers("mine")
    run = accelerator.get_tracker("mlflow", unwrap=True)
    report = train(tmp_path, Classifier(), accelerator)
    accelerator.end_training()
    client = mlflow.MlflowClient(address)
    assert client.get_run(run.info.run_id).data.metrics["roofprof/macs"] == 3 * STEP_MACS
    kept = client.download_artifacts(run.info.run_id, "roofprof/report.json", tmp_path)
    assert roofprof.Report.from_json(kept) == report
    numbers, texts = tensorboard_events(tmp_path)
    assert numbers["roofprof/macs"] == [(5, 3 * STEP_MACS)]
    assert "Classifier" in texts["roofprof/table/text_summary"]


def test_an_exception_passes_and_leaves_nothing(tmp_path):
    error = RuntimeError("no more")
    model = Classifier(raises_at=4, error=error)
    with pytest.raises(RuntimeError) as caught:
        train(tmp_path, model)
    assert caught.value is error
    nothing_is_patched(model)
    assert not (tmp_path / "r.json").exists()


RANKS = """
import sys; sys.path.insert(0, {support!r})
import torch, accelerate
from given_roofs import roofs
from trackers import Classifier
from roofprof.callbacks.accelerate import profile_steps

accelerator = accelerate.Accelerator(cpu=True)
model = accelerator.prepare(Classifier())
x, labels = torch.rand(2 + 2 * accelerator.process_index, 6), torch.zeros(2 + 2 * accelerator.process_index, dtype=int)
with profile_steps(accelerator, model, skip=1, steps=2, path="r.json", ceilings=roofs()) as window:
    for _ in range(3):
        accelerator.backward(model(x, labels)["loss"])
        window.step()
accelerator.end_training()
"""


def test_each_rank_has_a_report(tmp_path):
    (tmp_path / "train.py").write_text(RANKS.format(support=str(SUPPORT)))
    torchrun("train.py", cwd=tmp_path)
    macs = [
        roofprof.Report(roofprof._C.report_from_json((tmp_path / f"r.rank{rank}.json").read_text())).total.macs
        for rank in (0, 1)
    ]
    assert macs == [STEP_MACS, 2 * STEP_MACS]
    assert not json.loads((tmp_path / "r.rank0.json").read_text()).get("partial")
