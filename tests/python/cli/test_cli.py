"""The shell as its users call it: results on stdout, one clear sentence and exit code 2 where something is wrong."""

import os
import subprocess
import sys
from collections import UserDict
from pathlib import Path

import pytest
import torch
from given_roofs import roofs

import roofprof
from roofprof.cli import profiling
from roofprof.cli.target import arguments_for

MODELS = """
import shutil
import torch
from torch import nn

class Dicts(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(8, 4)

    def forward(self, batch, scale=1.0):
        return {"out": self.encoder(batch["ego"]["points"]) * scale, "name": batch["name"]}

class Raises(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 4)

    def forward(self, x):
        self.first(x)
        raise KeyError("lost agent")

class RemovesTheFolder(nn.Module):
    def forward(self, x):
        shutil.rmtree("folder", ignore_errors=True)
        return x.exp()

def on_meta():
    return nn.Linear(8, 4, device="meta")

def wide(width, bias=True):
    return nn.Linear(8, width, bias)

def mlp():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))

def batch():
    return {"ego": {"points": torch.rand(2, 8)}, "name": "scene"}

def batch_with_keywords():
    return (batch(),), {"scale": 2.0}

class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4)

    def forward(self, left, right):
        return self.layer(left @ right)

def two(batch=2):
    return {"right": torch.rand(3, 8), "left": torch.rand(batch, 3)}

def two_of(batch):
    return two(batch)

def half(output):
    return output.mean() / 2
"""


@pytest.fixture(autouse=True)
def _models(tmp_path, monkeypatch):
    (tmp_path / "models.py").write_text(MODELS)
    roofprof.Ceilings.save(roofs({"fp32": 1e9}, {"DRAM": (1e9, 0)}), tmp_path / "roofs.json")
    monkeypatch.delitem(sys.modules, "models", raising=False)


PROFILE = ("profile", "models.py:mlp", "--input", "2x8", "--ceilings", "roofs.json", "--repeat", "2")
MLP_MACS = 2 * (8 * 16 + 16 * 4)


def test_profile_prints_a_table_and_writes_files(shell):
    code, out, err = shell(*PROFILE, "--json", "r.json", "--csv", "r.csv")
    assert code == 0
    assert "Linear" in out
    assert "ReLU" in out
    assert "r.json" in err
    report = roofprof.Report.from_json("r.json")
    assert report.total.macs == MLP_MACS
    assert len(report.run_times) == 2
    assert Path("r.csv").read_text().count("\n") == 1 + len(report.rows)
    assert shell("show", "r.json")[:2] == (0, out)


def test_options_of_the_table(shell):
    for options in (("--by", "op"), ("--sort", "macs"), ("--columns", "macs,time")):
        code, out, _ = shell(*PROFILE, *options)
        assert code == 0
        assert "MACs" in out
    for width in (60, 120):
        _, out, _ = shell(*PROFILE, "--width", str(width))
        assert max(len(line) for line in out.splitlines()) <= width
    assert "3 more rows below depth 0: --depth 1 shows more" in shell(*PROFILE, "--depth", "0")[1]


def test_the_wish_for_counters_reaches_the_profiler(shell, monkeypatch):
    wishes = []
    original = roofprof.RooflineProfiler

    def profiler(*args, **kwargs):
        wishes.append(kwargs["counters"])
        return original(*args, **kwargs)

    monkeypatch.setattr(profiling, "RooflineProfiler", profiler)
    assert shell(*PROFILE, "--counters", "flops")[0] == 0
    assert wishes == ["flops"]


def test_inputs_of_any_kind_and_dtypes(shell):
    roofs = ("--ceilings", "roofs.json", "--repeat", "1", "--json", "r.json")
    for inputs in ("batch", "batch_with_keywords"):
        assert shell("profile", "models.py:Dicts", "--inputs", f"models.py:{inputs}", *roofs)[0] == 0
        assert roofprof.Report.from_json("r.json").total.flops == 2 * 2 * 8 * 4 + 8 + 8
    assert shell(*PROFILE, "--dtype", "bfloat16", "--json", "r.json")[0] == 0
    assert set(roofprof.Report.from_json("r.json").total.flops_by_dtype) == {"bf16"}


def test_a_dict_of_inputs_is_keywords_where_these_are_the_parameters(shell):
    target = ("models.py:Two", "--inputs")
    assert shell("profile", *target, "models.py:two", "--count", "--json", "r.json")[0] == 0
    assert roofprof.Report.from_json("r.json").total.macs == 2 * 3 * 8 + 2 * 8 * 4
    limits = ("--warmup", "1", "--repeat", "2")
    assert shell("time", *target, "models.py:two", *limits)[0] == 0
    assert shell("time", *target, "models.py:two_of", "--batch", "1,2", *limits)[0] == 0
    sweep = ("--batch", "1,2", "--device", "T4", "--json", "s.json")
    assert shell("predict", "--sweep", *target, "models.py:two_of", *sweep)[0] == 0


class Named(torch.nn.Module):
    def forward(self, ids, mask=None):
        return ids


class One(torch.nn.Module):
    def forward(self, batch, scale=1.0):
        return batch


class AnyArguments(torch.nn.Module):
    def forward(self, *args, **kwargs):
        return args


class Keywords(torch.nn.Module):
    def forward(self, **kwargs):
        return kwargs


class OneAndKeywords(torch.nn.Module):
    def forward(self, batch=None, **kwargs):
        return batch


class Script(torch.nn.Module):
    def forward(self, ids: torch.Tensor, scale: float = 1.0):
        return ids * scale


@pytest.mark.parametrize(
    ("model", "keys", "as_keywords"),
    [
        (Named(), ["ids"], True),
        (Named(), ["mask", "ids"], True),
        (Named(), ["mask"], False),  # ids is missing, and may be the dict
        (Named(), ["ids", "labels"], False),
        (One(), ["image", "label"], False),
        (One(), ["batch"], True),
        (One(), ["scale"], False),
        (One(), [3], False),
        (AnyArguments(), ["image"], False),
        (Keywords(), ["image"], True),
        (OneAndKeywords(), ["image"], False),
        (OneAndKeywords(), ["batch", "image"], True),
        (len, ["image"], False),
    ],
)
def test_which_dicts_are_keywords(model, keys, as_keywords):
    value = dict.fromkeys(keys, 1)
    expected = ((), value) if as_keywords else ((value,), {})
    assert arguments_for(model, value, "model", "inputs") == expected
    assert arguments_for(model, UserDict(value), "model", "inputs") == expected  # as a tokenizer returns it
    assert arguments_for(model, (value,), "model", "inputs") == ((value,), {})
    assert arguments_for(torch.compile(model), value, "model", "inputs") == expected


@pytest.mark.parametrize(("args", "kwargs"), [((1,), {"scale": 2}), ((1, 2), {}), ((), {"scale": 2, "ids": 1})])
def test_a_dict_for_an_exported_program_is_what_it_was_exported_with(args, kwargs):
    example = [torch.ones(2) for _ in args], {name: torch.ones(2) for name in kwargs}
    model = torch.export.export(Script(), tuple(example[0]), example[1]).module()
    assert arguments_for(model, {"ids": 1, "scale": 2}, "model", "inputs") == (args, kwargs)


def test_a_dict_for_torchscript_follows_its_schema(tmp_path):
    torch.jit.script(Script()).save(tmp_path / "script.ts")
    for model in (torch.jit.load(tmp_path / "script.ts"), torch.jit.script(Script())):
        for keys, as_keywords in ((("ids",), True), (("scale", "ids"), True), (("x",), False)):
            value = dict.fromkeys(keys, 1)
            assert arguments_for(model, value, "model", "inputs") == (((), value) if as_keywords else ((value,), {}))


def test_training_steps_are_warmed_up_and_repeated(shell):
    code, _, _ = shell(*PROFILE, "--train", "--warmup", "1", "--json", "r.json")
    assert code == 0
    report = roofprof.Report.from_json("r.json")
    assert len(report.run_times) == len(report.bare_times) == 2
    assert report.to_dict()["runs"]["warmup"] == 1
    assert report.row("").calls == 1
    # The first layer's input needs no gradient.
    assert report.by_phase()["backward"].macs == 2 * MLP_MACS - 2 * 8 * 16
    assert report.total.macs == MLP_MACS + 2 * MLP_MACS - 2 * 8 * 16
    (note,) = (note for note in report.coverage.notes if note.code == "loss")
    assert str(note).endswith("its loss is the sum of the floating-point outputs")
    assert not any(note.code == "first-call" for note in report.coverage.notes), "each step makes its gradients"


def test_a_loss_of_the_users_own(shell):
    code, _, _ = shell(*PROFILE, "--train", "--loss", "models.py:half", "--json", "r.json")
    assert code == 0
    report = roofprof.Report.from_json("r.json")
    assert ("(outside)", "aten::mean") in report.by_module_and_operator()
    (note,) = (note for note in report.coverage.notes if note.code == "loss")
    assert str(note).endswith("its loss is models.py:half")


@pytest.mark.parametrize("train", [(), ("--train",)])
def test_a_model_that_raises_leaves_a_partial_report(shell, train):
    options = ("--ceilings", "roofs.json", "--json", "r.json", *train)
    code, out, err = shell("profile", "models.py:Raises", "--input", "2x8", *options)
    assert code == 2
    assert "KeyError" in err
    assert "lost agent" in err
    assert "Traceback" not in err
    assert "PARTIAL" in out
    report = roofprof.Report.from_json("r.json")
    assert report.partial
    assert report.total.macs == 2 * 8 * 4


def test_a_file_that_cannot_be_written_after_all_loses_nothing(shell):
    Path("folder").mkdir()
    arguments = ("profile", "models.py:RemovesTheFolder", "--input", "2x8", "--count", "--json", "folder/r.json")
    code, out, err = shell(*arguments)
    assert code == 2
    assert "RemovesTheFolder" in out
    kept = Path(err.split("kept as JSON in ")[1].strip())
    assert roofprof.Report.from_json(kept).total.flops == 16
    kept.unlink()


def test_a_model_for_meta_is_made_there(shell):
    Path("huge.py").write_text(
        "import torch\n"
        "def build():\n    return torch.nn.Linear(10**6, 10**6)\n"  # 4 TB
        "def needs_values():\n    return torch.nn.Linear(8, int(torch.ones(3).sum().item()))\n"
    )
    code, out, _ = shell("profile", "huge.py:build", "--input", "1x1000000", "--device", "meta")
    assert code == 0
    assert "1.00T" in out
    code, _, _ = shell("profile", "huge.py:needs_values", "--input", "1x8", "--device", "meta", "--json", "r.json")
    assert code == 0
    assert roofprof.Report.from_json("r.json").total.macs == 24


def test_a_count_alone(shell):
    count = ("--input", "2x8", "--count", "--json", "r.json")
    for target, macs in (
        (("models.py:mlp",), MLP_MACS),
        (("models.py:on_meta", "--device", "meta"), 2 * 8 * 4),
        (("models.py:wide", "--args", "16, bias=False"), 2 * 8 * 16),
    ):
        assert shell("profile", *target, *count)[0] == 0
        total = roofprof.Report.from_json("r.json").total
        assert (total.macs, total.time) == (macs, None)


def test_as_a_module_to_an_output_in_ascii(tmp_path):
    (tmp_path / "models.py").write_text(MODELS)
    run = subprocess.run(
        [sys.executable, "-m", "roofprof", "profile", "models:mlp", "--input", "2x8", "--count"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert b"Sequential" in run.stdout
    assert b"-----" in run.stdout
    assert b"?" not in run.stdout


@pytest.mark.parametrize("name", ["", "softmax"], ids=["more than a pipe holds", "written at the end"])
def test_a_reader_that_went_away_is_no_error(name):
    reader, writer = os.pipe()
    os.close(reader)
    run = subprocess.run(
        [sys.executable, "-m", "roofprof", "ops", name],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert (run.returncode, run.stderr) == (0, "")


def test_published_ceilings_are_listed_shown_and_used(shell):
    code, out, _ = shell("ceilings", "--published")
    assert code == 0
    heading, *cards = out.splitlines()
    assert {"RTX 4090", "H100 SXM", "GTX 1080 Ti", "MI300X"} <= {card.split("  ")[0] for card in cards}
    assert heading.startswith("card  ")
    (h100,) = (card for card in cards if card.startswith("H100 SXM "))
    for part in ("989.4 TFLOP/s", "L2", "26.2 MB", "9.92 TB/s", "scaled", "3.35 TB/s", "NVIDIA H100 80GB HBM3"):
        assert part in h100
    (t4,) = (card for card in cards if card.startswith("T4 "))
    assert t4.split()[3:7] == ["L2", "4.19", "MB", "n/a"]  # no bandwidth of its L2 is known

    code, out, _ = shell("ceilings", "--published", "rtx 4090", "--json", "4090.json", "--width", "160")
    assert code == 0
    assert out.startswith("RTX 4090\n")
    assert "82.6 TFLOP/s" in out
    assert "whitepaper" in out
    code, out, _ = shell("profile", "models.py:mlp", "--input", "2x8", "--ceilings", "4090.json", "--repeat", "1")
    assert code == 0
    assert "published" in out


def test_ceilings_of_a_known_card_stand_beside_what_was_published(shell, monkeypatch):
    measured = roofprof.Ceilings.load("roofs.json")
    monkeypatch.setattr(
        "roofprof.roofs.ceilings.for_device_with_notes", lambda *_, **__: (measured, ["the GPU was warm"])
    )
    monkeypatch.setattr("roofprof._C.gpu_environment", lambda _device: [("gpu_device", "NVIDIA H100 PCIe")])
    code, out, _ = shell("ceilings", "--device", "cuda:0", "--width", "160")
    assert code == 0
    assert "of the published value of H100 PCIe" in out
    assert "51.2 TFLOP/s" in out
    assert "note: the GPU was warm\n" in out
