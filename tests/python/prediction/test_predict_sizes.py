"""Other batches and precisions than were counted: the work is that of a count in them; and what is written of it."""

import csv
import io

import pytest
import torch
from on_meta import convolutions, counted, mlp, trained
from torch import nn

import roofprof

WORK = ("macs", "flops", "read_bytes", "write_bytes", "bytes")


def assert_same_work(predicted, expected, names=WORK):
    for name in names:
        assert {row.path: getattr(row, name) for row in predicted.rows} == {
            row.path: getattr(row, name) for row in expected.rows
        }, name
        assert getattr(predicted.total, name) == getattr(expected.total, name), name


class Scaled(nn.Module):
    """A parameter beside activations, in ops that have no weights by their nature."""

    def __init__(self, op, *shape):
        super().__init__()
        self.op, self.weight = op, nn.Parameter(torch.empty(*shape))

    def forward(self, x):
        return self.op(x, self.weight)


NETS = {"mlp": (mlp, (64,)), "convolutions": (convolutions, (3, 32, 32))}
PARAMETERS = {
    "layer norm": (lambda: nn.LayerNorm(64), (16, 64)),
    "group norm": (lambda: nn.GroupNorm(2, 4), (4, 8, 8)),
    "batch norm": (lambda: nn.BatchNorm2d(4), (4, 8, 8)),
    "a scale": (lambda: Scaled(torch.mul, 64), (16, 64)),
    "x @ w": (lambda: Scaled(torch.matmul, 64, 64), (16, 64)),
}


@pytest.mark.parametrize("name", [*NETS, *PARAMETERS])
@pytest.mark.parametrize("batches", [(1, 8), (6, 4)])
def test_another_batch_has_the_work_of_a_count_at_it(name, batches):
    make, shape = (NETS | PARAMETERS)[name]
    counted_at, wanted = batches
    predicted = counted(make, counted_at, *shape).predict("RTX 4090", batch=wanted)
    expected = counted(make, wanted, *shape)
    assert_same_work(predicted, expected)
    assert predicted.row("").input_shapes == expected.row("").input_shapes
    assert predicted.total.peak_memory == expected.total.peak_memory
    assert predicted.total.time == expected.predict("RTX 4090").total.time
    assert predicted.prediction == f"batch {wanted}"


class Chosen(nn.Module):
    def forward(self, x):
        return torch.where(x > 0, x, torch.zeros((), device=x.device))


class Joined(nn.Module):
    def forward(self, x):
        return torch.cat([x + i for i in range(40)])


@pytest.mark.parametrize("make", [Chosen, Joined])
def test_another_batch_has_the_shapes_of_a_count_at_it(make):
    def shapes(report):
        return [(op["op"], op.get("shapes")) for op in report.to_dict()["ops"]]

    counted_at_8, counted_at_64 = counted(make, 8, 256), counted(make, 64, 256)
    predicted = counted_at_8.predict("RTX 4090", batch=64)
    assert shapes(predicted) == shapes(counted_at_64)
    groups = {group.op: group.shapes for group in predicted.group("op", "shapes")}
    if make is Chosen:
        assert groups["aten::where"] == "64x256, 64x256, scalar"
        assert ("aten::where", [[64, 256], [64, 256], []]) in shapes(predicted)
    else:
        assert_same_work(predicted, counted_at_64)
        assert ("aten::cat", [[64, 256]] * 40) in shapes(predicted)
        assert groups["aten::cat"].endswith("64x256, ...")
        assert predicted.total.time == counted_at_64.predict("RTX 4090").total.time


def test_another_batch_of_an_embedding():
    def count(batch):
        with torch.device("meta"), torch.no_grad():
            return roofprof.count(nn.Embedding(100, 64), torch.zeros(batch, 16, dtype=torch.int64))

    assert_same_work(count(1).predict("RTX 4090", batch=8), count(8))


def test_a_step_of_training_is_given_no_other_batch():
    with pytest.raises(ValueError, match="a training step cannot be given another batch"):
        trained(mlp, 4, 64).predict("RTX 4090", batch=32)


def test_the_batch_that_was_counted_changes_nothing():
    report = counted(convolutions, 4, 3, 32, 32)
    assert report.predict("T4", batch=4).total.time == report.predict("T4").total.time


def test_a_batch_that_is_not_known():
    class OfNothing(nn.Module):
        def forward(self, size):
            return torch.empty(size, device="meta").exp()

    report = roofprof.count(OfNothing(), 8)
    assert report.predict("T4").total.time > 0
    with pytest.raises(ValueError, match="the batch that was counted is not known"):
        report.predict("T4", batch=2)


@pytest.mark.parametrize("name", [*NETS, *PARAMETERS])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_of_an_fp32_count_has_the_work_of_the_model_in_half(name, dtype):
    make, shape = (NETS | PARAMETERS)[name]
    word = {torch.float16: "fp16", torch.bfloat16: "bf16"}[dtype]
    predicted = counted(make, 4, *shape).predict("RTX 4090", precision=word)
    expected = counted(make, 4, *shape, dtype=dtype)
    assert_same_work(predicted, expected, (*WORK, "param_bytes", "peak_memory"))
    assert dict(predicted.total.flops_by_dtype) == dict(expected.total.flops_by_dtype)
    assert predicted.total.time == expected.predict("RTX 4090").total.time
    assert predicted.prediction.startswith(f"in {word}")
    assert counted(make, 4, *shape).predict("RTX 4090", precision=dtype) == predicted


def test_in_half_outputs_and_buffers_are_smaller_too():
    predicted = counted(convolutions, 4, 3, 32, 32).predict("RTX 4090", precision="fp16")
    expected = counted(convolutions, 4, 3, 32, 32, dtype=torch.float16)
    assert [row.output_bytes for row in predicted.rows] == [row.output_bytes for row in expected.rows]


def test_in_half_indices_stay_as_they_are():
    def count(dtype):
        with torch.device("meta"), torch.no_grad():
            return roofprof.count(nn.Embedding(100, 64, dtype=dtype), torch.zeros(4, 16, dtype=torch.int64))

    assert_same_work(count(torch.float32).predict("RTX 4090", precision="fp16"), count(torch.float16))


def test_half_is_no_slower():
    for make, shape in NETS.values():
        report = counted(make, 4096, *shape)
        for device in ("RTX 4090", "A100 SXM 40GB", "T4"):
            half = report.predict(device, precision="fp16", autocast=False)
            # In products as small as these a tile's steps take about as long in both types.
            assert half.total.time < 1.05 * report.predict(device).total.time


# ---- written and read


@pytest.fixture
def predicted():
    return counted(mlp, 4, 64).predict("RTX 4090", precision="fp16", batch=8, bandwidth=2, compiled=True)


def test_json_gives_it_back(predicted, tmp_path):
    path = tmp_path / "predicted.json"
    predicted.to_json(path)
    read = roofprof.Report.from_json(path)
    assert read == predicted
    assert read == roofprof.Report.from_dict(predicted.to_dict())
    assert read.prediction == predicted.prediction
    assert read.total.time_high == predicted.total.time_high


def test_the_options_are_data_in_json(predicted):
    assert predicted.to_dict()["prediction"] == {
        "mode": "compiled",
        "precision": "fp16",
        "batch": 8,
        "autocast": "fp16",
        "bandwidth": 2.0,
    }
    without = counted(mlp, 4, 64)
    assert without.predict("RTX 4090").to_dict()["prediction"] == {"mode": "eager"}
    assert "prediction" not in without.to_dict()


def test_options_in_words_are_refused(predicted):
    of_earlier = predicted.to_dict() | {"schema_version": 5, "prediction": "in fp16, batch 8"}
    with pytest.raises(ValueError, match="'prediction' is in words, as an earlier roofprof wrote it: predict again"):
        roofprof.Report.from_dict(of_earlier)


def test_the_options_are_named(predicted):
    for words in ("in fp16", "batch 8", "compiled", "2 x its bandwidth"):
        assert words in predicted.prediction
    assert counted(mlp, 4, 64).predict("RTX 4090").prediction == "as it was counted"


def test_factors_are_named_however_small():
    assert "with 0 x" not in counted(mlp, 4, 64).predict("RTX 4090", bandwidth=1e-9).prediction


def test_the_table_says_that_nothing_was_measured(predicted):
    text = " ".join(predicted.table().split())
    assert "predicted" in text
    assert predicted.prediction in text
    assert "times are predicted, none was measured" in text
    assert " low high " in text
    assert "predicted" not in counted(mlp, 4, 64).table()
    assert [note.code for note in predicted.coverage.notes] == ["predicted"]


def test_csv_has_the_interval(predicted):
    rows = list(csv.DictReader(io.StringIO(predicted.to_csv())))
    assert len(rows) >= len(predicted.rows)
    for row in rows:
        assert int(row["time_low_ns"]) <= int(row["time_ns"]) <= int(row["time_high_ns"])
