"""``roofprof time``: results on stdout, files, one clear sentence where something is wrong."""

import sys

import pytest

from roofprof import Latency, LatencySweep
from roofprof.cli import main

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

class Raises(nn.Module):
    def forward(self, x):
        raise ValueError("lost agent")
"""

QUICK = ("--warmup", "1", "--repeat", "12")
MLP = ("time", "models.py:mlp", "--input", "4x8", *QUICK)


@pytest.fixture
def shell(tmp_path, monkeypatch, capsys):
    (tmp_path / "models.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "models", raising=False)

    def run(*arguments):
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


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
    _, out, _ = shell("time", "models.py:Dicts", "--inputs", "models.py:batch", *QUICK)
    assert "6 samples in each" in out
    _, out, _ = shell("time", "models.py:Dicts", "--inputs", "models.py:batch", "--samples", "3", *QUICK)
    assert "3 samples in each (as given)" in out


def test_a_sweep(shell):
    code, out, _ = shell(*MLP, "--batch", "4,1,2", "--json", "s.json")
    assert code == 0
    sweep = LatencySweep.from_json("s.json")
    assert sweep.batches == [1, 2, 4]
    assert out == f"{sweep}\n"


@pytest.mark.integration
def test_the_picture_of_a_sweep(shell):
    assert "drawn in s.png" in shell(*MLP, "--batch", "4,1,2", "--plot", "s.png")[2]


@pytest.mark.parametrize("inputs", ["batch", "batch_of"])
def test_a_sweep_over_inputs_of_any_kind(shell, inputs):
    code, out, _ = shell("time", "models.py:Dicts", "--inputs", f"models.py:{inputs}", "--batch", "1,2", *QUICK)
    assert code == 0
    assert "2 batch sizes, 12 timed calls each" in out


def test_an_automatic_sweep(shell):
    code, out, _ = shell(*MLP, "--batch", "auto", "--seconds", "2")
    assert code == 0
    assert "knee" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*MLP, "--plot", "s.png"), "--plot draws a sweep over batch sizes: give --batch too"),
        ((*MLP, "--batch", "1,2", "--plot", "s.gif"), "cannot draw 's.gif': a plot's file ends in .svg, .png or .pdf"),
        ((*MLP, "--batch", "few"), "--batch takes 'auto' or whole numbers such as 1,2,4, not 'few'"),
        ((*MLP, "--batch", "0"), "a batch must be 1 or more, not 0"),
        ((*MLP, "--batch", "1,2", "--samples", "2"), "give one of them"),
        ((*MLP, "--repeat", "0"), "repeat must be 1 or more, not 0"),
        (("time", "models.py:Raises", "--input", "1x8", "--repeat", "0"), "repeat must be 1 or more, not 0"),
        (("time", "models.py:Raises", "--input", "1x8", "--batch", "0"), "a batch must be 1 or more, not 0"),
        ((*MLP, "--seconds", "-1"), "seconds must be more than 0, not -1"),
        ((*MLP, "--device", "meta"), "tensors on the meta device hold no data"),
        ((*MLP, "--json", "nowhere/t.json"), "there is no folder 'nowhere'"),
        (("time", "models.py:Raises", "--input", "1x8"), "models.py:Raises raised ValueError: lost agent"),
        (("time", "models.py:nothing", "--input", "1x8"), "has no 'nothing'"),
        (
            ("time", "models.py:mlp", "--input", "4x8", "--input", "3x8", "--batch", "auto"),
            "the inputs' leading dimensions are 3, 4; give inputs=",
        ),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(shell, arguments, words):
    code, out, err = shell(*arguments)
    assert code == 2
    assert not out
    assert words in err.splitlines()[-1]
