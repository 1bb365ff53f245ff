"""What `roofprof explain` says is what the tables and pages have; each page that is named is there."""

import contextlib
import json
import re
from pathlib import Path

import pytest
import torch
from given_roofs import profiler
from torch import nn

import roofprof
from roofprof import _report, manual

ROOT = Path(__file__).resolve().parents[3]
FIGURES = {(field.of, field.name): field for field in _report.fields()}


@pytest.mark.parametrize("kind", ["row", "group", "kernel", "rank", "collective", "memory"])
def test_every_figure_is_defined_by_a_page_that_names_it(kind):
    for (of, name), field in FIGURES.items():
        if of == kind:
            (one,) = [one for one in roofprof.explain(name) if one.name == name and kind in one.of]
            assert one.unit, name
            assert any(line and line[:30] != field.legend[:30] for line in one.definition.split("\n")), name
            assert name.removeprefix("self_") in manual.page(one.page), name


def test_a_definition_is_quoted_from_its_page():
    (row, *_) = roofprof.explain("%roof")
    assert (row.name, row.unit, row.page) == ("percent_of_roof", "percent", "definitions#roofline")
    assert row.definition.startswith("percent_of_roof = 100 x lower bound / time.")
    assert row.formula == _report.fields()[[f.name for f in _report.fields()].index("percent_of_roof")].legend
    page = (ROOT / "docs" / "definitions.md").read_text()
    assert " ".join(row.definition.split()).removeprefix("percent_of_roof") in " ".join(page.replace("**", "").split())


@pytest.mark.parametrize(
    ("called", "name"),
    [
        ("time_ns", "time"),
        ("AI", "intensity"),
        ("Lower Bound", "lower_bound_time"),
        ("most waste", "most waste"),
        ("aten::add_.Tensor", "aten::add"),
    ],
)
def test_names_are_those_of_python_files_headings_and_operators(called, name):
    assert name in [one.name for one in roofprof.explain(called)]


@pytest.mark.parametrize("code", _report.note_kinds())
def test_every_note_has_a_page_that_is_there(code):
    (note,) = [one for one in roofprof.explain(code) if one.kind == "note"]
    assert (note.of, note.definition) == _report.note_kinds()[code]
    assert manual.page(note.page)
    assert f"`{code}`" in manual.page(dict(note.further)["in"].removeprefix("roofprof docs "))


def test_every_operator_says_its_formula_and_source():
    for cost in _report.op_costs():
        found = {one.name: one for one in roofprof.explain(cost["op"]) if one.kind == "operator"}
        assert found[cost["op"]].formula == " ".join(cost["formula"].split())
        assert found[cost["op"]].source == (cost["source"] or "plain arithmetic")


def test_every_rule_of_findings_is_explained():
    sources = [path.read_text() for path in (ROOT / "csrc" / "analysis" / "findings").glob("*.cpp")]
    named = r'(?:\{\.name|finding\.rule) = "([a-z-]+)"'
    rules = {rule for text in sources for rule in re.findall(named, text)}
    assert rules > {"never-used", "double-precision", "fusion", "copies"}
    for rule in rules:
        (one,) = [one for one in roofprof.explain(rule) if one.kind == "rule"]
        assert one.definition.startswith("Holds where: ")
        assert dict(one.further)["says"]
        assert f"`{rule}`" in manual.page(one.page)


# ---- every word that a report prints

WORDS = [
    *("bare", "warmup", "spread", "siblings", "roofs", "coverage", "n/a", ">=", "<=", "~", "most waste", "total"),
    *("(model)", "(outside)", "(optimizer)", "(data loading)", "(no region)", "(no operator)", "(outside ops)"),
    *("(outside kernels)", "(exposed communication)", "(idle device)", "(graph replay)", "(other names)"),
    *("compiled region", "AOTInductor package", "region", "forward", "backward", "recompute", "optimizer"),
    *("compute", "memory", "overhead", "latency/code", "network", "unknown", "low", "medium", "high"),
    *("parameters", "buffers", "gradients", "optimizer state", "activations", "temporaries", "inputs", "outputs"),
    *("lower bound", "the device's idle time", "fused bound", "ratio_of_roofs", "percent_fusible", "by_hand"),
    *("--by", "--depth", "--sort", "--limit", "--columns", "--expand", "--no-legend", "--brief", "--format"),
    *("--warmup", "--repeat", "--counters", "--compiled-kernels", "--train", "--count", "--device", "--input"),
]


def test_every_word_that_a_report_prints_is_explained():
    headings = {name for field in FIGURES.values() for name in (field.name, field.key, field.heading)}
    for name in sorted({*WORDS, *headings}):
        found = roofprof.explain(name)
        assert found and all(one.definition or one.formula for one in found), name
        terms = [one.definition for one in found if one.kind == "term"]
        listed = [one.definition for one in found if one.definition and one.kind in {"term", "figure"}]
        assert all(sum(text in other for other in listed) == 1 for text in terms), name  # no paragraph twice


def test_several_names_of_which_one_may_be_unknown(shell):
    code, out, err = shell("explain", "no-roof", "nosuch", "aten::softmax", "no such either")
    assert (code, err.count("\n")) == (2, 1)
    listed = [line.partition(":")[0] for line in out.splitlines() if line and not line.startswith(" ")]
    assert listed == ["no-roof", "aten"]
    assert "5 per element: max, subtract, exp, add, divide" in out
    assert max(map(len, out.splitlines())) <= 100
    assert "'nosuch'" in err
    assert "'no such either'" in err
    code, out, _ = shell("explain", "no-roof", "nosuch", "--json")
    (found,) = json.loads(out)
    assert (code, found["name"], found["further"]) == (2, "no-roof", {"in": "roofprof docs notes#roofs-and-figures"})


def test_a_name_of_several_things_has_one_entry_and_names_the_others(shell):
    _, out, _ = shell("explain", "%roof", "aten::softmax")
    head, *lines = out.splitlines()
    assert head == "percent_of_roof: a figure (of a row or group)"
    (also,) = [line for line in lines if line.startswith("  also ")]
    assert also == "  also     percent_of_roof of a kernel, percent_of_roof of a rank, percent_of_roof of a collective"
    assert lines[lines.index(also) + 1 :][:3] == [
        "           (--all)",
        "",
        "aten::softmax: an operator (family normalization)",
    ]
    found = roofprof.explain("%roof")
    assert shell("explain", "--all", "%roof")[1] == f"{found}\n"
    assert [one["of"] for one in json.loads(shell("explain", "--json", "%roof")[1])] == [one.of for one in found]
    _, out, _ = shell("explain", "warmup")
    assert out.count("\nwarmup:") == 0 and "  also     the term warmup (" in out
    assert "a note that must be read before any figure" in shell("explain", "ATTENTION")[1]


def test_a_report_adds_what_it_has():
    report = profiler(nn.Linear(64, 32)).run(torch.rand(8, 64))
    (macs,) = [one for one in report.explain("macs") if "row" in one.of]
    assert dict(macs.further)["here"] == f"{roofprof.fields['macs'].cell(report.total)} in total"
    (linear,) = [one for one in report.explain("linear") if one.name == "aten::linear"]
    assert dict(linear.further)["here"].startswith("calls 1, MACs 16.4k, ")
    assert "here" not in dict(report.explain("aten::softmax")[0].further)
    for note in report.coverage.notes:
        assert dict(report.explain(note)[0].further)["here"] == note.text


def test_findings_are_explained_by_their_rule():
    net = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).double()
    x = torch.rand(64, 256, dtype=torch.float64)
    reports = (profiler(net).run(x) for _ in range(5))  # on a busy machine other time may hide it
    report, finding = next(
        (report, finding) for report in reports for finding in report.findings if finding.rule == "double-precision"
    )
    for name in (finding, finding.rule, finding.id):
        (one,) = report.explain(name)
        assert (one.name, one.kind, one.page) == ("double-precision", "rule", "findings")
        assert dict(one.further)["here"] == finding.text


def test_tables_say_how_their_notes_are_explained():
    prof = roofprof.RooflineProfiler(nn.Linear(3, 4))
    with contextlib.suppress(KeyError), prof:
        raise KeyError
    report = prof.report()
    (line,) = [line.strip() for line in report.table(width=300).splitlines() if "roofprof explain" in line]
    codes = line.partition("roofprof explain ")[2].split()
    assert "partial" in codes
    for code in codes:
        assert "note" in [one.kind for one in roofprof.explain(code)]


# ---- pages


def test_pages_are_listed_and_printed(shell):
    code, out, _ = shell("docs")
    names = [line.split()[0] for line in out.splitlines()]
    assert code == 0
    assert set(names) == {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert shell("docs", "budgets")[1] == (ROOT / "docs" / "budgets.md").read_text()
    assert json.loads(shell("docs", "budgets", "--json")[1])["page"] == "budgets"
    assert list(json.loads(shell("docs", "--json")[1])) == names
    _, section, _ = shell("docs", "definitions#on-a-device")
    assert section.startswith("## On a device\n")
    assert "### Kernels" in section
    assert "## Roofline" not in section


def test_pages_that_messages_name_are_there():
    sources = [*(ROOT / "csrc").rglob("*.cpp"), *(ROOT / "python" / "roofprof").rglob("*.py")]
    named = {
        page for path in sources for page in re.findall(r"roofprof docs ([a-z][\w-]*(?:#[\w-]+)?)", path.read_text())
    }
    assert named
    for page in named:
        assert manual.page(page), page
