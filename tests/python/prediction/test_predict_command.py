"""`roofprof predict` and `predict --sweep`: what the functions give, printed and written."""

import csv
import json
import sys
from pathlib import Path

import pytest
from given_roofs import roofs
from on_meta import counted, mlp

import roofprof
from roofprof.cli import main
from roofprof.roofs import published_peaks

MODELS = """
import torch
from torch import nn

def mlp():
    return nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 10))

class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(100, 64), nn.Linear(64, 100)

    def forward(self, ids):
        return self.head(self.embedding(ids))

def rows(batch):
    return torch.rand(batch, 64)

def ids(batch, sequence):
    return torch.zeros(batch, sequence, dtype=torch.int64)
"""


@pytest.fixture
def shell(tmp_path, monkeypatch, capsys):
    """Runs a line in a folder with models.py, roofs.json and r.json, a count; gives what it printed and wrote."""
    (tmp_path / "models.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "models", raising=False)
    roofprof.Ceilings.save(roofs({"fp32": 1e12}, {"DRAM": (1e11, 0)}), "roofs.json")
    counted(mlp, 64, 64).to_json("r.json")

    def run(line, *words):
        assert main([*line.split(), *words, "--json", "p.json"]) == 0
        captured = capsys.readouterr()
        assert "written to p.json" in captured.err
        return captured.out, json.loads(Path("p.json").read_text())

    return run


def test_one_device_is_a_report(shell, capsys):
    out, _ = shell("predict r.json --csv p.csv", "--device", "RTX 4090")
    expected = roofprof.Report.from_json("r.json").predict("RTX 4090")
    assert roofprof.Report.from_json("p.json") == expected
    assert "predicted" in out
    with Path("p.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert [row["path"] for row in rows][: len(expected.rows)] == [row.path for row in expected.rows]
    assert {"time_ns", "time_low_ns", "time_high_ns"} <= set(rows[0])
    assert main(["show", "p.json"]) == 0
    assert capsys.readouterr().out == out
    assert "a machine on paper" in shell("predict r.json --device roofs.json")[0]


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ("--precision bf16 --no-autocast", {"precision": "bf16", "autocast": False}),
        ("--batch 8 --compiled", {"batch": 8, "compiled": True}),
        ("--channels-last", {"channels_last": True}),
        ("--bandwidth 2 --peak 0.5", {"bandwidth": 2.0, "peak": 0.5}),
    ],
)
def test_options_are_those_of_the_function(shell, arguments, options):
    shell(f"predict r.json --device T4 {arguments}")
    assert roofprof.Report.from_json("p.json") == roofprof.Report.from_json("r.json").predict("T4", **options)


def test_several_devices_are_ranked(shell):
    out, written = shell("predict r.json --device T4", "--device", "RTX 4090")
    ranking = roofprof.Report.from_json("r.json").predict_all(["T4", "RTX 4090"])
    assert written == json.loads(ranking.to_json())
    assert ranking[0].device in out
    out, _ = shell("predict r.json --all --precision fp16 --width 100")
    assert all(name in out for name in published_peaks.names())
    assert max(map(len, out.splitlines())) <= 100


def test_what_if(shell):
    out, written = shell("predict r.json --device A100 --what-if --batch 256")
    assert "batch 256" in out
    assert written == json.loads(roofprof.Report.from_json("r.json").what_if("A100", 256).to_json())
    assert "more modules below depth 0" in shell("predict r.json --device A100 --what-if --depth 0")[0]


def test_from_the_model_to_the_prediction(shell):
    shell("profile models.py:mlp --input 64x64 --count --device meta")
    Path("p.json").rename("c.json")
    shell("predict c.json --device T4")
    assert roofprof.Report.from_json("p.json").total.time == counted(mlp, 64, 64).predict("T4").total.time


@pytest.mark.parametrize("inputs", ["--input Bx64", "--input 7x64", "--inputs models.py:rows"])
def test_a_sweep_is_that_of_the_function(shell, inputs):
    """The leading dimension is the batch."""
    out, written = shell(f"predict --sweep models.py:mlp {inputs} --batch 1,64", "--device", "RTX 4090")
    for point, batch in zip(written["points"], (1, 64), strict=True):
        assert point["batch"] == batch
        assert point["time"] == counted(mlp, batch, 64).predict("RTX 4090").total.time
    assert "knee" in out
    assert "RTX 4090" in out


def test_a_sweep_in_half_compiled_on_roofs_of_a_file(shell):
    out, written = shell("predict --sweep models.py:mlp --input Bx64 --dtype float16 --device T4 --batch 3 --compiled")
    (point,) = written["points"]
    assert point["weight_bytes"] == 2 * sum(parameter.numel() for parameter in mlp().parameters())
    assert "compiled" in " ".join(out.split())
    out, _ = shell("predict --sweep models.py:mlp --input Bx64 --device roofs.json --batch 3 --bandwidth 2")
    assert "a machine on paper" in out
    assert "with 2 x its bandwidth" in " ".join(out.split())


@pytest.mark.parametrize("inputs", ["--input BxS:int64", "--inputs models.py:ids"])
def test_a_sweep_of_sequences(shell, inputs):
    _, written = shell(f"predict --sweep models.py:Tokens {inputs} --device T4 --batch 4,1 --sequence 32,8")
    points = [(point["sequence"], point["batch"]) for point in written["points"]]
    assert points == [(8, 1), (8, 4), (32, 1), (32, 4)]
