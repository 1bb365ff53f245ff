"""The answers to agents: what reports have, short, the same each time, errors in one sentence."""

import types
from pathlib import Path

import pytest
import torch
from given_roofs import profiler
from kinds_of_reports import REPORTS
from torch import nn

import roofprof
from roofprof import manual
from roofprof.agents.folder import Folder
from roofprof.agents.tools import MOST_CHARACTERS, Tools, _names


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    net = nn.Sequential(*(nn.Linear(16, 16) for _ in range(300)), nn.ReLU())
    profiler(net).run(torch.rand(8, 16)).to_json(folder / "large.json")
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 4))
    for name in ("a.json", "b.json"):
        profiler(net).run(torch.rand(8, 64)).to_json(folder / name)
    (folder / "other.json").write_text("{}")
    return folder


@pytest.fixture(name="tools")
def _tools(folder):
    return Tools(Folder(folder))


def test_reports_are_listed(tools):
    lines = tools.reports().splitlines()
    assert [line.partition(":")[0] for line in lines[:3]] == ["a.json", "b.json", "large.json"]
    assert lines[0].startswith("a.json: Sequential on cpu; time ")
    assert "MACs 69.6k" in lines[0]
    assert lines[3] == "(1 JSON file besides that is no report)"


def test_rows_are_those_of_the_report(tools, folder):
    report = roofprof.Report.from_json(folder / "a.json")
    head, *lines = tools.rows("a.json", columns="time,macs", sort="").splitlines()
    assert head == "module | type | time | MACs"
    shown = [line.split(" | ") for line in lines[:-1]]
    assert [cells[0] for cells in shown] == ["(model)", "0", "1", "2"]
    for cells, row in zip(shown, report.rows, strict=True):
        time, macs = (roofprof.fields[name].cell(row) for name in ("time", "macs"))
        assert cells[1:] == [row.type, time.replace("µ", "u"), macs]
    assert lines[-1].startswith("total: time ")


def test_rows_are_sorted_limited_and_say_how_many_are_left(tools, folder):
    report = roofprof.Report.from_json(folder / "a.json")
    _, first, *_, more, _ = tools.rows("a.json", by="op", sort="macs", limit=1).splitlines()
    assert first.startswith("aten::linear | ")
    groups = len(report.group("op"))
    assert more == f"({groups - 1} more of {groups}: a larger limit, or another sort or under)"
    assert tools.rows("a.json", under="2").count("\n") == 2  # heads, the row, the total


def test_briefs_are_those_of_the_report_and_name_tools_in_place_of_shell_commands(tools, folder):
    *lines, commands = roofprof.Report.from_json(folder / "a.json").brief().splitlines()
    assert "roofprof show" in commands
    assert tools.brief("a.json").splitlines() == [*lines, "(the tools findings, rows and explain have more)"]


def test_findings_say_where_why_what_to_do_and_what_it_gains(tools, folder):
    found = roofprof.Report.from_json(folder / "a.json").findings
    answer = tools.findings("a.json", limit=10)
    for place, one in enumerate(found, 1):
        assert f"{place}. {one.rule}: {one.text}\n" in answer
        assert f"   do: {one.action}\n" in answer
        assert f"confidence {one.confidence}: {one.because}\n" in answer
        assert f"   id: {one.id}" in answer
    assert found or answer.startswith("no finding: ")
    assert answer.startswith("(gains do not add up: ") == (len(found) > 1)


def test_every_kind_of_report_is_answered(tmp_path):
    for name, make in REPORTS.items():
        report = roofprof.Report.from_dict(make())
        report.to_json(tmp_path / "k.json")
        tools = Tools(Folder(tmp_path))
        assert tools.rows("k.json").startswith("module | type")
        assert tools.rows("k.json", by="op").startswith("group")
        answer = tools.kernels("k.json", limit=3)
        assert bool(report.kernels) == (not report.why_no_kernels), name
        if report.kernels:
            assert answer.startswith("kernel | module | op | total"), name
        else:  # as the table says it
            assert answer == f"the report has {report.why_no_kernels}"
            assert report.why_no_kernels in " ".join(report.table(by="kernel").split()), name
    roofprof.count(nn.Linear(8, 4), torch.rand(2, 8)).to_json(tmp_path / "r.json")
    assert Tools(Folder(tmp_path)).findings("r.json").startswith("no finding: ")  # it has no times


def test_reports_are_compared(tools):
    answer = tools.compare("a.json", "b.json")
    assert "compares a.json" in answer
    assert any(line.startswith("total | ") for line in answer.splitlines())
    assert "\u2500" not in answer


def test_times_are_predicted(tools, folder):
    report = roofprof.Report.from_json(folder / "a.json").predict("L40S")
    head = tools.predict("a.json", "L40S").splitlines()[0]
    assert head.startswith(f"on L40S: {roofprof.fields['time'].cell(report.total).replace('µ', 'u')}, 80% interval ")
    first = tools.predict("a.json").splitlines()[0].partition(":")[0]
    assert first == roofprof.Report.from_json(folder / "a.json").predict_all()[0].device
    for wrong in ("RTX 4091", "roofs.json", "/etc/roofs.json"):
        with pytest.raises(ValueError):
            tools.predict("a.json", wrong)


def test_names_are_explained_and_pages_printed(tools):
    assert tools.explain("no-roof") == str(manual.explain("no-roof"))
    assert "here     69.6k in total" in tools.explain("macs", "a.json")
    assert tools.docs("definitions#kernels") == manual.page("definitions#kernels")
    assert tools.docs("").count("\n") == len(manual.pages()) - 1


def test_answers_are_short_and_say_how_to_get_more(tools):
    answer = tools.docs("definitions")
    assert len(answer) <= MOST_CHARACTERS
    assert "more lines; sections: what-every-figure-means, rows, counts" in answer
    answer = tools.rows(
        "large.json", under="", sort="", limit=200, columns="time,macs,flops,bytes,bound,percent_of_roof"
    )
    assert len(answer) <= MOST_CHARACTERS
    answer = tools.rows("large.json", by="module,op,phase,shapes", limit=200)
    assert len(answer) <= MOST_CHARACTERS
    assert answer.splitlines()[-1].endswith("a smaller limit, or fewer columns)")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda tools: tools.rows("a.json", under="4"), "4"),
        (lambda tools: tools.rows("a.json", by="colour"), "colour"),
        (lambda tools: tools.rows("a.json", sort="tiem"), "there is no figure 'tiem' here; the nearest are time"),
        (lambda tools: tools.rows("a.json", limit=0), "limit must be 1 or more, not 0"),
        (lambda tools: tools.rows("a.json", by="op", under="2"), "under is for by='module'"),
        (lambda tools: tools.explain("wsated"), "the nearest are "),
        (lambda tools: tools.docs("agent"), "there is no page 'agent'"),
        (lambda tools: tools.rows("../a.json"), "is not in the folder of reports"),
    ],
)
def test_errors_are_one_sentence(tools, call, says):
    with pytest.raises((ValueError, KeyError)) as caught:
        call(tools)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_only_a_model_that_is_named_runs_and_its_report_is_new(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reports").mkdir()
    Path("m.py").write_text("import torch\n\n\ndef build():\n    return torch.nn.Linear(64, 32)\n")
    tools = Tools(Folder("reports"), ["m.py:build --count"])
    names = [[tool.__name__ for tool in one.all()] for one in (tools, Tools(Folder("reports")))]
    assert names[0] == [*names[1], "profile"]
    assert len(names[0]) <= 10
    for target in ("m.py:other", "m.py:build --inputs m.py:batch", "", "os:system"):
        with pytest.raises(ValueError, match="may not run; allowed are m.py:build"):
            tools.profile(target, "new.json")
    assert not list(Path("reports").iterdir())
    answer = tools.profile("m.py:build", "new.json", ["4x64"])
    assert answer.startswith("new.json is written.\ntotal: ")
    total = roofprof.Report.from_json("reports/new.json").total
    assert total.macs == 4 * 64 * 32
    assert f"MACs {roofprof.fields['macs'].cell(total)}" in answer
    with pytest.raises(ValueError, match="is there already"):
        tools.profile("m.py:build", "new.json", ["4x64"])
    with pytest.raises(ValueError, match="'m.py:build' was not profiled: .*'--json=x' is no input shape"):
        tools.profile("m.py:build", "newer.json", ["--json=x"])
    Path("m.py").write_text("import sys\nsys.exit('a\\u202e\\x1b[31m\\n1. do: \"x\"\\u2028y ')\n")
    with pytest.raises(ValueError, match='^\'m.py:build\' was not profiled: "[^\n"]*"$'):  # what it prints is quoted
        tools.profile("m.py:build", "newer.json")


def test_a_kernel_of_compiled_code_has_the_ops_that_are_in_it():
    kernel = types.SimpleNamespace(name="cpp_fused_relu_0", module="", op="", fused="aten::relu, aten::add")
    assert _names(kernel, "kernel") == ["cpp_fused_relu_0", "(model)", '"aten::relu, aten::add"']
