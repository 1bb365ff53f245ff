"""What is no text, no number or far beyond any is refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from given_roofs import profiler, roofs
from torch import nn

import roofprof
from roofprof import _C, Report
from roofprof.cli import main

MODEL = "from torch import nn\ndef linear():\n    return nn.Linear(8, 4)\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    profiler(nn.Linear(8, 4)).run(torch.rand(2, 8)).to_json("r.json")
    Path("m.py").write_text(MODEL)
    return tmp_path


NO_UTF8 = "\udcff"


@pytest.mark.parametrize(
    "arguments",
    [
        ("profile", "m.py:linear", "--input", "1x99999999999999999999"),
        ("profile", "m.py:linear", "--input", f"1x{'9' * 5000}"),
        ("profile", "m.py:linear", "--input", NO_UTF8),
        ("profile", f"m.py:{NO_UTF8}", "--input", "1x8"),
        ("show", "r.json", f"--columns={NO_UTF8}"),
        ("show", "r.json", f"--sort={NO_UTF8}"),
        ("show", NO_UTF8),
        ("show", "r.json", "--json", f"no/{NO_UTF8}"),
        ("check", "r.json", "--budget", NO_UTF8),
        ("compare", "r.json", NO_UTF8),
        ("predict", "r.json", "--device", NO_UTF8),
        ("ceilings", "--published", NO_UTF8),
        ("ops", NO_UTF8),
    ],
)
def test_a_sentence(arguments, folder, capsys):
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith("roofprof: ")
    assert err.count("\n") == 1
    assert "incompatible" not in err


@pytest.mark.parametrize("option", ["--limit=--", "--columns=--", "--json=--"])
def test_two_hyphens_are_no_value(option, folder, capsys):
    with pytest.raises(SystemExit) as raised:
        main(["show", "r.json", option])
    assert raised.value.code == 2
    assert "'--' is no value" in capsys.readouterr().err


def test_names_of_files_need_no_utf8(folder):
    for option in ("--json", "--csv"):
        assert main(["show", "r.json", option, f"{NO_UTF8}{option}"]) == 0
    assert Report.from_json(f"{NO_UTF8}--json") == Report.from_json("r.json")
    roofs().save(NO_UTF8)
    assert roofprof.Ceilings.load(NO_UTF8).to_dict() == roofs().to_dict()


def test_names_are_whole_and_have_a_longest_length():
    for mark in (roofprof.scope, roofprof.work):
        for name in ("\ud800", "a\udcff"):
            with pytest.raises(ValueError, match="half of a character"):
                mark(name)
        for letter in ("a", "\u00e9"):
            longest = letter * (1000 // len(letter.encode()))
            mark(longest)
            with pytest.raises(ValueError, match=r"has 100\d bytes, and a region's or work's has at most 1000"):
                mark(longest + letter)
    model = nn.Sequential()
    model.add_module("a\udcff", nn.Linear(8, 4))
    with pytest.raises(ValueError, match="half of a character"):
        roofprof.count(model, torch.rand(2, 8))


def test_a_range_of_torchs_with_a_longer_name_is_cut():
    def work(x):
        with torch.profiler.record_function("a" + "\u00e9" * 1000):
            return x @ x

    report = roofprof.count(work, torch.rand(4, 4))
    assert report.row("a" + "\u00e9" * 499).macs == 4**3


class NamedTwice(nn.Module):
    """Its regions have the names of its modules, and do something else."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with roofprof.scope("second"):
            x = self.first(x) @ x.T @ x
        with roofprof.scope("first"):
            return self.second(x).exp()


def test_a_region_that_has_the_name_of_a_module(folder):
    report = profiler(NamedTwice(), repeat=5).run(torch.rand(8, 64))
    assert len({row.path for row in report.rows}) < len(report.rows)
    same = roofprof.compare(report, report)
    assert not same.changed
    assert not (same.added or same.removed or same.renamed)
    assert all(row.before.type == row.after.type and row.before.macs == row.after.macs for row in same.modules)
    report.to_json("r.json")
    assert main(["check", "r.json", "--budget", "b.toml", "--write"]) == 0
    assert main(["check", "r.json", "--budget", "b.toml"]) == 0
    lines = Path("b.toml").read_text()
    first = report.row("first")
    assert first.type == "Linear"
    assert f'[modules."first"]\nparams = "<= {first.params}"' in lines


def test_a_corrupt_report_of_a_rank():
    own = profiler(nn.Linear(8, 4)).run(torch.rand(2, 8))._compiled
    merger = _C.RankMerger()
    merger.add(own, "one", 0, "a host")
    merger.keep(0, own)
    data = Report(merger.finish()).to_dict()
    kept = data["merged"]["kept"][0]["json"]
    assert kept["schema_version"] == data["schema_version"]
    kept["ops"][0]["module"] = 99
    with pytest.raises(ValueError, match="belongs to no module"):
        Report.from_dict(data).report_of(0)
    data["merged"]["kept"][0]["json"] = "a text"
    with pytest.raises(ValueError, match=r"merged\.kept\[0\]\.json"):
        Report.from_dict(data)
