"""Report.what_if: each answer is the difference of two predictions, and closed forms say which one helps."""

import json

import pytest
import torch
from given_roofs import roofs
from on_meta import counted, mlp, relus, trained
from torch import nn

import roofprof
from roofprof.predict.what_if import WhatIf

MANY = 2**28  # elements, a GiB


@pytest.mark.parametrize("given", [{}, {"precision": "fp16", "bandwidth": 2}])
def test_what_is_saved_is_the_difference_of_two_predictions(given):
    report = counted(mlp, 4096, 64)
    answers = report.what_if("RTX 4090", **given)
    base = report.predict("RTX 4090", **given)
    changes = {
        "memory x2": {"bandwidth": 2 * given.get("bandwidth", 1)},
        "peak x2": {"peak": 2},
        "fp8" if given else "fp16": {"precision": "fp8" if given else "fp16"},
        "fused": {"compiled": True},
    }
    assert set(answers.questions) == {*changes, "batch 8192"}
    assert (answers.unanswered, answers.prediction) == ({}, base.prediction)
    for name, options in changes.items():
        other = report.predict("RTX 4090", **given | options)
        assert answers.total.saved[name] == pytest.approx(base.total.time - other.total.time, abs=1e-12)
        for row in base.rows:
            expected = row.time - other.row(row.path).time
            assert answers[row.path].saved[name] == pytest.approx(expected, abs=1e-12)
    twice = report.predict("RTX 4090", **given, batch=8192)
    assert answers.total.saved["batch 8192"] == pytest.approx(base.total.time - twice.total.time / 2, abs=1e-12)
    assert answers.total.time == base.total.time
    assert [module.path for module in answers.modules] == [row.path for row in base.rows]


def test_memory_helps_what_moves_bytes():
    answers = relus(MANY).what_if("RTX 4090")
    assert answers.total.saved["memory x2"] == pytest.approx(answers.total.time / 2, rel=0.05)
    assert answers.total.saved["peak x2"] == pytest.approx(0, abs=1e-9)
    assert answers.total.saved["fp16"] == pytest.approx(answers.total.time / 2, rel=0.1)
    assert answers.total.saved["fused"] == 0
    assert answers.total.bound == "memory DRAM"
    assert answers.total.intensity == pytest.approx(1 / 8)
    assert answers.total.ridge == pytest.approx(82.6e12 / 1.008e12, rel=0.01)
    chain = relus(MANY, 8).what_if("A100 SXM 40GB").total
    assert chain.saved["fused"] == pytest.approx(7 / 8 * chain.time, rel=0.02)
    assert chain.best == "fused"


def test_peaks_help_large_products():
    answers = counted(lambda: nn.Linear(8192, 8192), 8192, 8192).what_if("RTX 4090")
    assert answers.total.saved["peak x2"] == pytest.approx(answers.total.time / 2, rel=0.1)
    assert answers.total.saved["memory x2"] < 0.05 * answers.total.time
    assert answers.total.saved["fp16"] > 0.3 * answers.total.time  # tensor cores
    assert answers.total.best in {"peak x2", "fp16"}
    assert answers.total.intensity > answers.total.ridge


def test_a_larger_batch_helps_small_calls_and_not_large_ones():
    small = counted(mlp, 1, 64).what_if("A100", batch=64)
    assert small.total.saved["batch 64"] > 0.9 * small.total.time
    assert small.total.best == "batch 64"
    large = counted(lambda: nn.Linear(1024, 4096), 2**16, 1024).what_if("A100")
    assert abs(large.total.saved[f"batch {2**17}"]) < 0.03 * large.total.time


def test_the_next_lower_precision_is_requested():
    for dtype, lower in ((torch.float64, "fp32"), (torch.float32, "fp16"), (torch.bfloat16, "fp8")):
        assert lower in counted(mlp, 64, 64, dtype=dtype).what_if("H100 SXM").questions


def test_what_cannot_be_requested_is_reported():
    half = counted(mlp, 64, 64, dtype=torch.float16)
    assert set(half.what_if("A100").unanswered) == {"fp8"}  # Ampere has none
    by_hand = counted(mlp, 64, 64).what_if(roofs({"fp32": 1e12}, {"DRAM": (1e11, 0)}))
    assert "no peak for fp16" in by_hand.unanswered["fp16"]
    assert "fp16" not in by_hand.total.saved
    assert by_hand.total.ridge == pytest.approx(10)

    class OfNothing(nn.Module):
        def forward(self, size):
            return torch.empty(size, device="meta").exp()

    report = roofprof.count(OfNothing(), 8)
    assert "batch" in report.what_if("T4").unanswered
    assert "batch 4" in report.what_if("T4", batch=4).unanswered
    assert "not asked" in report.what_if("T4").table()


def test_of_a_step_of_training():
    answers = trained(mlp, 512, 64).what_if("A100", batch=400)
    assert answers["(optimizer)"].time > 0
    assert sum(module.time for module in answers.modules if module.depth == 0) == pytest.approx(answers.total.time)
    assert "a training step cannot be given another batch" in answers.unanswered["batch 400"]
    with pytest.raises(KeyError, match="no module '0.9'"):
        answers["0.9"]


def test_it_is_printed_and_written(tmp_path):
    deep = counted(lambda: nn.Sequential(*(mlp() for _ in range(1)), nn.Linear(10, 10)), 4, 64).what_if("RTX 4090")
    text = deep.table()
    assert text == str(deep)
    for words in ("what would help", "memory x2", "peak x2", "fused", "batch 8", "total", "I_max"):
        assert words in text
    assert max(map(len, deep.table(width=80).splitlines())) <= 80
    assert "more modules below depth 0" in " ".join(deep.table(depth=0).split())
    path = tmp_path / "what_if.json"
    assert path.write_text(deep.to_json()) == len(deep.to_json(path))
    read = json.loads(path.read_text())
    assert (read["schema"], read["schema_version"]) == ("roofprof.what_if", 1)
    assert WhatIf.from_json(path) == deep
    assert read["total"]["saved"] == deep.total.saved
    assert len(read["modules"]) == len(deep.modules)
