"""``-`` in place of a file: what it prints is what the file has, what it reads is what the file says."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from given_roofs import profiler
from scaled_reports import scaled_report
from torch import nn

import roofprof
from roofprof.cli import main
from roofprof.render import files as _files


@pytest.fixture(name="report", autouse=True)
def _report(tmp_path, monkeypatch):
    """r.json of an MLP, a budget and an operator's costs, in the folder where commands run."""
    monkeypatch.chdir(tmp_path)
    report = profiler(nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 4))).run(torch.rand(8, 64))
    report.to_json("r.json")
    Path("b.toml").write_text('[total]\nmacs = "<= 1 G"\n')
    Path("m.py").write_text("import torch\n\n\ndef model():\n    return torch.nn.Linear(3, 4)\n")
    return report


@pytest.fixture(name="stdin")
def _stdin(monkeypatch):
    def holds(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return holds


@pytest.fixture
def of_ranks(monkeypatch):
    """rank0.json and rank1.json, to be merged; of1.json and of2.json, of one program on so many ranks."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank in range(2):
        monkeypatch.setenv("RANK", str(rank))
        profiler(nn.Linear(2, 2)).run(torch.rand(1, 2)).to_json(f"rank{rank}.json")
        scaled_report(rank + 1, 0.1).to_json(f"of{rank + 1}.json")
    monkeypatch.delenv("RANK")
    monkeypatch.delenv("WORLD_SIZE")


WRITERS = {
    "show": ["show", "r.json", "--json"],
    "rows": ["show", "r.json", "--csv"],
    "compare": ["compare", "r.json", "r.json", "--json"],
    "page of compare": ["compare", "r.json", "r.json", "--html"],
    "check": ["check", "r.json", "--budget", "b.toml", "--json"],
    "predict": ["predict", "r.json", "--device", "L40S", "--json"],
    "ranking": ["predict", "r.json", "--all", "--json"],
    "what if": ["predict", "r.json", "--device", "L40S", "--what-if", "--json"],
    "trace": ["trace", "r.json", "-o", "r.folded", "--json"],
    "cards": ["ceilings", "--published", "--json"],
    "roofs": ["ceilings", "--published", "L40S", "--json"],
    "predict --sweep": [
        "predict",
        "--sweep",
        "m.py:model",
        "--input",
        "Bx3",
        "--batch",
        "1,2",
        "--device",
        "L40S",
        "--json",
    ],
    "count": ["profile", "m.py:model", "--input", "1x3", "--count", "--json"],
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_dash_prints_what_the_file_would_have_and_nothing_else(name, capsysbinary):
    options = WRITERS[name]
    assert main([*options, "x"]) == 0
    assert capsysbinary.readouterr().out or name == "trace"  # a table or text
    assert main([*options, "-"]) == 0
    printed, said = capsysbinary.readouterr()
    if name == "count":  # made anew: the report has the time of day
        printed, written = (json.loads(text)["total"]["macs"] for text in (printed, Path("x").read_bytes()))
        assert printed == written == 12
    else:
        assert printed == Path("x").read_bytes()
    assert b"written to -" not in said
    assert not Path("-").exists()


@pytest.mark.parametrize(
    ("options", "dashed"),
    [
        (["show", "r.json"], ["show", "-"]),
        (["compare", "r.json", "r.json"], ["compare", "-", "r.json"]),
        (["compare", "r.json", "r.json"], ["compare", "r.json", "-"]),
        (["check", "r.json", "--budget", "b.toml"], ["check", "-", "--budget", "b.toml"]),
        (["predict", "r.json", "--all"], ["predict", "-", "--all"]),
        pytest.param(["html", "r.json", "-o", "x"], ["html", "-", "-o", "y"], marks=pytest.mark.integration),
        (["trace", "r.json", "-o", "x.folded"], ["trace", "-", "-o", "y.folded"]),
        (["merge", "rank0.json", "rank1.json"], ["merge", "-", "rank1.json"]),
        (["merge", "rank1.json", "rank0.json", "--by", "rank"], ["merge", "rank1.json", "-", "--by", "rank"]),
        (["scaling", "of1.json", "of2.json"], ["scaling", "-", "of2.json"]),
    ],
)
def test_a_dash_reads_what_the_file_has(options, dashed, stdin, capsys, of_ranks):
    del of_ranks
    assert main(options) == 0
    of_file = capsys.readouterr().out
    stdin(Path(options[dashed.index("-")]).read_bytes())
    assert main(dashed) == 0
    of_stdin = capsys.readouterr().out
    if options[0] in ("compare", "scaling"):  # which name the files
        of_file, of_stdin = (
            [line for line in text.splitlines() if ".json" not in line and "report 0" not in line]
            for text in (of_file, of_stdin)
        )
    assert of_stdin == of_file
    if "-o" in options:
        assert Path(options[-1]).read_bytes() == Path(dashed[-1]).read_bytes()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "standard input: "),
        (b"{", "standard input: "),
        (b"\xff\xfe", "standard input: "),
        (b"x" * 2000, "standard input: there are more than 1,000 bytes"),
    ],
)
def test_what_is_wrong_with_the_standard_input_is_one_sentence(content, says, stdin, capsys, monkeypatch):
    if len(content) > 1000:
        monkeypatch.setattr(_files.read_stream, "__defaults__", (1000,))
    stdin(content)
    assert main(["show", "-"]) == 2
    out, said = capsys.readouterr()
    assert (out, said.count("\n")) == ("", 1)
    assert says in said


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["compare", "-", "-"], "name a file for the other"),
        (["check", "-", "--budget", "b.toml", "--baseline", "-"], "name a file for the other"),
        (["merge", "-", "r.json", "-"], "name a file for the other"),
        (["scaling", "-", "r.json", "-"], "name a file for the other"),
        (["html", "-"], "name the file to write with -o"),
        (["plot", "-"], "name the file to write with -o"),
        (["show", "r.json", "--json", "-", "--csv", "-"], "two outputs: give each a file of its own"),
        (["compare", "r.json", "r.json", "--json", "-", "--html", "-"], "two outputs: give each a file of its own"),
        (["run", "--json", "-", "m.py"], "the program itself prints"),
        (["run", "--csv", "-", "m.py"], "the program itself prints"),
    ],
)
def test_what_cannot_be_is_refused(options, says, stdin, capsys):
    stdin(Path("r.json").read_bytes())
    assert main(options) == 2
    out, said = capsys.readouterr()
    assert (out, said.count("\n")) == ("", 1)
    assert says in said
    assert not Path("-").exists()


@pytest.mark.usefixtures("of_ranks")
def test_a_bad_standard_input_is_left_out_as_a_bad_file_is(stdin, capsys):
    stdin(b"{")
    assert main(["merge", "rank0.json", "-"]) == 2
    assert capsys.readouterr().err.startswith("roofprof: standard input: ")
    stdin(b"{")
    assert main(["merge", "rank0.json", "-", "--skip-bad"]) == 0
    out, said = capsys.readouterr()
    assert said.startswith("roofprof: left out: standard input: ")
    assert "rank 1 of 2 is missing" in out


def test_commands_pipe(report):
    command = [sys.executable, "-m", "roofprof", "show"]
    with subprocess.Popen([*command, "r.json", "--json", "-"], stdout=subprocess.PIPE) as first:
        shown = subprocess.run([*command, "-", "--csv", "-"], stdin=first.stdout, capture_output=True, check=True)
    assert first.returncode == 0
    assert shown.stdout.decode() == report.to_csv()
    assert roofprof.Report.from_json("r.json") == report
