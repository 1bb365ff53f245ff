"""``roofprof time``: results on stdout, files, one clear sentence where something is wrong."""

import sys

import pytest

from roofprof import Latency, LatencySweep

MODELS = """
import torch
from torch import nn

def mlp():
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))

class Dicts(nn.Module):
    def forward(self, batch, scale=1.0):
        assert not torch.is_grad_enabled()
        return batch["points"] * scale

def batch():
    return ({"points": torch.rand(6, 8)},), {"scale": 2.0}

def batch_of(size):
    return {"points": torch.rand(size, 8)}
"""

QUICK = ("--warmup", "1", "--repeat", "12")
MLP = ("time", "models.py:mlp", "--input", "4x8", *QUICK)


@pytest.fixture(autouse=True)
def _models(tmp_path, monkeypatch):
    (tmp_path / "models.py").write_text(MODELS)
    monkeypatch.delitem(sys.modules, "models", raising=False)


def test_one_batch(shell):
    code, out, err = shell(*MLP, "--tokens", "64", "--json", "t.json")
    assert code == 0
    latency = Latency.from_json("t.json")
    assert out == f"{latency}\n"
    assert len(latency.times_ns) == 12
    assert latency.warmup == 2
    assert latency.samples == 4
    assert latency.tokens == 64
    assert latency.model == "Sequential"
    assert "timing models.py:mlp on cpu: 12 calls after 1 for warm-up, within 30 s" in err
    assert "written to t.json" in err


def test_inputs_of_any_kind(shell):
    inputs = ("time", "models.py:Dicts", *QUICK, "--inputs")
    assert "6 samples in each" in shell(*inputs, "models.py:batch")[1]
    assert "3 samples in each (as given)" in shell(*inputs, "models.py:batch", "--samples", "3")[1]
    for callable_ in ("batch", "batch_of"):
        assert "2 batch sizes, 12 timed calls each" in shell(*inputs, f"models.py:{callable_}", "--batch", "1,2")[1]


def test_a_sweep(shell):
    code, out, _ = shell(*MLP, "--batch", "4,1,2", "--json", "s.json")
    assert code == 0
    sweep = LatencySweep.from_json("s.json")
    assert sweep.batches == [1, 2, 4]
    assert out == f"{sweep}\n"
    code, out, _ = shell(*MLP, "--batch", "auto", "--seconds", "2")
    assert code == 0
    assert "knee" in out
