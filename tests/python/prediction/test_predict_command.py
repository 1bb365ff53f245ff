"""`roofprof predict` and `roofprof sweep`: what the functions give, printed and written, and what is refused."""

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

def convolution():
    return nn.Conv2d(3, 8, 3)

class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(100, 64), nn.Linear(64, 100)

    def forward(self, ids):
        return self.head(self.embedding(ids))

class Raises(nn.Module):
    def forward(self, x):
        raise KeyError("lost agent")

def rows(batch):
    return torch.rand(batch, 64)

def ids(batch, sequence):
    return torch.zeros(batch, sequence, dtype=torch.int64)
"""
SWEEP = ("predict", "--sweep", "models.py:mlp", "--input", "Bx64", "--device", "RTX 4090", "--batch", "1,64")


@pytest.fixture
def shell(tmp_path, monkeypatch, capsys):
    """Runs the command in a folder with models.py, roofs.json and r.json, a count; gives exit code, stdout, stderr."""
    (tmp_path / "models.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "models", raising=False)
    roofprof.Ceilings.save(roofs({"fp32": 1e12}, {"DRAM": (1e11, 0)}), "roofs.json")
    counted(mlp, 64, 64).to_json("r.json")

    def run(*arguments):
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


# ---- predict


def test_one_device_is_a_report(shell):
    code, out, err = shell("predict", "r.json", "--device", "RTX 4090", "--json", "p.json", "--csv", "p.csv")
    expected = roofprof.Report.from_json("r.json").predict("RTX 4090")
    assert code == 0
    assert roofprof.Report.from_json("p.json") == expected
    assert "predicted" in out
    assert "written to p.json" in err
    with Path("p.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert [row["path"] for row in rows][: len(expected.rows)] == [row.path for row in expected.rows]
    assert {"time_ns", "time_low_ns", "time_high_ns"} <= set(rows[0])
    code, shown, _ = shell("show", "p.json")
    assert (code, shown) == (0, out)


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (("--precision", "fp16"), {"precision": "fp16"}),
        (("--precision", "bf16", "--no-autocast"), {"precision": "bf16", "autocast": False}),
        (("--batch", "8", "--compiled"), {"batch": 8, "compiled": True}),
        (("--channels-last",), {"channels_last": True}),
        (("--bandwidth", "2", "--peak", "0.5"), {"bandwidth": 2.0, "peak": 0.5}),
    ],
)
def test_options_are_those_of_the_function(shell, arguments, options):
    code, _, _ = shell("predict", "r.json", "--device", "T4", *arguments, "--json", "p.json")
    assert code == 0
    assert roofprof.Report.from_json("p.json") == roofprof.Report.from_json("r.json").predict("T4", **options)


def test_a_file_of_roofs(shell):
    code, out, _ = shell("predict", "r.json", "--device", "roofs.json")
    assert code == 0
    assert "a machine on paper" in out


def test_several_devices_are_ranked(shell):
    code, out, _ = shell("predict", "r.json", "--device", "T4", "--device", "RTX 4090", "--json", "p.json")
    assert code == 0
    written = json.loads(Path("p.json").read_text())
    ranking = roofprof.Report.from_json("r.json").predict_all(["T4", "RTX 4090"])
    assert written == json.loads(ranking.to_json())
    assert ranking[0].device in out


def test_all_devices_are_ranked(shell):
    code, out, _ = shell("predict", "r.json", "--all", "--precision", "fp16", "--width", "100")
    assert code == 0
    assert all(name in out for name in published_peaks.names())
    assert max(map(len, out.splitlines())) <= 100


def test_what_if(shell):
    code, out, _ = shell("predict", "r.json", "--device", "A100", "--what-if", "--batch", "256", "--json", "p.json")
    assert code == 0
    assert "batch 256" in out
    answers = roofprof.Report.from_json("r.json").what_if("A100", 256)
    assert json.loads(Path("p.json").read_text()) == json.loads(answers.to_json())
    code, out, _ = shell("predict", "r.json", "--device", "A100", "--what-if", "--depth", "0")
    assert "more modules below depth 0" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--all", "--what-if"), "--what-if is about one device"),
        (("--all", "--csv", "p.csv"), "--csv is of one device's report"),
        (("--device", "T4", "--what-if", "--csv", "p.csv"), "--csv is of one device's report"),
        (("--device", "RTX 4091"), "near it are RTX 4090"),
        (("--device", "none.json"), "none.json"),
        (("--device", "r.json"), "r.json"),  # a report, no roofs
        (("--device", "roofs.json", "--precision", "fp16"), "no peak for fp16"),
        (("--device", "T4", "--precision", "fp99"), "precision must be"),
        (("--device", "T4", "--bandwidth", "0"), "bandwidth is a factor above 0"),
        (("--device", "T4", "--peak", "-1"), "peak is a factor above 0"),
        (("--device", "T4", "--batch", "0"), "batch must be 1 or more"),
        (("--all", "--json", "nowhere/p.json"), "nowhere"),
        (("--device", "T4", "--json", "nowhere/p.json"), "nowhere"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(shell, arguments, words):
    code, out, err = shell("predict", "r.json", *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1
    assert not Path("p.csv").exists()


def test_a_batch_of_nothing_is_refused_by_what_if_too(shell):
    code, _, err = shell("predict", "r.json", "--device", "T4", "--what-if", "--batch", "0")
    assert code == 2
    assert "batch must be 1 or more" in err


def test_options_of_a_report_are_not_ignored_by_a_ranking(shell):
    code, _, err = shell("predict", "r.json", "--all", "--sort", "no such column", "--columns", "nor this one")
    assert code == 2
    assert err


def test_reports_that_cannot_be_read(shell):
    for name in ("gone.json", "roofs.json"):
        code, _, err = shell("predict", name, "--device", "T4")
        assert code == 2
        assert name in err


def test_from_the_model_to_the_prediction(shell):
    count = ("profile", "models.py:mlp", "--input", "64x64", "--count", "--device", "meta", "--json", "c.json")
    assert shell(*count)[0] == 0
    assert shell("predict", "c.json", "--device", "T4", "--json", "p.json")[0] == 0
    expected = counted(mlp, 64, 64).predict("T4").total
    assert roofprof.Report.from_json("p.json").total.time == expected.time


# ---- sweep


def test_sweep_is_that_of_the_function(shell):
    code, out, _ = shell(*SWEEP, "--json", "s.json")
    assert code == 0
    written = json.loads(Path("s.json").read_text())
    assert [point["batch"] for point in written["points"]] == [1, 64]
    for point in written["points"]:
        assert point["time"] == counted(mlp, point["batch"], 64).predict("RTX 4090").total.time
    assert "knee" in out
    assert "RTX 4090" in out


@pytest.mark.parametrize("shape", ["Bx64", "7x64"])
def test_the_leading_dimension_is_the_batch(shell, shape):
    arguments = (
        "predict",
        "--sweep",
        "models.py:mlp",
        "--input",
        shape,
        "--device",
        "T4",
        "--batch",
        "2",
        "--json",
        "s.json",
    )
    assert shell(*arguments)[0] == 0
    (point,) = json.loads(Path("s.json").read_text())["points"]
    assert point["time"] == counted(mlp, 2, 64).predict("T4").total.time


def test_sweep_of_images_in_half(shell):
    arguments = (
        "predict",
        "--sweep",
        "models.py:convolution",
        "--input",
        "Bx3x224x224",
        "--batch",
        "1,2,4",
        "--dtype",
        "float16",
    )
    code, out, _ = shell(*arguments, "--device", "RTX 4090", "--json", "s.json")
    assert code == 0
    written = json.loads(Path("s.json").read_text())
    assert [point["batch"] for point in written["points"]] == [1, 2, 4]
    assert written["points"][0]["weight_bytes"] == 2 * (8 * 3 * 9 + 8)
    assert "autocast in fp16" in out


@pytest.mark.parametrize("inputs", [("--input", "BxS:int64"), ("--inputs", "models.py:ids")])
def test_sweep_of_sequences(shell, inputs):
    arguments = (
        "predict",
        "--sweep",
        "models.py:Tokens",
        *inputs,
        "--device",
        "T4",
        "--batch",
        "4,1",
        "--sequence",
        "32,8",
    )
    assert shell(*arguments, "--json", "s.json")[0] == 0
    points = json.loads(Path("s.json").read_text())["points"]
    assert [(point["sequence"], point["batch"]) for point in points] == [(8, 1), (8, 4), (32, 1), (32, 4)]


def test_sweep_of_a_callable(shell):
    arguments = (
        "predict",
        "--sweep",
        "models.py:mlp",
        "--inputs",
        "models.py:rows",
        "--device",
        "roofs.json",
        "--batch",
        "3",
    )
    code, out, _ = shell(*arguments, "--compiled", "--bandwidth", "2")
    assert code == 0
    assert "a machine on paper" in out
    assert "compiled, with 2 x its bandwidth" in " ".join(out.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("models.py:mlp", "--device", "T4"), "give --input or --inputs"),
        (("models.py:mlp", "--device", "T4", "--input", "Bx64", "--batch", "0,1"), "--batch takes whole numbers"),
        (("models.py:mlp", "--device", "T4", "--input", "Bx64", "--batch", "x"), "--batch takes whole numbers"),
        (("models.py:mlp", "--device", "T4", "--input", "Bx64", "--sequence", "8"), "there is none"),
        (("models.py:mlp", "--device", "RTX 4091", "--input", "Bx64"), "near it are RTX 4090"),
        (("models.py:mlp", "--device", "T4", "--input", "Bx9", "--batch", "1"), "RuntimeError"),
        (("models.py:Raises", "--device", "T4", "--input", "Bx9", "--batch", "1"), "lost agent"),
        (("models.py:gone", "--device", "T4", "--input", "Bx9"), "gone"),
        (("models.py:mlp", "--device", "T4", "--input", "Bx64", "--json", "nowhere/s.json"), "nowhere"),
    ],
)
def test_what_is_wrong_with_a_sweep_is_said(shell, arguments, words):
    code, out, err = shell("predict", "--sweep", *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert "Traceback" not in err
