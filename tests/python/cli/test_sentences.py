"""What the command line refuses: one table of arguments, exit code and sentence."""

import json
import shlex
import sys
from pathlib import Path

import pytest
from given_roofs import roofs
from on_meta import counted, mlp

import roofprof
from roofprof.cli import main

MODELS = """
import torch
from torch import nn

class Raises(nn.Module):
    def forward(self, x):
        raise KeyError("lost agent")

class Tokens(nn.Module):
    def forward(self, ids):
        return ids

def on_meta():
    return nn.Linear(8, 4, device="meta")

def wide(width, bias=True):
    return nn.Linear(8, width, bias)

def mlp():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))

def no_model():
    return 3

def broken():
    raise RuntimeError("no weights here")

def function():
    return len

class Two(nn.Module):
    def forward(self, left, right):
        return left @ right

def sides():
    return {"left": torch.rand(2, 2), "rigth": torch.rand(2, 2)}

number = 7

def each(output):
    return output.sum(1)

def no_loss(output):
    return None

def detached(output):
    return output.detach().sum()

def wrong_labels(output):
    raise ValueError("no labels")
"""
TRACE = {"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}

MLP = "profile models.py:mlp --input 2x8 --ceilings roofs.json"
# Options are checked before the model is built: no sentence of `broken` hides theirs.
BROKEN = "profile models.py:broken"
TIME = "time models.py:mlp --input 4x8 --warmup 1 --repeat 12"
PREDICT = "predict r.json --device T4"
SWEEP = "predict --sweep models.py:mlp --device T4"
CASES = [
    # ---- words that no command knows
    ("shwo r.json", 2, "'shwo' is not known; did you mean show?"),
    ("profile models.py:mlp --repaet 3", 2, "there is no option --repaet; did you mean --repeat?"),
    ("show r.json --colour=3", 2, "there is no option --colour"),
    ("show r.json s.json", 2, "'s.json' is one argument too many"),
    ("plot r.json --kind rofline", 2, "'rofline' is not known; did you mean roofline?"),
    ("show r.json --by phas", 2, "'phas' is not known; did you mean phase?"),
    ("show r.json --by op,kernel", 2, "'kernel' is not known; choose from op, phase, dtype, shapes"),
    (f"{MLP} --inputs models.py:batch", 2, "not allowed with"),
    (f"{MLP} --count --train", 2, "not allowed with"),
    ("show r.json --brief --format md", 2, "not allowed with"),
    (f"{PREDICT} --all", 2, "not allowed with"),
    ("predict r.json", 2, "one of the arguments --device --all is required"),
    ("show r.json --width 20", 2, "--width: must be 60 or more, or 0 for lines of any length, not 20"),
    (f"{MLP} --depth {'9' * 20}", 2, "is too large"),
    (f"{MLP} --limit -1", 2, "-1 is less than 0"),
    (f"{MLP} --warmup two", 2, "'two' is no whole number"),
    # ---- models, inputs, losses
    ("profile models.py:mpl --input 2x8", 2, "did you mean mlp"),
    ("profile nowhere.py:mlp", 2, "there is no file nowhere.py"),
    ("profile nowhere.pt", 2, "there is no file nowhere.pt"),
    ("profile no_such_package.models:mlp", 2, "no_such_package"),
    ("profile models", 2, "package.module:callable"),
    ("profile models.py:no_model", 2, "gave an int"),
    ("profile models.py:number", 2, "models.py:number is an int"),
    (BROKEN, 2, "no weights here"),
    ("profile models.py:mlp", 2, "models.py:mlp is called with input, and no input was given: add --input"),
    ("profile models.py:Raises --count", 2, "models.py:Raises is called with x, and no input was given"),
    ("profile models.py:mlp --input 2x9", 2, "models.py:mlp raised RuntimeError"),
    ("profile models.py:mlp --input 2x9 --count", 2, "models.py:mlp raised RuntimeError"),
    ("profile models.py:mlp --inputs models.py:broken", 2, "no weights here"),
    (
        "profile models.py:Two --inputs models.py:sides",
        2,
        "a dict of left, rigth, which models.py:Two, called with left, right, takes neither as keywords nor as its one",
    ),
    ("profile models.py:mlp --input 2x8 --dtype int3", 2, "models.py:mlp cannot be put on cpu as int3"),
    ("profile models.py:on_meta --input 2x8", 2, "count it with --device meta"),
    ("profile models.py:wide --input 2x8 --args width", 2, "no list of Python literals"),
    ("profile models.py:wide --input 2x8 --args '4, True, 7'", 2, "wide() failed: TypeError"),
    (f"{MLP} --loss models.py:each", 2, "--loss is for --train"),
    (f"{MLP} --train --loss models.py:eahc", 2, "did you mean each"),
    (f"{MLP} --train --loss models.py:number", 2, "models.py:number is an int; a callable that takes"),
    (f"{MLP} --train --loss models.py:Raises", 2, "models.py:Raises is a class"),
    (f"{MLP} --train --loss models.py:each", 2, "the loss models.py:each has the shape [2]"),
    (f"{MLP} --train --loss models.py:no_loss", 2, "the loss models.py:no_loss gave None"),
    (f"{MLP} --train --loss models.py:detached", 2, "the loss models.py:detached needs no gradient"),
    (f"{MLP} --train --loss models.py:wrong_labels", 2, "raised ValueError: no labels"),
    (f"{BROKEN} --json no/such/folder/r.json", 2, "there is no folder 'no/such/folder'"),
    (f"{BROKEN} --csv .", 2, "cannot write '.': it is a folder"),
    (f"{BROKEN} --columns macs,colour", 2, "no column 'colour'"),
    (f"{BROKEN} --by kernel --sort beauty", 2, "no column 'beauty'"),
    (f"{BROKEN} --dtype float99", 2, "'float99' is no dtype"),
    (f"{BROKEN} --device cuda:99", 2, "cuda:99"),
    (f"{BROKEN} --input two", 2, "'two' is no input shape"),
    ("profile models.py:mlp --input 2x8 --ceilings models.py", 2, "cannot read ceilings from models.py: "),
    ("ceilings --device tpu", 2, "tpu"),
    ("ceilings --published 'RTX 9090'", 2, "RTX 4090"),
    ("run none.py", 2, "there is no script 'none.py'"),
    ("run --json - models.py", 2, "the program itself prints"),
    ("run --csv - models.py", 2, "the program itself prints"),
    ("run --steps 0 models.py", 2, "--steps must be 1 or more"),
    # ---- times
    ("time models.py:mlp", 2, "models.py:mlp is called with input, and no input was given: add --input"),
    ("time models.py:Raises --input 1x8", 2, "models.py:Raises raised KeyError: 'lost agent'"),
    ("time models.py:Raises --input 1x8 --repeat 0", 2, "repeat must be 1 or more, not 0"),
    ("time models.py:Raises --input 1x8 --batch 0", 2, "a batch must be 1 or more, not 0"),
    (f"{TIME} --plot s.png", 2, "--plot draws a sweep over batch sizes: give --batch too"),
    (f"{TIME} --batch 1,2 --plot s.gif", 2, "cannot draw 's.gif': a plot's file ends in .svg, .png or .pdf"),
    (f"{TIME} --batch few", 2, "--batch takes 'auto' or whole numbers such as 1,2,4, not 'few'"),
    (f"{TIME} --batch 1,2 --samples 2", 2, "give one of them"),
    (f"{TIME} --seconds -1", 2, "seconds must be more than 0, not -1"),
    (f"{TIME} --device meta", 2, "tensors on the meta device hold no data"),
    (f"{TIME} --json nowhere/t.json", 2, "there is no folder 'nowhere'"),
    (f"{TIME} --input 3x8 --batch auto", 2, "the inputs' leading dimensions are 3, 4; give inputs="),
    # ---- reports
    ("show missing.json", 2, "missing.json: No such file or directory"),
    ("show models.py", 2, "models.py"),
    ("show roofs.json", 2, "roofs.json"),
    ("plot r.json --json no/x.json", 2, "cannot write 'no/x.json': there is no folder 'no'"),
    ("check r.json --budget b.toml --write --json x.json", 2, "leave it out with --write"),
    ("compare - -", 2, "name a file for the other"),
    ("check - --budget b.toml --baseline -", 2, "name a file for the other"),
    ("merge - r.json -", 2, "name a file for the other"),
    ("scaling - r.json -", 2, "name a file for the other"),
    ("html -", 2, "name the file to write with -o"),
    ("plot -", 2, "name the file to write with -o"),
    ("show r.json --json - --csv -", 2, "two outputs: give each a file of its own"),
    ("compare r.json r.json --json - --html -", 2, "two outputs: give each a file of its own"),
    # ---- predictions
    ("predict r.json --all --what-if", 2, "--what-if is about one device"),
    ("predict r.json --all --csv p.csv", 2, "--csv is of one device's report"),
    ("predict r.json --all --sort beauty", 2, "--sort is of one device's report"),
    ("predict r.json --device 'RTX 4091'", 2, "near it are RTX 4090"),
    ("predict r.json --device none.json", 2, "none.json"),
    ("predict r.json --device r.json", 2, "r.json"),  # a report, no roofs
    ("predict r.json --device roofs.json --precision fp16", 2, "no peak for fp16"),
    ("predict roofs.json --device T4", 2, "roofs.json"),
    (f"{PREDICT} --what-if --csv p.csv", 2, "--csv is of one device's report"),
    (f"{PREDICT} --precision fp99", 2, "precision must be"),
    (f"{PREDICT} --bandwidth 0", 2, "bandwidth is a factor above 0"),
    (f"{PREDICT} --batch 0", 2, "batch must be 1 or more"),
    (f"{PREDICT} --what-if --batch 0", 2, "batch must be 1 or more"),
    (f"{PREDICT} --json nowhere/p.json", 2, "nowhere"),
    (SWEEP, 2, "give --input or --inputs"),
    (f"{SWEEP} --input Bx8 --batch 0,1", 2, "--batch takes whole numbers"),
    (f"{SWEEP} --input Bx8 --sequence 8", 2, "there is none"),
    (f"{SWEEP} --input Bx9 --batch 1", 2, "RuntimeError"),
    (f"{SWEEP} --input Bx8 --json nowhere/s.json", 2, "nowhere"),
    ("predict --sweep models.py:mlp --device 'RTX 4091' --input Bx8", 2, "near it are RTX 4090"),
    ("predict --sweep models.py:Raises --device T4 --input Bx9 --batch 1", 2, "lost agent"),
    # ---- traces
    ("import t.json --device nonsense", 2, "no published peaks of 'nonsense' are known"),
    ("import t.json --device absent.json", 2, "cannot read 'absent.json'"),
    ("import t.json --device wrong.json", 2, "cannot read ceilings from wrong.json: "),
    ("import t.json --model models.py:mlp", 2, "models.py:mlp is called with input, and no input was given"),
    ("import t.json --model models.py:mlp --input 8x5", 2, "models.py:mlp raised "),
    ("import t.json --model models.py:Absent --input 8x16", 2, "models.py has no 'Absent'"),
    ("import t.json --model models.py:function --input 8x16", 2, "a torch.nn.Module, not a builtin_function_or_method"),
    ("import t.json --input 8x16", 2, "name the model, or leave them out"),
    ("import t.json --dtype float16", 2, "name the model, or leave them out"),
    ("import t.json -o absent/a.json", 2, "there is no folder 'absent'"),
    ("import t.json --steps=9-3", 2, "steps are given as '3' or '1-3'"),
    ("import t.json --steps=3-", 2, "steps are given as '3' or '1-3'"),
    ("import absent.json", 2, "No such file"),
    # ---- pages and costs
    ("ops no_such_op", 2, "no_such_op"),
    ("ops --family wine", 2, "matmul, convolution"),
    ("docs budget", 2, "budgets"),
    ("docs definitions#rooflin", 2, "roofline"),
    ("explain percent_of_rof", 2, "is called 'percent_of_rof'; the nearest are percent_of_roof"),
    ("explain no-rooof", 2, "no-roof"),
    ("explain softmx", 2, "softmax"),
    ("explain fusoin", 2, "fusion"),
]


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory):
    """All files that the lines name; no line changes one."""
    folder = tmp_path_factory.mktemp("sentences")
    (folder / "models.py").write_text(MODELS)
    (folder / "t.json").write_text(json.dumps(TRACE))
    (folder / "wrong.json").write_text('{"a": 1}')
    roofprof.Ceilings.save(roofs({"fp32": 1e12}, {"DRAM": (1e11, 0)}), folder / "roofs.json")
    counted(mlp, 64, 64).to_json(folder / "r.json")
    return folder


@pytest.mark.parametrize(("line", "code", "sentence"), CASES)
def test_what_is_wrong_is_reported_in_one_sentence(folder, line, code, sentence, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.delitem(sys.modules, "models", raising=False)
    before = sorted(folder.iterdir())
    try:
        ended, help_named = main(shlex.split(line)), ""
    except SystemExit as end:  # of argparse
        ended, help_named = end.code, " --help)"
    out, message = capsys.readouterr()
    assert message.count("\n") == 1 or not help_named, "no usage before the sentence"
    assert message.rstrip().endswith(help_named)
    assert (ended, out) == (code, "")
    assert message.splitlines()[-1].startswith("roofprof")
    assert sentence in message.splitlines()[-1]
    assert "Traceback" not in message
    assert [path for path in sorted(folder.iterdir()) if path.name != "__pycache__"] == before


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "roofprof: the following arguments are required: COMMAND (roofprof --help)\n"),
        (["shwo", "r.json"], "roofprof: 'shwo' is not known; did you mean show? (roofprof --help)\n"),
        (["profile"], "roofprof profile: the following arguments are required: target (roofprof profile --help)\n"),
        (
            ["show", "r.json", "--limit", "a\nb\x1b[31m"],
            "roofprof show: argument --limit: 'a b [31m' is no whole number (roofprof show --help)\n",
        ),
        (
            ["predict", "--sweep", "m.py:f", "--batch"],
            "roofprof predict --sweep: argument --batch: expected one argument (roofprof predict --sweep --help)\n",
        ),
    ],
)
def test_what_the_parser_refuses_is_one_sentence_that_names_the_help(words, sentence, capsys):
    with pytest.raises(SystemExit) as end:
        main(words)
    assert (end.value.code, *capsys.readouterr()) == (2, "", sentence)


def test_debug_shows_the_traceback(capsys):
    assert main(["show", "missing.json", "--debug"]) == 2
    message = capsys.readouterr().err
    assert "Traceback" in message
    assert "missing.json" in message


def test_ceilings_that_cannot_be_written_are_not_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("roofprof.roofs.ceilings.for_device_with_notes", lambda *_, **__: pytest.fail("measured"))
    assert main(["ceilings", "--json", "missing/roofs.json"]) == 2
    assert "there is no folder 'missing'" in capsys.readouterr().err
    assert not Path("missing").exists()
