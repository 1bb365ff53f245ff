"""predict_sweep: points are predictions of counts at their sizes; memory, knee and what is refused by closed forms."""

import json

import pytest
import torch
from given_roofs import roofs
from on_meta import counted, mlp
from torch import nn

import roofprof
from roofprof.predicted_sweep import PredictedSweep

WEIGHTS = 4 * (64 * 256 + 256 + 256 * 10 + 10)


def on_meta(make):
    with torch.device("meta"):
        return make().eval()


def rows(batch):
    return torch.empty(batch, 64, device="meta")


class Tokens(nn.Module):
    """Ids to scores: each of `length` tokens passes two layers."""

    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(100, 64), nn.Linear(64, 100)

    def forward(self, ids):
        return self.head(self.embedding(ids))


def ids(batch, sequence):
    return torch.empty(batch, sequence, dtype=torch.int64, device="meta")


@pytest.fixture(scope="module")
def sweep():
    return roofprof.predict_sweep(on_meta(mlp), rows, "RTX 4090", (64, 1, 4096, 64, 2**20))


def test_each_point_is_the_prediction_of_a_count(sweep):
    assert [point.batch for point in sweep.points] == [1, 64, 4096, 2**20]
    report = counted(mlp, 1, 64)
    for point in sweep.points:
        total = counted(mlp, point.batch, 64).predict("RTX 4090").total
        assert (point.time, point.time_low, point.time_high) == (total.time, total.time_low, total.time_high)
        assert point.time == report.predict("RTX 4090", batch=point.batch).total.time
        assert point.bound == str(total.bound)
        assert point.sequence is None
        assert point.throughput == pytest.approx(point.batch / point.time)
        assert point.weight_bytes == WEIGHTS
        # What the activation reads and writes is live together; the input is not the model's own.
        assert point.activation_bytes == 2 * 4 * point.batch * 256
        assert sweep.fits(point) == (point.memory == WEIGHTS + point.activation_bytes <= sweep.memory)
    assert sweep.memory == 24e9
    times = [point.time for point in sweep.points]
    assert times == sorted(times)


def test_what_does_not_fit_is_no_knee():
    sweep = roofprof.predict_sweep(on_meta(mlp), rows, "RTX 4090", (1, 2**16, 2**20, 2**24))
    assert [sweep.fits(point) for point in sweep.points] == [True, True, True, False]
    knee = sweep.knee()
    assert sweep.fits(knee)
    best = max(point.throughput for point in sweep.points[:3])
    assert knee.throughput >= 0.9 * best
    assert all(point.throughput < 0.9 * best for point in sweep.points if point.batch < knee.batch)
    assert "does not fit" in sweep.table()
    marked = [line for line in sweep.table().splitlines() if line.endswith("<- knee")]
    assert [line.split()[0] for line in marked] == [str(knee.batch)]
    assert f"batch {knee.batch}: " in sweep.knee_text()
    none = roofprof.predict_sweep(on_meta(mlp), rows, "RTX 4090", (2**24,))
    assert (none.knee(), none.knee_text()) == (None, "n/a: no batch fits")
    # Where the memory is not known everything may fit.
    unknown = roofprof.predict_sweep(on_meta(mlp), rows, roofs({"fp32": 1e12}, {"DRAM": (1e11, 0)}), (1, 2**24))
    assert (unknown.memory, [unknown.fits(point) for point in unknown.points]) == (None, [None, None])
    assert unknown.knee() is None
    assert "knee      none up to batch 16777216: throughput still rises" in str(unknown)


def test_sequences_are_swept_for_each_batch():
    sweep = roofprof.predict_sweep(on_meta(Tokens), ids, "A100", (1, 8), (128, 16), precision="bf16")
    assert [(point.sequence, point.batch) for point in sweep.points] == [(16, 1), (16, 8), (128, 1), (128, 8)]
    assert sweep.sequences == [16, 128]
    for point in sweep.points:
        assert point.throughput == pytest.approx(point.batch * point.sequence / point.time)
    assert sweep.knee(16) is None
    assert "sequence 128: none up to batch 8: throughput still rises" in " ".join(str(sweep).split())
    assert sweep.knee(999) is None
    assert sweep.prediction.startswith("in bf16")
    assert "per s: tokens" in " ".join(sweep.table().split())


def test_inputs_of_any_form(sweep):
    for inputs in (lambda batch: (rows(batch),), lambda batch: ((), {"input": rows(batch)})):
        again = roofprof.predict_sweep(on_meta(mlp), inputs, "RTX 4090", (64,))
        assert again.points == sweep.points[1:2]


def test_what_is_refused():
    for arguments, words in (
        ((rows, "RTX 4090", ()), "batches must have one size or more"),
        ((rows, "RTX 4090", (1, 0)), "batches are whole numbers of 1 or more, not 0"),
        ((rows, "RTX 4090", (True,)), "batches are whole numbers of 1 or more, not True"),
        ((ids, "RTX 4090", (1,), (0,)), "sequences are whole numbers of 1 or more, not 0"),
        ((rows, "RTX 4090", (1,), (16,)), "inputs must take a batch and a sequence length"),
    ):
        with pytest.raises(ValueError, match=words):
            roofprof.predict_sweep(on_meta(mlp), *arguments)


def test_it_is_printed_and_written(sweep, tmp_path):
    for words in ("predicted: as it was counted", "RTX 4090", "24.0GB of memory", "batch"):
        assert words in " ".join(str(sweep).split())
    written = sweep.to_json(tmp_path / "sweep.json")
    assert (tmp_path / "sweep.json").read_text() == written
    read = json.loads(written)
    assert (read["schema"], read["schema_version"]) == ("roofprof.predicted_sweep", 1)
    assert PredictedSweep.from_json(tmp_path / "sweep.json") == sweep
    for point, of in zip(read["points"], sweep.points, strict=True):
        assert (point["batch"], point["time"], point["memory"], point["fits"]) == (of.batch, of.time, of.memory, True)
        assert point["throughput"] == of.throughput
