"""``roofprof trace`` and ``roofprof profile --trace``: the file's name says what is written."""

import gzip
import json
import re
from pathlib import Path

import pytest
import torch
from given_roofs import profiler
from torch import nn
from trace_formats import check_speedscope, check_trace_events, slices

from roofprof.cli import main

MODELS = """
from torch import nn

def mlp():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))

class Raises(nn.Module):
    def forward(self, x):
        raise KeyError("lost agent")
"""


@pytest.fixture
def shell(tmp_path, monkeypatch, capsys):
    """Runs the command in a folder with models.py, and gives exit code and stderr."""
    (tmp_path / "models.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROOFPROF_CEILINGS", "off")

    def run(*arguments):
        code = main(arguments)
        return code, capsys.readouterr().err

    return run


PROFILE = ("profile", "models.py:mlp", "--input", "2x8", "--repeat", "2", "--warmup", "0")


@pytest.fixture
def reports(tmp_path):
    """Of one call: with events and without."""
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    for name, keep in (("events.json", True), ("plain.json", False)):
        profiler(net, keep_events=keep).run(torch.rand(2, 4)).to_json(tmp_path / name)


def test_profile_writes_a_trace_at_once(shell):
    code, err = shell(*PROFILE, "--trace", "t.json.gz", "--json", "r.json")
    assert code == 0
    assert "written to t.json.gz" in err
    file = json.loads(gzip.decompress(Path("t.json.gz").read_bytes()))
    check_trace_events(file)
    assert [e["name"] for e in slices(file, "op")] == ["aten::linear", "aten::relu", "aten::linear"]
    # The report that was written beside it makes the same one.
    assert shell("trace", "r.json", "-o", "again.json.gz")[0] == 0
    assert Path("again.json.gz").read_bytes() == Path("t.json.gz").read_bytes()


def test_folded_stacks_of_a_profile_keep_no_events(shell):
    assert shell(*PROFILE, "--trace", "r.folded", "--json", "r.json")[0] == 0
    assert Path("r.folded").read_text().startswith("Sequential")
    assert "events" not in json.loads(Path("r.json").read_text())


@pytest.mark.usefixtures("reports")
def test_each_suffix_has_its_format(shell):
    for name in ("T.FOLDED", "t.txt", "t.speedscope.json.gz"):
        assert shell("trace", "events.json", "-o", name) == (0, f"roofprof: written to {name}\n")
    check_speedscope(json.loads(gzip.decompress(Path("t.speedscope.json.gz").read_bytes())))
    assert Path("t.txt").read_text() == Path("T.FOLDED").read_text()


@pytest.mark.usefixtures("reports")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("trace", "plain.json", "-o", "t.json"), "keeps no events.*keep_events=True.*--trace FILE"),
        (("trace", "events.json", "-o", "t.html"), "'t.html'.*ends in .json, .json.gz, .speedscope.json, .folded"),
        (("trace", "events.json", "-o", "events.json"), "'events.json' is read by this command and would be lost"),
        (("trace", "events.json", "-o", "nowhere/t.json"), "no folder 'nowhere'"),
        (("trace", "absent.json", "-o", "t.json"), "absent.json"),
        ((*PROFILE, "--trace", "t.png"), "'t.png'.*ends in"),
        ((*PROFILE, "--trace", "t.json", "--json", "t.json"), "'t.json' is named for two outputs"),
        ((*PROFILE, "--count", "--trace", "t.json"), "--trace needs times"),
    ],
)
def test_what_cannot_be_is_one_sentence(shell, arguments, message):
    before = sorted(Path().iterdir())
    code, err = shell(*arguments)
    assert code == 2
    assert err.count("\n") == 1
    assert re.search(message, err)
    assert sorted(Path().iterdir()) == before


def test_a_model_that_raises_has_no_trace_and_is_reported_to(shell):
    code, err = shell("profile", "models.py:Raises", "--input", "2x8", "--trace", "t.json", "--json", "r.json")
    assert code == 2
    assert "no times to make a trace of" in err
    assert "KeyError: 'lost agent'" in err
    assert Path("r.json").exists()
    assert not Path("t.json").exists()
