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

class Loops(nn.Module):
    def forward(self, x):
        for _ in range(10_000):
            x = x + 1
        return x

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


def test_a_report_of_a_call_on_the_cpu_can_be_made_a_trace_later(shell):
    assert shell(*PROFILE, "--trace", "r.folded", "--json", "r.json")[0] == 0
    assert Path("r.folded").read_text().startswith("Sequential")
    assert shell("trace", "r.json", "-o", "t.json") == (0, "roofprof: written to t.json\n")
    made = json.loads(Path("t.json").read_text())
    assert [e["name"] for e in slices(made, "op")] == ["aten::linear", "aten::relu", "aten::linear"]
    # Without roofs there is no share of them and no bound.
    assert {tuple(e["args"]["row"]) for e in slices(made, "op")} == {("calls", "flops", "bytes")}


def test_a_report_of_many_calls_keeps_no_events_unless_a_trace_is_made(shell):
    many = ("profile", "models.py:Loops", "--input", "2", "--repeat", "1", "--warmup", "0", "--json", "r.json")
    for options, kept in ((), False), (("--trace", "t.json"), True):
        assert shell(*many, *options)[0] == 0
        report = json.loads(Path("r.json").read_text())
        assert ("events" in report) == kept
    assert len(report["events"]["host"]["rows"]) == 10_001


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
