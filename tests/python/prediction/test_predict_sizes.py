"""Other batches and precisions than were counted: the work is that of a count in them; and what is written of it."""

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


class Applied(nn.Module):
    def __init__(self, op):
        super().__init__()
        self.forward = op


NETS = {"mlp": (mlp, (64,)), "convolutions": (convolutions, (3, 32, 32))}
PARAMETERS = {
    "layer norm": (lambda: nn.LayerNorm(64), (16, 64)),
    "group norm": (lambda: nn.GroupNorm(2, 4), (4, 8, 8)),
    "batch norm": (lambda: nn.BatchNorm2d(4), (4, 8, 8)),
    "a scale": (lambda: Scaled(torch.mul, 64), (16, 64)),
    "x @ w": (lambda: Scaled(torch.matmul, 64, 64), (16, 64)),
    "joined": (lambda: Applied(lambda x: torch.cat([x + i for i in range(40)])), (256,)),
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
    shapes = [[(op["op"], op.get("shapes")) for op in report.to_dict()["ops"]] for report in (predicted, expected)]
    assert shapes[0] == shapes[1]
    assert predicted.total.time == expected.predict("RTX 4090").total.time
    assert predicted.prediction == f"batch {wanted}"


def test_what_is_given_no_other_batch():
    with pytest.raises(ValueError, match="a training step cannot be given another batch"):
        trained(mlp, 4, 64).predict("RTX 4090", batch=32)
    with torch.device("meta"), pytest.raises(ValueError, match="the batch that was counted is not known"):
        roofprof.count(Applied(lambda size: torch.empty(size).exp()), 8).predict("T4", batch=2)


@pytest.mark.parametrize("name", [*NETS, "layer norm", "batch norm", "a scale"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_of_an_fp32_count_has_the_work_of_the_model_in_half(name, dtype):
    make, shape = (NETS | PARAMETERS)[name]
    word = {torch.float16: "fp16", torch.bfloat16: "bf16"}[dtype]
    predicted = counted(make, 4, *shape).predict("RTX 4090", precision=word)
    expected = counted(make, 4, *shape, dtype=dtype)
    assert_same_work(predicted, expected, (*WORK, "param_bytes", "peak_memory"))
    assert [row.output_bytes for row in predicted.rows] == [row.output_bytes for row in expected.rows]
    assert dict(predicted.total.flops_by_dtype) == dict(expected.total.flops_by_dtype)
    assert predicted.total.time == expected.predict("RTX 4090").total.time
    assert predicted.prediction.startswith(f"in {word}")
    assert counted(make, 4, *shape).predict("RTX 4090", precision=dtype) == predicted


def test_indices_of_an_embedding_stay_as_they_are():
    def count(batch, dtype=torch.float32):
        with torch.device("meta"), torch.no_grad():
            return roofprof.count(nn.Embedding(100, 64, dtype=dtype), torch.zeros(batch, 16, dtype=torch.int64))

    assert_same_work(count(4).predict("RTX 4090", precision="fp16"), count(4, torch.float16))
    assert_same_work(count(1).predict("RTX 4090", batch=8), count(8))


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
    of_earlier = predicted.to_dict() | {"schema_version": 5, "prediction": "in fp16, batch 8"}
    with pytest.raises(ValueError, match="'prediction' is in words, as an earlier roofprof wrote it: predict again"):
        roofprof.Report.from_dict(of_earlier)


def test_the_table_says_that_nothing_was_measured(predicted):
    text = " ".join(predicted.table().split())
    assert "predicted" in text
    assert predicted.prediction in text
    assert all(words in text for words in ("in fp16", "batch 8", "compiled", "2 x its bandwidth"))
    assert "times are predicted, none was measured" in text
    assert " low high " in text
    assert "predicted" not in counted(mlp, 4, 64).table()
    assert [note.code for note in predicted.coverage.notes] == ["predicted"]
