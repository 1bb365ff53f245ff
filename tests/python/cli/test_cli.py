"""The shell as its users call it: results on stdout, one clear sentence and exit code 2 where something is wrong."""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import roofprof
from roofprof.cli import main, make_parser, profiling

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

def no_model():
    return 3

def broken():
    raise RuntimeError("no weights here")

number = 7

def half(output):
    return output.mean() / 2

def each(output):
    return output.sum(1)

def no_loss(output):
    return None

def detached(output):
    return output.detach().sum()

def wrong_labels(output):
    raise ValueError("no labels")
"""

ROOFS = {
    "schema_version": 1,
    "ceilings": {
        "device": "by hand",
        "compute": [
            {
                "dtype": "fp32",
                "operations_per_second": 1e9,
                "provenance": {"source": "given", "method": "", "date": "", "spread": None},
            }
        ],
        "memory": [
            {
                "level": "DRAM",
                "bytes_per_second": 1e9,
                "capacity_bytes": 0,
                "provenance": {"source": "given", "method": "", "date": "", "spread": None},
            }
        ],
    },
    "notes": [],
}


@pytest.fixture
def shell(tmp_path, monkeypatch, capsys):
    """Runs the command in a folder with models.py and roofs.json; gives exit code, stdout, stderr."""
    (tmp_path / "models.py").write_text(MODELS)
    (tmp_path / "roofs.json").write_text(json.dumps(ROOFS))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "models", raising=False)

    def run(*arguments):
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


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


def test_show_prints_what_profile_printed(shell):
    _, printed, _ = shell(*PROFILE, "--json", "r.json")
    code, shown, _ = shell("show", "r.json")
    assert code == 0
    assert shown == printed


@pytest.mark.parametrize("options", [("--by", "op"), ("--depth", "0"), ("--sort", "macs"), ("--columns", "macs,time")])
def test_table_options(shell, options):
    code, out, _ = shell(*PROFILE, *options)
    assert code == 0
    assert "MACs" in out


@pytest.mark.parametrize("counters", ["auto", "off", "modules", "flops"])
def test_the_wish_for_counters_reaches_the_profiler(shell, monkeypatch, counters):
    wishes = []
    original = roofprof.RooflineProfiler

    def profiler(*args, **kwargs):
        wishes.append(kwargs["counters"])
        return original(*args, **kwargs)

    monkeypatch.setattr(profiling, "RooflineProfiler", profiler)
    code, _, _ = shell(*PROFILE, "--counters", counters)
    assert code == 0
    assert wishes == [counters]


def test_the_table_fits_its_width(shell):
    for width in (60, 80, 120):
        _, out, _ = shell(*PROFILE, "--width", str(width))
        assert max(len(line) for line in out.splitlines()) <= width


def test_inputs_of_any_kind(shell):
    roofs = ("--ceilings", "roofs.json", "--repeat", "1")
    for inputs, flops in (("batch", 2 * 2 * 8 * 4 + 8 + 8), ("batch_with_keywords", 2 * 2 * 8 * 4 + 8 + 8)):
        code, _, _ = shell("profile", "models.py:Dicts", "--inputs", f"models.py:{inputs}", "--json", "r.json", *roofs)
        assert code == 0
        assert roofprof.Report.from_json("r.json").total.flops == flops


def test_dtype_and_train(shell):
    code, _, _ = shell(*PROFILE, "--dtype", "bfloat16", "--json", "r.json")
    assert code == 0
    assert set(roofprof.Report.from_json("r.json").total.flops_by_dtype) == {"bf16"}
    code, _, _ = shell(*PROFILE, "--train", "--json", "r.json")
    assert code == 0
    phases = roofprof.Report.from_json("r.json").by_phase()
    # The first layer's input needs no gradient.
    assert phases["backward"].macs == 2 * MLP_MACS - 2 * 8 * 16


def test_training_steps_are_warmed_up_and_repeated(shell):
    code, _, _ = shell(*PROFILE, "--train", "--warmup", "1", "--json", "r.json")
    assert code == 0
    report = roofprof.Report.from_json("r.json")
    assert len(report.run_times) == len(report.bare_times) == 2
    assert report.to_dict()["runs"]["warmup"] == 1
    assert report.row("").calls == 1
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


def test_a_model_that_raises_leaves_a_partial_report(shell):
    code, out, err = shell("profile", "models.py:Raises", "--input", "2x8", "--json", "r.json")
    assert code == 2
    assert "KeyError" in err
    assert "lost agent" in err
    assert "Traceback" not in err
    assert "PARTIAL" in out
    report = roofprof.Report.from_json("r.json")
    assert report.partial
    assert report.total.macs == 2 * 8 * 4


def test_a_model_that_raises_in_training_too(shell):
    code, out, err = shell("profile", "models.py:Raises", "--input", "2x8", "--train", "--ceilings", "roofs.json")
    assert code == 2
    assert "lost agent" in err
    assert "PARTIAL" in out


def test_a_wrong_shape_is_the_models_own_error(shell):
    code, out, err = shell("profile", "models.py:mlp", "--input", "2x9")
    assert code == 2
    assert not out
    assert "models.py:mlp raised RuntimeError" in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("profile", "models.py:mpl", "--input", "2x8"), "did you mean mlp"),
        (("profile", "nowhere.py:mlp"), "there is no file nowhere.py"),
        (("profile", "nowhere.pt"), "there is no file nowhere.pt"),
        (("profile", "no_such_package.models:mlp"), "no_such_package"),
        (("profile", "models"), "package.module:callable"),
        (("profile", "models.py:no_model"), "gave an int"),
        (("profile", "models.py:number"), "models.py:number is an int"),
        (("profile", "models.py:broken"), "no weights here"),
        (("profile", "models.py:mlp", "--input", "two"), "'two' is no input shape"),
        (("profile", "models.py:mlp"), "models.py:mlp is called with input, and no input was given: add --input"),
        (("profile", "models.py:Raises", "--count"), "models.py:Raises is called with x, and no input was given"),
        (("time", "models.py:mlp"), "models.py:mlp is called with input, and no input was given: add --input"),
        (("profile", "models.py:mlp", "--input", "2x8", "--dtype", "float99"), "float99"),
        (("profile", "models.py:mlp", "--input", "2x8", "--device", "cuda:99"), "cuda:99"),
        (
            ("profile", "models.py:mlp", "--input", "2x8", "--ceilings", "models.py"),
            "cannot read ceilings from models.py: ",
        ),
        (("profile", "models.py:mlp", "--inputs", "models.py:broken"), "no weights here"),
        ((*PROFILE, "--columns", "macs,colour"), "colour"),
        ((*PROFILE, "--sort", "beauty"), "beauty"),
        ((*PROFILE, "--json", "no/such/folder/r.json"), "no/such/folder/r.json"),
        (
            ("profile", "models.py:mlp", "--input", "2x8", "--dtype", "int3"),
            "models.py:mlp cannot be put on cpu as int3",
        ),
        (("profile", "models.py:mlp", "--input", "2x8", "--dtype", "int64"), "cannot be put on cpu as int64"),
        (("profile", "models.py:on_meta", "--input", "2x8"), "count it with --device meta"),
        (("profile", "models.py:wide", "--input", "2x8", "--args", "width"), "no list of Python literals"),
        (("profile", "models.py:wide", "--input", "2x8", "--args", "4, True, 7"), "wide() failed: TypeError"),
        (("profile", "models.py:mlp", "--input", "2x9", "--count"), "models.py:mlp raised RuntimeError"),
        ((*PROFILE, "--loss", "models.py:half"), "--loss is for --train"),
        ((*PROFILE, "--train", "--loss", "models.py:halve"), "did you mean half"),
        ((*PROFILE, "--train", "--loss", "models.py:number"), "models.py:number is an int; a callable that takes"),
        ((*PROFILE, "--train", "--loss", "models.py:Dicts"), "models.py:Dicts is a class"),
        ((*PROFILE, "--train", "--loss", "models.py:each"), "the loss models.py:each has the shape [2]"),
        ((*PROFILE, "--train", "--loss", "models.py:no_loss"), "the loss models.py:no_loss gave None"),
        ((*PROFILE, "--train", "--loss", "models.py:detached"), "the loss models.py:detached needs no gradient"),
        ((*PROFILE, "--train", "--loss", "models.py:wrong_labels"), "raised ValueError: no labels"),
        (("show", "missing.json"), "missing.json: No such file or directory"),
        (("show", "models.py"), "models.py"),
        (("show", "roofs.json"), "roofs.json"),
        (("ceilings", "--device", "tpu"), "tpu"),
        (("ceilings", "--device", "cuda:99"), "cuda:99"),
        (("ceilings", "--published", "RTX 9090"), "RTX 4090"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(shell, arguments, says):
    code, _, err = shell(*arguments)
    last = err.strip().splitlines()[-1]
    assert code == 2
    assert last.startswith("roofprof: ")
    assert says in last
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--json", "no/such/folder/r.json"), "there is no folder 'no/such/folder'"),
        (("--csv", "."), "cannot write '.': it is a folder"),
        (("--columns", "macs,colour"), "no column 'colour'"),
        (("--sort", "beauty"), "no column 'beauty'"),
        (("--by", "kernel", "--sort", "beauty"), "no column 'beauty'"),
        (("--dtype", "float99"), "'float99' is no dtype"),
        (("--device", "cuda:99"), "cuda:99"),
        (("--input", "two"), "'two' is no input shape"),
    ],
)
def test_options_are_checked_before_the_model_is_built(shell, arguments, says):
    code, _, err = shell("profile", "models.py:broken", *arguments)
    assert code == 2
    assert says in err
    assert "no weights here" not in err


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


def test_two_files_of_one_name_are_refused(shell):
    code, out, err = shell(*PROFILE, "--json", "same", "--csv", "same")
    assert (code, out) == (2, "")
    assert "'same' is named for two outputs" in err
    assert not Path("same").exists()


@pytest.mark.parametrize("option", ["--depth", "--width", "--limit", "--repeat", "--warmup"])
@pytest.mark.parametrize(
    ("value", "problem"),
    [("9" * 20, "is too large"), ("-1", "-1 is less than 0"), ("two", "'two' is no whole number")],
)
def test_numbers_of_options(shell, capsys, option, value, problem):
    with pytest.raises(SystemExit) as end:
        shell(*PROFILE, option, value)
    assert end.value.code == 2
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("shwo", "r.json"), "'shwo' is not known; did you mean show?"),
        (("profile", "models.py:mlp", "--repaet", "3"), "there is no option --repaet; did you mean --repeat?"),
        (("show", "r.json", "--colour=3"), "there is no option --colour"),
        (("show", "r.json", "s.json"), "'s.json' is one argument too many"),
        (("plot", "r.json", "--kind", "rofline"), "'rofline' is not known; did you mean roofline?"),
        (("show", "r.json", "--by", "phas"), "'phas' is not known; did you mean phase?"),
        (("show", "r.json", "--by", "op,kernel"), "'kernel' is not known; choose from op, phase, dtype, shapes"),
        (("profile", "models.py:mlp", "--input", "2x8", "--inputs", "models.py:batch"), "not allowed with"),
        (("profile", "models.py:mlp", "--input", "2x8", "--count", "--train"), "not allowed with"),
        (("show", "r.json", "--brief", "--format", "md"), "not allowed with"),
        (("predict", "r.json", "--all", "--device", "T4"), "not allowed with"),
        (("predict", "r.json"), "one of the arguments --device --all is required"),
    ],
)
def test_the_parser_says_what_is_wrong_and_which_words_are_near(shell, capsys, words, says):
    with pytest.raises(SystemExit) as end:
        shell(*words)
    assert end.value.code == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("keys", ["phase", "dtype", "op, phase", "module,op"])
def test_groups_of_ops_add_up_to_the_total(shell, keys):
    shell(*PROFILE, "--json", "r.json")
    code, out, _ = shell("show", "r.json", "--by", keys, "--no-legend", "--columns", "macs,time")
    assert code == 0
    names = [key.strip() for key in keys.split(",")]
    head = next(line for line in out.splitlines() if line.startswith(f"{names[0]} "))
    assert head.split() == [*names, "MACs", "self", "time"]
    groups = roofprof.Report.from_json("r.json").group(*names)
    assert sum(group.macs for group in groups) == MLP_MACS
    lines = {line.split("  ")[0]: line.split()[-2] for line in out.splitlines() if len(line.split()) > 1}
    assert lines["total"] == lines["all ops"] == str(MLP_MACS)
    assert lines["(outside ops)"] == "0"


def test_ceilings_that_cannot_be_written_are_not_measured(shell, monkeypatch):
    monkeypatch.setattr("roofprof.roofs.ceilings.for_device_with_notes", lambda *_, **__: pytest.fail("measured"))
    code, _, err = shell("ceilings", "--json", "missing/roofs.json")
    assert code == 2
    assert "there is no folder 'missing'" in err


def test_a_count_alone(shell):
    code, _, _ = shell("profile", "models.py:mlp", "--input", "2x8", "--count", "--json", "r.json")
    report = roofprof.Report.from_json("r.json")
    assert code == 0
    assert (report.total.macs, report.total.time) == (MLP_MACS, None)
    code, _, _ = shell("profile", "models.py:on_meta", "--input", "2x8", "--device", "meta", "--json", "r.json")
    assert code == 0
    assert roofprof.Report.from_json("r.json").total.macs == 2 * 8 * 4


def test_a_target_is_called_with_arguments(shell):
    arguments = ("profile", "models.py:wide", "--input", "2x8", "--count", "--json", "r.json")
    code, _, _ = shell(*arguments, "--args", "16, bias=False")
    assert code == 0
    assert roofprof.Report.from_json("r.json").total.flops == 2 * 2 * 8 * 16


def test_hints_name_the_options_of_the_shell(shell):
    _, out, _ = shell(*PROFILE, "--depth", "0")
    assert "3 more rows below depth 0: --depth 1 shows more" in out


def test_an_output_in_ascii_gets_the_table_in_ascii(tmp_path):
    (tmp_path / "models.py").write_text(MODELS)
    run = subprocess.run(
        [sys.executable, "-m", "roofprof", "profile", "models.py:mlp", "--input", "2x8", "--count"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert b"-----" in run.stdout
    assert b"?" not in run.stdout


def test_debug_shows_the_traceback(shell):
    code, _, err = shell("show", "missing.json", "--debug")
    assert code == 2
    assert "Traceback" in err
    assert "missing.json" in err


def test_as_a_module_and_from_another_folder(tmp_path):
    (tmp_path / "models.py").write_text(MODELS)
    (tmp_path / "roofs.json").write_text(json.dumps(ROOFS))
    run = subprocess.run(
        [sys.executable, "-m", "roofprof", "profile", "models:mlp", *PROFILE[2:]],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "Sequential" in run.stdout


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


def test_ceilings_are_measured_once_and_written(shell, monkeypatch, tmp_path):
    monkeypatch.setenv("ROOFPROF_CACHE_DIR", str(tmp_path / "cache"))
    code, out, _ = shell("ceilings", "--json", "measured.json")
    assert code == 0
    assert "DRAM" in out
    assert "fp32" in out
    again, same, _ = shell("ceilings")
    assert (again, same) == (0, out)
    assert roofprof.Ceilings.load("measured.json").compute


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


# ---- numbers


def numeric_options():
    subparsers = next(action for action in make_parser()._actions if isinstance(action, argparse._SubParsersAction))
    for command, its in subparsers.choices.items():
        for action in its._actions:
            try:
                is_number = callable(action.type) and isinstance(action.type("64"), (int, float))
            except argparse.ArgumentTypeError:
                is_number = False
            if is_number and action.option_strings:
                yield pytest.param(command, action, id=f"{command} {action.option_strings[0]}")


@pytest.mark.parametrize(("command", "action"), [*numeric_options()])
def test_no_number_is_taken_for_another(command, action):
    """What is no number is refused, and what is one is kept as it is, or refused in a sentence."""
    option = action.option_strings[0]
    for text in ("x", "", "1e"):
        with pytest.raises((argparse.ArgumentTypeError, ValueError)):
            action.type(text)
    for text in ("0", "1", "20", "59", "60", "1000"):
        try:
            value = action.type(text)
        except argparse.ArgumentTypeError as error:
            assert text in str(error), (command, option)
        else:
            assert value in {float(text), float(text) / 100}, (command, option)  # a percentage is a share
    if option in {"--width", "--limit"}:
        assert re.search(r"\b0\b", action.help), f"{command} --help does not say what {option} 0 means"


def test_a_width_that_no_table_fits_is_refused_in_a_sentence(capsys):
    with pytest.raises(SystemExit):
        main(["show", "r.json", "--width", "20"])
    assert "--width: must be 60 or more, or 0 for lines of any length, not 20" in capsys.readouterr().err
