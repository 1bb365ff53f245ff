"""roofprof-report, the program of the C++ half, beside the commands of the Python package."""

import subprocess
from pathlib import Path

import pytest
import torch
from cpp_project import BUILD

import roofprof
from roofprof.cli import main

PLACES = [BUILD / "roofprof-report", Path(roofprof.__file__).parent / "bin" / "roofprof-report"]
PROGRAM = next((place for place in PLACES if place.is_file()), None)
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="roofprof-report is not built")


def run(*words):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False)


@pytest.fixture
def report(tmp_path):
    layers = [torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()) for _ in range(4)]
    path = tmp_path / "report.json"
    roofprof.count(torch.nn.Sequential(*layers), torch.rand(3, 8)).to_json(path)
    return str(path)


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--by", "op"],
        ["--by=op", "--sort", "macs"],
        ["--expand", "--depth", "1"],
        ["--columns", "calls, macs,self_flops", "--limit", "2", "--no-legend", "--width", "80"],
    ],
)
def test_it_prints_what_the_command_prints(report, options, capsys):
    assert main(["show", report, *options]) == 0
    printed = run("show", report, *options)
    assert (printed.returncode, printed.stderr) == (0, "")
    assert printed.stdout.rstrip("\n") == capsys.readouterr().out.rstrip("\n")


def test_it_writes_what_it_read(report, tmp_path):
    again, rows = tmp_path / "again.json", tmp_path / "rows.csv"
    assert run("show", report, "--json", again, "--csv", rows).returncode == 0
    assert roofprof.Report.from_json(again).total.macs == 4 * 3 * 8 * 8
    assert len(rows.read_text().splitlines()) == 1 + len(roofprof.Report.from_json(report).rows)


def test_the_rows_alone(report):
    whole, rows = run("show", report).stdout, run("show", report, "--rows-only").stdout
    assert rows in whole
    assert "roofprof" not in rows
    assert "columns" not in rows


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 2, "a command is needed"),
        (["compare", "a", "b"], 2, "there is no command 'compare'"),
        (["show"], 2, "show takes one report"),
        (["show", "a", "b"], 2, "show takes one report"),
        (["merge"], 2, "merge takes"),
        (["show", "a", "--depht", "1"], 2, "there is no option '--depht'"),
        (["show", "a", "--depth"], 2, "--depth needs a value"),
        (["show", "none.json"], 2, "none.json"),
    ],
)
def test_it_refuses_in_a_sentence(words, code, said):
    refused = run(*words)
    assert (refused.returncode, refused.stdout) == (code, "")
    assert said in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", ["show", "merge"])
@pytest.mark.parametrize("option", ["-o", "--json", "--csv"])
def test_it_never_writes_what_it_reads(report, tmp_path, command, option):
    before = Path(report).read_bytes()
    (tmp_path / "soft").symlink_to(report)
    (tmp_path / "hard").hardlink_to(report)
    for name in (report, f"{tmp_path}/../{tmp_path.name}/report.json", tmp_path / "soft", tmp_path / "hard"):
        refused = run(command, report, option, name)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert f"'{name}' is read by this command and would be lost" in refused.stderr
        assert Path(report).read_bytes() == before
    assert "none.json" in run(command, tmp_path / "none.json", option, tmp_path / "none.json").stderr


def test_its_outputs_are_two_files(report, tmp_path):
    for _ in range(2):
        refused = run("show", report, "--json", tmp_path / "x", "--csv", f"{tmp_path}/../{tmp_path.name}/x")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "is named for two outputs" in refused.stderr
        (tmp_path / "x").write_text("of an earlier run")
    assert run("show", report, "--json", "/dev/null", "--csv", "/dev/null").returncode == 0


def test_values_that_make_no_sense_are_refused(report):
    assert "takes a whole number, not 'two'" in run("show", report, "--depth", "two").stderr
    assert "depth must be 0 or more" in run("show", report, "--depth=-1").stderr
    assert "no column 'colour'" in run("show", report, "--sort", "colour").stderr


def test_it_needs_no_torch():
    assert "torch" not in subprocess.run(["ldd", PROGRAM], capture_output=True, text=True, check=True).stdout


def test_it_merges_the_reports_of_ranks(tmp_path, monkeypatch):
    files = [str(tmp_path / f"r{rank}.json") for rank in range(2)]
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank, name in enumerate(files):
        monkeypatch.setenv("RANK", str(rank))
        roofprof.count(torch.nn.Linear(8, 4), torch.rand(rank + 1, 8)).to_json(name)
    merged = run("merge", *files, "-o", tmp_path / "all.json")
    assert (merged.returncode, merged.stderr) == (0, "")
    assert "on 2 ranks" in merged.stdout
    assert roofprof.Report.from_json(tmp_path / "all.json").total.macs == (1 + 2) * 8 * 4
