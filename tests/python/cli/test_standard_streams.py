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


WRITERS = [
    "show r.json --json",
    "show r.json --csv",
    "compare r.json r.json --json",
    "compare r.json r.json --html",
    "check r.json --budget b.toml --json",
    "predict r.json --device L40S --json",
    "predict r.json --all --json",
    "predict r.json --device L40S --what-if --json",
    "trace r.json -o r.folded --json",
    "ceilings --published L40S --json",
    "predict --sweep m.py:model --input Bx3 --batch 1,2 --device L40S --json",
    "profile m.py:model --input 1x3 --count --json",
]


@pytest.mark.parametrize("line", WRITERS)
def test_a_dash_prints_what_the_file_would_have_and_nothing_else(line, capsysbinary):
    options = line.split()
    assert main([*options, "x"]) == 0
    assert capsysbinary.readouterr().out or options[0] == "trace"  # a table or text
    assert main([*options, "-"]) == 0
    printed, message = capsysbinary.readouterr()
    if "--count" in options:  # made anew: the report has the time of day
        printed, written = (json.loads(text)["total"]["macs"] for text in (printed, Path("x").read_bytes()))
        assert printed == written == 12
    else:
        assert printed == Path("x").read_bytes()
    assert b"written to -" not in message
    assert not Path("-").exists()


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("show r.json", "r.json"),
        ("compare other.json r.json", "other.json"),
        ("check r.json --budget b.toml", "r.json"),
        ("predict r.json --all", "r.json"),
        pytest.param("html r.json -o x", "r.json", marks=pytest.mark.integration),
        ("trace r.json -o x.folded", "r.json"),
        ("merge rank0.json rank1.json", "rank1.json"),
        ("scaling of1.json of2.json", "of1.json"),
    ],
)
def test_a_dash_reads_what_the_file_has(line, name, stdin, capsys, of_ranks):
    del of_ranks
    Path("other.json").write_bytes(Path("r.json").read_bytes())
    texts, written = [], []
    stdin(Path(name).read_bytes())
    for words in (line.split(), ["-" if word == name else word for word in line.split()]):
        assert main(words) == 0
        texts.append(capsys.readouterr().out.splitlines())
        written.append([Path(word).read_bytes() for word in words if word.startswith("x")])
    if words[0] in ("compare", "scaling"):  # which name the files
        texts = [[line for line in text if ".json" not in line and "report 0" not in line] for text in texts]
    assert texts[0] == texts[1]
    assert written[0] == written[1]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "standard input: "),
        (b"\xff\xfe", "standard input: "),
        (b"x" * 2000, "standard input: there are more than 1,000 bytes"),
    ],
)
def test_what_is_wrong_with_the_standard_input_is_one_sentence(content, says, stdin, capsys, monkeypatch):
    if len(content) > 1000:
        monkeypatch.setattr(_files.read_stream, "__defaults__", (1000,))
    stdin(content)
    assert main(["show", "-"]) == 2
    out, message = capsys.readouterr()
    assert (out, message.count("\n")) == ("", 1)
    assert says in message


@pytest.mark.usefixtures("of_ranks")
def test_a_bad_standard_input_is_left_out_as_a_bad_file_is(stdin, capsys):
    stdin(b"{")
    assert main(["merge", "rank0.json", "-"]) == 2
    assert capsys.readouterr().err.startswith("roofprof: standard input: ")
    stdin(b"{")
    assert main(["merge", "rank0.json", "-", "--skip-bad"]) == 0
    out, message = capsys.readouterr()
    assert message.startswith("roofprof: left out: standard input: ")
    assert "rank 1 of 2 is missing" in out


def test_commands_pipe(report):
    command = [sys.executable, "-m", "roofprof", "show"]
    with subprocess.Popen([*command, "r.json", "--json", "-"], stdout=subprocess.PIPE) as first:
        shown = subprocess.run([*command, "-", "--csv", "-"], stdin=first.stdout, capture_output=True, check=True)
    assert first.returncode == 0
    assert shown.stdout.decode() == report.to_csv()
    assert roofprof.Report.from_json("r.json") == report
